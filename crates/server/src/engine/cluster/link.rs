//! What a task that is written here owes to the other nodes: to stop in time, and to tell how far it is.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bus::Hint;
use crate::map::Map;
use crate::store::{Node, Seq, TaskKey, TaskRow};

/// Between a node and the tasks it writes.
pub(crate) struct Link {
    pub(crate) pulse: Pulse,
    pub(crate) outbox: Outbox,
    /// This node, in its present life.
    node: Mutex<Node>,
}

impl Link {
    pub(super) fn new() -> Self {
        Self { pulse: Pulse::new(), outbox: Outbox::default(), node: Mutex::new(fresh_node()) }
    }

    /// This node, in its present life.
    pub(crate) fn node(&self) -> Node {
        self.node.lock().clone()
    }

    /// Begins another life under this name. Nobody sees one without the other.
    pub(super) fn begin(&self, node: Node, at: Instant, ttl: Duration) {
        let mut name = self.node.lock();
        *name = node;
        self.pulse.begin(at, ttl);
    }

    /// The life in which the holder of a lease may write: this one, if it is this node or nobody.
    pub(crate) fn life_of(&self, holder: &str) -> u64 {
        let name = self.node.lock();
        if holder.is_empty() || *holder == **name { self.pulse.life() } else { NO_LIFE }
    }

    /// The same for whoever holds the lease of a task.
    pub(crate) fn life_under(&self, row: &TaskRow) -> u64 {
        match &row.writer {
            Some(writer) => self.life_of(writer),
            None if row.leased => NO_LIFE,
            None => self.life_of(""),
        }
    }
}

pub(super) fn fresh_node() -> Node {
    uuid::Uuid::new_v4().to_string().into()
}

/// Before the first life; in it, nothing is written.
const NO_LIFE: u64 = 0;

/// Whether the leases of this node are good, as far as it can know by its own clock.
///
/// The clock runs on while the process is stopped or the machine asleep. A pulse that was missed once is gone: what was
/// written here belongs to others then, and a new life begins with nothing.
pub(crate) struct Pulse {
    born: Instant,
    /// Until when no other node takes over, in milliseconds after `born`; zero when the pulse is gone.
    until: AtomicU64,
    /// Which life this is.
    life: AtomicU64,
    /// Wakes whoever looks after it.
    begun: Notify,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { born: Instant::now(), until: AtomicU64::new(0), life: AtomicU64::new(NO_LIFE), begun: Notify::new() }
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.born).as_millis()).unwrap_or(u64::MAX)
    }

    /// Others take over after `ttl`; a tenth of that is left to end what runs.
    fn end(&self, at: Instant, ttl: Duration) -> u64 {
        self.millis(at + ttl * 9 / 10).max(1)
    }

    /// Which life this is.
    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    /// Whether this life goes on.
    pub(crate) fn is_good(&self) -> bool {
        let until = self.until.load(Ordering::SeqCst);
        if self.millis(Instant::now()) < until {
            return true;
        }
        // Nobody renews it from here on, however late it is noticed.
        let _ = self.until.compare_exchange(until, 0, Ordering::SeqCst, Ordering::SeqCst);
        false
    }

    /// Whether what was opened in this life may still be written.
    pub(crate) fn allows(&self, life: u64) -> bool {
        self.life() == life && self.is_good()
    }

    /// The store has heard a beat that was sent at this moment. False when it came too late.
    pub(super) fn renew(&self, at: Instant, ttl: Duration) -> bool {
        let until = self.end(at, ttl);
        let renewed = self.until.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| (old > 0).then_some(until));
        renewed.is_ok()
    }

    /// Begins another life.
    pub(super) fn begin(&self, at: Instant, ttl: Duration) {
        self.life.fetch_add(1, Ordering::SeqCst);
        self.until.store(self.end(at, ttl), Ordering::SeqCst);
        self.begun.notify_one();
    }

    /// Ends this life.
    pub(super) fn end_now(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// Waits until the pulse is gone.
    pub(super) async fn gone(&self) {
        while self.is_good() {
            let until = self.until.load(Ordering::SeqCst);
            tokio::time::sleep_until(self.born + Duration::from_millis(until)).await;
        }
    }

    /// Waits for another life.
    pub(super) async fn reborn(&self) {
        self.begun.notified().await;
    }
}

/// Hints that are to go out. Those of a moment go together.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: Mutex<Batch>,
    filled: Notify,
}

#[derive(Default)]
struct Batch {
    reached: Map<TaskKey, Seq>,
    orders: BTreeSet<Node>,
    work: bool,
}

impl Outbox {
    fn add(&self, add: impl FnOnce(&mut Batch)) {
        let mut batch = self.waiting.lock();
        let first = batch.reached.is_empty() && batch.orders.is_empty() && !batch.work;
        add(&mut batch);
        drop(batch);
        if first {
            self.filled.notify_one();
        }
    }

    /// A task has reached this event.
    pub(crate) fn reached(&self, task: TaskKey, seq: Seq) {
        self.add(|batch| {
            batch.reached.insert(task, seq);
        });
    }

    /// There is something to do for a node.
    pub(super) fn orders(&self, node: &Node) {
        self.add(|batch| {
            batch.orders.insert(node.clone());
        });
    }

    /// There is work.
    pub(super) fn work(&self) {
        self.add(|batch| batch.work = true);
    }

    /// Waits until there is something to tell.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Everything that is to be told.
    pub(super) fn take(&self) -> Vec<Hint> {
        let Batch { reached, orders, work } = std::mem::take(&mut *self.waiting.lock());
        let reached = reached.into_iter().map(|(task, seq)| Hint::Reached(task, seq));
        reached.chain(orders.into_iter().map(Hint::Orders)).chain(work.then_some(Hint::Work)).collect()
    }
}
