//! What an agent reports of its tools and of what it used.

use nuncio_protocol::{Value, json};

/// A step of a tool call.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    /// Names the call; the same in all of its steps.
    pub id: &'a str,
    /// The tool.
    pub name: &'a str,
    /// What happened.
    pub step: ToolStep<'a>,
}

/// What happened to a tool call.
#[derive(Clone, Copy, Debug)]
pub enum ToolStep<'a> {
    /// It was started.
    Started,
    /// Its input is known.
    Input(&'a Value),
    /// A piece of its input or output.
    Delta(&'a str),
    /// It is done.
    Completed(&'a Value),
    /// It failed.
    Failed(&'a str),
}

impl ToolCall<'_> {
    pub(crate) fn describe(&self) -> Value {
        let (phase, key, value) = match self.step {
            ToolStep::Started => ("started", "", Value::Null),
            ToolStep::Input(input) => ("input", "input", input.clone()),
            ToolStep::Delta(text) => ("delta", "delta", text.into()),
            ToolStep::Completed(output) => ("completed", "output", output.clone()),
            ToolStep::Failed(error) => ("failed", "error", error.into()),
        };
        let mut all = json!({ "id": self.id, "name": self.name, "phase": phase });
        if !key.is_empty() {
            all[key] = value;
        }
        all
    }
}

/// What a turn used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Of those read, how many came from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Of those read, how many were put into a cache.
    pub cache_write_tokens: Option<u64>,
    /// What it cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// How long the agent says it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// By which model.
    pub model: Option<String>,
}

impl Usage {
    pub(crate) fn describe(&self) -> Value {
        let mut all = json!({ "inputTokens": self.input_tokens, "outputTokens": self.output_tokens });
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                all[key] = value;
            }
        };
        put("cacheReadTokens", self.cache_read_tokens.map(Value::from));
        put("cacheWriteTokens", self.cache_write_tokens.map(Value::from));
        put("costUsd", self.cost_usd.map(Value::from));
        put("durationMs", self.duration_ms.map(Value::from));
        put("model", self.model.as_deref().map(Value::from));
        all
    }
}
