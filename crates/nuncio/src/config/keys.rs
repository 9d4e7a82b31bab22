//! Every key, once: its spelling, type, kind, default and meaning.
//!
//! The file, the environment, `config show`, `config schema`, the suggestions for misspelled keys
//! and the [`Config`] struct are all made from this table, so none of them can know a key that
//! the others do not.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use nuncio_server::Profile;
use nuncio_server::auth::CertificateName;
use nuncio_server::engine::approval::Rule;
use nuncio_server::present::Style;
use serde_json::Value as Json;

use super::address::{Host, PublicUrl, StoreUrl};
use super::agents::{AGENTS, AgentList, CommandLine, Folders, Rules, Variables};
use super::bus::BusUrl;
use super::card::{MediaTypes, Skills};
use super::choice::Choice;
use super::door::{Certificate, HeaderText, Names, Oidc, Origins, PasswordText, Providers, ScopeRows, TlsFiles};
use super::entry::{Extensions, Tokens};
use super::kind::{Count, Flag, Kind, Maybe, Path, Pattern, Port, SecretText, Size, Text, Time, TimeOrOff};
use super::layers::{Layers, Sources, default_of};
use super::list::{Blocks, Exposure, Hosts, Networks, Tenants};
use super::problem::Problem;
use super::profile::ProfileName;
use super::secret::{Secret, masked_json};
use super::signing::{KeyEntry, SigningKeys};
use super::transport::{Transports, UrlPath, Users};
use super::types::{
    AgentEntry, AgentKind, Bus, Caller, CardFormat, Durability, ExtendedCard, Extension, IdempotentSend, LogFormat,
    NamedToken, PromptBy, PushBackend, PushEvents, Skill, Store, Thinking, Transport, Variable,
};

/// What is known about a key apart from its type.
pub(crate) struct Key {
    /// The name, and after it other spellings that mean the same.
    pub(crate) names: &'static [&'static str],
    /// What it is for, in Markdown.
    pub(crate) doc: &'static str,
    /// What holds if nobody says anything, as a file would have it.
    pub(crate) default: Option<&'static str>,
    /// Whether an environment variable can set it.
    pub(crate) in_environment: bool,
    /// Its JSON Schema, without description and default.
    pub(crate) schema: fn() -> Json,
    /// The default as JSON.
    pub(crate) default_json: fn() -> Option<Json>,
}

impl Key {
    /// The name that messages and listings use.
    pub(crate) fn name(&self) -> &'static str {
        self.names[0]
    }
}

/// The type of a kind's `IN_ENVIRONMENT`, for the table.
const fn in_environment<K: Kind>(_: &K) -> bool {
    K::IN_ENVIRONMENT
}

macro_rules! keys {
    ($( #[doc = $doc:literal] [$($name:literal),+] $field:ident: $type:ty, $kind:expr $(, $default:literal)?; )*) => {
        /// The effective configuration: checked, expanded, typed.
        #[derive(Clone, Debug)]
        pub(crate) struct Config {
            $( #[doc = $doc] pub(crate) $field: $type, )*
            /// Everybody who may come in: `token`, `token-file` and `tokens` together, files read.
            /// Empty means that everybody may.
            pub(crate) callers: Vec<Caller>,
            /// The file that the configuration is from.
            pub(crate) file: Option<PathBuf>,
        }

        /// The table of keys, in the order of the documentation.
        pub(crate) static KEYS: &[Key] = &[$(
            Key {
                names: &[$($name),+],
                doc: $doc.trim_ascii(),
                default: keys!(@default $($default)?),
                in_environment: in_environment(&$kind),
                schema: || $kind.schema(),
                default_json: || default_of(&$kind, keys!(@default $($default)?)),
            },
        )*];

        impl Config {
            /// Reads every key from the layers and remembers where each value came from.
            pub(super) fn read(
                layers: &Layers<'_>,
                sources: &mut Sources,
                problems: &mut Vec<Problem>,
            ) -> Option<Self> {
                $( let $field = layers.resolve([$($name),+][0], &$kind, sources, problems); )*
                Some(Self { $( $field: $field?, )* callers: Vec::new(), file: None })
            }

            /// Every key with its value as a file would have it, secrets masked.
            pub(crate) fn values(&self) -> Vec<(&'static str, Json)> {
                vec![$( ([$($name),+][0], masked_json($kind.show(&self.$field))) ),*]
            }
        }
    };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
}

keys! {
    /// Address or name to listen on. Anything but a loopback address needs callers who prove who they are, or `allow-open`.
    ["host"] host: String, Host, "127.0.0.1";
    /// Port to listen on. 0 takes any free port.
    ["port"] port: u16, Port, "41242";
    /// Transport, or list of transports, to serve: `http` (with WebSocket and gRPC on the same port), `websocket`, `stdio`, `unix`, `grpc`, `grpc-jsonrpc`, `redis-streams`.
    ["transport"] transport: Vec<Transport>, Transports, "http";
    /// Path of WebSocket on the HTTP port.
    ["ws-path"] ws_path: String, UrlPath, "/ws";
    /// Unix socket to serve on. `unix` needs it.
    ["socket-path"] socket_path: Option<PathBuf>, Maybe(Path);
    /// List of the users, by name or number, who may use the Unix socket beside the one who runs the server.
    ["socket-users"] socket_users: Vec<String>, Users;
    /// Whether callers on stdio and on the Unix socket are known by their user where others have to authenticate.
    ["trust-local"] trust_local: bool, Flag, "false";
    /// Address or name for gRPC on a port of its own. Without it, `host`.
    ["grpc-host"] grpc_host: Option<String>, Maybe(Host);
    /// Port of its own for gRPC. 0 takes any free port. Without it and `grpc-host`, gRPC is on the HTTP port.
    ["grpc-port"] grpc_port: Option<u16>, Maybe(Port);
    /// Redis for `redis-streams`: `redis://…` or `rediss://…`. It may hold a password.
    ["redis-url"] redis_url: Option<Secret>, Maybe(SecretText);
    /// Redis stream of requests.
    ["request-stream"] request_stream: String, Text, "iac-code:a2a:requests";
    /// Redis stream of responses, for requests that name none.
    ["response-stream"] response_stream: String, Text, "iac-code:a2a:responses";
    /// Redis consumer group of the servers that share the requests.
    ["consumer-group"] consumer_group: String, Text, "iac-code";
    /// Whom the server stands in for, and a set of defaults: `nuncio`, `iac-code`, `proto-agent`, `liquid-crypto`, `coding-agent`, or the path of a file of one's own.
    ["profile"] profile: String, ProfileName, "nuncio";
    /// Wire form of what agents report: `nuncio`, `iac-code`, `proto-agent` or `coding-agent`.
    ["presenter"] presenter: Style, Choice { what: "presenter", names: &[
        ("nuncio", Style::Nuncio), ("iac-code", Style::IacCode), ("proto-agent", Style::ProtoAgent),
        ("coding-agent", Style::CodingAgent),
    ] }, "nuncio";
    /// Whose rules for paths, ids, tasks and conversations hold: `nuncio`, `iac-code`, `proto-agent`, `liquid-crypto` or `coding-agent`.
    ["dialect"] dialect: Profile, Choice { what: "dialect", names: &[
        ("nuncio", Profile::Nuncio), ("iac-code", Profile::IacCode), ("proto-agent", Profile::ProtoAgent),
        ("liquid-crypto", Profile::LiquidCrypto), ("coding-agent", Profile::CodingAgent),
    ] }, "nuncio";
    /// Agent to serve: `demo`, `claude-code`, `codex`, `codex-exec`, `cursor`, `opencode`, `gemini`, `qwen`, `vibe`, `goose`, `generic`, `acp` or `upstream`. Without it, `upstream` or `command` says which.
    ["agent"] agent: AgentKind, AGENTS, "demo";
    /// The agent's program with its first arguments, if it is not the usual one of its kind. What follows `--` on the command line is the same.
    ["command"] command: Vec<String>, CommandLine;
    /// Model that the agent's program is asked to use. Without it, the program's own choice.
    ["model"] model: Option<String>, Maybe(Text);
    /// Where a `generic` command finds its prompt: `argument` (the last one), `stdin` (all of it) or `line` (the first of a stdin that stays open).
    ["prompt-by"] prompt_by: PromptBy, Choice { what: "value", names: &[
        ("argument", PromptBy::Argument), ("stdin", PromptBy::Stdin), ("line", PromptBy::Line),
    ] }, "argument";
    /// Regular expression for lines by which a `generic` command asks for an approval. Without it, those that many commands print.
    ["approval-pattern"] approval_pattern: Option<String>, Maybe(Pattern);
    /// What a `generic` command is told when it may go on.
    ["approval-response"] approval_response: String, Text, "y";
    /// Folder that the agent works in, unless a request names another.
    ["workspace"] workspace: PathBuf, Path, ".";
    /// List of folders below which requests may name one. Without it, only `workspace` and what is below.
    ["workspace-roots"] workspace_roots: Vec<PathBuf>, Folders;
    /// Whether a folder that a request names is made if it is missing.
    ["workspace-create"] workspace_create: bool, Flag, "false";
    /// Further media types whose parts are read as text: a list, or names with commas.
    ["text-types"] text_types: Vec<String>, MediaTypes;
    /// Further media types whose parts are attachments: a list, or names with commas.
    ["binary-types"] binary_types: Vec<String>, MediaTypes;
    /// Whether agents are told about the repository that they work in, before every prompt.
    ["context-pack"] context_pack: bool, Flag, "false";
    /// List of variables that the agent's program gets: `NAME` from the server's environment, or `NAME=value`.
    ["env"] env: Vec<Variable>, Variables;
    /// Address of the A2A agent that `upstream` stands in front of.
    ["upstream"] upstream: Option<String>, Maybe(Text);
    /// Bearer token for that agent. It is sent to no other address.
    ["upstream-token"] upstream_token: Option<Secret>, Maybe(SecretText);
    /// Login method that an `acp` agent is asked to use, if it needs one.
    ["auth-method"] auth_method: Option<String>, Maybe(Text);
    /// List of agents instead of one, each `{name, kind, command, tenant, profile, skills, model, …}`. Keys that an entry lacks are taken from above, except `upstream` and `upstream-token`.
    ["agents"] agents: Vec<AgentEntry>, AgentList;
    /// How long an idle conversation keeps its agent running.
    ["context-idle-timeout"] context_idle_timeout: Duration, Time { zero: false }, "1h";
    /// Largest file that an event carries itself. Larger ones are downloaded from `/artifacts/…`; where no HTTP port is open, events carry all that fit into `max-body`.
    ["artifact-inline-max"] artifact_inline_max: u64, Size { min: 0, max: 1 << 30 }, "256KiB";
    /// Directory for files of artifacts. Without it, `artifacts` below `data-dir`; with `store: memory`, they are in memory, and with PostgreSQL in the database.
    ["artifact-dir"] artifact_dir: Option<PathBuf>, Maybe(Path);
    /// How the URL of a stored file begins: `http`, or `file` for clients on the same machine.
    ["artifact-urls"] artifact_file_urls: bool, Choice { what: "value", names: &[("http", false), ("file", true)] }, "http";
    /// Name on the agent's card. Without it, the agent's own.
    ["name"] name: Option<String>, Maybe(Text);
    /// Description on the agent's card. Without it, the agent's own.
    ["description"] description: Option<String>, Maybe(Text);
    /// Version of the agent on its card. Without it, the agent's own.
    ["agent-version"] agent_version: Option<String>, Maybe(Text);
    /// List of skills on the agent's card, each an id or `{id, name, description, tags, examples}`. Without it, the agent's own.
    ["skills"] skills: Vec<Skill>, Skills;
    /// List of media types that the card says the agent takes. Without it, the agent's own.
    ["input-modes"] input_modes: Vec<String>, MediaTypes;
    /// List of media types that the card says the agent gives. Without it, the agent's own.
    ["output-modes"] output_modes: Vec<String>, MediaTypes;
    /// Where tasks are kept: `sqlite` (below `data-dir`), `memory`, or `postgres://user:password@host/database`, which several servers can share.
    ["store"] store: Store, StoreUrl, "sqlite";
    /// What carries hints between servers on the same store: `local` (none; each looks once a second), `postgres`, or `redis://…`, several with commas between them.
    ["bus"] bus: Bus, BusUrl, "local";
    /// File that holds the password of the database. Nobody but its owner may read it.
    ["store-password-file"] store_password_file: Option<PathBuf>, Maybe(Path);
    /// Directory for the database and other files.
    ["data-dir", "persistence-dir"] data_dir: PathBuf, Path, "~/.nuncio";
    /// Directory for the keys that seal the secrets of webhooks and sign notifications. Without it, `data-dir`. Servers that share a store need the same keys.
    ["keyring-dir"] keyring_dir: Option<PathBuf>, Maybe(Path);
    /// What an acknowledged event survives: `full` a power cut, `normal` a crash of the process.
    ["durability"] durability: Durability, Choice {
        what: "durability", names: &[("full", Durability::Full), ("normal", Durability::Normal)],
    }, "full";
    /// Memory for finished tasks that are read again; others are read from the database. 0 keeps none.
    ["task-cache"] task_cache: u64, Size { min: 0, max: 1 << 40 }, "32MiB";
    /// Bearer token of the one caller, who is named `default`.
    ["token"] token: Option<Secret>, Maybe(SecretText);
    /// File that holds that token. Nobody but its owner may read it.
    ["token-file"] token_file: Option<PathBuf>, Maybe(Path);
    /// List of callers, each `{name, token}` or `{name, token-file}`, with `groups` and `scopes` if need be.
    ["tokens"] tokens: Vec<NamedToken>, Tokens;
    /// Name of a caller who comes with HTTP Basic. It needs `basic-password`.
    ["basic-username"] basic_username: Option<String>, Maybe(Text);
    /// Password of that caller.
    ["basic-password"] basic_password: Option<Secret>, Maybe(PasswordText);
    /// API key of one caller.
    ["api-key"] api_key: Option<Secret>, Maybe(SecretText);
    /// Header that the API key stands in.
    ["api-key-header"] api_key_header: String, HeaderText, "X-API-Key";
    /// Parameter of the query that the API key may stand in as well. Queries end up in logs: prefer the header.
    ["api-key-query"] api_key_query: Option<String>, Maybe(Text);
    /// Cookie that the API key may stand in as well.
    ["api-key-cookie"] api_key_cookie: Option<String>, Maybe(Text);
    /// Provider of identities whose tokens are taken, or a list of them: `{issuer, audience, …}`.
    ["oidc"] oidc: Vec<Oidc>, Providers;
    /// Operations that each scope allows, such as `{reader: [GetTask, ListTasks]}`. Without it, `a2a:read`, `a2a:write`, `a2a:push` and `a2a:metrics`.
    ["scopes"] scopes: Option<Vec<(String, Vec<String>)>>, ScopeRows;
    /// List of groups whose members see each other's tasks. Whoever is in several of them belongs to the first.
    ["shared-groups"] shared_groups: Vec<String>, Names;
    /// Certificate of the server, `{cert, key}`: two files in PEM, read again when they change. Without it, plain HTTP.
    ["tls"] tls: Option<TlsFiles>, Certificate;
    /// File with the authorities, in PEM, whose certificates prove who a client is. It needs `tls`.
    ["client-ca"] client_ca: Option<PathBuf>, Maybe(Path);
    /// Part of a client's certificate that is his name: `subject` (its common name) or `san` (the first alternative name).
    ["client-name"] client_name: CertificateName, Choice { what: "value", names: &[
        ("subject", CertificateName::Subject), ("san", CertificateName::Alternative),
    ] }, "subject";
    /// Whether the card is shown only to callers who may come in.
    ["protect-card"] protect_card: bool, Flag, "false";
    /// Names that this server is reached by: a list, or names with commas. A server on a loopback address answers to no others but `localhost`, its address and the host of `public-url`.
    ["allowed-hosts"] allowed_hosts: Vec<String>, Hosts;
    /// Web pages that may use this server: origins such as `https://console.example`, or `*` for all.
    ["cors-origins"] cors_origins: Vec<String>, Origins;
    /// Address that the card tells to clients, if it is not the one listened on.
    ["public-url"] public_url: Option<String>, Maybe(PublicUrl);
    /// List of IP addresses and networks whose `X-Forwarded-*` headers are believed.
    ["trusted-proxies"] trusted_proxies: Vec<IpNet>, Networks;
    /// Shape of the card: `union` (for clients of both versions), `1.0` or `0.3`.
    ["card-format"] card_format: CardFormat, Choice { what: "card format", names: &[
        ("union", CardFormat::Union), ("1.0", CardFormat::V1_0), ("0.3", CardFormat::V0_3),
    ] }, "union";
    /// Whether callers get a card with more in it: `auto` (if they must authenticate), `on` or `off`.
    ["extended-card"] extended_card: ExtendedCard, Choice { what: "value", names: &[
        ("auto", ExtendedCard::Auto), ("on", ExtendedCard::On), ("off", ExtendedCard::Off),
    ] }, "auto";
    /// Secret that the card is signed with (HS256, key id `default`). Only who shares it can check the signature.
    ["signing-secret"] signing_secret: Option<Secret>, Maybe(SecretText);
    /// List of private keys that the card is signed with, each `{id, key-file}`: ES256, RS256 or EdDSA.
    ["signing-keys"] signing_keys: Vec<KeyEntry>, SigningKeys;
    /// Whether the card is signed a second time in the form that the SDKs for Python and JavaScript verify.
    ["signing-sdk-form"] signing_sdk_form: bool, Flag, "false";
    /// Whether to serve everybody on a non-loopback address when nobody has to prove who he is.
    ["allow-open"] allow_open: bool, Flag, "false";
    /// List of the only tenants that exist. Without it, any.
    ["tenants"] tenants: Vec<String>, Tenants;
    /// List of extensions that the card declares, each `{uri, required, description, params}`.
    ["extensions"] extensions: Vec<Extension>, Extensions;
    /// What clients see of the agent's thinking: `raw-thinking`, `tool-trace`, a list of them, `all` or `none`.
    ["thinking-exposure"] thinking_exposure: Vec<Thinking>, Exposure, "tool-trace";
    /// What clients of `iac-code` see of what tools are given: `full`, or only a `summary` of its fields.
    ["tool-input"] tool_input_summary: bool, Choice { what: "value", names: &[("full", false), ("summary", true)] }, "full";
    /// Whether clients of `iac-code` see `[PATH]` instead of absolute paths. In failures they always do.
    ["safe-mode"] safe_mode: bool, Flag, "false";
    /// Whether every permission that the agent asks for is granted without asking anybody.
    ["auto-approve-permissions"] auto_approve_permissions: bool, Flag, "false";
    /// Whether callers are asked for permissions that nothing else decides. If not, those are refused.
    ["interactive-permissions"] interactive_permissions: bool, Flag, "true";
    /// List of tools that need no permission: `Read`, `Bash(git *)`, `mcp__*`.
    ["allow-tools"] allow_tools: Vec<(String, Rule)>, Rules;
    /// List of tools that never get permission. It counts before everything else. A rule is about words, not effects.
    ["deny-tools"] deny_tools: Vec<(String, Rule)>, Rules;
    /// What marks two sends as the same one: `key` (the `Idempotency-Key` header) or `message-id` (the message's id as well).
    ["idempotent-send"] idempotent_send: IdempotentSend, Choice {
        what: "value",
        names: &[("key", IdempotentSend::Key), ("message-id", IdempotentSend::MessageId)],
    }, "key";
    /// Whether clients may register webhooks for push notifications.
    ["push-notifications"] push_notifications: bool, Flag, "false";
    /// What webhooks are told: `all` events, `status` (every change of state, and artifacts when they are complete) or `terminal` (the end of a task, and where it waits for its caller).
    ["push-events"] push_events: PushEvents, Choice { what: "value", names: &[
        ("all", PushEvents::All), ("status", PushEvents::Status), ("terminal", PushEvents::Terminal),
    ] }, "status";
    /// Hosts outside of the public internet that webhooks may lead to: a list, or names with commas.
    ["push-allowed-hosts"] push_allowed_hosts: Vec<String>, Hosts;
    /// Networks outside of the public internet that webhooks may lead to: a list, or blocks with commas.
    ["push-allowed-cidrs"] push_allowed_cidrs: Vec<IpNet>, Blocks;
    /// How far apart the notifications are that tell a webhook of a task on its way. Of what comes between, the newest is sent; the end of a task is told at once. For profiles whose notifications are statuses.
    ["push-interval"] push_interval: Duration, Time { zero: true }, "0s";
    /// Whether the token of a webhook goes out as `Authorization: Bearer`, before all other credentials.
    ["push-token-as-bearer"] push_token_as_bearer: bool, Flag, "false";
    /// How long a webhook may take to answer.
    ["push-timeout"] push_timeout: Duration, Time { zero: false }, "10s";
    /// Pause after the first failed attempt at a webhook. It doubles with every further one.
    ["push-retry-delay"] push_retry_delay: Duration, Time { zero: false }, "1s";
    /// Longest pause between two attempts.
    ["push-retry-max-delay"] push_retry_max_delay: Duration, Time { zero: false }, "10m";
    /// Failed attempts in a row after which an event is given up.
    ["push-attempts"] push_attempts: u64, Count, "50";
    /// How long attempts may fail before an event is given up.
    ["push-max-age"] push_max_age: Duration, Time { zero: false }, "1d";
    /// Most posts to webhooks at a time.
    ["push-concurrency"] push_concurrency: u64, Count, "256";
    /// Most posts to webhooks of one host at a time.
    ["push-per-host"] push_per_host: u64, Count, "16";
    /// Who delivers to webhooks: `local` (this server, also `local-file`) or `redis-streams` (workers with jobs in Redis).
    ["push-backend", "push-queue"] push_backend: PushBackend, Choice { what: "push backend", names: &[
        ("local", PushBackend::Local), ("local-file", PushBackend::Local), ("redis-streams", PushBackend::RedisStreams),
    ] }, "local";
    /// Redis that holds the jobs: `redis://…` or `rediss://…`. It may hold a password.
    ["push-redis-url"] push_redis_url: Option<Secret>, Maybe(SecretText);
    /// Redis stream of jobs. Servers share it if they share their store.
    ["push-stream"] push_stream: String, Text, "iac-code:a2a:push";
    /// Redis sorted set of jobs for later.
    ["push-retry-key"] push_retry_key: String, Text, "iac-code:a2a:push:retry";
    /// Redis stream that has a line for each event that was given up.
    ["push-dead-stream"] push_dead_stream: String, Text, "iac-code:a2a:push:dead";
    /// Redis consumer group of the workers.
    ["push-consumer-group"] push_consumer_group: String, Text, "iac-code-push";
    /// Name of this worker in the group, no two the same. Without it, one made of host and port.
    ["push-consumer-name"] push_consumer_name: Option<String>, Maybe(Text);
    /// Milliseconds for which a worker that is no longer heard of keeps what it has in hand.
    ["push-lease-timeout-ms"] push_lease_timeout_ms: u64, Count, "300000";
    /// Whether a request of 1.0 without `A2A-Version` is served instead of refused.
    ["lenient-version"] lenient_version: bool, Flag, "false";
    /// How long finished tasks stay. With the profile `iac-code`, where every turn ends with a rest, this goes for tasks at rest too.
    ["retention"] retention: Duration, Time { zero: false }, "30d";
    /// How long a silent server keeps its running turns.
    ["lease-ttl"] lease_ttl: Duration, Time { zero: false }, "15s";
    /// Most requests per second and caller. Without authentication, a caller is an address. Without it, any number.
    ["rate-limit"] rate_limit: Option<u64>, Maybe(Count);
    /// Most requests at once by a caller who was silent for a while. Without it, those of a second.
    ["rate-burst"] rate_burst: Option<u64>, Maybe(Count);
    /// Most turns of one caller running at a time. Others wait. Without it, any number.
    ["max-running-turns-per-caller"] max_running_turns_per_caller: Option<u64>, Maybe(Count);
    /// Most turns of one caller waiting at a time. Others are refused. Without it, any number.
    ["max-queued-turns-per-caller"] max_queued_turns_per_caller: Option<u64>, Maybe(Count);
    /// Most streams of one caller open at a time. Without it, any number.
    ["max-streams-per-caller"] max_streams_per_caller: Option<u64>, Maybe(Count);
    /// Most parts in one message.
    ["max-parts"] max_parts: u64, Count, "1000";
    /// Most messages in the history of one task. After that, a new task goes on in the same context.
    ["max-history"] max_history: u64, Count, "1000";
    /// Most webhooks of one task.
    ["max-webhooks"] max_webhooks: u64, Count, "32";
    /// Largest request body.
    ["max-body"] max_body: u64, Size { min: 1 << 10, max: 1 << 40 }, "10MiB";
    /// Largest request head.
    ["max-header"] max_header: u64, Size { min: 8 << 10, max: 16 << 20 }, "64KiB";
    /// Most streams open at a time.
    ["max-streams"] max_streams: u64, Count, "10000";
    /// Most connections open at a time.
    ["max-connections"] max_connections: u64, Count, "10000";
    /// Most turns running at a time. Others wait.
    ["max-running-turns"] max_running_turns: u64, Count, "256";
    /// Most turns waiting at a time. Others are refused.
    ["max-queued-turns"] max_queued_turns: u64, Count, "10000";
    /// How long a client may take to send the head of a request.
    ["header-timeout"] header_timeout: Duration, Time { zero: false }, "10s";
    /// How long a client may take to send the body of a request.
    ["body-timeout"] body_timeout: Duration, Time { zero: false }, "30s";
    /// How long a connection may stay open without a request.
    ["idle-timeout"] idle_timeout: Duration, Time { zero: false }, "75s";
    /// How often a silent stream sends a sign of life.
    ["keep-alive"] keep_alive: Duration, Time { zero: false }, "15s";
    /// How long one turn of the agent may take. 0 means any time.
    ["turn-timeout"] turn_timeout: Option<Duration>, TimeOrOff, "1h";
    /// How long the agent may be silent during a turn. 0 means any time.
    ["silence-timeout"] silence_timeout: Option<Duration>, TimeOrOff, "0";
    /// How long an approval waits for its answer.
    ["approval-timeout"] approval_timeout: Duration, Time { zero: false }, "1h";
    /// How long a canceled turn may take to end before it is cut off.
    ["cancel-grace"] cancel_grace: Duration, Time { zero: true }, "5s";
    /// How long running turns and open streams may take to end when the server stops.
    ["drain-timeout"] drain_timeout: Duration, Time { zero: true }, "10s";
    /// File that gets a line of JSON for every call, or `stderr`. Without it, none is written.
    ["audit-log"] audit_log: Option<PathBuf>, Maybe(Path);
    /// Form of the log on stderr: `text`, `json`, or `auto` (text at a terminal, JSON elsewhere).
    ["log"] log: LogFormat, Choice { what: "log format", names: &[
        ("auto", LogFormat::Auto), ("text", LogFormat::Text), ("json", LogFormat::Json),
    ] }, "auto";
}
