//! Reads what somebody answered to an approval.

use nuncio_protocol::{Content, Message, Value};

use super::{Approval, DecidedBy, Decision, HITL};

/// The decision in a message: kagent's form, a data part `{"id" or "inputId", "decision", "digest"?}`, or words.
/// One that names another request, or something else to be done, decides nothing.
pub(super) fn read(message: &Message, id: &str, digest: &str, approval: &Approval) -> Option<Decision> {
    if message.extensions.iter().any(|uri| uri == HITL)
        && let Some(said) = message.metadata.get(HITL)
    {
        return hitl(said, id, approval);
    }
    if let Some((data, said)) = data(message) {
        let same_digest = data["digest"].as_str().is_none_or(|other| other == digest);
        let is_meant = name(data) == Some(id) && same_digest && is_here(data, message, approval);
        let decision = is_meant.then(|| word(said, approval))??;
        return Some(Decision { reason: data["reason"].as_str().map(str::to_owned), ..decision });
    }
    word(&message.text(), approval)
}

/// The requests that a message decides about by their names.
pub(super) fn named(message: &Message) -> Vec<&str> {
    let declared = message.extensions.iter().any(|uri| uri == HITL);
    match message.metadata.get(HITL).filter(|_| declared) {
        Some(said) => decided(said).into_iter().flatten().filter_map(|one| one["id"].as_str()).collect(),
        None => data(message).and_then(|(data, _)| name(data)).into_iter().collect(),
    }
}

/// The first data part that holds a decision, and that decision.
fn data(message: &Message) -> Option<(&Value, &str)> {
    message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data @ Value::Object(_)) => Some((data, data["decision"].as_str()?)),
        _ => None,
    })
}

fn name(data: &Value) -> Option<&str> {
    data["id"].as_str().or_else(|| data["inputId"].as_str())
}

fn decided(said: &Value) -> Option<&Vec<Value>> {
    said["approvals"].as_array().filter(|_| said["type"] == "tool_approval_response")
}

/// Whether a data part that names a task or a call names these.
fn is_here(data: &Value, message: &Message, approval: &Approval) -> bool {
    let is = |key: &str, own: &str| data[key].as_str().is_none_or(|named| named == own);
    is("requestTaskId", message.task_id.as_str()) && is("toolUseId", &approval.call)
}

fn hitl(said: &Value, id: &str, approval: &Approval) -> Option<Decision> {
    let approvals = decided(said)?;
    // Each id exactly once: a second word on the same matter makes both worthless.
    let mut mine = approvals.iter().filter(|one| one["id"].as_str() == Some(id));
    let (Some(one), None) = (mine.next(), mine.next()) else { return None };
    let decision = approval.decide(one["approved"].as_bool()?, DecidedBy::Caller);
    Some(Decision { reason: one["rejection_reason"].as_str().map(str::to_owned), ..decision })
}

fn word(text: &str, approval: &Approval) -> Option<Decision> {
    let text = text.trim().to_lowercase();
    let named = |name: &str| name.to_lowercase() == text;
    if let Some(choice) = approval.options.iter().find(|choice| named(&choice.id) || named(&choice.name)) {
        return Some(Decision {
            approved: choice.kind.allows(),
            option: Some(choice.id.clone()),
            reason: None,
            by: DecidedBy::Caller,
        });
    }
    let approved = match text.as_str() {
        "y" | "yes" | "approve" | "approved" | "allow" | "allow_once" | "ok" => true,
        "n" | "no" | "deny" | "denied" | "reject" => false,
        _ => return None,
    };
    Some(approval.decide(approved, DecidedBy::Caller))
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Part, json};

    use super::super::{Choice, ChoiceKind};
    use super::*;

    fn approval() -> Approval {
        let choice = |id: &str, name: &str, kind| Choice { id: id.into(), name: name.into(), kind };
        Approval {
            options: vec![
                choice("always", "Always", ChoiceKind::AllowAlways),
                choice("once", "Allow once", ChoiceKind::AllowOnce),
                choice("no", "Reject", ChoiceKind::RejectOnce),
            ],
            ..Approval::of("rm -rf build")
        }
    }

    fn said(text: &str) -> Option<(bool, Option<String>)> {
        let message = Message::from_agent(vec![Part::text(text)]);
        read(&message, "id", "d", &approval()).map(|decision| (decision.approved, decision.option))
    }

    fn data(value: Value) -> Option<bool> {
        let parts = vec![Part::from(Content::Data(value))];
        let message = Message { task_id: "task".into(), ..Message::from_agent(parts) };
        let approval = Approval { call: "call".into(), ..approval() };
        read(&message, "id", "d", &approval).map(|decision| decision.approved)
    }

    #[test]
    fn words_and_names_of_options_decide() {
        assert_eq!(said(" Yes\n"), Some((true, Some("once".into()))));
        assert_eq!(said("n"), Some((false, Some("no".into()))));
        assert_eq!(said("ALWAYS"), Some((true, Some("always".into()))));
        assert_eq!(said("allow once"), Some((true, Some("once".into()))));
        assert_eq!(said("yes, but carefully"), None);
    }

    #[test]
    fn a_data_part_counts_only_for_its_own_request() {
        assert_eq!(data(json!({ "id": "id", "decision": "approve" })), Some(true));
        assert_eq!(data(json!({ "id": "id", "decision": "deny", "digest": "d" })), Some(false));
        assert_eq!(data(json!({ "inputId": "id", "kind": "permission", "decision": "allow_once" })), Some(true));
        assert_eq!(data(json!({ "inputId": "other", "kind": "permission", "decision": "allow_once" })), None);
        assert_eq!(data(json!({ "id": "other", "decision": "approve" })), None);
        assert_eq!(data(json!({ "id": "id", "decision": "approve", "digest": "other" })), None);
        for (task, call, decides) in
            [("task", "call", Some(true)), ("other", "call", None), ("task", "other", None), ("", "call", None)]
        {
            let said = json!({ "inputId": "id", "requestTaskId": task, "toolUseId": call, "decision": "allow_once" });
            assert_eq!(data(said), decides, "{task} {call}");
        }
    }

    #[test]
    fn kagents_form_counts_when_the_message_declares_it() {
        let answer = |approvals: Value, declared: bool| {
            let mut message = Message::from_agent(vec![Part::text("see above")]);
            message.metadata.insert(HITL.into(), json!({ "type": "tool_approval_response", "approvals": approvals }));
            if declared {
                message.extensions.push(HITL.into());
            }
            read(&message, "id", "d", &approval())
        };
        let yes = json!([{ "id": "id", "approved": true }]);
        assert!(answer(yes.clone(), true).unwrap().approved);
        assert_eq!(answer(yes, false), None);
        let no = answer(json!([{ "id": "id", "approved": false, "rejection_reason": "too bold" }]), true).unwrap();
        assert_eq!((no.approved, no.reason.as_deref()), (false, Some("too bold")));
        let twice = json!([{ "id": "id", "approved": true }, { "id": "id", "approved": false }]);
        assert_eq!(answer(twice, true), None);
        assert_eq!(answer(json!([{ "id": "other", "approved": true }]), true), None);
    }
}
