//! The types that settings have.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value as Json;

use super::secret::Secret;

/// A way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// JSON-RPC, REST and SSE on one port.
    Http,
}

/// The wire form of what agents report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Plain A2A.
    Nuncio,
}

/// Which agent is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// The built-in agent that shows every behaviour.
    Demo,
}

/// Where tasks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// An embedded database below `data-dir`.
    Sqlite,
    /// Nowhere: gone with the process.
    Memory,
}

/// What an acknowledged event survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A power cut.
    Full,
    /// A crash of the process, not of the machine.
    Normal,
}

/// The shape of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CardFormat {
    /// One document that clients of 1.0 and of 0.3 both understand.
    Union,
    /// 1.0 only.
    V1_0,
    /// 0.3 only.
    V0_3,
}

/// What marks two sends as the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdempotentSend {
    /// The `Idempotency-Key` header.
    Key,
    /// The id of the message as well.
    MessageId,
}

/// A part of the agent's thinking that clients may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thinking {
    /// The reasoning itself.
    Raw,
    /// Tool calls and permission requests.
    ToolTrace,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text at a terminal, JSON lines elsewhere.
    Auto,
    /// Lines for people.
    Text,
    /// Lines for machines.
    Json,
}

/// One entry of `tokens`, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedToken {
    /// Name of the caller, for ownership and the log.
    pub(crate) name: String,
    /// Where the token is.
    pub(crate) source: TokenSource,
}

/// A token, or the file that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenSource {
    Value(Secret),
    File(PathBuf),
}

/// Somebody who may come in: every configured token, files read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Name of the caller; `default` for `token` and `token-file`.
    pub(crate) name: String,
    /// What the caller presents as bearer token.
    pub(crate) token: Secret,
}

/// An extension that the card declares.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Extension {
    /// What identifies it.
    pub(crate) uri: String,
    /// Whether a client must know it to talk to this agent.
    pub(crate) required: bool,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Settings that the extension itself defines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) params: Option<serde_json::Map<String, Json>>,
}
