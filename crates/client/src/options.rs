//! Who calls, how long to wait, when to try again.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// Text that is sent but never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// The text itself, to be sent.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sent as `Authorization: Bearer …`, only to the origin that the user typed.
    pub token: Option<Secret>,
    /// More headers. They may be credentials, so they go only where the token goes.
    pub headers: Vec<(String, Secret)>,
    /// Extensions to activate, by URI.
    pub extensions: Vec<String>,
    /// The longest wait for an answer, and for the head of a stream. Streams themselves may take for ever.
    pub timeout: Duration,
    /// The longest wait for a connection.
    pub connect_timeout: Duration,
    /// A stream that carries nothing for so long, not even a comment, is taken for dead and resumed. By default
    /// only the network decides, because agents need not send anything while they work.
    pub silence: Option<Duration>,
    /// The largest answer that is read, in bytes. Cards and single events have limits of their own.
    pub max_answer: usize,
    /// When to try again.
    pub retry: Retry,
    /// Whether credentials may also go to an origin that only the card names.
    pub allow_cross_origin: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            token: None,
            headers: Vec::new(),
            extensions: Vec::new(),
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            silence: None,
            max_answer: 64 * 1024 * 1024,
            retry: Retry::default(),
            allow_cross_origin: false,
        }
    }
}

/// How one message is sent.
#[derive(Clone, Debug, Default)]
pub struct SendOptions {
    /// The agent runs messages with the same key once. Only with a key is a send tried again by itself.
    pub idempotency_key: Option<String>,
    /// Instead of [`Options::timeout`]: an agent that works before it answers may need long.
    pub timeout: Option<Duration>,
}

impl SendOptions {
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
