//! The lines of JSON that a command may answer with.
//!
//! ```json
//! {"type":"system/init","model":"m","sessionId":"s"}
//! {"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"hi"}]}}
//! {"type":"tool_use","id":"u1","name":"read_file","input":{"path":"x"}}
//! {"type":"tool_result","tool_use_id":"u1","content":"text, or a list of text blocks"}
//! {"type":"result","cost":{"input_tokens":1200,"output_tokens":300}}
//! {"type":"error","error":{"message":"boom"}}
//! ```

use nuncio_protocol::Value;

use super::super::ledger::{Ledger, count, first_text, text_of, words_of};
use super::super::report::Report;
use crate::agent::Usage;

const KNOWN: [&str; 6] = ["system/init", "assistant", "tool_use", "tool_result", "result", "error"];

/// Whether an object is one of these lines.
pub(super) fn is_known(event: &Value) -> bool {
    event["type"].as_str().is_some_and(|kind| KNOWN.contains(&kind))
}

/// Reads one of them; what is unknown means nothing.
pub(super) fn read(event: &Value, ledger: &mut Ledger, out: &mut Vec<Report>) {
    match event["type"].as_str().unwrap_or_default() {
        "system/init" => {
            ledger.session(event["sessionId"].as_str().unwrap_or_default(), out);
            ledger.model(&event["model"], out);
        }
        "assistant" => ledger.text(&text_of(&event["message"]["content"]), out),
        "tool_use" => {
            let name = event["name"].as_str().unwrap_or_default();
            ledger.call(event["id"].as_str().unwrap_or_default(), name, &event["input"], out);
        }
        "tool_result" => {
            let text = text_of(&event["content"]);
            let failed = event["is_error"].as_bool() == Some(true);
            let result = if failed { Err(text) } else { Ok(Value::String(text)) };
            ledger.returned(event["tool_use_id"].as_str().unwrap_or_default(), result, out);
        }
        "result" => result(event, ledger, out),
        "error" => {
            let error = &event["error"];
            let said = first_text(&[&error["message"], &event["message"]]);
            let reason = if said.is_empty() { words_of(error) } else { said.to_owned() };
            ledger.failed(&reason, out);
        }
        _ => {}
    }
}

fn result(event: &Value, ledger: &mut Ledger, out: &mut Vec<Report>) {
    let tokens = if event["cost"].is_object() { &event["cost"] } else { &event["usage"] };
    if tokens.is_object() {
        out.push(Report::Usage(Usage {
            input_tokens: count(&tokens["input_tokens"]).unwrap_or_default(),
            output_tokens: count(&tokens["output_tokens"]).unwrap_or_default(),
            cache_read_tokens: count(&tokens["cache_read_input_tokens"]),
            cache_write_tokens: count(&tokens["cache_creation_input_tokens"]),
            cost_usd: event["total_cost_usd"].as_f64(),
            duration_ms: count(&event["duration_ms"]),
            model: ledger.take_model(),
        }));
    }
    if event["is_error"].as_bool() == Some(true) {
        return ledger.failed(event["result"].as_str().unwrap_or_default(), out);
    }
    ledger.done(out);
}
