//! The keys of a provider: found by discovery, at an address, in a file, or shared.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use jsonwebtoken::jwk::{Jwk, JwkSet, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use nuncio_protocol::codec;
use parking_lot::RwLock;
use reqwest::Url;
use serde::Deserialize;

use super::file::Stamp;
use crate::push::guard::{Guard, Openings};

/// No honest document is larger.
const LARGEST: usize = 256 << 10;
/// How long a provider may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before the next look, whatever keys the sender of a token may name.
const PAUSE: Duration = Duration::from_secs(5);
/// How old keys may become before it is looked whether they still are.
const FRESH: Duration = Duration::from_secs(10 * 60);

/// Where the keys of a provider are.
#[derive(Clone)]
pub enum KeySource {
    /// Where its own description says.
    Discovery,
    /// At this address.
    Url(String),
    /// In this file, which is read again when it changes.
    File(PathBuf),
    /// A secret that it shares with us.
    Secret(Arc<str>),
}

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The provider does not have it.
    Unknown,
    /// The provider cannot be asked.
    Unavailable,
}

/// The keys of one provider.
pub(super) enum Keys {
    Shared(Arc<[DecodingKey]>),
    File(PathBuf, RwLock<(Arc<Vec<Known>>, Stamp)>),
    Fetched(Box<Fetched>),
}

/// One key, and what it is for.
pub(super) struct Known {
    id: Option<String>,
    algorithm: Option<Algorithm>,
    family: AlgorithmFamily,
    key: DecodingKey,
}

pub(super) struct Fetched {
    guard: Guard,
    /// Where the provider describes itself, or where the keys are.
    at: Url,
    /// What the description must call itself; nothing where the keys' own address is known.
    issuer: Option<String>,
    now: RwLock<Now>,
    /// Held while keys are fetched, so that many tokens at once ask once.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Now {
    keys: Arc<Vec<Known>>,
    had: Option<Instant>,
    asked: Option<Instant>,
}

#[derive(Deserialize)]
struct Description {
    issuer: String,
    jwks_uri: String,
}

impl Keys {
    pub(super) fn new(issuer: &str, source: &KeySource) -> Result<Self, String> {
        match source {
            KeySource::Secret(secret) => Ok(Self::Shared([DecodingKey::from_secret(secret.as_bytes())].into())),
            KeySource::File(path) => {
                let (stamp, keys) = (Stamp::of(path), read_file(path)?);
                Ok(Self::File(path.clone(), RwLock::new((Arc::new(keys), stamp))))
            }
            KeySource::Url(url) => Ok(Self::Fetched(Box::new(Fetched::new(url, None)?))),
            KeySource::Discovery => {
                let at = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
                Ok(Self::Fetched(Box::new(Fetched::new(&at, Some(issuer))?)))
            }
        }
    }

    pub(super) fn discovery_url(&self) -> Option<String> {
        match self {
            Self::Fetched(fetched) if fetched.issuer.is_some() => Some(fetched.at.to_string()),
            _ => None,
        }
    }

    /// The keys that may have signed a token with this key id and algorithm.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Arc<[DecodingKey]>, NoKey> {
        match self {
            Self::Shared(keys) => Ok(keys.clone()),
            Self::File(_, now) => fitting(&now.read().0, id, algorithm).ok_or(NoKey::Unknown),
            Self::Fetched(fetched) => fetched.find(id, algorithm).await,
        }
    }

    pub(super) fn refresh_file(&self) {
        let Self::File(path, now) = self else { return };
        let stamp = Stamp::of(path);
        if now.read().1 == stamp {
            return;
        }
        match read_file(path) {
            Ok(keys) => *now.write() = (Arc::new(keys), stamp),
            Err(error) => {
                now.write().1 = stamp;
                tracing::error!(%error, "the file of keys has changed and cannot be used: the old keys stay");
            }
        }
    }

    pub(super) fn are_there(&self) -> bool {
        match self {
            Self::Fetched(fetched) => fetched.now.read().had.is_some(),
            Self::Shared(_) | Self::File(..) => true,
        }
    }

    pub(super) async fn refresh_if_old(&self) {
        let Self::Fetched(fetched) = self else { return };
        let is_old = fetched.now.read().had.is_none_or(|had| had.elapsed() > FRESH);
        if is_old {
            fetched.ask().await;
        }
    }
}

impl Fetched {
    /// The hosts that the operator has named are asked wherever they are; what a description leads to must be
    /// one of them or on the public internet. There are no redirects.
    fn new(at: &str, issuer: Option<&str>) -> Result<Self, String> {
        let url = Url::parse(at).map_err(|error| format!("`{at}` is not an address: {error}"))?;
        let host = url.host_str().ok_or_else(|| format!("`{at}` has no host"))?;
        let is_local = is_loopback(&url);
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
            return Err(format!("`{at}` must begin with https://, or be on this machine"));
        }
        let port = url.port_or_known_default().unwrap_or(443);
        let openings = Openings { hosts: vec![format!("{host}:{port}")], https_only: !is_local, ..Openings::default() };
        let guard = Guard::new(openings).map_err(|error| error.to_string())?;
        let issuer = issuer.map(str::to_owned);
        Ok(Self { guard, at: url, issuer, now: RwLock::default(), asking: tokio::sync::Mutex::default() })
    }

    async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Arc<[DecodingKey]>, NoKey> {
        let look = || {
            let now = self.now.read();
            (fitting(&now.keys, id, algorithm), now.had.is_some())
        };
        if let (Some(keys), _) = look() {
            return Ok(keys);
        }
        // Boxed: calls that ask nobody need not carry the room for it.
        Box::pin(self.ask()).await;
        match look() {
            (Some(keys), _) => Ok(keys),
            (None, true) => Err(NoKey::Unknown),
            (None, false) => Err(NoKey::Unavailable),
        }
    }

    /// Asks the provider, unless somebody just did.
    async fn ask(&self) {
        let just_asked = || self.now.read().asked.is_some_and(|asked| asked.elapsed() < PAUSE);
        if just_asked() && self.asking.try_lock().is_ok() {
            return;
        }
        let _asking = self.asking.lock().await;
        if just_asked() {
            return;
        }
        self.now.write().asked = Some(Instant::now());
        match self.fetch().await {
            Ok(keys) => {
                let mut now = self.now.write();
                (now.keys, now.had) = (Arc::new(keys), Some(Instant::now()));
            }
            // Keys that were good do not become bad because their server is away.
            Err(error) => tracing::warn!(from = %self.at, error, "the keys of the identity provider cannot be had"),
        }
    }

    async fn fetch(&self) -> Result<Vec<Known>, String> {
        let Some(issuer) = &self.issuer else { return read_keys(&self.get(self.at.as_str()).await?) };
        let description = self.get(self.at.as_str()).await?;
        let description: Description = codec::decode(&description).map_err(|error| error.to_string())?;
        if description.issuer != *issuer {
            return Err(format!("it calls itself `{}`, which is not the configured issuer", description.issuer));
        }
        read_keys(&self.get(&description.jwks_uri).await?)
    }

    async fn get(&self, url: &str) -> Result<bytes::Bytes, String> {
        let answer = self.guard.get(url, HeaderMap::new(), LARGEST, PATIENCE).await;
        let answer = answer.map_err(|error| format!("{url}: {error}"))?;
        if answer.status == 200 { Ok(answer.body) } else { Err(format!("{url} answered {}", answer.status)) }
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or_else(|_| host == "localhost", |address| address.is_loopback())
}

fn read_file(path: &std::path::Path) -> Result<Vec<Known>, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    read_keys(&bytes).map_err(|error| format!("`{shown}`: {error}"))
}

/// The public keys of a set that sign. Those of kinds that nobody here knows are passed over, and secrets too:
/// a set is public.
fn read_keys(bytes: &[u8]) -> Result<Vec<Known>, String> {
    #[derive(Deserialize)]
    struct Loose {
        keys: Vec<codec::Value>,
    }
    let set: Loose = codec::decode(bytes).map_err(|error| format!("not a set of keys: {error}"))?;
    let keys = set.keys.into_iter().filter_map(|key| codec::from_value::<Jwk>(key).ok());
    let set = JwkSet { keys: keys.collect() };
    let known: Vec<Known> = set.keys.iter().filter_map(known).collect();
    if known.is_empty() { Err("there is no key in it that could check a signature".into()) } else { Ok(known) }
}

fn known(jwk: &Jwk) -> Option<Known> {
    let common = &jwk.common;
    let verifies = common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
    let signs = common.public_key_use.as_ref().is_none_or(|purpose| *purpose == PublicKeyUse::Signature);
    let key = DecodingKey::from_jwk(jwk).ok()?;
    if !verifies || !signs || key.family() == AlgorithmFamily::Hmac {
        return None;
    }
    let algorithm = match &common.key_algorithm {
        Some(named) => Some(named.to_string().parse().ok()?),
        None => None,
    };
    Some(Known { id: common.key_id.clone(), algorithm, family: key.family(), key })
}

/// The keys for a token; nothing if there is none.
fn fitting(keys: &[Known], id: Option<&str>, algorithm: Algorithm) -> Option<Arc<[DecodingKey]>> {
    let fits = |known: &&Known| {
        (id.is_none() || known.id.as_deref() == id)
            && known.family == algorithm.family()
            && known.algorithm.is_none_or(|only| only == algorithm)
    };
    let found: Vec<DecodingKey> = keys.iter().filter(fits).map(|known| known.key.clone()).collect();
    (!found.is_empty()).then(|| found.into())
}

#[cfg(test)]
mod tests;
