//! Codex: `codex app-server`, which speaks JSON-RPC over its pipes.
//!
//! * `session`: the reader, from the handshake to the end of the turn.
//! * `item`: what the agent says and does; `codex exec` prints the same things.
//! * `request`: what the server asks, and the answers.
//! * `form`: forms of MCP servers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_protocol::{Value, json};

use super::report::{Dialect, File, Input, Launch, Order, Program};
use session::Session;
pub(super) use session::failure;

mod form;
pub(super) mod item;
mod request;
mod session;

/// OpenAI's Codex, over its app server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codex;

/// Variables that configure it.
pub(super) const VARIABLES: &[&str] = &["OPENAI_*", "CODEX_*", "AZURE_OPENAI_*", "OPENROUTER_API_KEY"];

/// Words, in lower case, that say that credentials are missing.
pub(super) const NO_CREDENTIALS: &[&str] = &[
    "401 unauthorized",
    "not logged in",
    "codex login",
    "please log in",
    "sign in again",
    "missing environment variable",
    "incorrect api key",
    "token_expired",
];

impl Program for Codex {
    fn name(&self) -> &'static str {
        "codex"
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

    fn takes_images(&self) -> bool {
        true
    }

    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>) {
        let (session, first) = Session::new(order, input(order));
        let launch = Launch { args: vec!["app-server".to_owned()], env: Vec::new(), input: Input::Open(first) };
        (launch, Box::new(session))
    }
}

/// The prompt and the pictures of a turn.
fn input(order: &Order) -> Value {
    let prompt = json!({ "type": "text", "text": order.prompt });
    std::iter::once(prompt).chain(order.attachments.iter().filter_map(picture)).collect()
}

fn picture(file: &File) -> Option<Value> {
    let is_picture = file.media_type.starts_with("image/");
    let url = || format!("data:{};base64,{}", file.media_type, STANDARD.encode(&file.bytes));
    is_picture.then(|| json!({ "type": "image", "url": url() }))
}
