//! What the dialects of one-shot programs have in common: a turn ends once, calls of tools keep their
//! names, and stretches of text that belong to different messages do not run together.

use std::collections::VecDeque;

use nuncio_protocol::Value;

use super::report::{Exit, Report, Step};
use crate::agent::spoken;

/// How many open calls are remembered. A program that opens more loses the names of the oldest.
const OPEN_CALLS: usize = 256;
/// The longest id of a session or call that is believed.
const LONGEST_ID: usize = 512;
/// The longest explanation that is passed on, in characters.
const LONGEST_REASON: usize = 4000;

/// The books of one turn.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    over: bool,
    session: Option<String>,
    model: Option<String>,
    spoke: bool,
    /// Something happened since the last text, so the next one begins a paragraph.
    interrupted: bool,
    calls: VecDeque<(String, String)>,
    unnamed: u64,
}

impl Ledger {
    /// Whether the turn has ended; nothing counts after that.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether any text was reported.
    pub(super) fn spoke(&self) -> bool {
        self.spoke
    }

    /// The id of the program's conversation; reported when it is new.
    pub(super) fn session(&mut self, id: &str, out: &mut Vec<Report>) {
        let is_new = self.session.as_deref() != Some(id);
        if is_new && !id.is_empty() && id.len() <= LONGEST_ID {
            self.session = Some(id.to_owned());
            out.push(Report::Session(id.to_owned()));
        }
    }

    /// The model that answers, also for the bill.
    pub(super) fn model(&mut self, model: &Value, out: &mut Vec<Report>) {
        self.model = model.as_str().filter(|model| model.len() <= LONGEST_ID).map(str::to_owned);
        out.extend(self.model.clone().filter(|model| !model.is_empty()).map(Report::Model));
    }

    /// The model that was named last.
    pub(super) fn take_model(&mut self) -> Option<String> {
        self.model.take()
    }

    /// A piece of a text that goes on.
    pub(super) fn text(&mut self, text: &str, out: &mut Vec<Report>) {
        if text.is_empty() {
            return;
        }
        let apart = self.spoke && self.interrupted;
        self.spoke = true;
        self.interrupted = false;
        out.push(Report::Text(if apart { format!("\n\n{text}") } else { text.to_owned() }));
    }

    /// A whole text of its own.
    pub(super) fn paragraph(&mut self, text: &str, out: &mut Vec<Report>) {
        self.interrupted = true;
        self.text(text, out);
    }

    /// A piece of thinking.
    pub(super) fn think(&mut self, text: &str, out: &mut Vec<Report>) {
        if !text.is_empty() {
            out.push(Report::Think(text.to_owned()));
        }
    }

    /// A tool was called. Returns the id under which the call is known.
    pub(super) fn call(&mut self, id: &str, name: &str, input: &Value, out: &mut Vec<Report>) -> String {
        self.interrupted = true;
        let id = self.call_id(id);
        let name = if name.is_empty() { "tool" } else { name };
        if self.name_of(&id).is_none() {
            if self.calls.len() == OPEN_CALLS {
                self.calls.pop_front();
            }
            self.calls.push_back((id.clone(), name.to_owned()));
            out.push(tool(&id, name, Step::Started));
        }
        if !input.is_null() {
            out.push(tool(&id, name, Step::Input(input.clone())));
        }
        id
    }

    /// A call of a tool is over. A call that nobody saw begin has its id for a name.
    pub(super) fn returned(&mut self, id: &str, result: Result<Value, String>, out: &mut Vec<Report>) {
        self.interrupted = true;
        let known = self.calls.iter().position(|(open, _)| open == id);
        let (id, name) = match known.and_then(|at| self.calls.remove(at)) {
            Some(call) => call,
            None => {
                let id = self.call_id(id);
                (id.clone(), id)
            }
        };
        let step = match result {
            Ok(value) => Step::Completed(value),
            Err(reason) => Step::Failed(short(&reason)),
        };
        out.push(tool(&id, &name, step));
    }

    /// The turn is done.
    pub(super) fn done(&mut self, out: &mut Vec<Report>) {
        self.finish(Report::Done, out);
    }

    /// The turn failed. What speaks of missing credentials asks for them.
    pub(super) fn failed(&mut self, reason: &str, out: &mut Vec<Report>) {
        let reason = match short(reason.trim()) {
            reason if reason.is_empty() => "the agent reported an error without a reason".to_owned(),
            reason => reason,
        };
        let end = if lacks_credentials(&reason) { Report::AuthRequired(reason) } else { Report::Failed(reason) };
        self.finish(end, out);
    }

    /// The program lacks credentials.
    pub(super) fn needs_credentials(&mut self, reason: &str, out: &mut Vec<Report>) {
        self.finish(Report::AuthRequired(short(reason.trim())), out);
    }

    /// The program is gone, and it should have said before how the turn ended.
    pub(super) fn gone(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        match exit.code {
            Some(0) => self.failed("agent ended without a result", out),
            _ => self.failed(&exit.describe(), out),
        }
    }

    fn finish(&mut self, end: Report, out: &mut Vec<Report>) {
        if !self.over {
            self.over = true;
            out.push(end);
        }
    }

    fn call_id(&mut self, id: &str) -> String {
        if !id.is_empty() && id.len() <= LONGEST_ID {
            return id.to_owned();
        }
        self.unnamed += 1;
        format!("call-{}", self.unnamed)
    }

    fn name_of(&self, id: &str) -> Option<&str> {
        self.calls.iter().find(|(open, _)| open == id).map(|(_, name)| name.as_str())
    }
}

/// The object in a line; anything else is none.
pub(super) fn object(line: &str) -> Option<Value> {
    let line = line.trim();
    if !line.starts_with('{') {
        return None;
    }
    spoken::decode(line.as_bytes()).ok().filter(Value::is_object)
}

/// The text of a value: itself if it is text, the texts of its blocks if it is a list of those.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Text, or JSON for what is none; for explanations.
pub(super) fn words_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The first of these that is text.
pub(super) fn first_text<'a>(values: &[&'a Value]) -> &'a str {
    values.iter().find_map(|value| value.as_str()).unwrap_or_default()
}

/// A number of things: whole and not negative, else none.
pub(super) fn count(value: &Value) -> Option<u64> {
    value.as_u64()
}

/// An argument as the operating system takes it.
pub(super) fn argument(text: &str) -> String {
    text.replace('\0', "")
}

fn tool(id: &str, name: &str, step: Step) -> Report {
    Report::Tool { id: id.to_owned(), name: name.to_owned(), step }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether an explanation says that somebody has to log in or set a key, in the words of the programs.
fn lacks_credentials(reason: &str) -> bool {
    const SIGNS: [&str; 12] = [
        "authentication required",
        "not logged in",
        "not authenticated",
        "please log in",
        "invalid api key",
        "invalid_api_key",
        "incorrect api key",
        "api key not valid",
        "missing api key",
        "api key is missing",
        "api key not found",
        "please set an auth method",
    ];
    let reason = reason.to_lowercase();
    SIGNS.iter().any(|sign| reason.contains(sign)) || reason.contains("missing ") && reason.contains("_api_key")
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::json;

    use super::*;

    #[test]
    fn a_turn_ends_once() {
        let (mut ledger, mut out) = (Ledger::default(), Vec::new());
        ledger.failed("boom", &mut out);
        ledger.done(&mut out);
        ledger.gone(&Exit::default(), &mut out);
        assert_eq!(out, [Report::Failed("boom".into())]);
    }

    #[test]
    fn texts_around_a_call_stay_apart() {
        let (mut ledger, mut out) = (Ledger::default(), Vec::new());
        ledger.text("Let me ", &mut out);
        ledger.text("look.", &mut out);
        ledger.call("c", "read", &Value::Null, &mut out);
        ledger.returned("c", Ok(json!("x")), &mut out);
        ledger.text("Found", &mut out);
        ledger.text(" it.", &mut out);
        let texts = out.iter().filter_map(|report| match report {
            Report::Text(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(texts.collect::<String>(), "Let me look.\n\nFound it.");
    }

    #[test]
    fn open_calls_are_bounded() {
        let (mut ledger, mut out) = (Ledger::default(), Vec::new());
        for n in 0..10_000 {
            ledger.call(&n.to_string(), "read", &Value::Null, &mut out);
        }
        assert_eq!(ledger.calls.len(), OPEN_CALLS);
        out.clear();
        ledger.returned("9999", Ok(Value::Null), &mut out);
        ledger.returned("0", Err("no".into()), &mut out);
        assert_eq!(
            out,
            [tool("9999", "read", Step::Completed(Value::Null)), tool("0", "0", Step::Failed("no".into()))]
        );
    }

    #[test]
    fn missing_credentials_are_told_from_other_failures() {
        let end = |reason: &str| {
            let mut out = Vec::new();
            Ledger::default().failed(reason, &mut out);
            out.remove(0)
        };
        assert!(matches!(end("Authentication required. Please run 'agent login' first"), Report::AuthRequired(_)));
        assert!(matches!(end("Missing MISTRAL_API_KEY environment variable"), Report::AuthRequired(_)));
        assert!(matches!(end("Incorrect API key provided"), Report::AuthRequired(_)));
        assert!(matches!(end("missing file"), Report::Failed(_)));
        assert!(matches!(end(""), Report::Failed(_)));
    }
}
