//! Who calls.

use std::sync::Arc;

use http::{HeaderMap, header};
use subtle::ConstantTimeEq;

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

/// The tokens that open the server; none at all means that it is open to everyone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens(Vec<Token>);

impl Tokens {
    pub(crate) fn new(tokens: Vec<Token>) -> Self {
        Self(tokens)
    }

    /// Whether callers must authenticate.
    pub(crate) fn required(&self) -> bool {
        !self.0.is_empty()
    }

    /// The caller's name, empty where nothing is protected; `None` for whoever may not come in.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        if self.0.is_empty() {
            return Some(Arc::from(""));
        }
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, secret) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        // Every token is compared in full, so that the time tells nothing about any of them.
        let mut found = None;
        for token in &self.0 {
            if bool::from(token.secret.as_bytes().ct_eq(secret.trim().as_bytes())) {
                found = Some(token.name.clone());
            }
        }
        found
    }
}
