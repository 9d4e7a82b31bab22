//! The wire form of iac-code: text as status messages, all else as metadata below `iac_code`.
//!
//! A finished turn is input-required: the conversation stays open for the next message.

use nuncio_protocol::{AgentExtension, Artifact, Message, MessageId, Metadata, Part, TaskState, Value, json};

use super::{Ending, passing};
use crate::engine::approval::{Decision, Request};
use crate::engine::turn::{ToolCall, ToolStep, Usage};
use crate::engine::{Exposure, Update};

/// Names the metadata below `iac_code`.
const METADATA: &str = "urn:iac-code:a2a:artifact-metadata:v1";
/// Names which signals of the agent's inner life are shown: `{"enabledTypes"}`.
const THINKING: &str = "urn:iac-code:a2a:thinking-exposure:v1";
/// The longest text in metadata, in characters.
const LONGEST: usize = 4_000;
/// The deepest that values are shown.
const DEEPEST: usize = 32;
/// Fields of an artifact in a tool's result whose content is stored, not shown.
const CONTENTS: [&str; 5] = ["content", "bytes", "base64", "raw", "path"];

/// What the card declares.
pub(super) fn extensions(exposure: Exposure) -> Vec<AgentExtension> {
    let mut all = vec![AgentExtension {
        uri: METADATA.into(),
        description: "The `iac_code` metadata of status updates: tools, permissions, usage and stored artifacts".into(),
        ..AgentExtension::default()
    }];
    let types = [(exposure.thinking, "raw_thinking"), (exposure.tools, "tool_trace")];
    let enabled: Vec<&str> = types.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    if !enabled.is_empty() {
        all.push(AgentExtension {
            uri: THINKING.into(),
            description: "The signals of thinking that `iac_code` metadata shows".into(),
            params: [("enabledTypes".to_owned(), json!(enabled))].into_iter().collect(),
            ..AgentExtension::default()
        });
    }
    all
}

/// Turns the reports of one turn into updates.
pub(crate) struct Presenter {
    exposure: Exposure,
    /// All pieces of the answer are one message.
    answer: Option<MessageId>,
    usage: Option<Usage>,
}

impl Presenter {
    pub(crate) fn new(exposure: Exposure) -> Self {
        Self { exposure, answer: None, usage: None }
    }

    pub(crate) fn text(&mut self, text: String, _last: bool) -> Update {
        let message_id = self.answer.get_or_insert_with(MessageId::fresh).clone();
        let message = Message { message_id, ..Message::from_agent(vec![Part::text(text)]) };
        Update::Status { state: TaskState::Working, message: Some(message), metadata: Metadata::new() }
    }

    pub(crate) fn think(&mut self, text: &str) -> Option<Update> {
        let thinking = || json!({ "type": "raw_thinking", "text": shortened(text) });
        self.exposure.thinking.then(|| about("thinking", thinking()))
    }

    pub(crate) fn tool(&mut self, call: ToolCall<'_>) -> Option<Update> {
        self.exposure.tools.then(|| about("tool", describe(call)))
    }

    /// Only the answer is text here.
    pub(crate) fn note(&mut self, message: Message) -> Option<Update> {
        let text = message.text();
        self.exposure.tools.then(|| about("progress", json!({ "text": shortened(&text) })))
    }

    pub(crate) fn artifact(&mut self, artifact: Artifact, append: bool, last_chunk: bool) -> Update {
        Update::Artifact { artifact, append, last_chunk, metadata: Metadata::new() }
    }

    pub(crate) fn asked(&mut self, message: Message, _approval: Option<&Request>) -> Update {
        self.answer = None;
        Update::Status { state: TaskState::InputRequired, message: Some(message), metadata: Metadata::new() }
    }

    pub(crate) fn decided(&mut self, request: &Request, decision: &Decision) -> Option<Update> {
        let approval = &request.approval;
        let permission = || {
            json!({
                "autoApproved": decision.approved,
                "toolName": approval.tool,
                "toolUseId": approval.call,
                "toolInput": trimmed(&approval.input, 0),
            })
        };
        self.exposure.tools.then(|| about("permission", permission()))
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    pub(crate) fn end(&mut self, state: TaskState, message: Option<Message>) -> Ending {
        let state = if state == TaskState::Completed { TaskState::InputRequired } else { state };
        let usage = self.usage.take().map(|usage| {
            about(
                "usage",
                json!({
                    "inputTokens": usage.input_tokens,
                    "outputTokens": usage.output_tokens,
                    "totalTokens": usage.input_tokens.saturating_add(usage.output_tokens),
                }),
            )
        });
        let last = Update::Status { state, message, metadata: Metadata::new() };
        Ending { before: usage.into_iter().collect(), last }
    }
}

fn about(what: &str, value: Value) -> Update {
    passing(Metadata::from_iter([("iac_code".to_owned(), json!({ what: value }))]))
}

fn describe(call: ToolCall<'_>) -> Value {
    let (status, key, value) = match call.step {
        ToolStep::Started => ("started", "", Value::Null),
        ToolStep::Delta(text) => ("input_delta", "partialJson", shortened(text)),
        ToolStep::Input(input) => ("input_complete", "input", trimmed(input, 0)),
        ToolStep::Completed(result) => ("completed", "result", trimmed(result, 0)),
        ToolStep::Failed(error) => ("failed", "result", shortened(error)),
    };
    let mut all = json!({ "status": status, "toolUseId": call.id });
    if !call.name.is_empty() && !matches!(call.step, ToolStep::Delta(_)) {
        all["name"] = call.name.into();
    }
    if !key.is_empty() {
        all[key] = value;
    }
    all
}

fn shortened(text: &str) -> Value {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => text[..end].into(),
        None => text.into(),
    }
}

/// The same value with short texts, not too deep, and without what an artifact store holds.
fn trimmed(value: &Value, depth: usize) -> Value {
    if depth >= DEEPEST {
        return "[truncated-depth]".into();
    }
    match value {
        Value::String(text) => shortened(text),
        Value::Array(all) => all.iter().map(|item| trimmed(item, depth + 1)).collect(),
        Value::Object(all) => {
            let fields = all.iter().map(|(key, value)| {
                let value = match key.as_str() {
                    "artifact" | "artifacts" => without_contents(value, depth + 1),
                    _ => trimmed(value, depth + 1),
                };
                (key.clone(), value)
            });
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn without_contents(value: &Value, depth: usize) -> Value {
    match value {
        Value::Array(all) => all.iter().map(|item| without_contents(item, depth)).collect(),
        Value::Object(all) => {
            let kept = all.iter().filter(|(key, _)| !CONTENTS.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), trimmed(value, depth + 1))).collect())
        }
        other => trimmed(other, depth),
    }
}
