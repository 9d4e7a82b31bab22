//! Mistral Vibe: `vibe --prompt=… --output streaming`.

use std::time::{SystemTime, UNIX_EPOCH};

use nuncio_protocol::{Value, codec};

use super::ledger::{Ledger, argument, first_text, object, text_of, words_of};
use super::report::{Dialect, Exit, Input, Launch, Order, Program, Report};

/// Mistral Vibe on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vibe;

/// What one argument may hold is limited to 128 KiB on Linux.
const LONGEST_ARGUMENT: usize = 100 << 10;

impl Program for Vibe {
    fn name(&self) -> &'static str {
        "vibe"
    }

    fn binary(&self) -> &str {
        "vibe"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["MISTRAL_*", "VIBE_*"]
    }

    fn can_resume(&self) -> bool {
        true
    }

    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        let prompt = argument(&order.prompt);
        // Not every version reads the prompt from stdin without a terminal, so that is only for what no
        // argument can hold.
        let (mut args, input) = if prompt.len() <= LONGEST_ARGUMENT {
            (vec![format!("--prompt={prompt}")], Input::Closed)
        } else {
            (vec!["--prompt=".to_owned()], Input::All(prompt.into_bytes()))
        };
        args.extend(["--output", "streaming"].map(str::to_owned));
        // Without an agent some versions approve everything by themselves.
        if order.force {
            args.extend(["--agent=auto-approve", "--trust"].map(str::to_owned));
        } else {
            args.push("--agent=ask".into());
        }
        if let Some(session) = &order.session {
            args.push(format!("--resume={session}"));
        }
        let model = order.model.iter().map(|model| ("VIBE_ACTIVE_MODEL".to_owned(), argument(model)));
        let since = order.session.as_ref().and_then(|_| SystemTime::now().duration_since(UNIX_EPOCH).ok());
        let since_ms = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
        let reader = Reader { since_ms, ..Reader::default() };
        (Launch { args, env: model.collect(), input }, Box::new(reader))
    }
}

/// Reads both forms: the messages of a model until 2.18, the entries of a history after that.
#[derive(Default)]
struct Reader {
    ledger: Ledger,
    /// A conversation that is continued is shown again from its start; what is older than this was told
    /// before.
    since_ms: u64,
}

impl Dialect for Reader {
    fn line(&mut self, line: &str, out: &mut Vec<Report>) {
        let Some(entry) = object(line) else { return };
        if let Some(id) = entry["sessionId"].as_str() {
            self.ledger.session(id, out);
        }
        if entry["createdAt"].as_u64().is_some_and(|at| at < self.since_ms) {
            return;
        }
        // The whole entry comes later, or it was withdrawn.
        if entry["generationStatus"].as_str() == Some("in_progress")
            || entry["outcome"]["type"].as_str() == Some("discarded")
        {
            return;
        }
        match entry["type"].as_str() {
            Some("reasoning") => self.ledger.think(entry["text"].as_str().unwrap_or_default(), out),
            Some("effect") => self.effect(&entry, out),
            Some("message") | None => self.message(&entry, out),
            Some(_) => {}
        }
    }

    /// There is no line that says that it is done: only the exit code does.
    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        if exit.is_success() {
            self.ledger.done(out);
        } else {
            self.ledger.failed(&exit.describe(), out);
        }
    }
}

impl Reader {
    fn message(&mut self, message: &Value, out: &mut Vec<Report>) {
        match message["role"].as_str().unwrap_or_default() {
            "assistant" => {
                self.ledger.think(message["reasoning_content"].as_str().unwrap_or_default(), out);
                self.ledger.paragraph(&text_of(&message["content"]), out);
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let (id, function) = (call["id"].as_str().unwrap_or_default(), &call["function"]);
                    let name = function["name"].as_str().unwrap_or_default();
                    self.ledger.call(id, name, &arguments(&function["arguments"]), out);
                }
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                self.ledger.returned(id, Ok(Value::String(text_of(&message["content"]))), out);
            }
            _ => {}
        }
    }

    /// The call of a tool, told of when it is over.
    fn effect(&mut self, entry: &Value, out: &mut Vec<Report>) {
        let (detail, state) = (&entry["detail"], &entry["state"]);
        let name = first_text(&[&detail["toolName"], &entry["title"]]);
        let id = self.ledger.call(entry["id"].as_str().unwrap_or_default(), name, &detail["input"], out);
        let result = match state["status"].as_str() {
            Some("completed") if state["output"].is_null() => Ok(state["outputText"].clone()),
            Some("completed") => Ok(state["output"].clone()),
            Some(status @ ("failed" | "cancelled" | "skipped")) => {
                let said = first_text(&[&state["error"]["message"], &state["reason"]]);
                Err(match said {
                    "" => format!("{status} {}", words_of(&state["error"])),
                    said => said.to_owned(),
                })
            }
            _ => return,
        };
        self.ledger.returned(&id, result, out);
    }
}

/// Arguments are JSON in a text; what is none stays a text.
fn arguments(arguments: &Value) -> Value {
    let read = arguments.as_str().and_then(|text| codec::decode(text.as_bytes()).ok());
    read.unwrap_or_else(|| arguments.clone())
}

#[cfg(test)]
mod tests;
