//! The command line of `nuncio client`. Values stay text here: the settings check a flag, a variable and a line
//! of the file with the same code and the same words.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::Secret;

/// Settings that were given as flags, by the name of their key.
pub(crate) type Given = Vec<(&'static str, Vec<String>)>;

#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// Configuration file (YAML); flags and environment variables win over it
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) command: ClientCommand,
}

/// Who calls, and how; for every command, before or after its name.
#[derive(Debug, Default, Args)]
pub(crate) struct Connection {
    /// Bearer token
    #[arg(long, global = true, value_name = "TOKEN", help_heading = "Connection")]
    token: Option<Secret>,
    /// User name for basic authentication
    #[arg(long, global = true, value_name = "NAME", help_heading = "Connection")]
    basic_username: Option<String>,
    /// Password for basic authentication
    #[arg(long, global = true, value_name = "PASSWORD", help_heading = "Connection")]
    basic_password: Option<Secret>,
    /// API key
    #[arg(long, global = true, value_name = "KEY", help_heading = "Connection")]
    api_key: Option<Secret>,
    /// Header for the API key [default: X-API-Key]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Connection")]
    api_key_header: Option<String>,
    /// Longest wait for an answer, in seconds [default: 30]; if given, also for a whole call
    #[arg(long, global = true, value_name = "SECONDS", help_heading = "Connection")]
    timeout: Option<String>,
    /// Binding to use: jsonrpc, rest, grpc, grpc-jsonrpc, websocket, unix or redis-streams [default: the card's first]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Connection")]
    transport: Option<String>,
    /// Version of A2A to speak: 1.0 or 0.3 [default: the card's first]
    #[arg(long, global = true, value_name = "VERSION", help_heading = "Connection")]
    a2a_version: Option<String>,
    /// Tenant instead of the card's
    #[arg(long, global = true, value_name = "NAME", help_heading = "Connection")]
    tenant: Option<String>,
    /// Extension to activate (repeatable)
    #[arg(long, global = true, value_name = "URI", help_heading = "Connection")]
    extension: Vec<String>,
    /// Send credentials also to other origins that the card names
    #[arg(long, global = true, help_heading = "Connection")]
    allow_cross_origin: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Send a message and print the answer
    #[command(after_help = "Example:\n  nuncio client call --url http://127.0.0.1:41242/ --prompt \"hello\" --stream")]
    Call(Box<CallArgs>),
    /// Print the card of an agent
    #[command(after_help = "Example:\n  nuncio client discover --url http://127.0.0.1:41242/")]
    Discover(DiscoverArgs),
    /// Print a task
    #[command(
        after_help = "Example:\n  nuncio client task-get --url http://127.0.0.1:41242/ --task-id ID --output json"
    )]
    TaskGet(TaskGetArgs),
    /// List tasks
    #[command(
        after_help = "Example:\n  nuncio client task-list --url http://127.0.0.1:41242/ --status input-required --page-size 20"
    )]
    TaskList(TaskListArgs),
    /// Cancel a task
    #[command(after_help = "Example:\n  nuncio client task-cancel --url http://127.0.0.1:41242/ --task-id ID")]
    TaskCancel(TaskArgs),
    /// Follow a task and print what happens
    #[command(
        after_help = "Example:\n  nuncio client task-subscribe --url http://127.0.0.1:41242/ --task-id ID\n  nuncio client task-subscribe --url http://127.0.0.1:41242/ --task-id ID --after 0    (from the beginning)"
    )]
    TaskSubscribe(SubscribeArgs),
    /// Register a webhook for a task
    #[command(
        after_help = "Example:\n  nuncio client push-config-create --url http://127.0.0.1:41242/ --task-id ID --config-id webhook-1 \\\n    --callback-url https://hooks.example.com/a2a --auth-scheme bearer --auth-credentials SECRET"
    )]
    PushConfigCreate(PushCreateArgs),
    /// Print a webhook of a task
    #[command(
        after_help = "Example:\n  nuncio client push-config-get --url http://127.0.0.1:41242/ --task-id ID --config-id webhook-1"
    )]
    PushConfigGet(PushArgs),
    /// List the webhooks of a task
    #[command(after_help = "Example:\n  nuncio client push-config-list --url http://127.0.0.1:41242/ --task-id ID")]
    PushConfigList(PushListArgs),
    /// Remove a webhook of a task
    #[command(
        after_help = "Example:\n  nuncio client push-config-delete --url http://127.0.0.1:41242/ --task-id ID --config-id webhook-1"
    )]
    PushConfigDelete(PushArgs),
    /// Print the card that only known callers see
    #[command(after_help = "Example:\n  nuncio client extended-card --url http://127.0.0.1:41242/ --token TOKEN")]
    ExtendedCard(ShowArgs),
    /// Show which route a call would take
    #[command(after_help = ROUTE_EXAMPLE)]
    RoutePreview(RoutePreviewArgs),
}

pub(crate) const ROUTE_EXAMPLE: &str = "Example:\n  nuncio client route-preview --route \"ros=http://127.0.0.1:41242/;skills=iac_generation;tags=ros,template\" \\\n    --prompt \"Create a ROS VPC template\"";

/// Which agent, and how to print what it says.
#[derive(Debug, Default, Args)]
pub(crate) struct ShowArgs {
    /// Address of the agent or of one of its interfaces
    #[arg(long)]
    url: Option<String>,
    /// Form of the output: table or json [default: table]
    #[arg(long, value_name = "FORM")]
    output: Option<String>,
}

/// What is asked of the signatures on a card.
#[derive(Debug, Default, Args)]
pub(crate) struct VerifyArgs {
    /// Shared secret that the card must be signed with
    #[arg(long, visible_alias = "signing-secret", value_name = "SECRET", help_heading = "Card signature")]
    verify_card_secret: Option<Secret>,
    /// Address of a key set (JWKS) that the card may be signed with
    #[arg(long, value_name = "URL", help_heading = "Card signature")]
    verify_card_jwks_url: Option<String>,
    /// File with such a key set
    #[arg(long, value_name = "FILE", help_heading = "Card signature")]
    verify_card_jwks: Option<String>,
    /// Refuse cards without a valid signature
    #[arg(long, visible_alias = "require-signature", help_heading = "Card signature")]
    require_card_signature: bool,
}

/// Routes, in place of an address.
#[derive(Debug, Default, Args)]
pub(crate) struct RouteArgs {
    /// Route, as name=url;skills=a,b;tags=x,y (repeatable)
    #[arg(long, value_name = "SPEC", help_heading = "Routes")]
    route: Vec<String>,
    /// Take the route that has this skill
    #[arg(long, value_name = "ID", help_heading = "Routes")]
    skill: Option<String>,
    /// Folder for saved routes [default: ~/.nuncio]
    #[arg(long, visible_alias = "persistence-dir", value_name = "DIR", help_heading = "Routes")]
    route_state_dir: Option<String>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Text to send; - reads it from stdin
    #[arg(long, short)]
    prompt: Option<String>,
    /// File, or address of one, to send along (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Vec<String>,
    /// JSON to send along: itself, a file, or - for stdin (repeatable)
    #[arg(long, value_name = "JSON")]
    pub(crate) data: Vec<String>,
    /// Metadata of the message, a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Folder for the agent to work in
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Continue this conversation
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    /// Continue or answer this task
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    /// Follow live; with --output json, print one event per line
    #[arg(long)]
    stream: bool,
    /// Write artifacts into this folder
    #[arg(long, value_name = "DIR")]
    save: Option<String>,
    /// Never ask, even on a terminal
    #[arg(long)]
    pub(crate) no_input: bool,
    /// The agent runs calls with the same key once
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    #[command(flatten)]
    pub(crate) routes: RouteArgs,
    /// Take the route with this name
    #[arg(long, value_name = "NAME", help_heading = "Routes")]
    route_name: Option<String>,
    #[command(flatten)]
    pub(crate) verify: VerifyArgs,
}

#[derive(Debug, Default, Args)]
pub(crate) struct DiscoverArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) verify: VerifyArgs,
}

#[derive(Debug, Default, Args)]
pub(crate) struct TaskArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Task
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct TaskGetArgs {
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// At most so many messages of its history
    #[arg(long, value_name = "N")]
    history_length: Option<String>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct TaskListArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Only of this conversation
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    /// Only in this state, such as working or TASK_STATE_WORKING
    #[arg(long, value_name = "STATE")]
    status: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N")]
    page_size: Option<String>,
    /// Where the page before ended
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
    /// With artifacts
    #[arg(long)]
    include_artifacts: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct SubscribeArgs {
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// Continue after the event with this number; 0 is the beginning
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u64>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// Webhook
    #[arg(long, value_name = "ID")]
    config_id: Option<String>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct PushCreateArgs {
    #[command(flatten)]
    pub(crate) push: PushArgs,
    /// Where the agent posts
    #[arg(long, value_name = "URL")]
    callback_url: Option<String>,
    /// Sent along as X-A2A-Notification-Token
    #[arg(long, value_name = "TOKEN")]
    notification_token: Option<Secret>,
    /// How the agent authenticates there, such as bearer or basic
    #[arg(long, value_name = "SCHEME")]
    auth_scheme: Option<String>,
    /// With what
    #[arg(long, value_name = "SECRET")]
    auth_credentials: Option<Secret>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct PushListArgs {
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// At most so many
    #[arg(long, value_name = "N")]
    page_size: Option<String>,
    /// Where the page before ended
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct RoutePreviewArgs {
    #[command(flatten)]
    pub(crate) routes: RouteArgs,
    /// Take the route with this name
    #[arg(long = "name", visible_alias = "route-name", value_name = "NAME")]
    route_name: Option<String>,
    /// Text whose words are compared with names and tags
    #[arg(long, short)]
    prompt: Option<String>,
    /// Save the given routes for later calls
    #[arg(long)]
    pub(crate) save_routes: bool,
    /// Form of the output: table or json [default: table]
    #[arg(long, value_name = "FORM")]
    output: Option<String>,
}

/// Something that settings can be given by.
pub(crate) trait Gives {
    fn given(&self) -> Given;
}

/// The values of one flag.
trait Values {
    fn values(&self) -> Vec<String>;
}

impl Values for Option<String> {
    fn values(&self) -> Vec<String> {
        self.iter().cloned().collect()
    }
}

impl Values for Option<Secret> {
    fn values(&self) -> Vec<String> {
        self.iter().map(|secret| secret.expose().to_owned()).collect()
    }
}

impl Values for Vec<String> {
    fn values(&self) -> Vec<String> {
        self.clone()
    }
}

impl Values for bool {
    fn values(&self) -> Vec<String> {
        self.then(|| "true".to_owned()).into_iter().collect()
    }
}

macro_rules! gives {
    ($($type:ident [$($group:ident),*] { $($key:literal $field:ident),* $(,)? })*) => {$(
        impl Gives for $type {
            fn given(&self) -> Given {
                let own: [(&'static str, Vec<String>); _] = [$(($key, self.$field.values())),*];
                let groups: [Given; _] = [$(self.$group.given()),*];
                let own = own.into_iter().filter(|(_, values)| !values.is_empty());
                groups.into_iter().flatten().chain(own).collect()
            }
        }
    )*};
}

gives! {
    Connection [] {
        "token" token, "basic-username" basic_username, "basic-password" basic_password, "api-key" api_key,
        "api-key-header" api_key_header, "timeout" timeout, "transport" transport, "a2a-version" a2a_version,
        "tenant" tenant, "extensions" extension, "allow-cross-origin" allow_cross_origin,
    }
    ShowArgs [] { "url" url, "output" output }
    VerifyArgs [] {
        "verify-card-secret" verify_card_secret, "verify-card-jwks-url" verify_card_jwks_url,
        "verify-card-jwks" verify_card_jwks, "require-card-signature" require_card_signature,
    }
    RouteArgs [] { "routes" route, "skill" skill, "route-state-dir" route_state_dir }
    CallArgs [show, routes, verify] {
        "prompt" prompt, "metadata" metadata, "cwd" cwd, "context-id" context_id, "task-id" task_id,
        "stream" stream, "save" save, "route-name" route_name,
    }
    DiscoverArgs [show, verify] {}
    TaskArgs [show] { "task-id" task_id }
    TaskGetArgs [task] { "history-length" history_length }
    TaskListArgs [show] {
        "context-id" context_id, "status" status, "page-size" page_size, "page-token" page_token,
        "include-artifacts" include_artifacts,
    }
    SubscribeArgs [task] {}
    PushArgs [task] { "config-id" config_id }
    PushCreateArgs [push] {
        "callback-url" callback_url, "notification-token" notification_token, "auth-scheme" auth_scheme,
        "auth-credentials" auth_credentials,
    }
    PushListArgs [task] { "page-size" page_size, "page-token" page_token }
    RoutePreviewArgs [routes] { "route-name" route_name, "prompt" prompt, "output" output }
}

impl ClientCommand {
    /// The settings of whatever command it is.
    pub(crate) fn given(&self) -> Given {
        match self {
            Self::Call(args) => args.given(),
            Self::Discover(args) => args.given(),
            Self::TaskGet(args) => args.given(),
            Self::TaskList(args) => args.given(),
            Self::TaskCancel(args) => args.given(),
            Self::TaskSubscribe(args) => args.given(),
            Self::PushConfigCreate(args) => args.given(),
            Self::PushConfigGet(args) | Self::PushConfigDelete(args) => args.given(),
            Self::PushConfigList(args) => args.given(),
            Self::ExtendedCard(args) => args.given(),
            Self::RoutePreview(args) => args.given(),
        }
    }
}
