//! Hints between servers that share a store: "task K has reached N". A hint, never the truth.
//!
//! Whatever is hinted at is in the store already, and every server looks there once a second. So a bus may lose, double
//! and reorder as it likes, and may be down: then things take up to a second longer.
//!
//! * `local`: nothing; for one server, or for several that only look;
//! * [`redis`]: pub/sub, spread over several Redis servers if there are;
//! * [`postgres`]: LISTEN and NOTIFY on the database that holds the log.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::store::{Node, Seq, TaskKey};

pub mod postgres;
pub mod redis;
#[cfg(test)]
mod tests;
mod words;

pub use self::postgres::PostgresBus;
pub use self::redis::RedisBus;

/// What a server may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A task has reached this event.
    Reached(TaskKey, Seq),
    /// There is something to do with the tasks of this node.
    Orders(Node),
    /// There is work that waits, or a place or conversation that is free for it.
    Work,
}

/// Carries hints. Implementations look after their connections themselves.
#[async_trait]
pub trait Bus: fmt::Debug + Send + Sync + 'static {
    /// Tells all other servers, if it can. Returns at once.
    fn tell(&self, hints: &[Hint]);

    /// Waits for what others tell.
    async fn heard(&self) -> Vec<Hint>;

    /// Lets somebody use something that all servers count together; see [`Shared::borrow`](crate::store::Shared::borrow).
    /// `None` where that is up to the store, `Some(None)` when there is no answer.
    async fn borrow(&self, _who: &str, _interval: Duration, _slack: Duration, _want: u32) -> Option<Option<u32>> {
        None
    }

    /// What is wrong with it, in words that may be shown to anyone.
    fn trouble(&self) -> Option<&'static str>;

    /// Which kind it is.
    fn kind(&self) -> &'static str;
}

/// No bus.
#[derive(Debug)]
pub struct Local;

impl Local {
    /// One that says and hears nothing.
    pub fn bus() -> Arc<dyn Bus> {
        Arc::new(Self)
    }
}

#[async_trait]
impl Bus for Local {
    fn tell(&self, _: &[Hint]) {}

    async fn heard(&self) -> Vec<Hint> {
        std::future::pending().await
    }

    fn trouble(&self) -> Option<&'static str> {
        None
    }

    fn kind(&self) -> &'static str {
        "local"
    }
}
