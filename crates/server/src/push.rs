//! Webhooks: a reader of the log that posts what it reads.
//!
//! ```text
//!   append ──▶ commit ──▶ Live ──(armed? ring)──▶ bell ──▶ desk ──▶ carrier (one per webhook)
//!                                                           ▲          │ read the log after the cursor
//!                                              due in store ┘          │ post in order, advance the cursor
//!                                                                      └ nothing left: arm the task, rest
//! ```
//!
//! The cursor of a webhook is in the store. It moves after the receiver has answered, so that every event arrives at
//! least once and in order, whatever crashes. A task without webhooks is never armed and pays nothing; one whose
//! receiver is down is not armed either while it waits for the next attempt.
//!
//! * [`guard`]: the HTTP client for every address that a peer has named;
//! * `hook`: what was registered, and how it is kept;
//! * [`keyring`]: its secrets, encrypted where they are kept;
//! * [`sign`]: a signature on every notification, and the keys to check it with;
//! * `pick`: which events a webhook gets, and in which form;
//! * `tone`: the forms that are of no version;
//! * `retry`: what an answer means, and when to try again;
//! * `bell`, `desk`, `carrier`: who delivers what, when;
//! * `queue`, `worker`: the same by jobs in Redis, which the desk makes and the workers of all servers take.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

mod bell;
mod carrier;
mod desk;
pub mod guard;
pub(crate) mod hook;
pub mod keyring;
mod pick;
mod queue;
mod retry;
pub mod sign;
mod tone;
mod worker;

pub(crate) use bell::{Bell, Ringer};
pub(crate) use desk::Desk;
pub use pick::PushEvents;
pub use queue::{Queue, RedisOptions};
pub use retry::Retry;
pub(crate) use tone::Tone;

use guard::Guard;
use keyring::Keyring;
use sign::Signer;

/// How webhooks are served.
#[derive(Clone)]
pub struct PushOptions {
    /// The client for addresses that callers name.
    pub guard: Arc<Guard>,
    /// Which events are sent.
    pub events: PushEvents,
    /// How far apart the posts to a webhook are that tell of a task on its way, in the forms of no version. Only the
    /// newest status is told then; the end of a task is told at once.
    pub interval: Duration,
    /// How long a receiver may take to answer.
    pub timeout: Duration,
    /// When to try again, and when to give up.
    pub retry: Retry,
    /// Most posts at a time.
    pub concurrent: usize,
    /// Most posts at a time to one host.
    pub per_host: usize,
    /// Whether a plain token goes out as `Authorization: Bearer`, before all other credentials.
    pub token_as_bearer: bool,
    /// Whether callers are shown the secrets of their own webhooks.
    pub show_secrets: bool,
    /// Keeps secrets unreadable in the store. Only a store in memory may do without.
    pub keyring: Option<Arc<Keyring>>,
    /// Vouches for what is sent.
    pub signer: Option<Arc<Signer>>,
    /// Where jobs are, if not in this process.
    pub queue: Option<Arc<Queue>>,
}

impl PushOptions {
    /// The defaults, with this client.
    pub fn new(guard: Guard) -> Self {
        Self {
            guard: Arc::new(guard),
            events: PushEvents::default(),
            interval: Duration::ZERO,
            timeout: Duration::from_secs(10),
            retry: Retry::default(),
            concurrent: 256,
            per_host: 16,
            token_as_bearer: false,
            show_secrets: false,
            keyring: None,
            signer: None,
            queue: None,
        }
    }
}

impl fmt::Debug for PushOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushOptions").field("events", &self.events).field("retry", &self.retry).finish_non_exhaustive()
    }
}
