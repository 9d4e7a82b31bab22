//! Qwen Code: the flags of Gemini CLI, the lines of Claude Code.

use nuncio_protocol::json;

use super::claude::stream::{Stream, Wire};
use super::claude::{initialize, user_message};
use super::jsonl;
use super::report::{Dialect, Input, Launch, Order, Program};

/// Alibaba's Qwen Code.
#[derive(Clone, Copy, Debug, Default)]
pub struct QwenCode;

/// How Qwen Code speaks.
const WIRE: Wire = Wire {
    cache_apart: false,
    // They are labels for a dialog.
    suggestions_are_rules: false,
    no_credentials: &[
        "no auth type is selected",
        "please set an auth method",
        "api key not found",
        "openai_api_key",
        "missing api key",
        "invalid api key",
        "incorrect api key",
        "device authorization flow",
        "401 unauthorized",
    ],
    no_session: "no saved session found",
    // It takes what the model's server says for an answer, and ends well.
    api_error: Some("[API Error:"),
    exits: &[
        (53, "agent reached its limit of turns"),
        (55, "agent used up its budget"),
        (130, "agent was interrupted"),
    ],
};

/// The longest that it waits for an approval, in milliseconds; its own default is one minute.
const APPROVAL: u64 = 600_000;

impl Program for QwenCode {
    fn name(&self) -> &'static str {
        "qwen-code"
    }

    fn binary(&self) -> &str {
        "qwen"
    }

    fn variables(&self) -> &'static [&'static str] {
        &[
            "QWEN_*",
            "OPENAI_*",
            "DASHSCOPE_*",
            "BAILIAN_*",
            "ANTHROPIC_*",
            "GEMINI_*",
            "GOOGLE_*",
            "NODE_EXTRA_CA_CERTS",
        ]
    }

    fn can_resume(&self) -> bool {
        true
    }

    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        let mut args: Vec<String> =
            ["--output-format", "stream-json", "--input-format", "stream-json", "--include-partial-messages"]
                .map(str::to_owned)
                .into();
        args.extend(order.model.as_ref().map(|model| format!("--model={model}")));
        args.extend(order.session.as_ref().map(|id| format!("--resume={id}")));
        if order.force {
            args.push("--approval-mode=yolo".to_owned());
        }
        let request = json!({ "subtype": "initialize", "hooks": null, "timeout": { "canUseTool": APPROVAL } });
        let mut input = jsonl::line(&initialize(request));
        input.extend(jsonl::line(&user_message(order.prompt.as_str().into())));
        let launch = Launch { args, env: Vec::new(), input: Input::Open(input) };
        (launch, Box::new(Stream::new(WIRE, order.force)))
    }
}

#[cfg(test)]
mod tests;
