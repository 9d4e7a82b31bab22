//! The wire form of protoAgent: text as one artifact that grows and is replaced by the whole at the end, and what the
//! turn did as metadata keyed by extension. Its older clients see the same as text and data parts, which
//! [`crate::profile`] makes of it.

use std::time::Instant;

use nuncio_protocol::{
    AgentExtension, Artifact, ArtifactId, Message, MessageId, Metadata, Part, TaskState, Value, codec, json,
};

use super::Ending;
use crate::engine::approval::{Decision, Request};
use crate::engine::turn::{ToolCall, ToolStep, Usage};
use crate::engine::{Exposure, Update};

/// What a turn cost: `{"usage", "durationMs", "costUsd"?, "success"}`, on the whole answer and on the last status.
pub(crate) const COST: &str = "https://proto-labs.ai/a2a/ext/cost-v1";
/// A step of a tool call: `{"toolCallId", "name", "phase", "args"?, "result"?, "error"?}`, on the message of a status.
pub(crate) const TOOL_CALL: &str = "https://proto-labs.ai/a2a/ext/tool-call-v1";
/// So much of what goes into a tool and comes out of it is shown, in characters.
const SHOWN: usize = 800;

/// What the card declares: what is emitted, and nothing else.
pub(super) fn extensions(exposure: Exposure) -> Vec<AgentExtension> {
    let declare = |uri: &str, description: &str| AgentExtension {
        uri: uri.into(),
        description: description.into(),
        ..AgentExtension::default()
    };
    let mut all = vec![declare(COST, "Token usage, duration and cost of a turn")];
    if exposure.tools {
        all.push(declare(TOOL_CALL, "Steps of tool calls, on the message of a status update"));
    }
    all
}

/// The media type that says what a data part is.
pub(crate) fn media_type(name: &str) -> String {
    format!("application/vnd.protolabs.{name}+json")
}

/// Turns the reports of one turn into updates.
pub(crate) struct Presenter {
    exposure: Exposure,
    began: Instant,
    text: Option<ArtifactId>,
    /// All that was said.
    said: String,
    /// Thinking without a pause is one message.
    thinking: Option<MessageId>,
    usage: Option<Usage>,
}

impl Presenter {
    pub(crate) fn new(exposure: Exposure) -> Self {
        let (text, said, thinking, usage) = Default::default();
        Self { exposure, began: Instant::now(), text, said, thinking, usage }
    }

    pub(crate) fn text(&mut self, text: String, _last: bool) -> Update {
        self.thinking = None;
        self.said.push_str(&text);
        let append = self.text.is_some();
        let artifact_id = self.text.get_or_insert_with(ArtifactId::fresh).clone();
        let artifact = Artifact { artifact_id, parts: vec![Part::text(text)], ..Artifact::default() };
        Update::Artifact { artifact, append, last_chunk: false, metadata: Metadata::new() }
    }

    pub(crate) fn think(&mut self, text: &str) -> Option<Update> {
        if !self.exposure.thinking {
            return None;
        }
        let message_id = self.thinking.get_or_insert_with(MessageId::fresh).clone();
        let message =
            Message { message_id, ..Message::from_agent(vec![data("reasoning-v1", json!({ "text": text }))]) };
        Some(status(TaskState::Working, Some(message)))
    }

    pub(crate) fn tool(&mut self, call: ToolCall<'_>) -> Option<Update> {
        self.thinking = None;
        if !self.exposure.tools {
            return None;
        }
        let (phase, key, value) = match call.step {
            ToolStep::Started => ("started", "", Value::Null),
            ToolStep::Input(input) => ("started", "args", shortened(input)),
            ToolStep::Delta(_) => return None,
            ToolStep::Completed(output) => ("completed", "result", shortened(output)),
            ToolStep::Failed(error) => ("failed", "error", shortened(&error.into())),
        };
        let mut payload = json!({ "toolCallId": call.id, "name": call.name, "phase": phase });
        if !key.is_empty() {
            payload[key] = value;
        }
        let mut message = Message::from_agent(Vec::new());
        message.metadata.insert(TOOL_CALL.into(), payload);
        Some(status(TaskState::Working, Some(message)))
    }

    pub(crate) fn note(&mut self, message: Message) -> Option<Update> {
        self.thinking = None;
        Some(status(TaskState::Working, Some(message)))
    }

    pub(crate) fn artifact(&mut self, artifact: Artifact, append: bool, last_chunk: bool) -> Update {
        self.thinking = None;
        Update::Artifact { artifact, append, last_chunk, metadata: Metadata::new() }
    }

    /// The question as text, and the same for forms.
    pub(crate) fn asked(&mut self, mut message: Message, approval: Option<&Request>) -> Update {
        self.thinking = None;
        let form = match approval {
            Some(request) => {
                let detail = match &request.approval.input {
                    Value::Null => String::new(),
                    input => as_text(input),
                };
                json!({ "kind": "approval", "title": request.approval.action, "detail": detail })
            }
            None => json!({ "question": message.text() }),
        };
        message.parts.push(data("hitl-v1", form));
        status(TaskState::InputRequired, Some(message))
    }

    /// Whoever answered knows; the log has the message.
    pub(crate) fn decided(&mut self, _request: &Request, _decision: &Decision) -> Option<Update> {
        Some(status(TaskState::Working, None))
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    pub(crate) fn end(&mut self, state: TaskState, message: Option<Message>) -> Ending {
        if !state.is_terminal() {
            return status(state, message).into();
        }
        let cost = self.cost(state == TaskState::Completed);
        let whole = match (state, self.text.take()) {
            (TaskState::Completed, Some(artifact_id)) => {
                let parts = vec![Part::text(std::mem::take(&mut self.said))];
                let metadata = Metadata::from_iter([(COST.to_owned(), cost.clone())]);
                let artifact = Artifact { artifact_id, parts, metadata, ..Artifact::default() };
                Some(Update::Artifact { artifact, append: false, last_chunk: true, metadata: Metadata::new() })
            }
            _ => None,
        };
        let metadata = Metadata::from_iter([(COST.to_owned(), cost)]);
        Ending { before: whole.into_iter().collect(), last: Update::Status { state, message, metadata } }
    }

    fn cost(&mut self, success: bool) -> Value {
        let usage = self.usage.take();
        let measured = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let duration = usage.as_ref().and_then(|usage| usage.duration_ms).unwrap_or(measured);
        let mut cost = json!({ "durationMs": duration, "success": success });
        if let Some(usage) = usage {
            let mut tokens = json!({ "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens });
            tokens["total_tokens"] = usage.input_tokens.saturating_add(usage.output_tokens).into();
            for (key, count) in [
                ("cache_read_input_tokens", usage.cache_read_tokens),
                ("cache_creation_input_tokens", usage.cache_write_tokens),
            ] {
                if let Some(count) = count {
                    tokens[key] = count.into();
                }
            }
            cost["usage"] = tokens;
            if let Some(dollars) = usage.cost_usd.filter(|dollars| *dollars > 0.0) {
                cost["costUsd"] = dollars.into();
            }
        }
        cost
    }
}

fn status(state: TaskState, message: Option<Message>) -> Update {
    Update::Status { state, message, metadata: Metadata::new() }
}

/// A data part that says by its media type what it is.
pub(crate) fn data(name: &str, value: Value) -> Part {
    let metadata = Metadata::from_iter([("mimeType".to_owned(), media_type(name).into())]);
    Part { metadata, media_type: "application/json".into(), ..Part::data(value) }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => String::from_utf8_lossy(&codec::encode(other)).into_owned(),
    }
}

/// A value that is small enough, else the beginning of its text.
fn shortened(value: &Value) -> Value {
    let text = as_text(value);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_answer_comes_before_the_end_with_what_it_cost() {
        let mut presenter = Presenter::new(Exposure::default());
        presenter.text("a".into(), false);
        presenter.text("b".into(), true);
        presenter.usage(Usage { input_tokens: 3, output_tokens: 4, cost_usd: Some(0.5), ..Usage::default() });
        let ending = presenter.end(TaskState::Completed, None);
        let [Update::Artifact { artifact, append: false, last_chunk: true, .. }] = &ending.before[..] else {
            unreachable!("one whole artifact")
        };
        assert_eq!(artifact.parts, [Part::text("ab")]);
        let cost = &artifact.metadata[COST];
        let usage = json!({ "input_tokens": 3, "output_tokens": 4, "total_tokens": 7 });
        assert_eq!((&cost["usage"], &cost["costUsd"]), (&usage, &json!(0.5)));
        let Update::Status { metadata, .. } = ending.last else { unreachable!("a status") };
        assert_eq!(&metadata[COST], cost);
    }

    #[test]
    fn a_turn_that_fails_says_what_it_cost_and_makes_no_answer() {
        let mut presenter = Presenter::new(Exposure::default());
        presenter.text("half".into(), false);
        let ending = presenter.end(TaskState::Failed, None);
        assert!(ending.before.is_empty());
        let Update::Status { metadata, .. } = ending.last else { unreachable!("a status") };
        assert_eq!((&metadata[COST]["success"], metadata[COST].get("usage")), (&json!(false), None));
    }

    #[test]
    fn thinking_without_a_pause_is_one_message() {
        let mut presenter = Presenter::new(Exposure { thinking: true, tools: true, ..Exposure::default() });
        let mut id = || match presenter.think("x") {
            Some(Update::Status { message: Some(message), .. }) => message.message_id,
            _ => unreachable!("a message"),
        };
        assert_eq!(id(), id());
        let first = id();
        presenter.text("so".into(), false);
        let Some(Update::Status { message: Some(message), .. }) = presenter.think("x") else { unreachable!() };
        assert_ne!(first, message.message_id);
    }
}
