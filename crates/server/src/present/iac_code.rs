//! The wire form of iac-code: text as status messages, all else as metadata below `iac_code`.
//!
//! A finished turn is input-required: the conversation stays open for the next message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_protocol::{
    AgentExtension, Artifact, Content, Message, MessageId, Metadata, Object, Part, TaskState, Value, json,
};

use super::discreet::{clean, clean_all};
use super::{Ending, INPUT, ToolFile, passing};
use crate::artifact::FILE;
use crate::engine::approval::{DecidedBy, Decision, HITL, Request};
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
const CANCELED: &str = "Task canceled.";
const UNAUTHENTICATED: &str = "Authentication required. Please configure your API credentials.";
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
        let text = if self.exposure.no_paths { clean(&text) } else { text };
        let message = Message { message_id, ..Message::from_agent(vec![Part::text(text)]) };
        Update::Status { state: TaskState::Working, message: Some(message), metadata: Metadata::new() }
    }

    pub(crate) fn think(&mut self, text: &str) -> Option<Update> {
        let thinking = || json!({ "type": "raw_thinking", "text": shortened(text) });
        self.exposure.thinking.then(|| self.about("thinking", thinking()))
    }

    pub(crate) fn tool(&mut self, call: ToolCall<'_>) -> Option<Update> {
        // What is said after it is another message.
        self.answer = None;
        self.exposure.tools.then(|| self.about("tool", describe(call, self.exposure.summaries)))
    }

    /// Only the answer is text here.
    #[allow(clippy::needless_pass_by_value, reason = "other wire forms keep it")]
    pub(crate) fn note(&mut self, message: Message) -> Option<Update> {
        let text = message.text();
        self.exposure.tools.then(|| self.about("progress", json!({ "text": shortened(&text) })))
    }

    pub(crate) fn artifact(&mut self, mut artifact: Artifact, append: bool, last_chunk: bool) -> Update {
        let facts = artifact.parts.iter_mut().filter_map(with_facts).next();
        artifact.metadata.extend(facts.into_iter().flatten());
        Update::Artifact { artifact, append, last_chunk, metadata: Metadata::new() }
    }

    pub(crate) fn asked(&mut self, mut message: Message, approval: Option<&Request>) -> Update {
        self.answer = None;
        let metadata = match approval {
            Some(request) => {
                if self.exposure.summaries {
                    summarize(&mut message.metadata, request);
                }
                self.metadata(waits(request, &message))
            }
            None => Metadata::new(),
        };
        let message = if self.exposure.no_paths { cleaned(message) } else { message };
        Update::Status { state: TaskState::InputRequired, message: Some(message), metadata }
    }

    pub(crate) fn decided(&mut self, request: &Request, decision: &Decision) -> Option<Update> {
        let approval = &request.approval;
        let mut all = Object::new();
        if decision.by == DecidedBy::Caller {
            all.insert("inputReceived".into(), received(request, decision.approved));
        }
        if self.exposure.tools {
            let (key, value) = match self.exposure.summaries {
                true => ("inputSummary", summary(&approval.tool, &approval.input)),
                false => ("toolInput", trimmed(&approval.input, 0)),
            };
            let mut shown =
                json!({ "autoApproved": decision.approved, "toolName": approval.tool, "toolUseId": approval.call });
            shown[key] = value;
            all.insert("permission".into(), shown);
        }
        (!all.is_empty()).then(|| passing(self.metadata(Value::Object(all))))
    }

    fn about(&self, what: &str, value: Value) -> Update {
        passing(self.metadata(Value::Object([(what.to_owned(), value)].into_iter().collect())))
    }

    fn metadata(&self, value: Value) -> Metadata {
        let value = if self.exposure.no_paths { clean_all(value) } else { value };
        Metadata::from_iter([("iac_code".to_owned(), value)])
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    pub(crate) fn end(&mut self, state: TaskState, message: Option<Message>) -> Ending {
        let says = |text: &str| Some(Message::from_agent(vec![Part::text(text)]));
        let message = if self.exposure.no_paths { message.map(cleaned) } else { message };
        let (state, message) = match state {
            TaskState::Completed => (TaskState::InputRequired, message),
            TaskState::Canceled => (state, message.or_else(|| says(CANCELED))),
            // There are no other ends here, and what the provider says is its own.
            TaskState::AuthRequired => (TaskState::Failed, says(UNAUTHENTICATED)),
            TaskState::Rejected | TaskState::Failed => (TaskState::Failed, message.map(cleaned)),
            _ => (state, message),
        };
        let usage = self.usage.take();
        let usage = usage.map(|usage| {
            self.about(
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

/// The same message for people who do not see this machine.
fn cleaned(mut message: Message) -> Message {
    for part in &mut message.parts {
        match &mut part.content {
            Content::Text(text) => *text = clean(text),
            Content::Data(value) => *value = clean_all(value.take()),
            Content::Raw(_) | Content::Url(_) => {}
        }
    }
    for value in message.metadata.values_mut() {
        *value = clean_all(value.take());
    }
    message
}

/// Takes from a question what exactly the tool would be given, in both of its forms for machines.
fn summarize(metadata: &mut Metadata, request: &Request) {
    let summary = || summary(&request.approval.tool, &request.approval.input);
    if let Some(input) = metadata.get_mut(INPUT).and_then(|about| about.get_mut("input")) {
        *input = summary();
    }
    if let Some(tools) = metadata.get_mut(HITL).and_then(|about| about.get_mut("tools")).and_then(Value::as_array_mut) {
        for tool in tools {
            tool["args"] = summary();
        }
    }
}

/// What a task waits for that asks for a permission, and how to answer.
fn waits(request: &Request, message: &Message) -> Value {
    let (title, tool, call) = (&request.approval.action, &request.approval.tool, &request.approval.call);
    json!({
        "input": {
            "schemaVersion": 1,
            "kind": "permission",
            "requestTaskId": message.task_id,
            "contextId": message.context_id,
            "inputId": request.id,
            "toolUseId": call,
            "toolName": tool,
            "title": shortened(title),
            "prompt": format!("{title} Allow once?"),
            "options": [{ "id": "allow_once", "label": "Allow once" }, { "id": "deny", "label": "Deny" }],
            "required": true,
        },
        "permission": { "autoApproved": false, "pending": true, "toolName": tool, "toolUseId": call },
    })
}

/// Nobody need answer any more what the metadata of a task asks for.
pub(super) fn settle(metadata: &mut Metadata) {
    // To look for something to change takes room where there is nothing.
    if !metadata.is_empty()
        && let Some(Value::Object(about)) = metadata.get_mut("iac_code")
        && let Some(pending) = about.get_mut("permission").and_then(|permission| permission.get_mut("pending"))
    {
        *pending = false.into();
        about.remove("input");
    }
}

/// What somebody has answered.
fn received(request: &Request, approved: bool) -> Value {
    json!({
        "kind": "permission",
        "inputId": request.id,
        "toolUseId": request.approval.call,
        "decision": if approved { "allow_once" } else { "deny" },
    })
}

/// The shape of what a tool is given.
fn summary(tool: &str, input: &Value) -> Value {
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fields = input.as_object().into_iter().flatten();
    let fields = fields.map(|(name, value)| (name.clone(), json!({ "type": kind(value) })));
    json!({ "tool_name": tool, "fields": Value::Object(fields.collect()) })
}

/// Says of a stored file what it is, on its part, and returns the same.
fn with_facts(part: &mut Part) -> Option<Metadata> {
    let Content::Url(uri) = &part.content else { return None };
    let stored = part.metadata.get(FILE)?;
    let mut facts = Metadata::from_iter([
        ("uri".to_owned(), uri.as_str().into()),
        ("mediaType".to_owned(), part.media_type.as_str().into()),
        ("byteSize".to_owned(), stored["size"].clone()),
        ("sha256".to_owned(), stored["sha256"].clone()),
    ]);
    if let Some(url) = stored.get("url") {
        facts.insert("downloadUrl".into(), url.clone());
    }
    part.metadata.extend(facts.clone());
    Some(facts)
}

/// The file that a tool's result holds, to be stored as an artifact: its name, its media type, its content.
pub(super) fn file_in(result: &Value) -> Option<ToolFile> {
    let artifact = result.get("artifact")?;
    let text = |key: &str| artifact.get(key).and_then(Value::as_str);
    let name = text("filename").filter(|name| is_bare(name))?;
    let media_type = text("mediaType").or_else(|| text("media_type")).unwrap_or("application/octet-stream");
    let bytes = match text("content") {
        Some(content) => content.as_bytes().to_vec(),
        None => STANDARD.decode(text("bytes").or_else(|| text("base64"))?).ok()?,
    };
    Some(ToolFile { name: name.to_owned(), media_type: media_type.to_owned(), bytes })
}

fn is_bare(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0'])
}

fn describe(call: ToolCall<'_>, summaries: bool) -> Value {
    let (status, key, value) = match call.step {
        ToolStep::Started => ("started", "", Value::Null),
        ToolStep::Delta(text) if summaries => ("input_delta", "partialJsonLength", text.chars().count().into()),
        ToolStep::Delta(text) => ("input_delta", "partialJson", shortened(text)),
        ToolStep::Input(input) if summaries => ("input_complete", "inputSummary", summary(call.name, input)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::approval::Approval;

    fn shown(update: Update) -> Value {
        let Update::Status { state: TaskState::Working, message: None, metadata } = update else {
            return json!("not passing");
        };
        metadata["iac_code"].clone()
    }

    fn presenter(exposure: Exposure) -> Presenter {
        Presenter::new(exposure)
    }

    #[test]
    fn long_texts_and_deep_values_are_cut() {
        let long = "ä".repeat(LONGEST + 1);
        let input = json!({ "text": long, "list": [long], "short": "x" });
        let call = ToolCall { id: "c", name: "write", step: ToolStep::Input(&input) };
        let shown = shown(presenter(Exposure::default()).tool(call).unwrap());
        let cut = |value: &Value| value.as_str().unwrap().chars().count();
        assert_eq!((cut(&shown["tool"]["input"]["text"]), cut(&shown["tool"]["input"]["list"][0])), (LONGEST, LONGEST));
        assert_eq!(shown["tool"]["input"]["short"], "x");
        let deep = (0..50).fold(json!("end"), |inner, _| json!([inner]));
        let trimmed = trimmed(&deep, 0).to_string();
        assert!(trimmed.contains("[truncated-depth]") && !trimmed.contains("end"), "{trimmed}");
    }

    /// The message of a question about writing a file.
    fn asked(exposure: Exposure) -> Message {
        let approval = Approval {
            action: "Write /srv/app/x.tf".into(),
            tool: "Write".into(),
            call: "t1".into(),
            input: json!({ "path": "/srv/app/x.tf", "content": "hush" }),
            ..Approval::default()
        };
        let request = Request::new(approval, std::time::Duration::from_secs(60));
        let message = request.message(INPUT, true);
        match presenter(exposure).asked(message, Some(&request)) {
            Update::Status { message: Some(message), .. } => message,
            _ => unreachable!("a question"),
        }
    }

    #[test]
    fn a_question_shows_no_more_than_the_rest() {
        let full = json!(asked(Exposure::default()).metadata).to_string();
        assert!(full.contains("/srv/app") && full.contains("hush"), "{full}");
        let message = asked(Exposure { no_paths: true, ..Exposure::default() });
        assert_eq!(message.text(), "Approve? Write [PATH]\nAnswer y or n.");
        let shown = json!(message.metadata).to_string();
        assert!(!shown.contains("/srv/app") && shown.contains("hush"), "{shown}");
        let shown = asked(Exposure { summaries: true, ..Exposure::default() }).metadata;
        let string = json!({ "type": "string" });
        let summary = json!({ "tool_name": "Write", "fields": { "path": string, "content": string } });
        assert_eq!((&shown[INPUT]["input"], &shown[HITL]["tools"][0]["args"]), (&summary, &summary));
        assert_eq!((&shown[INPUT]["call"], &shown[INPUT]["id"]), (&json!("t1"), &shown[HITL]["tools"][0]["id"]));
    }

    #[test]
    fn contents_of_artifacts_are_not_repeated() {
        let artifact = json!({ "filename": "a.yml", "mediaType": "text/yaml", "content": "x: 1", "path": "/a/b" });
        let result = json!({ "artifact": artifact, "content": "kept" });
        let file = file_in(&result).unwrap();
        assert_eq!((file.name.as_str(), file.media_type.as_str(), &*file.bytes), ("a.yml", "text/yaml", &b"x: 1"[..]));
        let kept = json!({ "artifact": { "filename": "a.yml", "mediaType": "text/yaml" }, "content": "kept" });
        assert_eq!(trimmed(&result, 0), kept);
        for unsafe_name in ["../a", "/a", "", ".."] {
            assert!(file_in(&json!({ "artifact": { "filename": unsafe_name, "content": "x" } })).is_none());
        }
    }

    #[test]
    fn the_later_forms_show_less() {
        let exposure = Exposure { summaries: true, no_paths: true, ..Exposure::default() };
        let mut presenter = presenter(exposure);
        let input = json!({ "path": "/srv/app/x.tf", "n": 1 });
        let call = |step| ToolCall { id: "c", name: "write", step };
        let said = shown(presenter.tool(call(ToolStep::Input(&input))).unwrap());
        let fields = json!({ "path": { "type": "string" }, "n": { "type": "number" } });
        assert_eq!(said["tool"]["inputSummary"], json!({ "tool_name": "write", "fields": fields }));
        let said = shown(presenter.tool(call(ToolStep::Delta("{\"pa"))).unwrap());
        assert_eq!(said["tool"]["partialJsonLength"], 4);
        let said = shown(presenter.tool(call(ToolStep::Completed(&json!("wrote /srv/app/x.tf")))).unwrap());
        assert_eq!(said["tool"]["result"], "wrote [PATH]");
    }
}
