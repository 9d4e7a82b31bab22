//! How a client behaves: who calls, whom it takes, how long to wait, when to try again.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::cache::CardCache;
use crate::credential::{Credential, Secret};
use crate::sse;
use crate::trust::CardKeys;
use crate::wire::{Binding, Version};

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who calls. Credentials go only to the origin that the user typed.
    pub credentials: Vec<Credential>,
    /// Further origins that may see the credentials, such as `https://rpc.agent.example`.
    pub origins: Vec<String>,
    /// Whether the credentials may go to whatever origin the card names.
    pub allow_cross_origin: bool,
    /// Whether a card that leads to another origin is refused even where there are no credentials to protect.
    pub same_origin: bool,
    /// Only interfaces of this version are used. By default the card's order decides.
    pub version: Option<Version>,
    /// Only interfaces of this binding are used. By default the card's order decides.
    pub binding: Option<Binding>,
    /// Sent instead of the tenant that the card names.
    pub tenant: Option<String>,
    /// Extensions to activate, by URI. An agent that requires others is not talked to.
    pub extensions: Vec<String>,
    /// The longest wait for an answer, and for the head of a stream. Streams themselves may take for ever.
    pub timeout: Duration,
    /// The longest wait for a connection.
    pub connect_timeout: Duration,
    /// A stream that carries nothing for so long, not even a comment, is taken for dead and resumed. By default
    /// only the network decides, because agents need not send anything while they work.
    pub silence: Option<Duration>,
    /// A stream that brings no event for so long may belong to a task that is over: some agents forget to say so.
    /// The task is then asked for; if it goes on, so does the waiting. Not with [`Options::silence`].
    pub look: Option<Duration>,
    /// The largest answer that is read, in bytes. Cards have a limit of their own.
    pub max_answer: usize,
    /// The largest event of a stream that is read, in bytes.
    pub max_event: usize,
    /// Whose signatures on cards count. A card with a wrong one is refused as soon as there are any.
    pub card_keys: CardKeys,
    /// Whether only cards are taken that are verified by [`Options::card_keys`].
    pub require_signature: bool,
    /// When to try again.
    pub retry: Retry,
    /// Whether a stream whose connection breaks goes on by itself.
    pub resume: bool,
    /// How often a task is asked for whose events cannot be followed.
    pub poll: Duration,
    /// Through whom to connect.
    pub proxy: Proxy,
    /// Cards that were read before. Clones share it, so whoever keeps the options keeps the cards.
    pub cards: CardCache,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            credentials: Vec::new(),
            origins: Vec::new(),
            allow_cross_origin: false,
            same_origin: false,
            version: None,
            binding: None,
            tenant: None,
            extensions: Vec::new(),
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            silence: None,
            look: Some(Duration::from_secs(30)),
            max_answer: 64 * 1024 * 1024,
            max_event: sse::MAX_EVENT,
            card_keys: CardKeys::default(),
            require_signature: false,
            retry: Retry::default(),
            resume: true,
            poll: Duration::from_secs(1),
            proxy: Proxy::default(),
            cards: CardCache::default(),
        }
    }
}

impl Options {
    /// With a bearer token.
    pub fn bearer(token: impl Into<Secret>) -> Self {
        Self { credentials: vec![Credential::Bearer(token.into())], ..Self::default() }
    }
}

/// Through whom to connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proxy {
    /// Directly, whatever the environment says.
    #[default]
    Direct,
    /// As `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    Environment,
    /// Through the proxy at this address.
    At(String),
}

/// How one message is sent.
#[derive(Clone, Debug, Default)]
pub struct SendOptions {
    /// The agent runs messages with the same key once. Only with a key is a send tried again by itself.
    pub idempotency_key: Option<String>,
    /// Instead of [`Options::timeout`]: an agent that works before it answers may need long.
    pub timeout: Option<Duration>,
    /// Once this is true, the message is not sent again. An attempt that is under way goes on.
    pub given_up: Arc<AtomicBool>,
}

impl SendOptions {
    /// Whether the message may be sent once more.
    pub(crate) fn may_repeat(&self) -> bool {
        self.idempotency_key.is_some() && !self.given_up.load(Ordering::Acquire)
    }

    /// With a key that makes it safe to send again.
    pub fn key(key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..Self::default() }
    }
}

/// When to try again: after `first`, then after twice as long, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often in a row, not counting the first time.
    pub tries: u32,
    /// The first pause.
    pub first: Duration,
    /// The longest pause, also when the server asks for a longer one.
    pub most: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { tries: 6, first: Duration::from_millis(200), most: Duration::from_secs(15) }
    }
}

impl Retry {
    /// How long to wait after so many failures; at least as long as the server asks.
    pub(crate) fn pause(&self, failures: u32, asked: Option<Duration>) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
        let pause = doubled.max(asked.unwrap_or_default()).min(self.most);
        // Clients that lost the same server at the same moment must not come back at the same moment.
        pause + pause.mul_f64(jitter() / 4.0)
    }
}

/// A random number from 0 to 1; the standard library's hasher is seeded at random, and that is enough here.
fn jitter() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    f64::from(u16::try_from(random & 0xffff).unwrap_or_default()) / f64::from(u16::MAX)
}
