//! Gemini CLI: `gemini -o stream-json`.

use nuncio_protocol::Value;

use super::ledger::{Ledger, count, first_text, object, words_of};
use super::report::{Dialect, Exit, Input, Launch, Order, Program, Report};
use crate::agent::Usage;

/// Gemini on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

impl Program for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn binary(&self) -> &str {
        "gemini"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["GEMINI_*", "GOOGLE_*"]
    }

    fn can_resume(&self) -> bool {
        true
    }

    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        // Without trust it ends at once in a folder that nobody opened before. Which folder it is, the
        // operator decides; what it may do there, the approval mode decides.
        let mut args: Vec<String> = ["-o", "stream-json", "--skip-trust"].map(str::to_owned).into();
        args.push(format!("--approval-mode={}", if order.force { "yolo" } else { "default" }));
        if let Some(model) = &order.model {
            args.push(format!("--model={model}"));
        }
        if let Some(session) = &order.session {
            args.push(format!("--resume={session}"));
        }
        let input = Input::All(order.prompt.clone().into_bytes());
        (Launch { args, env: Vec::new(), input }, Box::new(Reader::default()))
    }
}

#[derive(Default)]
struct Reader {
    ledger: Ledger,
    trouble: Option<String>,
}

impl Dialect for Reader {
    fn line(&mut self, line: &str, out: &mut Vec<Report>) {
        let Some(event) = object(line) else { return };
        if self.ledger.is_over() {
            return;
        }
        match event["type"].as_str().unwrap_or_default() {
            "init" => {
                self.ledger.session(event["session_id"].as_str().unwrap_or_default(), out);
                self.ledger.model(&event["model"], out);
            }
            "message" if event["role"].as_str() == Some("assistant") => {
                self.ledger.text(event["content"].as_str().unwrap_or_default(), out);
            }
            "tool_use" => {
                let name = event["tool_name"].as_str().unwrap_or_default();
                self.ledger.call(event["tool_id"].as_str().unwrap_or_default(), name, &event["parameters"], out);
            }
            "tool_result" => {
                let result = match event["status"].as_str() {
                    Some("error") => Err(reason(&event["error"], &event["output"])),
                    _ => Ok(event["output"].clone()),
                };
                self.ledger.returned(event["tool_id"].as_str().unwrap_or_default(), result, out);
            }
            "error" => {
                let message = event["message"].as_str().unwrap_or_default();
                // A warning is for people; an error may be survived, and the result says whether it was.
                match event["severity"].as_str() {
                    Some("error") => self.trouble = Some(message.to_owned()),
                    _ if !message.is_empty() => out.push(Report::Status(message.to_owned())),
                    _ => {}
                }
            }
            "result" => self.ended(&event, out),
            _ => {}
        }
    }

    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        match (exit.code, self.trouble.take()) {
            (Some(AUTHENTICATION), _) => self.ledger.needs_credentials(&explain(exit), out),
            (Some(0), None) => self.ledger.gone(exit, out),
            (_, Some(reason)) => self.ledger.failed(&reason, out),
            (_, None) => self.ledger.failed(&explain(exit), out),
        }
    }
}

impl Reader {
    fn ended(&mut self, event: &Value, out: &mut Vec<Report>) {
        let stats = &event["stats"];
        if stats.is_object() {
            out.push(Report::Usage(Usage {
                input_tokens: count(&stats["input_tokens"]).unwrap_or_default(),
                output_tokens: count(&stats["output_tokens"]).unwrap_or_default(),
                cache_read_tokens: count(&stats["cached"]),
                cache_write_tokens: None,
                cost_usd: None,
                duration_ms: count(&stats["duration_ms"]),
                model: self.ledger.take_model(),
            }));
        }
        match event["status"].as_str() {
            Some("error") => {
                let trouble = self.trouble.take().map_or(Value::Null, Value::String);
                self.ledger.failed(&reason(&event["error"], &trouble), out);
            }
            _ => self.ledger.done(out),
        }
    }
}

fn reason(error: &Value, otherwise: &Value) -> String {
    match first_text(&[&error["message"], error, otherwise, &error["type"]]) {
        "" => words_of(error),
        said => said.to_owned(),
    }
}

const AUTHENTICATION: i32 = 41;

/// What its exit codes mean.
fn explain(exit: &Exit) -> String {
    let meaning = match exit.code {
        Some(AUTHENTICATION) => "agent lacks credentials",
        Some(42) => "agent refused the input",
        Some(44) => "agent could not set up its sandbox",
        Some(52) => "agent is configured wrongly",
        Some(53) => "agent reached its limit of turns",
        Some(54) => "a tool of the agent failed for good",
        Some(130) => "agent was interrupted",
        _ => return exit.describe(),
    };
    format!("{meaning}: {}", exit.describe())
}
