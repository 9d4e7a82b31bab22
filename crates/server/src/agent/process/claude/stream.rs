//! Reads the lines of Claude Code and of those who speak like it.

use nuncio_protocol::{Timestamp, Value};

use super::super::jsonl::calls::Calls;
use super::super::jsonl::prose::{Prose, Said};
use super::super::jsonl::verdict::{Verdict, lacks_credentials, mentions};
use super::super::jsonl::{self, Line, brief, text};
use super::super::report::{Dialect, Exit, Report, Step};
use super::control::Control;
use super::outcome;
use crate::engine::approval::Decision;

/// How many background tasks are followed.
const TASKS: usize = 256;
/// How often credentials may be refused before they count as wrong.
const REFUSALS: u64 = 3;
/// The longest name of a conversation.
const SESSION: usize = 256;

/// In what the programs that speak like this differ.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Wire {
    /// Whether tokens that came from a cache are not among the input tokens.
    pub(in super::super) cache_apart: bool,
    /// Whether the suggestions of an approval can be sent back as rules.
    pub(in super::super) suggestions_are_rules: bool,
    /// Words, in lower case, that say that credentials are missing.
    pub(in super::super) no_credentials: &'static [&'static str],
    /// Words, in lower case, that say that a conversation cannot be continued because it is not there.
    pub(in super::super) no_session: &'static str,
    /// What an answer begins with that is an error of the model.
    pub(in super::super) api_error: Option<&'static str>,
    /// Exit codes with a meaning.
    pub(in super::super) exits: &'static [(i32, &'static str)],
}

/// Reads one run.
#[derive(Debug)]
pub(in super::super) struct Stream {
    pub(super) wire: Wire,
    session: String,
    pub(super) model: Option<String>,
    /// The program has no key of its own, so that words about keys mean that it lacks one.
    pub(super) keyless: bool,
    pub(super) answer: Prose,
    said: Said,
    thinking: Prose,
    thought: Said,
    /// The message whose pieces come.
    current: String,
    calls: Calls,
    control: Control,
    tasks: Vec<Task>,
    /// A result came while tasks were unfinished: the turn goes on until they are done.
    pub(super) held: bool,
    pub(super) verdict: Verdict,
}

/// Work that goes on behind the conversation.
#[derive(Debug)]
struct Task {
    id: String,
    /// The call that began it.
    call: String,
}

impl Stream {
    pub(in super::super) fn new(wire: Wire, force: bool) -> Self {
        Self {
            wire,
            session: String::new(),
            model: None,
            keyless: false,
            answer: Prose::default(),
            said: Said::default(),
            thinking: Prose::default(),
            thought: Said::default(),
            current: String::new(),
            calls: Calls::default(),
            control: Control::new(force, wire.suggestions_are_rules),
            tasks: Vec::new(),
            held: false,
            verdict: Verdict::default(),
        }
    }

    /// How many tasks are unfinished.
    pub(super) fn unfinished(&self) -> usize {
        self.tasks.len()
    }

    fn event(&mut self, event: &Value, out: &mut Vec<Report>) {
        match text(event, "type") {
            "control_request" => return self.control.request(event, out),
            "control_cancel_request" => return self.control.cancel(event, out),
            "rate_limit_event" => return rate_limit(event, out),
            "system" | "assistant" | "user" | "stream_event" | "result" => self.name_session(event, out),
            _ => return,
        }
        // What subagents say is not the answer; what they do is worth knowing.
        let own = event.get("parent_tool_use_id").is_none_or(Value::is_null);
        match text(event, "type") {
            "system" => self.system(event, out),
            "assistant" => self.assistant(event, own, out),
            "user" => self.results(event, out),
            "stream_event" if own => self.piece(event.get("event").unwrap_or(&Value::Null), out),
            "result" => outcome::read(self, event, out),
            _ => {}
        }
    }

    /// The last name counts: a conversation that is continued may go on under a new one.
    fn name_session(&mut self, event: &Value, out: &mut Vec<Report>) {
        let id = text(event, "session_id");
        if !id.is_empty() && id.len() <= SESSION && id != self.session {
            id.clone_into(&mut self.session);
            out.push(Report::Session(id.to_owned()));
        }
    }

    fn system(&mut self, event: &Value, out: &mut Vec<Report>) {
        match text(event, "subtype") {
            "init" | "session_start" => {
                let model = text(event, "model");
                if !model.is_empty() {
                    self.model = Some(brief(model, SESSION));
                    out.push(Report::Model(brief(model, SESSION)));
                }
                self.keyless = text(event, "apiKeySource") == "none";
            }
            // Its others, like `requesting`, come with every step.
            "status" if text(event, "status") == "compacting" => {
                out.push(Report::Status("Compacting the conversation".to_owned()));
            }
            "api_retry" => self.retry(event, out),
            "task_started" if matches!(text(event, "task_type"), "local_agent" | "local_workflow") => {
                let (id, call) = (text(event, "task_id").to_owned(), text(event, "tool_use_id").to_owned());
                if !id.is_empty() && self.tasks.len() < TASKS && !self.tasks.iter().any(|task| task.id == id) {
                    self.tasks.push(Task { id, call });
                }
            }
            "task_notification" => self.task_ended(event, text(event, "status"), out),
            "task_updated" => {
                let status = event.pointer("/patch/status").and_then(Value::as_str);
                self.task_ended(event, status.unwrap_or(text(event, "status")), out);
            }
            _ => {}
        }
    }

    /// It tries again for minutes, also where it is the credentials that are refused; after a few of those it is
    /// not a token that had to be refreshed.
    fn retry(&mut self, event: &Value, out: &mut Vec<Report>) {
        let number = |member: &str| event.get(member).and_then(Value::as_u64);
        let why = Some(text(event, "error")).filter(|why| !why.is_empty()).unwrap_or("the model did not answer");
        if number("error_status") == Some(401) && number("attempt") >= Some(REFUSALS) {
            let why = format!("The credentials of this agent are refused: {}", brief(why, 200));
            return self.verdict.give(Report::AuthRequired(why), out);
        }
        out.push(Report::Status(format!("Trying again: {}", brief(why, 200))));
    }

    /// The conversation goes on by itself when a task is done; when the last one was stopped, nothing
    /// more will come.
    fn task_ended(&mut self, event: &Value, status: &str, out: &mut Vec<Report>) {
        if !matches!(status, "completed" | "failed" | "stopped" | "killed" | "cancelled") {
            return;
        }
        let before = self.tasks.len();
        let id = text(event, "task_id");
        self.tasks.retain(|task| task.id != id);
        let last = before > 0 && self.tasks.is_empty();
        if last && self.held && !matches!(status, "completed" | "failed") {
            self.verdict.give(Report::Done, out);
        }
    }

    /// A whole message, or one block of it: lines with the same id belong together.
    fn assistant(&mut self, event: &Value, own: bool, out: &mut Vec<Report>) {
        let Some(message) = event.get("message") else { return };
        let id = text(message, "id");
        // The program itself speaks, mostly of an error that the result tells again.
        let speaks = own && text(message, "model") != "<synthetic>";
        for block in list(message.get("content")) {
            match text(block, "type") {
                "text" if speaks => {
                    let rest = self.said.rest(id, text(block, "text"));
                    if rest.len() == text(block, "text").len() {
                        self.answer.paragraph();
                    }
                    out.extend(self.answer.piece(rest).map(Report::Text));
                }
                "thinking" if speaks => {
                    let rest = self.thought.rest(id, text(block, "thinking"));
                    if rest.len() == text(block, "thinking").len() {
                        self.thinking.paragraph();
                    }
                    out.extend(self.thinking.piece(rest).map(Report::Think));
                }
                "tool_use" | "server_tool_use" => {
                    self.calls.start(text(block, "id"), text(block, "name"), out);
                    self.calls.input(text(block, "id"), block.get("input").cloned().unwrap_or_default(), out);
                }
                kind if kind.ends_with("_tool_result") => self.result(block, event, out),
                _ => {}
            }
        }
    }

    /// What the tools found.
    fn results(&mut self, event: &Value, out: &mut Vec<Report>) {
        let blocks = event.get("message").and_then(|message| message.get("content"));
        for block in list(blocks) {
            if text(block, "type") == "tool_result" {
                self.result(block, event, out);
            }
        }
    }

    fn result(&mut self, block: &Value, event: &Value, out: &mut Vec<Report>) {
        let id = text(block, "tool_use_id");
        let content = block.get("content");
        let step = if block.get("is_error").and_then(Value::as_bool) == Some(true) {
            Step::Failed(flat(content))
        } else {
            Step::Completed(content.cloned().unwrap_or_default())
        };
        self.calls.end(id, step, out);
        self.control.settled(id, out);
        // A task whose call has its answer is done, unless the answer is only that it has begun.
        let launched = event.pointer("/tool_use_result/status").and_then(Value::as_str) == Some("async_launched");
        if !launched && event.get("tool_use_result").is_some_and(Value::is_object) {
            self.tasks.retain(|task| task.call.is_empty() || task.call != id);
        }
    }

    /// A piece of a message.
    fn piece(&mut self, event: &Value, out: &mut Vec<Report>) {
        match text(event, "type") {
            "message_start" => {
                let id = event.pointer("/message/id").and_then(Value::as_str).unwrap_or_default();
                self.current = brief(id, SESSION);
            }
            "content_block_start" => {
                let block = event.get("content_block").unwrap_or(&Value::Null);
                match text(block, "type") {
                    "text" => self.answer.paragraph(),
                    "thinking" => self.thinking.paragraph(),
                    "tool_use" | "server_tool_use" => self.calls.start(text(block, "id"), text(block, "name"), out),
                    _ => {}
                }
            }
            "content_block_delta" => {
                let delta = event.get("delta").unwrap_or(&Value::Null);
                match text(delta, "type") {
                    "text_delta" => {
                        self.said.piece(&self.current, text(delta, "text"));
                        out.extend(self.answer.piece(text(delta, "text")).map(Report::Text));
                    }
                    "thinking_delta" => {
                        self.thought.piece(&self.current, text(delta, "thinking"));
                        out.extend(self.thinking.piece(text(delta, "thinking")).map(Report::Think));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

impl Dialect for Stream {
    fn line(&mut self, line: &str, out: &mut Vec<Report>) {
        if self.verdict.is_given() {
            return;
        }
        match jsonl::read(line) {
            Line::Json(event) => self.event(&event, out),
            Line::Other => {}
            Line::Broken(why) => {
                self.verdict.give(Report::Failed(format!("agent printed a line that cannot be read: {why}")), out);
            }
        }
    }

    fn decided(&mut self, id: &str, decision: &Decision, out: &mut Vec<Report>) {
        self.control.decided(id, decision, out);
    }

    fn answered(&mut self, id: &str, answer: Option<&str>, out: &mut Vec<Report>) {
        self.control.answered(id, answer, out);
    }

    fn interrupt(&mut self, out: &mut Vec<Report>) {
        if !self.verdict.is_given() {
            out.push(super::control::interrupt());
        }
    }

    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        let said_something = self.answer.has_begun() || self.calls.have_begun();
        let meaning = self.wire.exits.iter().find(|(code, _)| exit.code == Some(*code)).map(|(_, words)| *words);
        let report = match meaning {
            _ if self.held => Report::Done,
            _ if !exit.is_success() && mentions(&exit.stderr, &[self.wire.no_session]) => Report::Lost(exit.describe()),
            _ if exit.is_success() && said_something => Report::Done,
            _ if exit.is_success() => Report::Failed("agent ended without an answer".to_owned()),
            _ if lacks_credentials(&exit.stderr, self.wire.no_credentials) => {
                Report::AuthRequired(brief(&exit.stderr, 500))
            }
            Some(words) => Report::Failed(format!("{words}: {}", exit.describe())),
            None => Report::Failed(exit.describe()),
        };
        self.verdict.give(report, out);
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The text of what a tool found: a string, or the text blocks of a list.
fn flat(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<&str> =
                blocks.iter().map(|block| text(block, "text")).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Some(Value::Object(_)) => content.map(|block| text(block, "error_code").to_owned()).unwrap_or_default(),
        _ => String::new(),
    }
}

fn rate_limit(event: &Value, out: &mut Vec<Report>) {
    let info = event.get("rate_limit_info").unwrap_or(&Value::Null);
    if text(info, "status") != "rejected" {
        return;
    }
    let until = info.get("resetsAt").and_then(Value::as_i64).and_then(|seconds| seconds.checked_mul(1_000_000));
    out.push(Report::Status(match until.and_then(Timestamp::from_micros) {
        Some(until) => format!("The limit of the model is reached until {until}"),
        None => "The limit of the model is reached".to_owned(),
    }));
}
