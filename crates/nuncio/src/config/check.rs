//! Rules that concern several keys, or the world outside of the file.

use nuncio_server::auth::read_secret;

use super::Config;
use super::address::is_loopback;
use super::door::scope_table;
use super::layers::Sources;
use super::problem::{Origin, Problem, Source, Spot};
use super::secret::Secret;
use super::types::{Caller, NamedToken, PushBackend, TokenSource};

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
    check_door(config, sources, problems);
    let open = config.is_open() && !is_loopback(&config.host);
    if readable && open && !config.allow_open {
        let message = format!(
            "`{}` can be reached from other machines, and no token protects it; set `token`, \
             `token-file` or `tokens`, or say `allow-open: true` if everybody may use this agent",
            config.host
        );
        problems.push(spot(sources, "host").problem(message));
    }
    if config.push_backend == PushBackend::RedisStreams && config.push_redis_url.is_none() {
        let message = "`redis-streams` needs `push-redis-url`, such as `redis://localhost:6379/0`";
        problems.push(spot(sources, "push-backend").problem(message));
    }
}

impl Config {
    /// Whether everybody may come in.
    pub(crate) fn is_open(&self) -> bool {
        let has_basic = self.basic_username.is_some() && self.basic_password.is_some();
        self.callers.is_empty()
            && !has_basic
            && self.api_key.is_none()
            && self.oidc.is_empty()
            && self.client_ca.is_none()
    }
}

/// What belongs together.
fn check_door(config: &Config, sources: &Sources, problems: &mut Vec<Problem>) {
    let mut needs = |key: &'static str, other: &str, given: bool, missing: bool| {
        if given && missing && sources.contains_key(key) {
            problems.push(spot(sources, key).problem(format_args!("it needs `{other}` as well")));
        }
    };
    let (user, password) = (config.basic_username.is_some(), config.basic_password.is_some());
    needs("basic-username", "basic-password", user, !password);
    needs("basic-password", "basic-username", password, !user);
    needs("client-ca", "tls", config.client_ca.is_some(), config.tls.is_none());
    let key = config.api_key.is_some();
    needs("api-key-query", "api-key", config.api_key_query.is_some(), !key);
    needs("api-key-cookie", "api-key", config.api_key_cookie.is_some(), !key);
    if config.basic_username.as_ref().is_some_and(|name| name.contains(':')) {
        problems.push(spot(sources, "basic-username").problem("a name has no `:` in it: HTTP Basic could not send it"));
    }
    let table = scope_table(config.scopes.as_ref());
    for (index, token) in config.tokens.iter().enumerate() {
        if let Some(unknown) = token.scopes.iter().flatten().find(|scope| !table.knows(scope)) {
            let spot = spot(sources, "tokens").item(index, None);
            problems.push(spot.problem(format_args!("`scopes`: there is no scope `{unknown}`; see the key `scopes`")));
        }
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
    let rank = |key| sources.get(key).map_or(u8::MAX, |source| rank(&source.origin));
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

fn rank(origin: &Origin) -> u8 {
    match origin {
        Origin::Flag => 0,
        Origin::Environment(_) => 1,
        Origin::File(_) => 2,
        Origin::Profile(_) => 3,
        Origin::Default => 4,
    }
}

fn spot<'a>(sources: &'a Sources, key: &'static str) -> Spot<'a> {
    let source = sources.get(key).unwrap_or(&Source::DEFAULT);
    Spot { key: key.to_owned(), origin: &source.origin, line: source.line, home: None }
}
