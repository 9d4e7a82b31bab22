//! Cursor: `cursor-agent -p --output-format stream-json`.

use nuncio_protocol::Value;

use super::ledger::{Ledger, count, object, text_of, words_of};
use super::report::{Dialect, Exit, Input, Launch, Order, Program, Report};
use crate::agent::Usage;

/// Cursor's agent on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor;

impl Program for Cursor {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn binary(&self) -> &str {
        "cursor-agent"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["CURSOR_*"]
    }

    fn can_resume(&self) -> bool {
        true
    }

    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        let mut args: Vec<String> =
            ["-p", "--output-format", "stream-json", "--stream-partial-output"].map(str::to_owned).into();
        // Without trust it refuses to start in a folder that nobody opened before. Which folder it is,
        // the operator decides; what it may do there, `-f` decides.
        args.push("--trust".into());
        if order.force {
            args.push("-f".into());
        }
        if let Some(model) = &order.model {
            args.push(format!("--model={model}"));
        }
        if !order.workspace.as_os_str().is_empty() {
            args.push(format!("--workspace={}", order.workspace.display()));
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
}

impl Dialect for Reader {
    fn line(&mut self, line: &str, out: &mut Vec<Report>) {
        let Some(event) = object(line) else { return };
        if self.ledger.is_over() {
            return;
        }
        if let Some(id) = event["session_id"].as_str() {
            self.ledger.session(id, out);
        }
        match event["type"].as_str().unwrap_or_default() {
            "system" => self.ledger.model(&event["model"], out),
            "assistant" => self.said(&event, out),
            "thinking" => self.ledger.think(event["text"].as_str().unwrap_or_default(), out),
            "tool_call" => self.called(&event, out),
            "result" => self.ended(&event, out),
            _ => {}
        }
    }

    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        self.ledger.gone(exit, out);
    }
}

impl Reader {
    /// Only a line with a time and without the id of a model call is new. The same text comes again
    /// before a tool is called, with that id, and at the end, without a time.
    fn said(&mut self, event: &Value, out: &mut Vec<Report>) {
        if event["timestamp_ms"].is_null() || !event["model_call_id"].is_null() {
            return;
        }
        self.ledger.text(&text_of(&event["message"]["content"]), out);
    }

    fn called(&mut self, event: &Value, out: &mut Vec<Report>) {
        let id = event["call_id"].as_str().unwrap_or_default();
        let (name, call) = named(&event["tool_call"]);
        match event["subtype"].as_str() {
            Some("started") => {
                self.ledger.call(id, &name, input(call), out);
            }
            Some("completed") => {
                // A call that was not seen to begin still gets its name.
                let id = self.ledger.call(id, &name, &Value::Null, out);
                self.ledger.returned(&id, result(&call["result"]), out);
            }
            _ => {}
        }
    }

    fn ended(&mut self, event: &Value, out: &mut Vec<Report>) {
        let text = event["result"].as_str().unwrap_or_default();
        let failed = event["is_error"].as_bool() == Some(true) || event["subtype"].as_str() == Some("error");
        let usage = &event["usage"];
        if usage.is_object() {
            out.push(Report::Usage(Usage {
                input_tokens: count(&usage["inputTokens"]).unwrap_or_default(),
                output_tokens: count(&usage["outputTokens"]).unwrap_or_default(),
                cache_read_tokens: count(&usage["cacheReadTokens"]),
                cache_write_tokens: count(&usage["cacheWriteTokens"]),
                cost_usd: None,
                duration_ms: count(&event["duration_ms"]),
                model: self.ledger.take_model(),
            }));
        }
        if failed {
            let reason = if text.is_empty() { words_of(&event["error"]) } else { text.to_owned() };
            return self.ledger.failed(&reason, out);
        }
        // Versions that do not stream pieces say everything here.
        if !self.ledger.spoke() {
            self.ledger.text(text, out);
        }
        self.ledger.done(out);
    }
}

/// The name of a tool, and what is said of the call: `{"readToolCall": {…}}` beside other keys, or
/// `{"function": {"name": …}}`.
fn named(call: &Value) -> (String, &Value) {
    const NOTHING: &Value = &Value::Null;
    let Some(keys) = call.as_object() else { return (String::new(), NOTHING) };
    let of_kind = keys.iter().find_map(|(key, call)| Some((key.strip_suffix("ToolCall")?, call)));
    match of_kind {
        Some(("mcp", call)) => {
            let args = &call["args"];
            let tool = args["toolName"].as_str().unwrap_or("mcp");
            let name = args["providerIdentifier"].as_str().map_or(tool.to_owned(), |from| format!("{from}/{tool}"));
            (name, call)
        }
        Some((kind, call)) => (kind.to_owned(), call),
        None => (call["function"]["name"].as_str().unwrap_or_default().to_owned(), &call["function"]),
    }
}

fn input(call: &Value) -> &Value {
    if call["args"].is_null() { &call["arguments"] } else { &call["args"] }
}

/// `{"success": …}`, or anything else with a reason in it: `error`, `rejected`, `failure`.
fn result(result: &Value) -> Result<Value, String> {
    let Some((kind, value)) = result.as_object().and_then(|result| result.iter().next()) else {
        return Ok(result.clone());
    };
    if kind == "success" {
        return Ok(value.clone());
    }
    let reason = ["message", "errorMessage", "error", "reason"].iter().find_map(|key| value[*key].as_str());
    match kind.as_str() {
        "error" | "failure" | "rejected" | "permissionDenied" | "timeout" => {
            let reason = reason.map_or_else(|| words_of(value), str::to_owned);
            Err(if reason.is_empty() { kind.clone() } else { format!("{kind}: {reason}") })
        }
        _ => Ok(result.clone()),
    }
}
