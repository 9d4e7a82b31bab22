//! Who calls.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, header};
use subtle::ConstantTimeEq;

use crate::call::Way;

/// A caller who proves who he is with a bearer token.
#[derive(Clone)]
pub struct Token {
    /// Who it is; his tasks belong to this name.
    pub name: Arc<str>,
    /// What he shows.
    pub secret: Arc<str>,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a caller shows, whatever transport it came by: credentials stand where HTTP has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    /// The headers, metadata or first frame.
    pub(crate) headers: &'a HeaderMap,
    /// The query of the address.
    pub(crate) query: Option<&'a str>,
    /// Where the call comes from; nothing where the transport has no addresses.
    pub(crate) from: Option<IpAddr>,
    /// Who it is by the word of the transport itself: a certificate, or the user at the other end of a socket.
    pub(crate) proven: Option<&'a Arc<str>>,
}

/// Somebody who may come in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// Who it is; empty where nothing is protected.
    pub(crate) name: Arc<str>,
    /// By which way.
    pub(crate) way: Way,
}

impl Caller {
    /// The same caller, who came by this way.
    pub(crate) fn by(self, way: Way) -> Self {
        Self { way, ..self }
    }
}

/// Why somebody may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No credentials, or wrong ones.
    Unauthorized,
}

impl Denied {
    /// What is put on record.
    pub(crate) fn outcome(&self) -> &'static str {
        match self {
            Self::Unauthorized => "UNAUTHENTICATED",
        }
    }
}

/// The door: who may come in. Without any scheme it is open to everyone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    tokens: Vec<Token>,
}

impl Gate {
    pub(crate) fn new(tokens: Vec<Token>) -> Self {
        Self { tokens }
    }

    /// Whether callers must authenticate.
    pub(crate) fn is_closed(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Finds out who calls.
    #[expect(clippy::unused_async, reason = "keys of other issuers have to be fetched")]
    pub(crate) async fn admit(&self, shown: Shown<'_>) -> Result<Caller, Denied> {
        if !self.is_closed() {
            return Ok(Caller { name: shown.proven.cloned().unwrap_or_default(), ..Caller::default() });
        }
        let secret = bearer(shown.headers).ok_or(Denied::Unauthorized)?;
        // Every token is compared in full, so that the time tells nothing about any of them.
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.secret.as_bytes().ct_eq(secret.as_bytes())) {
                found = Some(token.name.clone());
            }
        }
        found.map(|name| Caller { name, ..Caller::default() }).ok_or(Denied::Unauthorized)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}
