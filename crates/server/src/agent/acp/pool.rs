//! Agents between turns: one per conversation, kept for a while, then ended.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use agent_client_protocol_schema::v1::{AgentCapabilities, AuthMethod};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::connection::Connection;

/// Whose conversation: tenant, caller and context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) tenant: String,
    pub(crate) caller: String,
    pub(crate) context: String,
}

/// An agent in the middle of a conversation.
pub(crate) struct Attached {
    pub(crate) connection: Connection,
    /// What the agent calls the conversation.
    pub(crate) session: String,
    pub(crate) can: AgentCapabilities,
    /// The ways to sign in that it knows.
    pub(crate) auth_methods: Vec<AuthMethod>,
    /// What it cost so far, as far as that is known.
    pub(crate) cost: Option<f64>,
}

/// The agents that wait for their next turn.
pub(crate) struct Pool {
    idle: Mutex<HashMap<Key, Idle>>,
    /// How long one waits.
    timeout: Duration,
    /// The most that wait.
    most: usize,
    /// How long one may take to end.
    grace: Duration,
}

struct Idle {
    attached: Attached,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(timeout: Duration, most: usize, grace: Duration) -> Arc<Self> {
        Arc::new(Self { idle: Mutex::default(), timeout, most, grace })
    }

    /// Takes the agent of a conversation, if it still runs.
    pub(crate) fn take(&self, key: &Key) -> Option<Attached> {
        let idle = self.idle.lock().remove(key)?;
        if idle.attached.connection.is_alive() {
            return Some(idle.attached);
        }
        tracing::info!(context = key.context, "an agent ended between turns");
        None
    }

    /// Keeps an agent for the next turn.
    pub(crate) fn keep(self: &Arc<Self>, key: Key, mut attached: Attached) {
        attached.connection.rest();
        if !attached.connection.is_alive() {
            return;
        }
        let since = Instant::now();
        let too_many = {
            let mut idle = self.idle.lock();
            let before = idle.insert(key.clone(), Idle { attached, since });
            let oldest = (idle.len() > self.most)
                .then(|| idle.iter().min_by_key(|(_, one)| one.since).map(|(key, _)| key.clone()))
                .flatten();
            [before, oldest.and_then(|key| idle.remove(&key))]
        };
        for one in too_many.into_iter().flatten() {
            one.attached.connection.end_soon(self.grace);
        }
        tokio::spawn(release(Arc::downgrade(self), key, since, self.timeout));
    }
}

/// Ends an agent that nobody took in time.
async fn release(pool: Weak<Pool>, key: Key, since: Instant, timeout: Duration) {
    tokio::time::sleep(timeout).await;
    let Some(pool) = pool.upgrade() else { return };
    let idle = {
        let mut idle = pool.idle.lock();
        match idle.get(&key) {
            Some(one) if one.since == since => idle.remove(&key),
            _ => None,
        }
    };
    if let Some(idle) = idle {
        tracing::info!(context = key.context, "an idle agent is released");
        idle.attached.connection.end_soon(pool.grace);
    }
}
