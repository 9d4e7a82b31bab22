//! Any command: it gets a prompt and answers in plain text or in lines of JSON.
//!
//! The first line decides: an object with a `type` that `ndjson` knows means lines of JSON, anything
//! else means text. A line that asks for an approval is never part of the answer.

use std::collections::VecDeque;

use super::ledger::{Ledger, argument, object};
use super::report::{Dialect, Exit, Input, Launch, Order, Program, Report};
use super::tail::plain;
use crate::engine::approval::{Approval, Decision};

mod approval;
mod ndjson;

pub use approval::{Approvals, BadPattern};

/// Where a command finds its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptAt {
    /// The last argument. Its stdin stays open for the answers to approvals.
    #[default]
    Argument,
    /// All of stdin. It cannot ask for anything then, so whatever it prints is its answer.
    Stdin,
    /// The first line, or lines, of a stdin that stays open for the answers to approvals.
    Line,
}

/// A command that none of the other programs describes.
#[derive(Clone, Debug)]
pub struct Generic {
    binary: String,
    prompt_at: PromptAt,
    approvals: Approvals,
}

impl Generic {
    /// This command, with its prompt as the last argument and the approvals that many commands ask for.
    pub fn new(binary: impl Into<String>) -> Self {
        Self { binary: binary.into(), prompt_at: PromptAt::default(), approvals: Approvals::default() }
    }

    /// Puts the prompt elsewhere.
    #[must_use]
    pub fn prompt_at(self, prompt_at: PromptAt) -> Self {
        Self { prompt_at, ..self }
    }

    /// Recognizes and answers approvals in this way.
    #[must_use]
    pub fn approvals(self, approvals: Approvals) -> Self {
        Self { approvals, ..self }
    }
}

impl Program for Generic {
    fn name(&self) -> &'static str {
        "generic"
    }

    fn binary(&self) -> &str {
        &self.binary
    }

    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        let mut launch = Launch::default();
        match self.prompt_at {
            PromptAt::Argument => {
                launch.args.push(never_an_option(argument(&order.prompt)));
                launch.input = Input::Open(Vec::new());
            }
            PromptAt::Stdin => launch.input = Input::All(order.prompt.clone().into_bytes()),
            PromptAt::Line => launch.input = Input::Open(format!("{}\n", order.prompt.trim_end()).into_bytes()),
        }
        let approvals = (self.prompt_at != PromptAt::Stdin).then(|| self.approvals.clone());
        (launch, Box::new(Reader { approvals, force: order.force, ..Reader::default() }))
    }
}

/// Callers choose what to say, not the options of the command.
fn never_an_option(prompt: String) -> String {
    if prompt.starts_with('-') { format!(" {prompt}") } else { prompt }
}

/// How many requests may wait for the answer to another. Answers go to stdin in the order of the
/// requests, so only one is asked at a time.
const WAITING: usize = 32;

#[derive(Default)]
struct Reader {
    ledger: Ledger,
    form: Form,
    /// None for a command that could not read an answer.
    approvals: Option<Approvals>,
    force: bool,
    /// The first one is asked.
    requests: VecDeque<(String, String)>,
    asked: u64,
    /// The beginning of the line that is not finished, as far as it is dealt with.
    begun: String,
}

enum Form {
    /// Only so many empty lines came.
    Undecided(usize),
    Text,
    Json,
}

impl Default for Form {
    fn default() -> Self {
        Self::Undecided(0)
    }
}

impl Dialect for Reader {
    fn line(&mut self, line: &str, out: &mut Vec<Report>) {
        let begun = std::mem::take(&mut self.begun);
        if self.ledger.is_over() {
            return;
        }
        match line.strip_prefix(&begun) {
            Some(rest) if !begun.is_empty() && rest.trim().is_empty() => {}
            Some(rest) => self.whole(rest, out),
            None => self.whole(line, out),
        }
    }

    fn partial(&mut self, unfinished: &str, out: &mut Vec<Report>) {
        if self.ledger.is_over() {
            return;
        }
        let rest = unfinished.strip_prefix(&self.begun).unwrap_or(unfinished);
        if self.request(rest, out) {
            unfinished.clone_into(&mut self.begun);
        }
    }

    fn decided(&mut self, id: &str, decision: &Decision, out: &mut Vec<Report>) {
        if self.requests.front().is_none_or(|(asked, _)| asked != id) {
            return;
        }
        self.requests.pop_front();
        out.extend(self.approvals.as_ref().map(|approvals| Report::Write(approvals.answer(decision.approved))));
        self.ask(out);
    }

    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        if exit.is_success() {
            self.ledger.done(out);
        } else {
            self.ledger.failed(&exit.describe(), out);
        }
    }
}

impl Reader {
    fn whole(&mut self, line: &str, out: &mut Vec<Report>) {
        let event = object(line);
        if event.is_none() && self.request(line, out) {
            return;
        }
        if let Form::Undecided(empty) = self.form {
            if line.trim().is_empty() {
                self.form = Form::Undecided(empty.saturating_add(1));
                return;
            }
            if event.as_ref().is_some_and(ndjson::is_known) {
                self.form = Form::Json;
            } else {
                self.form = Form::Text;
                out.extend((empty > 0).then(|| Report::Text("\n".repeat(empty.min(MOST_EMPTY)))));
            }
        }
        match (&self.form, event) {
            (Form::Json, Some(event)) => ndjson::read(&event, &mut self.ledger, out),
            (Form::Json, None) => {}
            _ => self.ledger.text(&format!("{}\n", plain(line)), out),
        }
    }

    /// Whether these words ask for an approval; if so, it is asked for or given.
    fn request(&mut self, words: &str, out: &mut Vec<Report>) -> bool {
        let Some(approvals) = &self.approvals else { return false };
        let Some(action) = approvals.find(words) else { return false };
        if self.force {
            out.push(Report::Write(approvals.answer(true)));
            return true;
        }
        if self.requests.len() == WAITING {
            return false;
        }
        self.asked += 1;
        self.requests.push_back((format!("approval-{}", self.asked), action));
        if self.requests.len() == 1 {
            self.ask(out);
        }
        true
    }

    fn ask(&self, out: &mut Vec<Report>) {
        out.extend(self.requests.front().map(|(id, action)| {
            let approval = Approval::of(action.clone());
            Report::Approve { id: id.clone(), approval }
        }));
    }
}

/// Empty lines before an answer that are kept.
const MOST_EMPTY: usize = 100;
