//! Claude Code: `claude` with JSON lines on both sides and approvals over the same pipe.
//!
//! * `stream`: the reader, which Qwen Code shares.
//! * `control`: what the program asks its host, and the answers.
//! * `outcome`: the line that ends a turn.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_protocol::{Value, json};

use super::jsonl;
use super::report::{Dialect, File, Input, Launch, Order, Program};
pub(super) use control::initialize;
use stream::{Stream, Wire};

mod control;
mod outcome;
pub(super) mod stream;

/// Anthropic's Claude Code.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaudeCode;

/// How Claude Code speaks.
const WIRE: Wire = Wire {
    cache_apart: true,
    suggestions_are_rules: true,
    no_credentials: &[
        "please run /login",
        "invalid api key",
        "not logged in",
        "oauth token has expired",
        "oauth token revoked",
        "oauth authentication is currently not supported",
        "authentication_error",
        "authentication_failed",
        "no api key",
    ],
    no_session: "no conversation found with session id",
    api_error: None,
    exits: &[],
};

impl Program for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn binary(&self) -> &str {
        "claude"
    }

    // Only what configures it: `CLAUDECODE` and `CLAUDE_CODE_ENTRYPOINT` would tell it that it runs inside of
    // another one, and it refuses that.
    fn variables(&self) -> &'static [&'static str] {
        &[
            "ANTHROPIC_*",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
            "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "CLAUDE_CODE_SUBAGENT_MODEL",
            "AWS_*",
            "CLOUD_ML_REGION",
            "VERTEX_REGION_*",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT",
            "BASH_DEFAULT_TIMEOUT_MS",
            "BASH_MAX_TIMEOUT_MS",
            "DISABLE_AUTOUPDATER",
            "DISABLE_TELEMETRY",
            "DISABLE_ERROR_REPORTING",
            "MAX_THINKING_TOKENS",
            "MCP_TIMEOUT",
            "MCP_TOOL_TIMEOUT",
            "IS_SANDBOX",
            "NODE_EXTRA_CA_CERTS",
        ]
    }

    fn can_resume(&self) -> bool {
        true
    }

    fn takes_images(&self) -> bool {
        true
    }

    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        let mut args: Vec<String> = [
            "--output-format",
            "stream-json",
            "--input-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--permission-prompt-tool",
            "stdio",
        ]
        .map(str::to_owned)
        .into();
        // With `=`, since a value that begins with a dash would be taken for a flag.
        args.extend(order.model.as_ref().map(|model| format!("--model={model}")));
        args.extend(order.session.as_ref().map(|id| format!("--resume={id}")));
        // There is a flag for who may do everything, but root may not use it; whoever asks is told yes.
        let mut input = jsonl::line(&initialize(&json!({ "subtype": "initialize", "hooks": null })));
        input.extend(jsonl::line(&user_message(&content(order))));
        let launch = Launch { args, env: Vec::new(), input: Input::Open(input) };
        (launch, Box::new(Stream::new(WIRE, order.force)))
    }
}

/// A line that gives the program something to do.
pub(super) fn user_message(content: &Value) -> Value {
    json!({
        "type": "user",
        "message": { "role": "user", "content": content },
        "parent_tool_use_id": null,
        "session_id": "default"
    })
}

/// The prompt, with the pictures and documents that the model reads.
fn content(order: &Order) -> Value {
    let blocks: Vec<Value> = order.attachments.iter().filter_map(block).collect();
    if blocks.is_empty() {
        return order.prompt.as_str().into();
    }
    let prompt = (!order.prompt.is_empty()).then(|| json!({ "type": "text", "text": order.prompt }));
    prompt.into_iter().chain(blocks).collect()
}

fn block(file: &File) -> Option<Value> {
    let kind = match &*file.media_type {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => "image",
        "application/pdf" => "document",
        _ => return None,
    };
    let data = STANDARD.encode(&file.bytes);
    Some(json!({ "type": kind, "source": { "type": "base64", "media_type": file.media_type, "data": data } }))
}
