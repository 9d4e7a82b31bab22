//! Providers of identities: tokens that somebody else has signed.

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header, Validation, decode, decode_header};
use nuncio_protocol::codec::Value;

use super::grants::{Grants, ScopeTable};
use super::jwks::{KeySource, Keys, NoKey};

/// No name of a caller is longer.
const LONGEST_NAME: usize = 256;
/// How many keys are tried for a token that names none.
const MOST_TRIED: usize = 8;

/// What is believed of one provider.
#[derive(Clone)]
pub struct IssuerOptions {
    /// What its callers' names begin with, so that they are never those of anybody else.
    pub name: String,
    /// Who signs: the `iss` of every token.
    pub issuer: String,
    /// For whom tokens must be: one of these is in `aud`.
    pub audience: Vec<String>,
    /// Where its keys are.
    pub keys: KeySource,
    /// The algorithms that are taken; none else is.
    pub algorithms: Vec<Algorithm>,
    /// How far its clock may be from ours.
    pub skew: Duration,
    /// The claim that says who it is.
    pub name_claim: String,
    /// The claim that says which groups he is in; dots lead into objects.
    pub groups_claim: String,
    /// What each scope allows; without a table, a good token allows everything.
    pub scopes: Option<ScopeTable>,
}

/// Why a provider cannot be used as configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IssuerError(pub String);

/// A provider of identities.
pub struct Issuer {
    options: IssuerOptions,
    keys: Keys,
}

/// Somebody whom a provider vouches for.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) name: Arc<str>,
    pub(super) groups: Vec<Arc<str>>,
    pub(super) grants: Grants,
}

/// Why a token is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    /// It is no good.
    Wrong,
    /// The keys cannot be had.
    Unavailable,
}

/// The algorithm of this name, if it is one that tokens may have.
pub fn algorithm(name: &str) -> Option<Algorithm> {
    name.parse().ok()
}

impl Issuer {
    /// A provider. Its keys are fetched when the first token comes, or before.
    pub fn new(options: IssuerOptions) -> Result<Self, IssuerError> {
        let is_shared = |algorithm: &Algorithm| algorithm.family() == AlgorithmFamily::Hmac;
        let has_secret = matches!(options.keys, KeySource::Secret(_));
        if options.algorithms.is_empty() || options.audience.is_empty() {
            return Err(IssuerError("at least one algorithm and one audience are needed".into()));
        }
        if options.algorithms.iter().any(|algorithm| is_shared(algorithm) != has_secret) {
            let text = "HS256, HS384 and HS512 need a `secret` and everything else public keys: give the ones that fit";
            return Err(IssuerError(text.into()));
        }
        let keys = Keys::new(&options.issuer, &options.keys).map_err(IssuerError)?;
        Ok(Self { options, keys })
    }

    /// What the card calls it.
    pub(super) fn scheme_name(&self) -> &str {
        &self.options.name
    }

    /// Where it describes itself, if that is where its keys come from.
    pub(super) fn discovery_url(&self) -> Option<String> {
        self.keys.discovery_url()
    }

    pub(super) fn refresh_file(&self) {
        self.keys.refresh_file();
    }

    /// Whether its keys can be had now. Why not is in the log.
    pub async fn has_keys(&self) -> bool {
        self.keys.refresh_if_old().await;
        self.keys.are_there()
    }

    pub(super) async fn refresh_keys(&self) {
        self.keys.refresh_if_old().await;
    }

    /// Finds out for whom a token was signed.
    pub(super) async fn verify(&self, token: &str) -> Result<Identity, Rejected> {
        // What is no token at all costs nothing more.
        let header = decode_header(token).map_err(|_| Rejected::Wrong)?;
        if !self.takes(&header) {
            return Err(Rejected::Wrong);
        }
        let keys = self.keys.find(header.kid.as_deref(), header.alg).await.map_err(|error| match error {
            NoKey::Unknown => Rejected::Wrong,
            NoKey::Unavailable => Rejected::Unavailable,
        })?;
        let claims = keys.iter().take(MOST_TRIED).find_map(|key| self.claims(token, key, header.alg));
        self.identity(&claims.ok_or(Rejected::Wrong)?).ok_or(Rejected::Wrong)
    }

    fn takes(&self, header: &Header) -> bool {
        // A token made for something else may be signed by the same key.
        let is_access = header.typ.as_deref().is_none_or(|typ| {
            let typ = typ.strip_prefix("application/").unwrap_or(typ);
            typ.eq_ignore_ascii_case("JWT") || typ.eq_ignore_ascii_case("at+jwt")
        });
        // What must be understood and is not, is refused.
        is_access && header.crit.is_none() && self.options.algorithms.contains(&header.alg)
    }

    fn claims(&self, token: &str, key: &DecodingKey, algorithm: Algorithm) -> Option<Value> {
        let mut validation = Validation::new(algorithm);
        validation.leeway = self.options.skew.as_secs();
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.options.issuer]);
        validation.set_audience(&self.options.audience);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let claims = decode::<Value>(token, key, &validation).ok()?.claims;
        let latest = jsonwebtoken::get_current_timestamp().saturating_add(self.options.skew.as_secs());
        #[allow(clippy::cast_precision_loss)] // far beyond any date
        let is_later = |at: &Value| at.as_f64().is_none_or(|at| at > latest as f64);
        (!claims.get("iat").is_some_and(is_later)).then_some(claims)
    }

    fn identity(&self, claims: &Value) -> Option<Identity> {
        let name = claim(claims, &self.options.name_claim)?.as_str()?;
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            return None;
        }
        let groups = claim(claims, &self.options.groups_claim).map(words).unwrap_or_default();
        let grants = self.options.scopes.as_ref().map_or(Grants::ALL, |table| {
            let scopes = claims.get("scope").or_else(|| claims.get("scp")).map(words).unwrap_or_default();
            table.grants(scopes)
        });
        Some(Identity {
            name: format!("{}:{name}", self.options.name).into(),
            groups: groups.into_iter().map(Arc::from).collect(),
            grants,
        })
    }
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer").field("issuer", &self.options.issuer).finish_non_exhaustive()
    }
}

/// A claim by its name, or by the names on the way to it.
fn claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| name.split('.').try_fold(claims, |at, name| at.get(name)))
}

/// The words of a list, or of one text with spaces.
fn words(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => text.split_ascii_whitespace().collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
