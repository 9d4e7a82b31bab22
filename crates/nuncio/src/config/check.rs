//! Rules that concern several keys, or the world outside of the file.

use nuncio_server::auth::read_secret;

use super::Config;
use super::address::is_loopback;
use super::layers::Sources;
use super::problem::{Problem, Source, Spot};
use super::secret::Secret;
use super::types::{Bus, Caller, NamedToken, PushBackend, TokenSource, Transport};
use super::{door, kind_of_agent};

/// The keys that decide who may come in.
const DOOR: [&str; 10] = [
    "host",
    "allow-open",
    "token",
    "token-file",
    "tokens",
    "basic-username",
    "basic-password",
    "api-key",
    "oidc",
    "client-ca",
];

/// Checks the rules and fills in the callers.
pub(crate) fn check(config: &mut Config, sources: &Sources, problems: &mut Vec<Problem>) {
    let before = problems.len();
    config.callers = callers(config, sources, problems);
    // A wrong token is one problem, not two.
    let readable = problems.len() == before && DOOR.iter().all(|key| sources.contains_key(key));
    door::rules(config, sources, problems);
    kind_of_agent::check(config, sources, problems);
    let grpc = config.grpc_host.as_ref().filter(|_| config.has_grpc_port()).map(|host| ("grpc-host", host));
    let ports = config.has_http_port().then_some(("host", &config.host)).into_iter().chain(grpc);
    let open = config.is_open() && !config.allow_open;
    for (key, host) in ports.filter(|(_, host)| readable && open && !is_loopback(host)) {
        let message = format!(
            "`{host}` can be reached from other machines, and no token protects it; set `token`, \
             `token-file` or `tokens`, or say `allow-open: true` if everybody may use this agent",
        );
        problems.push(spot(sources, key).problem(message));
    }
    ways(config, sources, problems);
    if config.serves(Transport::Unix) && config.socket_path.is_none() {
        let message = "`unix` needs `socket-path`, such as `/run/user/1000/nuncio.sock`";
        problems.push(spot(sources, "transport").problem(message));
    }
    if config.serves(Transport::RedisStreams) && config.redis_url.is_none() {
        let message = "`redis-streams` needs `redis-url`, such as `redis://localhost:6379/0`";
        problems.push(spot(sources, "transport").problem(message));
    }
    if let Err(message) = config.signing_keys() {
        problems.push(spot(sources, "signing-keys").problem(message));
    }
    if config.bus != Bus::Local && !config.store.is_shared() {
        let message = "a bus is for servers that share a store: set `store` to `postgres://…`, or leave `bus` out";
        problems.push(spot(sources, "bus").problem(message));
    }
    if config.push_backend == PushBackend::RedisStreams && config.push_redis_url.is_none() {
        let message = "`redis-streams` needs `push-redis-url`, such as `redis://localhost:6379/0`";
        problems.push(spot(sources, "push-backend").problem(message));
    }
}

/// Paths of the HTTP port that mean something else.
const PATHS: [&str; 6] = ["/health", "/ready", "/metrics", "/mcp", "/tasks", "/extendedAgentCard"];

/// Ways in that would stand in each other's way.
fn ways(config: &Config, sources: &Sources, problems: &mut Vec<Problem>) {
    let path = config.ws_path.as_str();
    if PATHS.contains(&path) || ["/.well-known/", "/artifacts/"].iter().any(|taken| path.starts_with(taken)) {
        let message = format!("`{path}` is the path of something else; choose another, such as `/ws`");
        problems.push(spot(sources, "ws-path").problem(message));
    }
    let port = config.grpc_port.unwrap_or(config.port);
    let host = config.grpc_host.as_ref().unwrap_or(&config.host);
    let everywhere = [host, &config.host].iter().any(|host| matches!(host.as_str(), "0.0.0.0" | "::"));
    let same = port == config.port && port != 0 && (*host == config.host || everywhere);
    if same && config.has_http_port() && config.has_grpc_port() {
        let key = if config.grpc_port.is_some() { "grpc-port" } else { "grpc-host" };
        let message = format!(
            "{port} is the port of HTTP as well; set `grpc-port` to another, or leave `grpc-host` and `grpc-port` out: \
             without them, gRPC is on the HTTP port",
        );
        problems.push(spot(sources, key).problem(message));
    }
}

impl Config {
    /// Whether this way in is asked for.
    pub(crate) fn serves(&self, transport: Transport) -> bool {
        self.transport.contains(&transport)
    }

    /// Whether gRPC has a port of its own.
    pub(crate) fn has_grpc_port(&self) -> bool {
        let asked = self.serves(Transport::Grpc) || self.serves(Transport::GrpcJsonRpc);
        asked && (self.grpc_host.is_some() || self.grpc_port.is_some())
    }

    /// Whether the HTTP port is opened: for itself, or for what goes over it.
    pub(crate) fn has_http_port(&self) -> bool {
        self.transport.iter().any(|transport| match transport {
            Transport::Http | Transport::WebSocket => true,
            Transport::Grpc | Transport::GrpcJsonRpc => !self.has_grpc_port(),
            Transport::Stdio | Transport::Unix | Transport::RedisStreams => false,
        })
    }
}

/// Everybody who may come in.
fn callers(config: &Config, sources: &Sources, problems: &mut Vec<Problem>) -> Vec<Caller> {
    let mut callers: Vec<Caller> = Vec::new();
    let single = single(config, sources, problems).map(|(key, source)| {
        let token = NamedToken { name: "default".to_owned(), source, groups: Vec::new(), scopes: None };
        (token, spot(sources, key))
    });
    let list = config.tokens.iter().enumerate().map(|(index, token)| {
        let spot = spot(sources, "tokens").item(index, None);
        (token.clone(), spot)
    });
    for (NamedToken { name, source, groups, scopes }, spot) in single.into_iter().chain(list) {
        let (token, file) = match source {
            TokenSource::Value(secret) => (secret, None),
            TokenSource::File(path) => match read_secret(&path) {
                Ok(secret) => (Secret(secret), Some(path)),
                Err(message) => {
                    problems.push(spot.problem(message));
                    continue;
                }
            },
        };
        if let Some(message) = clash(&callers, &name, &token) {
            problems.push(spot.problem(message));
        }
        callers.push(Caller { name, token, file, groups, scopes });
    }
    callers
}

fn clash(callers: &[Caller], name: &str, token: &Secret) -> Option<String> {
    if callers.iter().any(|caller| caller.name == name) {
        return Some(format!("the name `{name}` is taken by an earlier token; names must differ"));
    }
    let same = callers.iter().find(|caller| caller.token.expose() == token.expose())?;
    Some(format!("`{name}` has the same token as `{}`; tokens must differ, or nobody knows who calls", same.name))
}

/// The one of `token` and `token-file` that holds. The higher origin wins; of the same origin,
/// there may be only one.
fn single(config: &Config, sources: &Sources, problems: &mut Vec<Problem>) -> Option<(&'static str, TokenSource)> {
    let token = config.token.clone().map(TokenSource::Value);
    let file = config.token_file.clone().map(TokenSource::File);
    let (Some(token), Some(file)) = (&token, &file) else {
        let token = token.map(|source| ("token", source));
        return token.or_else(|| file.map(|source| ("token-file", source)));
    };
    let rank = |key| sources.get(key).map_or(u8::MAX, Source::rank);
    match rank("token").cmp(&rank("token-file")) {
        std::cmp::Ordering::Less => Some(("token", token.clone())),
        std::cmp::Ordering::Greater => Some(("token-file", file.clone())),
        std::cmp::Ordering::Equal => {
            let message = "`token` is set as well; keep one of them";
            problems.push(spot(sources, "token-file").problem(message));
            None
        }
    }
}

pub(super) fn spot<'a>(sources: &'a Sources, key: &'static str) -> Spot<'a> {
    let source = sources.get(key).unwrap_or(&Source::DEFAULT);
    Spot { key: key.to_owned(), origin: &source.origin, line: source.line, home: None }
}
