//! Approvals: what is to be done, who may say yes, and what was decided.
//!
//! A request is bound to its id and to a digest of what is to be done, expires, and is used once.
//! [`rules`] answer without asking, by what a call is about (`subject`); `answer` reads what people say.

use std::time::Duration;

use nuncio_protocol::{Message, MessageId, Part, Task, Timestamp, Value, codec, json};
use sha2::{Digest, Sha256};

use crate::present::INPUT;

mod answer;
pub mod rules;
mod subject;

pub use rules::{Policy, Rule, RuleError};

/// The approval extension of kagent, for clients that activate it.
pub const HITL: &str = "https://kagent.dev/extensions/hitl/v1";

/// Something that an agent may do only if it is allowed to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approval {
    /// What is to be done, in words.
    pub action: String,
    /// The tool that would do it; rules go by this name. Empty if there is none.
    pub tool: String,
    /// The call, as the agent names it. Empty if it does not.
    pub call: String,
    /// What exactly the tool would be given.
    pub input: Value,
    /// The files that it would touch, as far as the agent tells them beside the input.
    pub paths: Vec<String>,
    /// The answers that the agent understands. Empty for a plain yes or no.
    pub options: Vec<Choice>,
}

impl Approval {
    /// A plain question about `action`.
    pub fn of(action: impl Into<String>) -> Self {
        Self { action: action.into(), ..Self::default() }
    }

    /// The answer that means yes or no this time, as far as there is one.
    fn usual(&self, approved: bool) -> Option<&Choice> {
        let kinds = match approved {
            true => [ChoiceKind::AllowOnce, ChoiceKind::AllowAlways],
            false => [ChoiceKind::RejectOnce, ChoiceKind::RejectAlways],
        };
        kinds.iter().find_map(|kind| self.options.iter().find(|choice| choice.kind == *kind))
    }

    /// Yes or no, without a choice of its own.
    pub(crate) fn decide(&self, approved: bool, by: DecidedBy) -> Decision {
        Decision { approved, option: self.usual(approved).map(|choice| choice.id.clone()), reason: None, by }
    }
}

impl From<&str> for Approval {
    fn from(action: &str) -> Self {
        Self::of(action)
    }
}

/// One of the answers to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What the agent calls it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it means.
    pub kind: ChoiceKind,
}

/// What choosing an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceKind {
    /// Yes, this time.
    AllowOnce,
    /// Yes, and do not ask again.
    AllowAlways,
    /// No, this time.
    RejectOnce,
    /// No, and do not ask again.
    RejectAlways,
}

impl ChoiceKind {
    /// Whether it is a yes.
    pub fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    fn name(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowAlways => "allow_always",
            Self::RejectOnce => "reject_once",
            Self::RejectAlways => "reject_always",
        }
    }
}

/// What was decided about an [`Approval`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be done.
    pub approved: bool,
    /// The answer that was chosen, where there were several.
    pub option: Option<String>,
    /// Why not, if somebody said so.
    pub reason: Option<String>,
    /// Who decided.
    pub by: DecidedBy,
}

/// Who decided about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// Whoever answered.
    Caller,
    /// The configuration.
    Rule,
    /// Nobody, in time.
    Nobody,
}

/// An approval as it is asked for.
pub(crate) struct Request {
    pub(crate) approval: Approval,
    pub(crate) id: MessageId,
    digest: String,
    expires: Option<Timestamp>,
}

impl Request {
    pub(crate) fn new(approval: Approval, wait: Duration) -> Self {
        let until = Timestamp::now().as_micros().saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX));
        Self { id: MessageId::fresh(), digest: digest(&approval), expires: Timestamp::from_micros(until), approval }
    }

    /// The question in words, for people and for clients that know no extension.
    pub(crate) fn text(&self) -> String {
        let action = &self.approval.action;
        if self.approval.options.is_empty() {
            return format!("Approve? {action}\nAnswer y or n.");
        }
        let names: Vec<&str> = self.approval.options.iter().map(|choice| choice.name.as_str()).collect();
        format!("Approve? {action}\nAnswer y, n, or one of: {}.", names.join(", "))
    }

    /// The message that asks, with the same for machines.
    pub(crate) fn message(&self, input: &str, hitl: bool) -> Message {
        let mut message = Message::from_agent(vec![Part::text(self.text())]);
        message.metadata.insert(input.into(), self.describe());
        if hitl {
            message.extensions.push(HITL.into());
            message.metadata.insert(HITL.into(), self.describe_hitl());
        }
        message
    }

    fn describe(&self) -> Value {
        let plain = [("approve", "Approve", "allow_once"), ("deny", "Deny", "reject_once")];
        let options: Vec<Value> = match self.approval.options.as_slice() {
            [] => plain.iter().map(|(id, name, kind)| json!({ "id": id, "name": name, "kind": kind })).collect(),
            options => options
                .iter()
                .map(|choice| json!({ "id": choice.id, "name": choice.name, "kind": choice.kind.name() }))
                .collect(),
        };
        let mut all = json!({
            "kind": "approval",
            "id": self.id.as_str(),
            "digest": self.digest,
            "options": options,
            "expires": self.expires.map(|time| time.to_string()),
        });
        if !self.approval.tool.is_empty() {
            all["tool"] = self.approval.tool.as_str().into();
        }
        if !self.approval.call.is_empty() {
            all["call"] = self.approval.call.as_str().into();
        }
        if !self.approval.input.is_null() {
            all["input"] = self.approval.input.clone();
        }
        all
    }

    fn describe_hitl(&self) -> Value {
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        let args = match &self.approval.input {
            input @ Value::Object(_) => input.clone(),
            Value::Null => json!({}),
            other => json!({ "input": other }),
        };
        json!({
            "type": "tool_approval_request",
            "hint": self.approval.action,
            "tools": [{
                "id": self.id.as_str(),
                "call_id": or(&self.approval.call, self.id.as_str()),
                "name": or(&self.approval.tool, "action"),
                "args": args,
            }],
        })
    }

    /// What is written into the log about the decision.
    pub(crate) fn record(&self, decision: &Decision) -> Value {
        let by = match decision.by {
            DecidedBy::Caller => "caller",
            DecidedBy::Rule => "rule",
            DecidedBy::Nobody => "nobody",
        };
        let mut all = json!({
            "kind": "decision",
            "id": self.id.as_str(),
            "digest": self.digest,
            "decision": if decision.approved { "approved" } else { "denied" },
            "by": by,
        });
        for (key, value) in [("option", &decision.option), ("reason", &decision.reason)] {
            if let Some(value) = value {
                all[key] = value.as_str().into();
            }
        }
        if !self.approval.tool.is_empty() {
            all["tool"] = self.approval.tool.as_str().into();
        }
        all
    }

    /// The decision that a message holds, if it holds one for this request.
    pub(crate) fn decided_by(&self, message: &Message) -> Option<Decision> {
        answer::read(message, self.id.as_str(), &self.digest, &self.approval)
    }
}

/// The decision that a message of this time holds about an approval that `asked` describes: what is left of it
/// after a restart.
pub(crate) fn decision_about(asked: &Value, message: &Message, came: Timestamp) -> Option<Decision> {
    let choice = |value: &Value| {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let kinds = [ChoiceKind::AllowOnce, ChoiceKind::AllowAlways, ChoiceKind::RejectOnce, ChoiceKind::RejectAlways];
        let kind = kinds.into_iter().find(|kind| Some(kind.name()) == value["kind"].as_str())?;
        Some(Choice { id: text("id")?, name: text("name")?, kind })
    };
    let options = asked["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |key: &str| asked[key].as_str().unwrap_or_default();
    let (options, call) = (options.iter().filter_map(choice).collect(), text("call").to_owned());
    let approval = Approval { options, call, ..Approval::default() };
    let decision = answer::read(message, text("id"), text("digest"), &approval)?;
    if Timestamp::parse(text("expires")).is_none_or(|expires| came <= expires) {
        return Some(decision);
    }
    let reason = Some("The answer came after the approval had expired".to_owned());
    Some(Decision { reason, ..approval.decide(false, DecidedBy::Nobody) })
}

/// Whether a message decides by name about something that the task has asked for and does not wait for any more.
pub(crate) fn is_late(task: &Task, message: &Message) -> bool {
    let named = answer::named(message);
    let asks = |said: &Message| said.metadata.get(INPUT).is_some_and(|about| named.iter().any(|id| about["id"] == *id));
    let status = task.status.message.as_ref();
    let waits = task.status.state.is_interrupted() && status.is_some_and(asks);
    !named.is_empty() && !waits && task.history.iter().chain(status).any(asks)
}

fn digest(approval: &Approval) -> String {
    let what = json!({ "action": approval.action, "tool": approval.tool, "input": approval.input });
    let digest = Sha256::digest(codec::encode(&what));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
