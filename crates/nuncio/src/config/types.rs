//! The types that settings have.

use std::path::PathBuf;

use nuncio_server::agent::process::classify::Profile as Work;
use serde::Serialize;
use serde_json::Value as Json;

use super::secret::Secret;

/// A way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Everything that goes over one port: JSON-RPC, REST, server-sent events, WebSocket, gRPC.
    Http,
    /// The same port: WebSocket is always there.
    WebSocket,
    /// The streams of the process itself.
    Stdio,
    /// A socket in the file system.
    Unix,
    /// The HTTP port, or one of its own.
    Grpc,
    /// JSON-RPC in envelopes of gRPC, where gRPC is.
    GrpcJsonRpc,
    /// Streams in Redis.
    RedisStreams,
}

/// Which agent is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// The built-in agent that shows every behaviour.
    #[default]
    Demo,
    ClaudeCode,
    Codex,
    CodexExec,
    Cursor,
    OpenCode,
    Gemini,
    Qwen,
    Vibe,
    Goose,
    /// Any command.
    Generic,
    /// Any agent of the Agent Client Protocol.
    Acp,
    /// Another A2A agent.
    Upstream,
}

/// One of several agents.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentEntry {
    /// Its name in the store and, without another, on its card.
    pub(crate) name: String,
    pub(crate) kind: AgentKind,
    /// Whether nothing of its own says what kind it is.
    pub(crate) is_bare: bool,
    /// Its program and the first arguments.
    pub(crate) command: Vec<String>,
    /// The tenant that it serves.
    pub(crate) tenant: Option<String>,
    /// The kind of work that it is for.
    pub(crate) work: Option<Work>,
    /// Skills for its card instead of its own.
    pub(crate) skills: Vec<Skill>,
    pub(crate) description: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) workspace_roots: Vec<PathBuf>,
    pub(crate) env: Vec<Variable>,
    /// The address of the A2A agent behind it.
    pub(crate) upstream: Option<String>,
    pub(crate) upstream_token: Option<Secret>,
    /// How to log in at an agent of the Agent Client Protocol.
    pub(crate) auth_method: Option<String>,
}

/// A skill on a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Skill {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Vec<String>,
    pub(crate) examples: Vec<String>,
}

/// A variable for an agent's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Handed on from the server's environment; `*` at the end stands for any text.
    Pass(String),
    /// Set to this value.
    Set(String, String),
}

/// Where a generic command finds its prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptBy {
    Argument,
    Stdin,
    Line,
}

/// Where tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// An embedded database below `data-dir`.
    Sqlite,
    /// Nowhere: gone with the process.
    Memory,
    /// A PostgreSQL database that several servers may share.
    Postgres(Secret),
}

impl Store {
    /// Whether several servers can use it at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::Sqlite | Self::Memory => false,
            Self::Postgres(_) => true,
        }
    }
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

/// Whether known callers are shown more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtendedCard {
    /// If callers have to say who they are.
    Auto,
    On,
    Off,
}

/// What marks two sends as the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdempotentSend {
    /// The `Idempotency-Key` header.
    Key,
    /// The id of the message as well.
    MessageId,
}

/// Which events webhooks get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushEvents {
    /// Every one.
    All,
    /// Changes of state, and finished artifacts.
    Status,
    /// The end of a task, and where it waits.
    Terminal,
}

/// Who delivers to webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushBackend {
    /// This server.
    Local,
    /// Workers that find their jobs in Redis.
    RedisStreams,
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
    /// The groups that the caller is in.
    pub(crate) groups: Vec<String>,
    /// What the caller may do; everything if it is not said.
    pub(crate) scopes: Option<Vec<String>>,
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
    /// The file that the token is from.
    pub(crate) file: Option<PathBuf>,
    pub(crate) groups: Vec<String>,
    pub(crate) scopes: Option<Vec<String>>,
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

/// What carries hints between servers that share a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bus {
    /// Nothing: each looks for itself.
    #[default]
    Local,
    /// The database that holds the tasks.
    Postgres,
    /// One or more Redis servers, by their URLs.
    Redis(Vec<Secret>),
}
