//! OpenCode: `opencode run --format json`.

use nuncio_protocol::Value;

use super::ledger::{Ledger, count, first_text, object, words_of};
use super::report::{Dialect, Exit, Input, Launch, Order, Program, Report};
use crate::agent::Usage;

/// OpenCode on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCode;

impl Program for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn binary(&self) -> &str {
        "opencode"
    }

    /// Its own, and the keys of the providers that it knows from their variables.
    fn variables(&self) -> &'static [&'static str] {
        &[
            "OPENCODE_*",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "MISTRAL_API_KEY",
            "GROQ_API_KEY",
            "DEEPSEEK_API_KEY",
            "XAI_API_KEY",
        ]
    }

    fn can_resume(&self) -> bool {
        true
    }

    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        let mut args: Vec<String> = ["run", "--format", "json", "--thinking"].map(str::to_owned).into();
        // Without this it rejects whatever needs a permission.
        if order.force {
            args.push("--auto".into());
        }
        if let Some(model) = &order.model {
            args.push(format!("--model={model}"));
        }
        if let Some(session) = &order.session {
            args.push(format!("--session={session}"));
        }
        let input = Input::All(order.prompt.clone().into_bytes());
        (Launch { args, env: Vec::new(), input }, Box::new(Reader { usage: usage_of(order), ..Reader::default() }))
    }
}

fn usage_of(order: &Order) -> Usage {
    Usage { model: order.model.clone(), ..Usage::default() }
}

#[derive(Default)]
struct Reader {
    ledger: Ledger,
    /// The sum over all steps.
    usage: Usage,
    /// The last error, as long as nothing came after it. Some errors it survives by itself.
    trouble: Option<String>,
}

impl Dialect for Reader {
    fn line(&mut self, line: &str, out: &mut Vec<Report>) {
        let Some(event) = object(line) else { return };
        if let Some(id) = event["sessionID"].as_str() {
            self.ledger.session(id, out);
        }
        let part = &event["part"];
        match event["type"].as_str().unwrap_or_default() {
            "text" => self.ledger.paragraph(part["text"].as_str().unwrap_or_default(), out),
            "reasoning" => self.ledger.think(part["text"].as_str().unwrap_or_default(), out),
            "tool_use" => self.called(part, out),
            "step_finish" => {
                self.trouble = None;
                self.add(part);
                out.push(Report::Usage(self.usage.clone()));
            }
            "error" => {
                let error = &event["error"];
                let said = first_text(&[&error["data"]["message"], &error["message"], &error["name"]]);
                let reason = if said.is_empty() { words_of(error) } else { said.to_owned() };
                self.trouble = Some(match error["name"].as_str() {
                    Some("ProviderAuthError") => format!("authentication required: {reason}"),
                    _ => reason,
                });
            }
            _ => {}
        }
    }

    /// There is no line that says that it is done: only the exit code does.
    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>) {
        match self.trouble.take() {
            Some(reason) => self.ledger.failed(&reason, out),
            None if exit.is_success() => self.ledger.done(out),
            None => self.ledger.failed(&exit.describe(), out),
        }
    }
}

impl Reader {
    /// A call is told of only when it is over.
    fn called(&mut self, part: &Value, out: &mut Vec<Report>) {
        let (state, name) = (&part["state"], part["tool"].as_str().unwrap_or_default());
        let id = self.ledger.call(part["callID"].as_str().unwrap_or_default(), name, &state["input"], out);
        match state["status"].as_str() {
            Some("completed") => self.ledger.returned(&id, Ok(state["output"].clone()), out),
            Some("error") => self.ledger.returned(&id, Err(words_of(&state["error"])), out),
            _ => {}
        }
    }

    /// Its counts do not overlap: what came from a cache is not in `input`, thinking is not in `output`.
    fn add(&mut self, part: &Value) {
        let (tokens, usage) = (&part["tokens"], &mut self.usage);
        let of = |value: &Value| count(value).unwrap_or_default();
        let (read, write) = (of(&tokens["cache"]["read"]), of(&tokens["cache"]["write"]));
        let input = of(&tokens["input"]).saturating_add(read).saturating_add(write);
        let output = of(&tokens["output"]).saturating_add(of(&tokens["reasoning"]));
        usage.input_tokens = usage.input_tokens.saturating_add(input);
        usage.output_tokens = usage.output_tokens.saturating_add(output);
        usage.cache_read_tokens = Some(usage.cache_read_tokens.unwrap_or_default().saturating_add(read));
        usage.cache_write_tokens = Some(usage.cache_write_tokens.unwrap_or_default().saturating_add(write));
        if let Some(cost) = part["cost"].as_f64().filter(|cost| cost.is_finite()) {
            usage.cost_usd = Some(usage.cost_usd.unwrap_or_default() + cost);
        }
    }
}
