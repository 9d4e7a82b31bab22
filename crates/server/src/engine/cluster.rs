//! One of several servers that share a store.
//!
//! A node is alive while it beats; the leases of its turns hold as long. Any node answers any call: it reads the log,
//! follows what others write, leaves letters for whoever runs a turn, and takes up what nobody runs. There is no leader,
//! and nodes do not talk to each other: the store is the truth, and the bus carries hints.
//!
//! * `link`: what a task that is written here owes to the others;
//! * `beat`: staying alive, and stopping in time when that fails;
//! * `follow`: tasks that others write;
//! * `act`: messages for tasks that others run, and cancelling them; `orders`: the other end of that;
//! * `work`: what waits for a place anywhere, and what dead nodes leave behind.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Engine;
use crate::bus::{Bus, Hint};
use crate::map::Map;
use crate::metrics::ClusterMetrics;
use crate::store::{LetterId, Node, Seq, Shared, Store, TaskKey, TaskRow};

mod act;
mod beat;
mod follow;
mod link;
mod orders;
mod work;

pub(crate) use link::Link;

/// How often the store is asked what hints may not have told.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Hints of such a moment go out together.
const MOMENT: Duration = Duration::from_millis(1);

/// What an engine knows of the others.
pub(crate) struct Cluster {
    store: Arc<dyn Store>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) link: Arc<Link>,
    pub(crate) metrics: ClusterMetrics,
    /// How many nodes are alive.
    alive: AtomicU32,
    /// Whether it has left for good.
    left: CancellationToken,
    /// Tasks that others have written to, as far as hints say.
    news: Mutex<Map<TaskKey, Seq>>,
    heard_news: Notify,
    heard_orders: Notify,
    heard_work: Notify,
    /// When there was last a sign of work that waits.
    work_at: Mutex<Option<tokio::time::Instant>>,
    /// Tasks accepted here that wait for a place, each with the lease that it waits under.
    waiting: Mutex<Map<TaskKey, i64>>,
    /// Webhooks that wait for a task to go on beyond an event.
    rings: Mutex<Map<TaskKey, Seq>>,
    /// Letters and cancellations that are being seen to.
    letters: Mutex<HashSet<LetterId>>,
    cancels: Mutex<HashSet<TaskKey>>,
    /// Tasks whose turns broke off here at rest, perhaps with their leases still held.
    idle: Mutex<HashSet<TaskKey>>,
    /// Leases that this node holds without a turn, and since when that is so.
    unused: Mutex<Map<TaskKey, (i64, tokio::time::Instant)>>,
    /// Leases of turns that have come to rest, which the store did not take back yet.
    unreleased: Mutex<Map<TaskKey, i64>>,
}

impl Cluster {
    /// On this store, if others can share it.
    pub(super) fn on(store: &Arc<dyn Store>, bus: Arc<dyn Bus>, metrics: ClusterMetrics) -> Option<Arc<Self>> {
        store.shared()?;
        Some(Arc::new(Self {
            store: store.clone(),
            bus,
            link: Arc::new(Link::new()),
            metrics,
            alive: AtomicU32::new(1),
            left: CancellationToken::new(),
            news: Mutex::default(),
            heard_news: Notify::new(),
            heard_orders: Notify::new(),
            heard_work: Notify::new(),
            work_at: Mutex::default(),
            waiting: Mutex::default(),
            rings: Mutex::default(),
            letters: Mutex::default(),
            cancels: Mutex::default(),
            idle: Mutex::default(),
            unused: Mutex::default(),
            unreleased: Mutex::default(),
        }))
    }

    fn shared(&self) -> &dyn Shared {
        self.store.shared().expect("it is made only for a store that is shared")
    }

    /// This node, in its present life.
    pub(crate) fn node(&self) -> Node {
        self.link.node()
    }

    /// How many nodes are alive, as far as is known.
    pub(crate) fn nodes(&self) -> u32 {
        self.alive.load(Ordering::Relaxed).max(1)
    }

    /// Whether this node is alive, as far as it knows.
    pub(crate) fn is_alive(&self) -> bool {
        self.link.pulse.is_good()
    }

    /// Brings the numbers up to date that are only looked at from time to time.
    pub(crate) fn measure(&self, turns: usize) {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.metrics.node(&self.node());
        self.metrics.alive.set(self.nodes().into());
        self.metrics.bus.set(self.bus.trouble().is_none().into());
        self.metrics.leases.set(count(turns));
        self.metrics.waiting.set(count(self.waiting.lock().len()));
    }

    /// Lets somebody use something that all servers count together. Nothing when nobody answers.
    pub(crate) async fn borrow(&self, who: &str, interval: Duration, slack: Duration, want: u32) -> Option<u32> {
        match self.bus.borrow(who, interval, slack, want).await {
            Some(answer) => answer,
            None => self.shared().borrow(who, interval, slack, want).await.ok(),
        }
    }

    /// Rings when a task has gone on beyond an event, whoever writes it.
    pub(crate) fn ring_after(&self, task: TaskKey, seq: Seq) {
        self.rings.lock().insert(task, seq);
    }

    /// Gives the lease of a task back that has no turn here.
    pub(crate) fn give_back_later(&self, row: &TaskRow) {
        self.unreleased.lock().insert(row.key, row.epoch);
        self.heard_orders.notify_one();
    }

    /// There may be work for this node and for others.
    fn stir(&self) {
        *self.work_at.lock() = Some(tokio::time::Instant::now());
        self.heard_work.notify_one();
    }

    /// Takes up what others tell.
    fn hear(&self, hints: Vec<Hint>) {
        self.metrics.heard.inc_by(hints.len() as u64);
        for hint in hints {
            match hint {
                Hint::Reached(task, seq) => {
                    let mut news = self.news.lock();
                    let known = news.entry(task).or_default();
                    *known = seq.max(*known);
                    self.heard_news.notify_one();
                }
                Hint::Orders(node) if node == self.node() => self.heard_orders.notify_one(),
                Hint::Orders(_) => {}
                Hint::Work => self.stir(),
            }
        }
    }
}

impl Engine {
    /// Whether other servers may write to the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.cluster.is_some()
    }

    /// Does what a node has to do for the others until `stop`.
    pub(super) async fn attend(self: &Arc<Self>, cluster: &Arc<Cluster>, stop: CancellationToken) {
        let mut all = JoinSet::new();
        all.spawn(self.clone().keep_alive(cluster.clone()));
        all.spawn(self.clone().end_in_time(cluster.clone()));
        all.spawn(self.clone().follow_others(cluster.clone()));
        all.spawn(self.clone().obey_orders(cluster.clone()));
        all.spawn(self.clone().find_work(cluster.clone()));
        let tells = cluster.clone();
        all.spawn(async move { tells.tell().await });
        let hears = cluster.clone();
        all.spawn(async move { hears.listen().await });
        stop.cancelled().await;
    }
}

impl Cluster {
    /// Sends what is to be told, as much at a time as a moment brings.
    async fn tell(&self) {
        loop {
            self.link.outbox.filled().await;
            tokio::time::sleep(MOMENT).await;
            let hints = self.link.outbox.take();
            self.metrics.told.inc_by(hints.len() as u64);
            self.bus.tell(&hints);
        }
    }

    async fn listen(&self) {
        loop {
            let hints = self.bus.heard().await;
            self.hear(hints);
        }
    }
}
