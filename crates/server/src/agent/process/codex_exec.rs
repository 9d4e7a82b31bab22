//! Codex without its app server: `codex exec --json`, which asks nobody and answers in whole messages.

use nuncio_protocol::Value;

use super::codex::item::Items;
use super::codex::{NO_CREDENTIALS, VARIABLES, failure};
use super::jsonl::verdict::{Verdict, lacks_credentials, mentions};
use super::jsonl::{self, Line, brief, text};
use super::report::{Dialect, Exit, Input, Launch, Order, Program, Report};
use crate::agent::Usage;

/// OpenAI's Codex, one command per turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodexExec;

impl Program for CodexExec {
    fn name(&self) -> &'static str {
        "codex-exec"
    }

    fn binary(&self) -> &str {
        "codex"
    }

    fn variables(&self) -> &'static [&'static str] {
        VARIABLES
    }

    fn can_resume(&self) -> bool {
        true
    }

    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        let mut args: Vec<String> = ["exec", "--json", "--skip-git-repo-check"].map(str::to_owned).into();
        args.extend(order.model.as_ref().map(|model| format!("--model={model}")));
        if order.force {
            args.push("--dangerously-bypass-approvals-and-sandbox".to_owned());
        }
        // The id is an argument of its own, so one that begins with a dash would be a flag.
        if let Some(session) = order.session.as_ref().filter(|session| !session.starts_with('-')) {
            args.extend(["resume".to_owned(), session.clone()]);
        }
        args.push("-".to_owned());
        let launch = Launch { args, env: Vec::new(), input: Input::All(order.prompt.clone().into_bytes()) };
        (launch, Box::new(Lines { model: order.model.clone(), ..Lines::default() }))
    }
}

/// Words, in lower case, that say that a conversation cannot be continued because it is not there.
const NO_THREAD: &str = "no rollout found for thread";

/// Reads one run.
#[derive(Debug, Default)]
struct Lines {
    model: Option<String>,
    items: Items,
    last_error: String,
    verdict: Verdict,
}

impl Lines {
    fn event(&mut self, event: &Value, out: &mut Vec<Report>) {
        let item = event.get("item").unwrap_or(&Value::Null);
        match text(event, "type") {
            "thread.started" if !text(event, "thread_id").is_empty() => {
                out.push(Report::Session(text(event, "thread_id").to_owned()));
            }
            "item.started" | "item.updated" => self.items.started(item, out),
            "item.completed" => self.items.completed(item, true, out),
            "turn.completed" => {
                self.usage(event.get("usage").unwrap_or(&Value::Null), out);
                self.verdict.give(Report::Done, out);
            }
            "turn.failed" => {
                let error = event.get("error").unwrap_or(&Value::Null);
                let why = Some(text(error, "message")).filter(|why| !why.is_empty()).unwrap_or(&self.last_error);
                self.verdict.give(failure(why, error), out);
            }
            // Not the end: it tells of every lost connection like this, and tries again.
            "error" => {
                self.last_error = brief(text(event, "message"), 2000);
                out.push(Report::Status(self.last_error.clone()));
            }
            _ => {}
        }
    }

    fn usage(&self, usage: &Value, out: &mut Vec<Report>) {
        let tokens = |name: &str| usage.get(name).and_then(Value::as_u64);
        if usage.is_object() {
            out.push(Report::Usage(Usage {
                input_tokens: tokens("input_tokens").unwrap_or_default(),
                output_tokens: tokens("output_tokens").unwrap_or_default(),
                cache_read_tokens: tokens("cached_input_tokens"),
                cache_write_tokens: tokens("cache_write_input_tokens"),
                model: self.model.clone(),
                ..Usage::default()
            }));
        }
    }
}

impl Dialect for Lines {
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

    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        let report = if exit.is_success() && self.items.have_begun() {
            Report::Done
        } else if mentions(&exit.stderr, &[NO_THREAD]) {
            Report::Lost(exit.describe())
        } else if lacks_credentials(&exit.stderr, NO_CREDENTIALS) {
            Report::AuthRequired(brief(&exit.stderr, 2000))
        } else if !self.last_error.is_empty() {
            failure(&self.last_error, &Value::Null)
        } else if exit.is_success() {
            Report::Failed("agent ended without an answer".to_owned())
        } else {
            Report::Failed(exit.describe())
        };
        self.verdict.give(report, out);
    }
}

#[cfg(test)]
mod tests;
