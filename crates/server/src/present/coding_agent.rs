//! The wire form of coding-agent-a2a: text as one artifact that grows, tools as words, and a summary at the end.

use nuncio_protocol::{Artifact, ArtifactId, Message, Metadata, Part, TaskState, Value, codec, json};

use super::{Ending, passing};
use crate::engine::approval::{Decision, Request};
use crate::engine::turn::{ToolCall, ToolStep, Usage};
use crate::engine::{Exposure, Update};

/// The artifact with the agent's text.
const ANSWER: &str = "assistant-response";
/// The artifact with the agent's model and session.
const METADATA: &str = "agent-metadata";
/// The artifact that ends a turn.
const RESULT: &str = "result";
/// So much of a tool's result is shown, in characters.
const SHOWN: usize = 200;

/// Turns the reports of one turn into updates.
pub(crate) struct Presenter {
    exposure: Exposure,
    text: Option<ArtifactId>,
    metadata: Option<ArtifactId>,
    /// What was said last, without a pause for anything else.
    last: String,
    /// Whether something else happened since.
    paused: bool,
    /// The calls of tools that were told, by id.
    told: Vec<String>,
    usage: Option<Usage>,
}

impl Presenter {
    pub(crate) fn new(exposure: Exposure) -> Self {
        let (text, metadata, last, usage) = Default::default();
        Self { exposure, text, metadata, last, paused: false, told: Vec::new(), usage }
    }

    /// The program has said which conversation and which model this is.
    pub(crate) fn introduced(&mut self, session: Option<&str>, model: Option<&str>) -> Option<Update> {
        let known = [("model", model), ("sessionId", session)];
        let data: Metadata =
            known.iter().filter_map(|(key, value)| Some(((*key).to_owned(), (*value)?.into()))).collect();
        if data.is_empty() {
            return None;
        }
        let id = self.metadata.get_or_insert_with(ArtifactId::fresh).clone();
        Some(whole(id, METADATA, Part::data(data.into())))
    }

    /// Text is always appended, so there is something to append to first: some clients drop what they cannot place.
    pub(crate) fn opening(&mut self) -> Option<Update> {
        self.text.is_none().then(|| self.piece(String::new()))
    }

    pub(crate) fn text(&mut self, text: String, _last: bool) -> Update {
        if std::mem::take(&mut self.paused) {
            self.last.clear();
        }
        self.last.push_str(&text);
        self.piece(text)
    }

    fn piece(&mut self, text: String) -> Update {
        let append = self.text.is_some();
        let artifact_id = self.text.get_or_insert_with(ArtifactId::fresh).clone();
        let part = Part { media_type: "text/plain".into(), ..Part::text(text) };
        let artifact = Artifact { artifact_id, name: ANSWER.into(), parts: vec![part], ..Artifact::default() };
        Update::Artifact { artifact, append, last_chunk: false, metadata: Metadata::new() }
    }

    /// What the agent only thinks is not part of the answer, and not shown.
    pub(crate) fn think(&mut self, _text: &str) -> Option<Update> {
        self.paused = true;
        None
    }

    pub(crate) fn tool(&mut self, call: ToolCall<'_>) -> Option<Update> {
        self.paused = true;
        if !self.exposure.tools {
            return None;
        }
        let words = match call.step {
            ToolStep::Started | ToolStep::Input(_) if self.told.iter().any(|id| id == call.id) => return None,
            ToolStep::Started | ToolStep::Input(_) => {
                self.told.push(call.id.to_owned());
                format!("Using tool: {}", call.name)
            }
            ToolStep::Delta(_) => return None,
            ToolStep::Completed(Value::String(text)) => format!("Tool result: {}", shortened(text)),
            ToolStep::Completed(value) => {
                format!("Tool result: {}", shortened(&String::from_utf8_lossy(&codec::encode(value))))
            }
            ToolStep::Failed(text) => format!("Tool result: {}", shortened(text)),
        };
        if matches!(call.step, ToolStep::Completed(_) | ToolStep::Failed(_)) {
            self.told.retain(|id| id != call.id);
        }
        Some(said(TaskState::Working, words))
    }

    pub(crate) fn note(&mut self, message: Message) -> Option<Update> {
        self.paused = true;
        Some(Update::Status { state: TaskState::Working, message: Some(message), metadata: Metadata::new() })
    }

    pub(crate) fn artifact(&mut self, artifact: Artifact, append: bool, last_chunk: bool) -> Update {
        self.paused = true;
        Update::Artifact { artifact, append, last_chunk, metadata: Metadata::new() }
    }

    pub(crate) fn asked(&mut self, mut message: Message, approval: Option<&Request>) -> Update {
        self.paused = true;
        if let Some(request) = approval {
            message.parts = vec![Part::text(format!("Approve: {}?", request.approval.action))];
        }
        Update::Status { state: TaskState::InputRequired, message: Some(message), metadata: Metadata::new() }
    }

    pub(crate) fn decided(&mut self, request: &Request, decision: &Decision) -> Option<Update> {
        let record = request.record(decision);
        Some(passing(Metadata::from_iter([(super::INPUT.to_owned(), record)])))
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    pub(crate) fn end(&mut self, state: TaskState, message: Option<Message>) -> Ending {
        let result = if state == TaskState::Completed { self.result() } else { None };
        let last = Update::Status { state, message, metadata: Metadata::new() };
        Ending { before: result.into_iter().collect(), last }
    }

    /// What was said last, and what it took.
    fn result(&mut self) -> Option<Update> {
        let mut data = Metadata::new();
        let summary = self.last.trim();
        if !summary.is_empty() {
            data.insert("summary".into(), summary.into());
        }
        if let Some(usage) = self.usage.take() {
            let mut stats = json!({ "inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens });
            if let Some(duration) = usage.duration_ms {
                stats["durationMs"] = duration.into();
            }
            data.insert("stats".into(), stats);
        }
        (!data.is_empty()).then(|| whole(ArtifactId::fresh(), RESULT, Part::data(data.into())))
    }
}

fn whole(artifact_id: ArtifactId, name: &str, part: Part) -> Update {
    let part = Part { media_type: "application/json".into(), ..part };
    let artifact = Artifact { artifact_id, name: name.into(), parts: vec![part], ..Artifact::default() };
    Update::Artifact { artifact, append: false, last_chunk: true, metadata: Metadata::new() }
}

fn said(state: TaskState, words: String) -> Update {
    let message = Message::from_agent(vec![Part::text(words)]);
    Update::Status { state, message: Some(message), metadata: Metadata::new() }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(update: Option<Update>) -> String {
        match update {
            Some(Update::Status { message: Some(message), .. }) => message.text(),
            _ => String::new(),
        }
    }

    #[test]
    fn a_tool_is_told_once_and_its_result_is_short() {
        let mut presenter = Presenter::new(Exposure::default());
        let call = |step| ToolCall { id: "1", name: "read_file", step };
        assert_eq!(words(presenter.tool(call(ToolStep::Started))), "Using tool: read_file");
        let nothing = json!({});
        assert_eq!(words(presenter.tool(call(ToolStep::Input(&nothing)))), "");
        let long = Value::from("ü".repeat(201));
        let told = words(presenter.tool(call(ToolStep::Completed(&long))));
        assert_eq!(told, format!("Tool result: {}…", "ü".repeat(200)));
        assert_eq!(words(presenter.tool(call(ToolStep::Completed(&json!({ "a": 1 }))))), r#"Tool result: {"a":1}"#);
    }

    #[test]
    fn the_summary_is_what_was_said_after_the_last_pause() {
        let mut presenter = Presenter::new(Exposure::default());
        presenter.text("I look.".into(), false);
        presenter.tool(ToolCall { id: "1", name: "x", step: ToolStep::Started });
        presenter.text("\n\nDone".into(), false);
        presenter.text(" it.".into(), false);
        presenter.usage(Usage { input_tokens: 1, output_tokens: 2, ..Usage::default() });
        let ending = presenter.end(TaskState::Completed, None);
        let [Update::Artifact { artifact, .. }] = &ending.before[..] else { unreachable!("one artifact") };
        let wanted = json!({ "summary": "Done it.", "stats": { "inputTokens": 1, "outputTokens": 2 } });
        assert_eq!(artifact.parts[0].content, nuncio_protocol::Content::Data(wanted));
        assert!(presenter.end(TaskState::Failed, None).before.is_empty());
    }
}
