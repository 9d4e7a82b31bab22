//! The heart: accepts messages, runs turns, and lets anyone follow a task from any number on.
//!
//! The engine sees only the 1.0 model. No dialect, profile or transport has a name here.
//!
//! * `accept`: what a message means: a new task, the next turn of one, an answer to a running one.
//! * `schedule`: which turn runs when; `manners`: where servers differ in what may happen at the same time.
//! * `run` and [`turn`]: one turn, from outside and as the agent sees it.
//! * `live`, `hub`, `fold`: a task in memory.
//! * `cluster`: what changes when several servers share a store.
//! * `webhook`: registering who is told about a task; `turnstile`: one at a time for each key.
//! * `subscribe`, `read`, `cancel`, `recover`: the other operations, and what a crash leaves behind.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use nuncio_protocol::{Error, ErrorKind, Timestamp};
use parking_lot::Mutex;
use tracing::Instrument;

use crate::artifact::Artifacts;
use crate::bus::{Bus, Local};
use crate::metrics::Metrics;
use crate::push::{Desk, PushOptions};
use crate::store::{AppendError, Lease, Micros, Node, Scope, Store, StoreError, TaskKey};

mod accept;
pub mod approval;
pub mod arrival;
mod cancel;
pub(crate) mod cluster;
mod event;
mod fold;
pub(crate) mod hub;
pub(crate) mod live;
mod manners;
mod read;
mod recover;
pub mod roster;
mod run;
mod said;
mod schedule;
mod share;
mod subscribe;
#[cfg(test)]
mod tests;
pub mod turn;
mod turnstile;
mod webhook;
mod weight;

pub use accept::{Handle, Sent};
pub(crate) use event::Form;
pub use event::{Event, Update};
pub use manners::Manners;
pub use read::TaskJson;
pub use share::PerCaller;
pub use subscribe::{Close, Over, Subscription};
pub(crate) use webhook::not_supported;

use cluster::Cluster;
use hub::Hub;
use live::Ties;
use roster::Roster;
use schedule::Schedule;
use turnstile::Turnstiles;

/// What clients see of an agent's inner life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// Its thinking.
    pub thinking: bool,
    /// Its tool calls.
    pub tools: bool,
    /// Of what tools are given, only the shape. For styles that know such a form.
    pub summaries: bool,
    /// No absolute path of this machine. For styles that know such a form.
    pub no_paths: bool,
}

impl Default for Exposure {
    fn default() -> Self {
        Self { thinking: false, tools: true, summaries: false, no_paths: false }
    }
}

/// What makes a repeated send the same send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdempotentSend {
    /// An `Idempotency-Key`.
    #[default]
    Key,
    /// Also the message's own id.
    MessageId,
}

/// Limits and deadlines of the engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Turns at the same time.
    pub max_running_turns: usize,
    /// Turns that wait for a place.
    pub max_queued_turns: usize,
    /// Of both, those of one caller.
    pub per_caller: PerCaller,
    /// Parts in one message.
    pub max_parts: usize,
    /// Messages in the history of one task.
    pub max_history: usize,
    /// Bytes that those messages may have before another one is taken.
    pub max_history_bytes: usize,
    /// Webhooks of one task.
    pub max_webhooks: usize,
    /// The longest turn; zero for no limit. Waiting for an answer does not count.
    pub turn_timeout: Duration,
    /// The longest silence in a turn; zero for no limit.
    pub silence_timeout: Duration,
    /// How long an agent waits for an answer.
    pub approval_timeout: Duration,
    /// How long a stopped agent may clean up.
    pub cancel_grace: Duration,
    /// How long a silent node keeps its turns.
    pub lease_ttl: Duration,
    /// How long finished tasks stay, and those at rest where that is an end; zero for ever.
    pub retention: Duration,
    /// What makes a repeated send the same send.
    pub idempotent_send: IdempotentSend,
    /// Which approvals are decided without asking.
    pub approvals: approval::Policy,
    /// What clients see of the agent's inner life.
    pub exposure: Exposure,
    /// Rules of conversation.
    pub manners: Manners,
    /// If given, only these tenants exist.
    pub tenants: Option<HashSet<String>>,
    /// Where the files of artifacts go.
    pub artifacts: Artifacts,
    /// How webhooks are served; without it, there are none.
    pub push: Option<PushOptions>,
    /// Carries hints between servers on the same store.
    pub bus: Option<Arc<dyn Bus>>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            max_running_turns: 256,
            max_queued_turns: 10_000,
            per_caller: PerCaller::default(),
            max_parts: 1000,
            max_history: 1000,
            max_history_bytes: 40 << 20,
            max_webhooks: 32,
            turn_timeout: Duration::from_secs(3600),
            silence_timeout: Duration::ZERO,
            approval_timeout: Duration::from_secs(3600),
            cancel_grace: Duration::from_secs(5),
            lease_ttl: Duration::from_secs(15),
            retention: Duration::from_secs(30 * 86_400),
            idempotent_send: IdempotentSend::Key,
            approvals: approval::Policy::default(),
            exposure: Exposure::default(),
            manners: Manners::default(),
            tenants: None,
            artifacts: Artifacts::default(),
            push: None,
            bus: None,
        }
    }
}

/// How long an idempotency key is remembered.
const KEY_LIFE: Duration = Duration::from_secs(86_400);

/// Serves agents on one store.
pub struct Engine {
    pub(crate) options: EngineOptions,
    pub(crate) metrics: Arc<Metrics>,
    roster: Roster,
    store: Arc<dyn Store>,
    hub: Arc<Hub>,
    schedule: Schedule,
    /// Who delivers to webhooks.
    pub(crate) push: Option<Arc<Desk>>,
    /// This process, for as long as it lives.
    node: Node,
    /// The other servers on the same store, if there can be any.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// Sends with the same key are decided one after the other.
    keys: Turnstiles<(Scope, Arc<str>)>,
    /// Webhooks of the same task are registered one after the other.
    hooks: Turnstiles<TaskKey>,
    /// Tasks of this node that the store took no end for, each with the lease it was held under: they
    /// are taken up again.
    stranded: Mutex<HashMap<TaskKey, i64>>,
    /// A new task waits in the store before it waits here. Whoever looks for tasks without a writer
    /// looks when none is between the two.
    queueing: tokio::sync::RwLock<()>,
    draining: AtomicBool,
}

impl Engine {
    /// An engine for these agents on `store`. Call [`Engine::recover`] before the first message, and keep
    /// [`Engine::tend`] running.
    pub fn new(roster: Roster, store: Arc<dyn Store>, options: EngineOptions, metrics: Arc<Metrics>) -> Arc<Self> {
        let schedule = Schedule::new(options.max_running_turns, options.max_queued_turns, options.per_caller);
        let bus = options.bus.clone().unwrap_or_else(Local::bus);
        let cluster = Cluster::on(&store, bus, metrics.cluster.clone());
        let hub = Hub::new(Ties {
            store: store.clone(),
            events: metrics.events.clone(),
            bell: Arc::default(),
            link: cluster.as_ref().map(|cluster| cluster.link.clone()),
        });
        let desk = |push| Desk::new(push, store.clone(), hub.clone(), metrics.clone(), cluster.clone());
        let push = options.push.clone().map(desk);
        Arc::new(Self {
            options,
            push,
            hub,
            metrics,
            roster,
            store,
            schedule,
            node: uuid::Uuid::new_v4().to_string().into(),
            cluster,
            keys: Turnstiles::default(),
            hooks: Turnstiles::default(),
            stranded: Mutex::default(),
            queueing: tokio::sync::RwLock::default(),
            draining: AtomicBool::new(false),
        })
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The served agents.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// How many turns run, and how many wait.
    pub fn load(&self) -> (usize, usize) {
        self.schedule.load()
    }

    /// How many turns wait for an answer.
    pub fn paused(&self) -> usize {
        self.schedule.paused()
    }

    /// How many turns there are that run, wait for their start or wait for an answer.
    pub(crate) fn turns(&self) -> usize {
        self.schedule.controls().len()
    }

    /// How many tasks are held in memory.
    pub fn tasks_in_memory(&self) -> usize {
        self.hub.len()
    }

    /// Whether no turn runs, waits for its start or waits for an answer.
    pub fn is_idle(&self) -> bool {
        self.schedule.is_empty()
    }

    /// Whether the server takes no new work.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Takes no new work, gives running turns `wait` to end, and leaves the rest to the next start.
    pub async fn drain(&self, wait: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        self.schedule.close();
        let until = tokio::time::Instant::now() + wait;
        while self.schedule.load().0 > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (left, _) = self.schedule.load();
        if left > 0 {
            tracing::warn!(
                turns = left,
                "turns were still running at the end of the drain; the next start takes them up"
            );
        }
        if self.is_shared() {
            Box::pin(self.leave()).await;
        }
    }

    /// This process; where others share the store, in its present life.
    pub(crate) fn node(&self) -> Node {
        self.cluster.as_ref().map_or_else(|| self.node.clone(), |cluster| cluster.node())
    }

    fn lease(&self) -> Lease {
        Lease { node: self.node() }
    }

    /// A lease that nobody holds: whoever has room takes the task.
    fn no_lease() -> Lease {
        Lease { node: "".into() }
    }
}

/// Work that must not stop half-way because the connection that asked for it is gone.
async fn carry_through<T: Send + 'static>(
    mut work: Pin<Box<impl Future<Output = Result<T, Error>> + Send + 'static>>,
) -> Result<T, Error> {
    // A store that answers at once leaves no moment to hang up in, and a task of its own is not free.
    match work.as_mut().now_or_never() {
        Some(done) => done,
        None => tokio::spawn(work.in_current_span()).await.unwrap_or_else(|_| Err(Error::internal())),
    }
}

fn now() -> Micros {
    Timestamp::now().as_micros()
}

fn micros(time: Duration) -> Micros {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// The caller learns only that it did not work; the operator learns why.
fn store_error(error: &StoreError) -> Error {
    tracing::error!(%error, "the store failed");
    match error {
        StoreError::Closed => shutting_down(),
        StoreError::Full { .. } => Error::new(ErrorKind::Unavailable, "The server has no space left: try again later"),
        _ => Error::internal(),
    }
}

fn append_error(error: &AppendError) -> Error {
    match error {
        AppendError::Store(error) => store_error(error),
        AppendError::Fenced | AppendError::KeyUsed | AppendError::Recalled => {
            Error::new(ErrorKind::Unavailable, "The task was taken over by another server: try again")
        }
    }
}

fn shutting_down() -> Error {
    Error::new(ErrorKind::Unavailable, "The server is shutting down: try again shortly")
}
