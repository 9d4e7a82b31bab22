//! Permissions: from the agent's request to an approval, and back. Options are chosen by what they mean.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionRequest, ToolCallContent, ToolKind,
};
use nuncio_protocol::{Value, json};

use super::updates::{Call, Calls};
use crate::agent::{Approval, Choice, ChoiceKind, DecidedBy, Decision};

/// The approval that a request asks for. What it leaves out is known from the call that it is about.
pub(crate) fn approval(request: &RequestPermissionRequest, calls: &Calls) -> Approval {
    let fields = &request.tool_call.fields;
    let id = request.tool_call.tool_call_id.to_string();
    let known = calls.get(&id);
    let title = fields.title.clone().or_else(|| known.map(|call| call.title.clone())).filter(|title| !title.is_empty());
    let name = fields.name.clone().or_else(|| known.and_then(|call| call.tool.clone()));
    let kind = fields.kind.or_else(|| known.map(|call| call.kind)).unwrap_or_default();
    let tool = name.unwrap_or_else(|| kind_name(kind).to_owned());
    let input = fields.raw_input.clone().or_else(|| known.and_then(|call| call.input.clone()));
    let mut paths = known.map(Call::paths).unwrap_or_default();
    let diffs = fields.content.iter().flatten().filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(diff),
        _ => None,
    });
    paths.extend(super::updates::paths(fields.locations.as_deref().unwrap_or_default(), diffs));
    Approval {
        action: title.unwrap_or_else(|| tool.clone()),
        tool,
        call: id,
        input: input.unwrap_or(Value::Null),
        paths,
        options: request.options.iter().filter_map(choice).collect(),
    }
}

/// What the agent is told.
pub(crate) fn outcome(approval: &Approval, decision: &Decision) -> Value {
    let chosen = decision.option.as_ref().and_then(|id| approval.options.iter().find(|choice| choice.id == *id));
    let by_caller = decision.by == DecidedBy::Caller;
    // Agents write "always" into the settings of their user: only a person may say that.
    let fits = |choice: &&Choice| {
        let lasts = matches!(choice.kind, ChoiceKind::AllowAlways | ChoiceKind::RejectAlways);
        choice.kind.allows() == decision.approved && (by_caller || !lasts)
    };
    let once = if decision.approved { ChoiceKind::AllowOnce } else { ChoiceKind::RejectOnce };
    let usual = || approval.options.iter().find(|choice| choice.kind == once);
    match chosen.filter(fits).or_else(usual) {
        Some(choice) => json!({ "outcome": { "outcome": "selected", "optionId": choice.id } }),
        None => json!({ "outcome": { "outcome": "cancelled" } }),
    }
}

/// A kind of tool as the protocol spells it.
pub(crate) fn kind_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        _ => "other",
    }
}

fn choice(option: &PermissionOption) -> Option<Choice> {
    let kind = match option.kind {
        PermissionOptionKind::AllowOnce => ChoiceKind::AllowOnce,
        PermissionOptionKind::AllowAlways => ChoiceKind::AllowAlways,
        PermissionOptionKind::RejectOnce => ChoiceKind::RejectOnce,
        PermissionOptionKind::RejectAlways => ChoiceKind::RejectAlways,
        _ => return None,
    };
    Some(Choice { id: option.option_id.to_string(), name: option.name.clone(), kind })
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::codec;

    use super::*;

    /// In an order that misleads whoever goes by position.
    fn asked(kinds: &[&str]) -> Approval {
        let options: Vec<Value> =
            kinds.iter().map(|kind| json!({ "optionId": format!("id-{kind}"), "name": kind, "kind": kind })).collect();
        let request = json!({
            "sessionId": "s", "options": options,
            "toolCall": { "toolCallId": "c", "title": "Run it", "kind": "execute", "rawInput": { "command": "ls" } },
        });
        approval(&codec::from_value(request).unwrap(), &Calls::default())
    }

    fn told(approval: &Approval, approved: bool, option: Option<&str>, by: DecidedBy) -> String {
        let decision = Decision { approved, option: option.map(str::to_owned), reason: None, by };
        let outcome = outcome(approval, &decision);
        outcome["outcome"]["optionId"].as_str().or(outcome["outcome"]["outcome"].as_str()).unwrap().to_owned()
    }

    #[test]
    fn files_are_known_from_places_and_changes() {
        let request = json!({
            "sessionId": "s", "options": [], "toolCall": {
                "toolCallId": "c", "kind": "edit", "locations": [{ "path": "/w/a" }],
                "content": [{ "type": "diff", "path": "/w/b", "newText": "" }],
            },
        });
        let asked = approval(&codec::from_value(request).unwrap(), &Calls::default());
        assert_eq!(asked.paths, ["/w/a", "/w/b"]);
    }

    #[test]
    fn options_are_chosen_by_what_they_mean() {
        let all = asked(&["reject_always", "allow_always", "reject_once", "allow_once"]);
        assert_eq!((all.tool.as_str(), all.action.as_str(), all.call.as_str()), ("execute", "Run it", "c"));
        assert_eq!(told(&all, true, None, DecidedBy::Caller), "id-allow_once");
        assert_eq!(told(&all, false, None, DecidedBy::Nobody), "id-reject_once");
        assert_eq!(told(&all, true, Some("id-allow_always"), DecidedBy::Caller), "id-allow_always");
        assert_eq!(told(&all, false, Some("id-allow_once"), DecidedBy::Caller), "id-reject_once");
    }

    #[test]
    fn only_a_person_says_always() {
        let always = asked(&["allow_always", "reject_always"]);
        assert_eq!(told(&always, true, Some("id-allow_always"), DecidedBy::Rule), "cancelled");
        assert_eq!(told(&always, false, Some("id-reject_always"), DecidedBy::Nobody), "cancelled");
        assert_eq!(told(&always, false, None, DecidedBy::Caller), "cancelled");
        assert_eq!(told(&always, true, Some("id-allow_always"), DecidedBy::Caller), "id-allow_always");
        assert_eq!(told(&asked(&[]), true, None, DecidedBy::Rule), "cancelled");
    }
}
