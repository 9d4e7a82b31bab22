//! Who may come in, and over which kind of connection, as the configuration says.

use std::sync::Arc;

use nuncio_server::Reloader;
use nuncio_server::auth::{
    ApiKey, AuthOptions, Grants, Issuer, IssuerOptions, KeySource, Password, Token, TokenSecret,
};
use nuncio_server::tls::{Tls, TlsOptions};

use crate::config::door::{Oidc, scope_table};
use crate::config::{Caller, Config};
use crate::failure::Failure;

/// Who may come in.
pub(crate) fn auth(config: &Config) -> Result<AuthOptions, Failure> {
    let wrong = |text: String| Failure::usage(vec![text]);
    let table = scope_table(config.scopes.as_ref());
    let token = |caller: &Caller| {
        let secret = match &caller.file {
            Some(path) => TokenSecret::file(path).map_err(wrong)?,
            None => TokenSecret::text(caller.token.expose()),
        };
        let grants = caller.scopes.as_ref().map_or(Grants::ALL, |all| table.grants(all.iter().map(String::as_str)));
        let groups = caller.groups.iter().map(|group| group.as_str().into()).collect();
        Ok(Token { name: caller.name.as_str().into(), secret, groups, grants })
    };
    let issuer = |oidc: &Oidc| {
        let options = IssuerOptions {
            name: oidc.name.clone(),
            issuer: oidc.issuer.clone(),
            audience: oidc.audience.clone(),
            keys: match (&oidc.jwks_url, &oidc.jwks_file, &oidc.secret) {
                (Some(url), ..) => KeySource::Url(url.clone()),
                (_, Some(path), _) => KeySource::File(path.clone()),
                (.., Some(secret)) => KeySource::Secret(secret.expose().into()),
                _ => KeySource::Discovery,
            },
            algorithms: oidc.algorithms.clone(),
            skew: oidc.clock_skew,
            name_claim: oidc.name_claim.clone(),
            groups_claim: oidc.groups_claim.clone(),
            scopes: oidc.require_scopes.then(|| table.clone()),
        };
        Issuer::new(options).map(Arc::new).map_err(|error| wrong(format!("oidc: {error}")))
    };
    let key = |secret: &crate::config::Secret| {
        let header = config.api_key_header.parse().map_err(|_| wrong("api-key-header: not a header".into()))?;
        Ok(ApiKey::new(secret.expose(), header, config.api_key_query.clone(), config.api_key_cookie.clone()))
    };
    let password = config.basic_username.as_ref().zip(config.basic_password.as_ref());
    Ok(AuthOptions {
        tokens: config.callers.iter().map(token).collect::<Result<_, Failure>>()?,
        passwords: password.map(|(user, password)| Password::new(user, password.expose())).into_iter().collect(),
        api_keys: config.api_key.iter().map(key).collect::<Result<_, Failure>>()?,
        issuers: config.oidc.iter().map(issuer).collect::<Result<_, Failure>>()?,
        certificates: config.client_ca.is_some(),
        shared_groups: config.shared_groups.iter().map(|group| group.as_str().into()).collect(),
        protect_card: config.protect_card,
    })
}

/// The certificate of the server, if it has one.
pub(crate) fn tls(config: &Config) -> Result<Option<Arc<Tls>>, Failure> {
    let Some(files) = &config.tls else { return Ok(None) };
    let options = TlsOptions {
        cert: files.cert.clone(),
        key: files.key.clone(),
        client_ca: config.client_ca.clone(),
        client_name: config.client_name,
    };
    let tls = Tls::open(options).map_err(|error| Failure::usage(vec![format!("tls: {error}")]))?;
    Ok(Some(Arc::new(tls)))
}

/// How addresses of this server begin.
pub(crate) fn scheme(config: &Config) -> &'static str {
    if config.tls.is_some() { "https" } else { "http" }
}

/// Who may come in, in words.
pub(crate) fn describe(config: &Config) -> String {
    if config.is_open() {
        return "open to everyone who reaches this address".to_owned();
    }
    let mut ways = Vec::new();
    match config.callers.len() {
        0 => {}
        1 => ways.push("one bearer token".to_owned()),
        n => ways.push(format!("{n} bearer tokens")),
    }
    ways.extend(config.basic_username.iter().map(|_| "a password".to_owned()));
    ways.extend(config.api_key.iter().map(|_| "an API key".to_owned()));
    ways.extend(config.oidc.iter().map(|oidc| format!("tokens of {}", oidc.issuer)));
    ways.extend(config.client_ca.iter().map(|_| "client certificates".to_owned()));
    ways.join(", ")
}

/// Looks at once whether files have changed when the process is told to.
pub(crate) fn reload_on_hangup(reloader: Reloader) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            tracing::info!("looking for changed certificates, tokens and keys");
            reloader.reload();
        }
    });
}
