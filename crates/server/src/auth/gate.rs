//! The door.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};

use super::issuer::Rejected;
use super::security::Security;
use super::throttle::{Throttle, Verdict};
use super::{AuthOptions, Caller, Denied, Grants, Shown, basic, bearer};

/// The door: who may come in. Without any scheme it is open to everyone.
#[derive(Debug)]
pub(crate) struct Gate {
    options: AuthOptions,
    security: Arc<Security>,
    throttle: Throttle,
    is_closed: bool,
}

/// Why nobody was found.
enum Unknown {
    /// Nothing was shown.
    Nobody,
    /// Something was, and it is wrong.
    Wrong,
    /// It cannot be judged now.
    Unavailable,
}

impl Gate {
    pub(crate) fn new(options: AuthOptions) -> Self {
        let security = Arc::new(Security::of(&options));
        let is_closed = !security.schemes.is_empty();
        Self { options, security, throttle: Throttle::default(), is_closed }
    }

    /// Whether callers must authenticate.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether the card is for those who may come in alone.
    pub(crate) fn protects_card(&self) -> bool {
        self.is_closed && self.options.protect_card
    }

    /// What the card says about credentials.
    pub(crate) fn security(&self) -> Arc<Security> {
        self.security.clone()
    }

    /// The ways to come in, for somebody who was turned away.
    pub(crate) fn challenges(&self, headers: &HeaderMap) -> &[HeaderValue] {
        let showed_token = authorization(headers).is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        if showed_token { &self.security.challenges_after_token } else { &self.security.challenges }
    }

    /// Finds out who calls.
    pub(crate) async fn admit(&self, shown: Shown<'_>) -> Result<Caller, Denied> {
        if !self.is_closed {
            return Ok(shown.proven.cloned().map(Caller::named).unwrap_or_default());
        }
        let unknown = match self.find(&shown).await {
            Ok(caller) if caller.grants.is_empty() => return Err(Denied::Forbidden),
            Ok(caller) => return Ok(caller),
            Err(unknown) => unknown,
        };
        match unknown {
            Unknown::Nobody => Err(Denied::Unauthorized),
            Unknown::Unavailable => Err(Denied::Unavailable),
            Unknown::Wrong => Err(self.wrong(&shown)),
        }
    }

    async fn find(&self, shown: &Shown<'_>) -> Result<Caller, Unknown> {
        let mut unknown = Unknown::Nobody;
        if let Some((scheme, text)) = authorization(shown.headers) {
            unknown = Unknown::Wrong;
            if scheme.eq_ignore_ascii_case("bearer") {
                if let Some(token) = bearer::find(&self.options.tokens, text) {
                    return Ok(self.member(token.name.clone(), &token.groups, token.grants));
                }
                match Box::pin(self.issued(text)).await {
                    Ok(caller) => return Ok(caller),
                    Err(Rejected::Wrong) => {}
                    Err(Rejected::Unavailable) => unknown = Unknown::Unavailable,
                }
            } else if scheme.eq_ignore_ascii_case("basic")
                && let Some(name) = basic::find(&self.options.passwords, text)
            {
                return Ok(Caller::named(name));
            }
        }
        for key in &self.options.api_keys {
            match key.is_shown(shown) {
                Some(true) => return Ok(Caller::named(key.name.clone())),
                Some(false) => unknown = Unknown::Wrong,
                None => {}
            }
        }
        match shown.proven {
            Some(name) => Ok(Caller::named(name.clone())),
            None => Err(unknown),
        }
    }

    /// Somebody whom a provider of identities vouches for.
    async fn issued(&self, token: &str) -> Result<Caller, Rejected> {
        let mut rejected = Rejected::Wrong;
        for issuer in &self.options.issuers {
            match issuer.verify(token).await {
                Ok(identity) => return Ok(self.member(identity.name, &identity.groups, identity.grants)),
                Err(Rejected::Wrong) => {}
                Err(Rejected::Unavailable) => rejected = Rejected::Unavailable,
            }
        }
        Err(rejected)
    }

    /// The first shared group that somebody is in owns what he makes.
    fn member(&self, name: Arc<str>, groups: &[Arc<str>], grants: Grants) -> Caller {
        let group = self.options.shared_groups.iter().find(|shared| groups.contains(shared));
        let owner = group.map_or_else(|| name.clone(), |group| format!("group:{group}").into());
        Caller { name, owner, grants, ..Caller::default() }
    }

    fn wrong(&self, shown: &Shown<'_>) -> Denied {
        let from = shown.from.map(tracing::field::display);
        match self.throttle.wrong(shown.from) {
            Verdict::Wrong { first } => {
                if first {
                    tracing::info!(from, "wrong credentials");
                }
                Denied::Unauthorized
            }
            Verdict::Slow { retry_after, first } => {
                if first {
                    tracing::warn!(from, "many wrong credentials: further ones are told to wait");
                }
                Denied::TooMany { retry_after }
            }
        }
    }

    /// Looks whether files with credentials have changed. It reads files: call it where that may block.
    pub(crate) fn refresh_files(&self) {
        for token in &self.options.tokens {
            token.secret.refresh();
        }
        for issuer in &self.options.issuers {
            issuer.refresh_file();
        }
    }

    /// Looks whether providers of identities have new keys, where it is time to.
    pub(crate) async fn refresh_keys(&self) {
        for issuer in &self.options.issuers {
            issuer.refresh_keys().await;
        }
    }
}

/// The scheme and what follows it.
fn authorization(headers: &HeaderMap) -> Option<(&str, &str)> {
    let (scheme, text) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    Some((scheme, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Password, Token, TokenSecret};

    fn gate() -> Gate {
        let token = |name: &str, groups: &[&str]| Token {
            name: name.into(),
            secret: TokenSecret::text(&format!("{name}-secret")),
            groups: groups.iter().map(|group| Arc::from(*group)).collect(),
            grants: Grants::ALL,
        };
        Gate::new(AuthOptions {
            tokens: vec![token("anna", &["blue", "red"]), token("ben", &["red"]), token("cleo", &["green"])],
            passwords: vec![Password::new("anna", "pass")],
            shared_groups: vec!["red".into(), "blue".into()],
            ..AuthOptions::default()
        })
    }

    async fn admit(gate: &Gate, authorization: &str, proven: Option<&str>) -> Result<Caller, Denied> {
        let mut headers = HeaderMap::new();
        if !authorization.is_empty() {
            headers.insert(header::AUTHORIZATION, authorization.parse().expect("a header"));
        }
        let proven = proven.map(Arc::from);
        gate.admit(Shown { headers: &headers, query: None, from: None, proven: proven.as_ref() }).await
    }

    #[tokio::test]
    async fn any_scheme_suffices_and_names_do_not_meet() {
        let gate = gate();
        let name = |caller: Result<Caller, Denied>| caller.map(|caller| caller.name.to_string());
        assert_eq!(name(admit(&gate, "Bearer anna-secret", None).await), Ok("anna".into()));
        assert_eq!(name(admit(&gate, "basic YW5uYTpwYXNz", None).await), Ok("basic:anna".into()));
        assert_eq!(name(admit(&gate, "", Some("cert:anna")).await), Ok("cert:anna".into()));
        assert_eq!(name(admit(&gate, "", None).await), Err(Denied::Unauthorized));
        assert_eq!(name(admit(&gate, "Basic anna-secret", None).await), Err(Denied::Unauthorized));
        assert_eq!(name(admit(&gate, "Digest x", None).await), Err(Denied::Unauthorized));
    }

    #[tokio::test]
    async fn the_first_shared_group_owns() {
        let gate = gate();
        for (token, owner) in [("anna", "group:red"), ("ben", "group:red"), ("cleo", "cleo")] {
            let caller = admit(&gate, &format!("Bearer {token}-secret"), None).await.expect("it is known");
            assert_eq!((&*caller.name, &*caller.owner), (token, owner));
        }
    }

    #[tokio::test]
    async fn right_credentials_come_in_however_many_wrong_ones_there_are() {
        let gate = gate();
        for _ in 0..100 {
            assert_eq!(admit(&gate, "Bearer wrong", None).await.map(drop), Err(Denied::Unauthorized));
        }
        assert_eq!(admit(&gate, "Bearer wrong", None).await.map(drop), Err(Denied::TooMany { retry_after: 1 }));
        assert_eq!(admit(&gate, "Bearer ben-secret", None).await.map(drop), Ok(()));
        assert_eq!(admit(&gate, "", None).await.map(drop), Err(Denied::Unauthorized), "nothing shown is nothing wrong");
    }
}
