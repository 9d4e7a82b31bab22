//! Whose signatures on cards count.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use nuncio_protocol::sign::{KeySet, Reason, Secrets, SignError, Verdict, VerifyingKey, verify};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, Url};

use crate::credential::Secret;
use crate::error::{ClientError, plain};
use crate::http::{Ask, Http, invalid, parse_url, shown, within};
use crate::options::Options;

/// No honest set of keys is larger.
const MAX_KEYS: usize = 256 * 1024;
/// The longest wait for a set of keys.
const FETCH: Duration = Duration::from_secs(10);
/// So long a set is used without asking again.
const KEEP: Duration = Duration::from_secs(3600);
/// A key that is not in the set, or is another one there, may be new. So often at most the set is asked for because of that.
const AGAIN: Duration = Duration::from_secs(30);

/// The keys whose signatures on cards count: secrets, key sets at hand, and one at an address. Clones share what
/// was fetched.
///
/// An address that a card names by itself is never asked: whoever forged the card would have named it.
#[derive(Clone, Default)]
pub struct CardKeys {
    given: KeySet,
    remote: Option<Arc<Remote>>,
}

/// A set of keys at an address.
struct Remote {
    url: Url,
    kept: Mutex<Option<Kept>>,
}

#[derive(Clone)]
struct Kept {
    at: Instant,
    keys: KeySet,
}

impl CardKeys {
    /// A secret shared with whoever signs, for HS256 and any `kid`.
    pub fn secret(secret: impl Into<Secret>) -> Result<Self, ClientError> {
        let key = VerifyingKey::secret(None, secret.into().expose().as_bytes()).map_err(|error| unusable(&error))?;
        Ok(Self::from(KeySet::from_iter([key])))
    }

    /// A set of JSON Web Keys, or a single one. It may hold secrets, as `oct` keys.
    pub fn jwks(json: &[u8]) -> Result<Self, ClientError> {
        KeySet::from_jwks(json, Secrets::Allowed).map(Self::from).map_err(|error| unusable(&error))
    }

    /// The same, from a file.
    pub fn jwks_file(path: &Path) -> Result<Self, ClientError> {
        let cannot = |cause: String| invalid(format!("Cannot use the keys in {}: {cause}.", path.display()));
        let json = std::fs::read(path).map_err(|error| cannot(error.to_string()))?;
        KeySet::from_jwks(&json, Secrets::Allowed).map(Self::from).map_err(|error| cannot(error.to_string()))
    }

    /// A set of public JSON Web Keys at an address: https, or on this machine. It is fetched when it is needed and
    /// kept for an hour; an unknown `kid` lets it be fetched again. No credentials go there.
    pub fn jwks_url(url: &str) -> Result<Self, ClientError> {
        let url = parse_url(url)?;
        if url.scheme() != "https" && !is_loopback(&url) {
            return Err(invalid(format!(
                "Keys from {} could be exchanged on the way: use https, or save the set to a file.",
                shown(&url)
            )));
        }
        Ok(Self { remote: Some(Arc::new(Remote { url, kept: Mutex::new(None) })), ..Self::default() })
    }

    /// These keys and others. Of two addresses the other one is kept.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.given.extend(other.given);
        self.remote = other.remote.or(self.remote);
        self
    }

    /// Whether nobody's signature counts.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty() && self.remote.is_none()
    }

    /// What the signatures of a card are worth. `card` is the JSON as it came; `options` say how to connect.
    pub async fn judge(&self, card: &[u8], options: &Options) -> Verdict {
        let verdict = verify(card, &self.given, now());
        let Some(remote) = &self.remote else { return verdict };
        if matches!(verdict, Verdict::Verified { .. } | Verdict::Absent) {
            return verdict;
        }
        let (keys, kept) = match remote.keys(options, KEEP).await {
            Ok(found) => found,
            // What the keys at hand say to be wrong stays wrong.
            Err(_) if matches!(verdict, Verdict::Wrong(_)) => return verdict,
            Err(error) => return Verdict::Unverifiable(Reason::KeysUnavailable(error.to_string())),
        };
        let verdict = verify(card, &self.with(keys), now());
        let is_missing = matches!(verdict, Verdict::Unverifiable(Reason::UnknownKey(_) | Reason::ForeignKeys { .. }));
        let is_another = matches!(verdict, Verdict::Wrong(Reason::Mismatch(_)));
        if !(kept && (is_missing || is_another)) {
            return verdict;
        }
        match remote.keys(options, AGAIN).await {
            Ok((keys, false)) => verify(card, &self.with(keys), now()),
            _ => verdict,
        }
    }

    fn with(&self, keys: KeySet) -> KeySet {
        self.given.clone().into_iter().chain(keys).collect()
    }
}

impl Remote {
    /// The set, and whether it was fetched before.
    async fn keys(&self, options: &Options, age: Duration) -> Result<(KeySet, bool), ClientError> {
        let kept = self.kept.lock().clone();
        if let Some(kept) = kept.filter(|kept| kept.at.elapsed() < age) {
            return Ok((kept.keys, true));
        }
        let keys = self.fetch(options).await?;
        *self.kept.lock() = Some(Kept { at: Instant::now(), keys: keys.clone() });
        Ok((keys, false))
    }

    async fn fetch(&self, options: &Options) -> Result<KeySet, ClientError> {
        // The agent's credentials are none of the key server's business.
        let http = Http::new(self.url.clone(), Options { credentials: Vec::new(), ..options.clone() })?;
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let ask = Ask { method: Method::GET, url: self.url.clone(), headers, body: Bytes::new() };
        let work = async {
            let mut response = http.ask(ask).await?;
            if !response.status().is_success() {
                let body = http.error_body(&mut response).await;
                return Err(http.refused(&response, &body));
            }
            http.body(&mut response, MAX_KEYS).await
        };
        let json = within(options.timeout.min(FETCH), shown(&self.url), work).await?;
        KeySet::from_jwks(&json, Secrets::Ignored).map_err(|error| {
            invalid(format!("Cannot use the keys at {}: {}.", shown(&self.url), plain(&error.to_string(), 200)))
        })
    }
}

impl From<KeySet> for CardKeys {
    fn from(given: KeySet) -> Self {
        Self { given, remote: None }
    }
}

impl fmt::Debug for CardKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.remote.as_ref().map(|remote| shown(&remote.url));
        f.debug_struct("CardKeys").field("given", &self.given).field("url", &url).finish()
    }
}

fn unusable(error: &SignError) -> ClientError {
    invalid(format!("Cannot check signatures: {error}."))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
