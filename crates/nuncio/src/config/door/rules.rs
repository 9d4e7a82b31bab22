//! Rules about several of the keys that decide who may come in.

use super::super::Config;
use super::super::check::spot;
use super::super::layers::Sources;
use super::super::problem::Problem;
use super::scope_table;

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
pub(crate) fn rules(config: &Config, sources: &Sources, problems: &mut Vec<Problem>) {
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
