//! Cards that were read before, for as long as their servers allow.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{
    AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED, VARY,
};

use crate::credential::Credential;

/// More cards than this are not kept.
const MOST: usize = 1000;

/// A cache of cards that follows the rules of HTTP. Clones share what is in it.
#[derive(Clone, Default)]
pub struct CardCache(Arc<Shelf>);

#[derive(Default)]
struct Shelf {
    cards: Mutex<HashMap<Key, Entry>>,
    /// Secret of this cache, so that keys do not reveal credentials.
    hasher: std::collections::hash_map::RandomState,
}

/// A card may depend on the caller and on the version that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    url: String,
    version: &'static str,
    caller: u64,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) body: Bytes,
    fresh_until: Instant,
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

impl CardCache {
    pub(crate) fn key(&self, url: &str, version: &'static str, credentials: &[Credential]) -> Key {
        Key { url: url.to_owned(), version, caller: self.0.hasher.hash_one(credentials) }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Entry> {
        self.0.cards.lock().get(key).cloned()
    }

    /// Keeps an answer, if its headers allow that.
    pub(crate) fn put(&self, key: Key, body: Bytes, headers: &HeaderMap) {
        let entry = Entry::new(body, headers);
        let mut cards = self.0.cards.lock();
        match entry {
            None => _ = cards.remove(&key),
            Some(entry) => {
                if cards.len() >= MOST && !cards.contains_key(&key) {
                    let now = Instant::now();
                    cards.retain(|_, entry| entry.fresh_until > now);
                }
                if cards.len() < MOST || cards.contains_key(&key) {
                    cards.insert(key, entry);
                }
            }
        }
    }

    /// Forgets every card.
    pub fn clear(&self) {
        self.0.cards.lock().clear();
    }
}

impl Entry {
    fn new(body: Bytes, headers: &HeaderMap) -> Option<Self> {
        let control = Control::of(headers);
        if control.no_store || headers.get(VARY).is_some_and(|vary| vary.as_bytes() == b"*") {
            return None;
        }
        let (etag, modified) = (headers.get(ETAG).cloned(), headers.get(LAST_MODIFIED).cloned());
        let lifetime = if control.no_cache { Duration::ZERO } else { lifetime(control.max_age, headers) };
        if lifetime.is_zero() && etag.is_none() && modified.is_none() {
            return None;
        }
        let now = Instant::now();
        Some(Self { body, fresh_until: now.checked_add(lifetime).unwrap_or(now), etag, modified })
    }

    /// Whether it may be used without asking.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh_until > Instant::now()
    }

    /// Headers that ask for the card only if it is another one by now.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let tag = self.etag.clone().map(|tag| (IF_NONE_MATCH, tag));
        tag.into_iter().chain(self.modified.clone().map(|time| (IF_MODIFIED_SINCE, time)))
    }

    /// The headers of the answer that confirmed it, together with what it had before.
    pub(crate) fn confirmed(&self, mut headers: HeaderMap) -> HeaderMap {
        for (name, value) in [(ETAG, &self.etag), (LAST_MODIFIED, &self.modified)] {
            if let (false, Some(value)) = (headers.contains_key(&name), value) {
                headers.insert(name, value.clone());
            }
        }
        headers
    }
}

#[derive(Default)]
struct Control {
    no_store: bool,
    no_cache: bool,
    max_age: Option<Duration>,
}

impl Control {
    fn of(headers: &HeaderMap) -> Self {
        let mut control = Self::default();
        let lines = headers.get_all(CACHE_CONTROL).into_iter().filter_map(|line| line.to_str().ok());
        for directive in lines.flat_map(|line| line.split(',')) {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" => control.no_store = true,
                "no-cache" => control.no_cache = true,
                // What is unreadable counts as no time at all.
                "max-age" => {
                    let seconds = value.trim().trim_matches('"').parse().unwrap_or_default();
                    control.max_age = Some(Duration::from_secs(seconds));
                }
                _ => {}
            }
        }
        control
    }
}

/// How long an answer stays fresh, counted from now.
fn lifetime(max_age: Option<Duration>, headers: &HeaderMap) -> Duration {
    let time = |name: HeaderName| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok();
    let total = max_age.or_else(|| {
        let from = time(DATE).unwrap_or_else(SystemTime::now);
        time(EXPIRES).map(|until| until.duration_since(from).unwrap_or_default())
    });
    let age = headers.get(AGE).and_then(|age| age.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
    total.unwrap_or_default().saturating_sub(age.unwrap_or_default())
}

impl fmt::Debug for CardCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CardCache({} cards)", self.0.cards.lock().len())
    }
}
