//! Goose: `goose run -i - --output-format stream-json`.

use nuncio_protocol::Value;

use super::ledger::{Ledger, count, first_text, object, text_of, words_of};
use super::report::{Dialect, Exit, Input, Launch, Order, Program, Report};
use crate::agent::Usage;

/// Goose on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Goose;

impl Program for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn binary(&self) -> &str {
        "goose"
    }

    /// Its own, and the keys of the providers that it knows from their variables.
    fn variables(&self) -> &'static [&'static str] {
        &[
            "GOOSE_*",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENAI_HOST",
            "OPENROUTER_API_KEY",
            "GOOGLE_API_KEY",
            "GROQ_API_KEY",
            "XAI_API_KEY",
            "OLLAMA_HOST",
            "DATABRICKS_HOST",
            "DATABRICKS_TOKEN",
        ]
    }

    fn can_resume(&self) -> bool {
        true
    }

    /// Goose does not say what it calls a conversation, so it is told.
    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        let mut args: Vec<String> = ["run", "-i", "-", "--output-format", "stream-json"].map(str::to_owned).into();
        let session = match &order.session {
            Some(session) => {
                args.push("--resume".into());
                session.clone()
            }
            None => format!("nuncio-{}", uuid::Uuid::now_v7()),
        };
        args.push(format!("--name={session}"));
        if let Some(model) = &order.model {
            args.push(format!("--model={model}"));
        }
        // In the second mode it asks on a terminal before it changes anything; without one, it stops.
        let mode = if order.force { "auto" } else { "approve" };
        let env = vec![("GOOSE_MODE".to_owned(), mode.to_owned())];
        let input = Input::All(order.prompt.clone().into_bytes());
        let reader = Reader { session, model: order.model.clone(), ..Reader::default() };
        (Launch { args, env, input }, Box::new(reader))
    }
}

#[derive(Default)]
struct Reader {
    ledger: Ledger,
    session: String,
    model: Option<String>,
    trouble: Option<String>,
}

impl Dialect for Reader {
    fn line(&mut self, line: &str, out: &mut Vec<Report>) {
        let Some(event) = object(line) else { return };
        if self.ledger.is_over() {
            return;
        }
        match event["type"].as_str().unwrap_or_default() {
            "message" => {
                // The conversation exists from its first message on.
                self.ledger.session(&self.session, out);
                self.message(&event["message"], out);
            }
            "notification" => {
                let said = first_text(&[&event["log"]["message"], &event["progress"]["message"], &event["message"]]);
                if !said.is_empty() {
                    out.push(Report::Status(said.to_owned()));
                }
            }
            // It says `complete` after an error, too.
            "error" => self.trouble = Some(words_of(&event["error"])),
            "complete" => self.completed(&event, out),
            _ => {}
        }
    }

    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        match self.trouble.take() {
            Some(reason) => self.ledger.failed(&reason, out),
            None => self.ledger.gone(exit, out),
        }
    }
}

impl Reader {
    fn message(&mut self, message: &Value, out: &mut Vec<Report>) {
        let is_its_own = message["role"].as_str() == Some("assistant");
        for block in message["content"].as_array().into_iter().flatten() {
            let id = block["id"].as_str().unwrap_or_default();
            match block["type"].as_str().unwrap_or_default() {
                "text" if is_its_own => self.ledger.text(block["text"].as_str().unwrap_or_default(), out),
                "thinking" | "reasoning" => {
                    self.ledger.think(first_text(&[&block["thinking"], &block["text"]]), out);
                }
                "toolRequest" => {
                    let call = value_of(&block["toolCall"]);
                    self.ledger.call(id, call["name"].as_str().unwrap_or_default(), &call["arguments"], out);
                }
                "toolResponse" => self.ledger.returned(id, result(&block["toolResult"]), out),
                _ => {}
            }
        }
    }

    fn completed(&mut self, event: &Value, out: &mut Vec<Report>) {
        // A total alone does not say what was read and what was written.
        if let (Some(input), Some(output)) = (count(&event["input_tokens"]), count(&event["output_tokens"])) {
            out.push(Report::Usage(Usage {
                input_tokens: input,
                output_tokens: output,
                cache_read_tokens: count(&event["cache_read_input_tokens"]),
                cache_write_tokens: count(&event["cache_write_input_tokens"]),
                cost_usd: event["cost_usd"].as_f64(),
                duration_ms: None,
                model: self.model.take(),
            }));
        }
        match self.trouble.take() {
            Some(reason) => self.ledger.failed(&reason, out),
            None => self.ledger.done(out),
        }
    }
}

/// `{"status": "success", "value": …}`, or the value itself.
fn value_of(outcome: &Value) -> &Value {
    if outcome["value"].is_null() { outcome } else { &outcome["value"] }
}

fn result(outcome: &Value) -> Result<Value, String> {
    if outcome["status"].as_str() == Some("error") {
        return Err(words_of(&outcome["error"]));
    }
    let value = value_of(outcome);
    // A list of blocks in older versions, an object with such a list in newer ones.
    let content = if value.is_array() { value } else { &value["content"] };
    let text = text_of(content);
    if value["isError"].as_bool() == Some(true) {
        return Err(text);
    }
    Ok(if text.is_empty() { value.clone() } else { Value::String(text) })
}
