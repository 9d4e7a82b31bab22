//! Reads the app server, from the handshake to the end of the turn.

use nuncio_protocol::{Artifact, ArtifactId, Part, Value, json};

use super::super::jsonl::verdict::{Verdict, lacks_credentials};
use super::super::jsonl::{self, Line, brief, text};
use super::super::report::{Dialect, Exit, Order, Report};
use super::NO_CREDENTIALS;
use super::item::{Items, plan};
use super::request::Requests;
use crate::agent::Usage;
use crate::engine::approval::Decision;

/// How often an overloaded server is asked again.
const RETRIES: u8 = 3;
/// The code of an overloaded server.
const OVERLOADED: i64 = -32001;
/// The largest diff that becomes an artifact, in bytes.
const DIFF: usize = 8 << 20;
/// The longest explanation of a failure.
const LONGEST: usize = 2000;

/// One turn.
#[derive(Debug)]
pub(super) struct Session {
    /// What opens a thread: where, by which model, with which rights.
    opening: Value,
    resumes: Option<String>,
    /// The prompt; taken when the turn starts.
    input: Value,
    sent: Option<Sent>,
    last_id: u64,
    retries: u8,
    thread: String,
    turn: String,
    model: Option<String>,
    items: Items,
    requests: Requests,
    /// Tokens of the thread before this turn.
    before: Option<Tokens>,
    diff: String,
    last_error: String,
    verdict: Verdict,
}

/// A request whose answer is waited for.
#[derive(Debug)]
struct Sent {
    id: u64,
    method: &'static str,
    params: Value,
}

/// Tokens read, read from a cache, and written.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    input: u64,
    cached: u64,
    output: u64,
}

impl Session {
    /// The session, and the first line for the server.
    pub(super) fn new(order: &Order, input: Value) -> (Self, Vec<u8>) {
        let mut opening = json!({ "cwd": order.workspace.to_string_lossy() });
        if let Some(model) = &order.model {
            opening["model"] = model.as_str().into();
        }
        if order.force {
            opening["approvalPolicy"] = "never".into();
            opening["sandbox"] = "danger-full-access".into();
        }
        let mut session = Self {
            opening,
            resumes: order.session.clone(),
            input,
            sent: None,
            last_id: 0,
            retries: 0,
            thread: String::new(),
            turn: String::new(),
            model: order.model.clone(),
            items: Items::default(),
            requests: Requests::new(order.force),
            before: None,
            diff: String::new(),
            last_error: String::new(),
            verdict: Verdict::default(),
        };
        let client = json!({ "name": "nuncio", "title": "Nuncio", "version": env!("CARGO_PKG_VERSION") });
        let first = session.ask("initialize", json!({ "clientInfo": client }));
        (session, first)
    }

    fn ask(&mut self, method: &'static str, params: Value) -> Vec<u8> {
        self.last_id += 1;
        let line = jsonl::line(&json!({ "id": self.last_id, "method": method, "params": params }));
        self.sent = Some(Sent { id: self.last_id, method, params });
        line
    }

    fn send(&mut self, method: &'static str, params: Value, out: &mut Vec<Report>) {
        let line = self.ask(method, params);
        out.push(Report::Write(line));
    }

    /// Without an account it would try to reach the model for minutes before it says so.
    fn account(&mut self, result: &Value, out: &mut Vec<Report>) {
        let needed = result.get("requiresOpenaiAuth").and_then(Value::as_bool) == Some(true);
        if needed && result.get("account").is_none_or(Value::is_null) {
            let why = "Codex is not logged in: run `codex login` as the user of this server";
            return self.verdict.give(Report::AuthRequired(why.to_owned()), out);
        }
        self.open(out);
    }

    /// Continues the thread of before, or begins one.
    fn open(&mut self, out: &mut Vec<Report>) {
        let mut params = self.opening.clone();
        match &self.resumes {
            Some(thread) => {
                params["threadId"] = thread.as_str().into();
                self.send("thread/resume", params, out);
            }
            None => self.send("thread/start", params, out),
        }
    }

    fn answer(&mut self, message: &Value, out: &mut Vec<Report>) {
        let id = message.get("id").and_then(Value::as_u64);
        let Some(sent) = self.sent.take_if(|sent| Some(sent.id) == id) else { return };
        if let Some(error) = message.get("error") {
            return self.refused(sent, error, out);
        }
        let result = message.get("result").unwrap_or(&Value::Null);
        match sent.method {
            "initialize" => {
                out.push(jsonl::write(&json!({ "method": "initialized" })));
                self.send("account/read", json!({ "refreshToken": false }), out);
            }
            "account/read" => self.account(result, out),
            "turn/start" => {
                let turn = result.pointer("/turn/id").and_then(Value::as_str);
                turn.unwrap_or_default().clone_into(&mut self.turn);
            }
            _ => self.opened(result, out),
        }
    }

    fn opened(&mut self, result: &Value, out: &mut Vec<Report>) {
        let thread = result.pointer("/thread/id").and_then(Value::as_str).unwrap_or_default();
        if thread.is_empty() {
            return self.verdict.give(Report::Failed("agent opened no conversation".to_owned()), out);
        }
        thread.clone_into(&mut self.thread);
        out.push(Report::Session(thread.to_owned()));
        let model = text(result, "model");
        if !model.is_empty() {
            self.model = Some(brief(model, 200));
            out.push(Report::Model(brief(model, 200)));
        }
        let input = self.input.take();
        self.send("turn/start", json!({ "threadId": self.thread, "input": input }), out);
    }

    fn refused(&mut self, sent: Sent, error: &Value, out: &mut Vec<Report>) {
        let why = brief(text(error, "message"), LONGEST);
        let code = error.get("code").and_then(Value::as_i64);
        if code == Some(OVERLOADED) && self.retries < RETRIES {
            self.retries += 1;
            out.push(Report::Status(format!("Trying again: {why}")));
            return self.send(sent.method, sent.params, out);
        }
        // Older ones do not know the question.
        if sent.method == "account/read" {
            return self.open(out);
        }
        if sent.method == "thread/resume" {
            self.resumes = None;
            out.push(Report::Status(format!("The conversation could not be continued, a new one begins: {why}")));
            return self.open(out);
        }
        let report = failure(&why, error.get("data").unwrap_or(&Value::Null));
        self.verdict.give(report, out);
    }

    fn notice(&mut self, method: &str, params: &Value, out: &mut Vec<Report>) {
        // Agents that this one has called have threads of their own: what they do counts, what they say is
        // for their caller.
        let thread = text(params, "threadId");
        let own = thread.is_empty() || thread == self.thread;
        match method {
            "item/started" => self.items.started(params.get("item").unwrap_or(&Value::Null), out),
            "item/completed" => self.items.completed(params.get("item").unwrap_or(&Value::Null), own, out),
            "item/commandExecution/outputDelta" => self.items.output(params, out),
            "serverRequest/resolved" => self.requests.resolved(params, out),
            _ if !own => {}
            "item/agentMessage/delta" => self.items.text(params, out),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => self.items.thinking(params, out),
            "item/reasoning/summaryPartAdded" => self.items.thinking_paragraph(),
            "turn/started" => {
                let turn = params.pointer("/turn/id").and_then(Value::as_str).unwrap_or_default();
                turn.clone_into(&mut self.turn);
            }
            "turn/plan/updated" => out.extend(plan(params.get("plan"), "step").map(Report::Status)),
            "turn/diff/updated" => text(params, "diff").clone_into(&mut self.diff),
            "thread/tokenUsage/updated" => self.usage(params.get("tokenUsage").unwrap_or(&Value::Null), out),
            "error" => self.error(params, out),
            "turn/completed" => self.completed(params.get("turn").unwrap_or(&Value::Null), out),
            _ => {}
        }
    }

    /// The thread counts all of its tokens; those of this turn are what was added.
    fn usage(&mut self, usage: &Value, out: &mut Vec<Report>) {
        let tokens = |member: &str| {
            let counts = usage.get(member)?;
            let count = |name: &str| counts.get(name).and_then(Value::as_u64).unwrap_or_default();
            Some(Tokens {
                input: count("inputTokens"),
                cached: count("cachedInputTokens"),
                output: count("outputTokens"),
            })
        };
        let Some(total) = tokens("total") else { return };
        let last = tokens("last").unwrap_or_default();
        let before = *self.before.get_or_insert(total.less(last));
        let turn = total.less(before);
        out.push(Report::Usage(Usage {
            input_tokens: turn.input,
            output_tokens: turn.output,
            cache_read_tokens: Some(turn.cached),
            model: self.model.clone(),
            ..Usage::default()
        }));
    }

    fn error(&mut self, params: &Value, out: &mut Vec<Report>) {
        let why = brief(params.pointer("/error/message").and_then(Value::as_str).unwrap_or_default(), LONGEST);
        if params.get("willRetry").and_then(Value::as_bool) == Some(true) {
            out.push(Report::Status(format!("Trying again: {why}")));
        } else {
            self.last_error = why;
        }
    }

    fn completed(&mut self, turn: &Value, out: &mut Vec<Report>) {
        let id = text(turn, "id");
        if !self.turn.is_empty() && !id.is_empty() && id != self.turn {
            return;
        }
        self.changes(out);
        let report = match text(turn, "status") {
            "completed" => Report::Done,
            "interrupted" => Report::Failed("agent was interrupted".to_owned()),
            _ => {
                let error = turn.get("error").unwrap_or(&Value::Null);
                let why = Some(text(error, "message")).filter(|why| !why.is_empty()).unwrap_or(&self.last_error);
                failure(why, error)
            }
        };
        self.verdict.give(report, out);
    }

    /// All that the turn changed, as one diff.
    fn changes(&mut self, out: &mut Vec<Report>) {
        let diff = std::mem::take(&mut self.diff);
        if diff.trim().is_empty() || diff.len() > DIFF {
            return;
        }
        let part = Part { filename: "changes.diff".into(), media_type: "text/x-diff".into(), ..Part::text(diff) };
        out.push(Report::Artifact(Artifact {
            artifact_id: ArtifactId::fresh(),
            name: "changes".into(),
            parts: vec![part],
            ..Artifact::default()
        }));
    }
}

impl Dialect for Session {
    fn line(&mut self, line: &str, out: &mut Vec<Report>) {
        if self.verdict.is_given() {
            return;
        }
        let message = match jsonl::read(line) {
            Line::Json(message) => message,
            Line::Other => return,
            Line::Broken(why) => {
                let why = format!("agent printed a line that cannot be read: {why}");
                return self.verdict.give(Report::Failed(why), out);
            }
        };
        let method = message.get("method").and_then(Value::as_str);
        let params = message.get("params").unwrap_or(&Value::Null);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => self.requests.ask(id, method, params, &self.items, out),
            (Some(method), None) => self.notice(method, params, out),
            (None, _) => self.answer(&message, out),
        }
    }

    fn decided(&mut self, id: &str, decision: &Decision, out: &mut Vec<Report>) {
        self.requests.decided(id, decision, out);
    }

    fn answered(&mut self, id: &str, answer: Option<&str>, out: &mut Vec<Report>) {
        self.requests.answered(id, answer, out);
    }

    fn interrupt(&mut self, out: &mut Vec<Report>) {
        if !self.verdict.is_given() && !self.turn.is_empty() {
            let params = json!({ "threadId": self.thread, "turnId": self.turn });
            self.last_id += 1;
            out.push(jsonl::write(&json!({ "id": self.last_id, "method": "turn/interrupt", "params": params })));
        }
    }

    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        let report = if lacks_credentials(&exit.stderr, NO_CREDENTIALS) {
            Report::AuthRequired(brief(&exit.stderr, LONGEST))
        } else if self.last_error.is_empty() {
            Report::Failed(format!("the turn did not end: {}", exit.describe()))
        } else {
            failure(&self.last_error, &Value::Null)
        };
        self.verdict.give(report, out);
    }
}

impl Tokens {
    fn less(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cached: self.cached.saturating_sub(other.cached),
            output: self.output.saturating_sub(other.output),
        }
    }
}

/// How a turn ends that failed for this reason.
pub(in super::super) fn failure(why: &str, error: &Value) -> Report {
    let why = if why.trim().is_empty() { "agent failed without saying why" } else { why };
    let unauthorized = text(error, "codexErrorInfo") == "unauthorized" || lacks_credentials(why, NO_CREDENTIALS);
    if unauthorized { Report::AuthRequired(brief(why, LONGEST)) } else { Report::Failed(brief(why, LONGEST)) }
}
