//! Who delivers what, when: one carrier per webhook with something to do, within the limits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{PushId, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::PushOptions;
use super::carrier::Carrier;
use super::worker::{self, Entered};
use crate::engine::cluster::Cluster;
use crate::engine::hub::Hub;
use crate::map::Map;
use crate::metrics::Metrics;
use crate::store::{Micros, Node, PushConfig, Store, StoreError, TaskKey, WAITING};

#[cfg(test)]
mod tests;

/// How often the store is asked what is due, beyond what is known here: another process may have replayed something.
const POLL: Duration = Duration::from_secs(2);
/// How many webhooks are started at once.
const BATCH: usize = 256;
/// Webhooks at work at the same time; most of them wait for a place among the posts.
const MOST_CARRIERS: usize = 4096;
/// How many moments at which webhooks are due are known here, and how far apart they are, so that many webhooks are
/// tried again together.
const MOST_KNOWN: usize = 4096;
const GRAIN: Micros = 10_000;
/// How long carriers may take to end.
const LAST_CALL: Duration = Duration::from_secs(2);
/// How long to wait after the store failed.
pub(super) const BREATH: Duration = Duration::from_secs(1);

/// A webhook of a task.
pub(super) type Slot = (TaskKey, PushId);

/// Looks after all webhooks of this server.
pub(crate) struct Desk {
    pub(crate) options: PushOptions,
    pub(super) store: Arc<dyn Store>,
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Arc<Metrics>,
    /// The other servers on the same store, if there can be any.
    pub(super) cluster: Option<Arc<Cluster>>,
    pub(super) rooms: Rooms,
    busy: Mutex<Map<Slot, Busy>>,
    /// When webhooks are due, as far as is known here: the next moments. The store is asked for all others.
    due: Mutex<BTreeSet<Micros>>,
    /// Wakes the desk when a carrier has ended or the first of `due` has changed.
    woken: Notify,
}

/// A webhook that a carrier has in hand.
struct Busy {
    /// Whether there was news since.
    again: bool,
    /// The job that it is done for, if jobs are in Redis.
    job: Option<String>,
    stop: CancellationToken,
}

impl Desk {
    /// A desk that does nothing until [`Desk::run`].
    pub(crate) fn new(
        options: PushOptions,
        store: Arc<dyn Store>,
        hub: Arc<Hub>,
        metrics: Arc<Metrics>,
        cluster: Option<Arc<Cluster>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            rooms: Rooms::new(options.concurrent, options.per_host),
            options,
            store,
            hub,
            metrics,
            cluster,
            busy: Mutex::default(),
            due: Mutex::default(),
            woken: Notify::new(),
        })
    }

    /// A webhook is new, or has another address.
    pub(crate) fn changed(&self, task: TaskKey, id: &PushId) {
        self.interrupt(task, id);
        self.hub.bell().ring(task);
    }

    /// Takes a webhook out of the hands of its carrier, which looks at it anew.
    pub(crate) fn interrupt(&self, task: TaskKey, id: &PushId) {
        if let Some(busy) = self.busy.lock().get_mut(&(task, id.clone())) {
            busy.again = true;
            busy.stop.cancel();
        }
    }

    /// Delivers until `stop`, whatever it waits for then.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let carriers = TaskTracker::new();
        tokio::select! {
            () = self.deliver(&carriers, &stop) => {}
            () = stop.cancelled() => {}
        }
        carriers.close();
        let _ = tokio::time::timeout(LAST_CALL, carriers.wait()).await;
    }

    /// Delivers for ever. Where it is dropped, the next start finds what was left.
    async fn deliver(self: &Arc<Self>, carriers: &TaskTracker, stop: &CancellationToken) {
        // Whatever was written just before the last end, nobody may have been told of.
        if self.cluster.is_none()
            && let Err(error) = self.store.wake_pushes(now()).await
        {
            tracing::error!(%error, "webhooks could not be taken up: they go on when their tasks do");
        }
        if let Some(queue) = &self.options.queue {
            worker::start(self, queue, carriers, stop);
        }
        let mut polled: Option<Instant> = None;
        loop {
            let poll = polled.is_none_or(|at| at.elapsed() >= POLL);
            if poll {
                self.take_left().await;
            }
            if poll || now() >= self.next_due() {
                self.take_due(carriers, stop).await;
            }
            if poll {
                polled = Some(Instant::now());
                self.count().await;
            }
            let more = self.take_rung(carriers, stop).await;
            let until_due = u64::try_from(self.next_due() - now()).unwrap_or_default();
            let pause = match self.room() {
                // Whoever ends wakes the desk.
                0 => POLL,
                _ if more => Duration::ZERO,
                _ => POLL.min(Duration::from_micros(until_due)),
            };
            tokio::select! {
                () = self.hub.bell().heard() => {}
                () = self.woken.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Starts what is due. Webhooks at work are still due in the store, and are among them.
    async fn take_due(self: &Arc<Self>, carriers: &TaskTracker, stop: &CancellationToken) {
        let room = self.room();
        if room == 0 {
            return;
        }
        // What is due later stays known.
        let asked_at = now();
        self.due.lock().retain(|at| *at > asked_at);
        let limit = self.busy.lock().len() + room.min(BATCH);
        match self.store.due_pushes(&self.node(), now(), limit).await {
            Ok(due) => {
                let full = due.len() >= limit;
                let slots = due.into_iter().map(|(task, config)| (task, config.id));
                let slots: Vec<Slot> = slots.filter(|slot| !self.busy.lock().contains_key(slot)).collect();
                let started = self.start_all(slots, false, carriers, stop).await;
                // Jobs stay due until a worker has done them.
                let pause = if self.options.queue.is_none() { Duration::ZERO } else { BREATH / 5 };
                if full && started {
                    self.due_at(now() + i64::try_from(pause.as_micros()).unwrap_or_default());
                }
            }
            Err(error) => tracing::warn!(%error, "webhooks that are due could not be read"),
        }
    }

    /// Starts what has news, and says whether there is more that could be started.
    async fn take_rung(self: &Arc<Self>, carriers: &TaskTracker, stop: &CancellationToken) -> bool {
        let (tasks, more) = self.hub.bell().take(self.room().min(BATCH));
        let mut ready = Vec::new();
        for (n, &task) in tasks.iter().enumerate() {
            match self.store.pushes(task).await {
                Ok(all) => {
                    let ready_here = all.into_iter().filter(|config| is_ready(config) && self.is_own(config));
                    ready.extend(ready_here.map(|config| (task, config.id)));
                }
                Err(StoreError::Closed) => {}
                Err(error) => {
                    // The others would wait for the same store.
                    tracing::warn!(%error, tasks = tasks.len() - n, "the webhooks of tasks could not be read");
                    tasks[n..].iter().for_each(|&task| self.hub.bell().ring(task));
                    tokio::time::sleep(BREATH).await;
                    break;
                }
            }
        }
        if !self.start_all(ready, true, carriers, stop).await {
            for task in tasks {
                self.hub.bell().ring(task);
            }
            tokio::time::sleep(BREATH).await;
        }
        more && self.room() > 0
    }

    /// Starts with webhooks, or makes jobs of them. False when there is no place for jobs now.
    async fn start_all(
        self: &Arc<Self>,
        slots: Vec<Slot>,
        is_news: bool,
        carriers: &TaskTracker,
        stop: &CancellationToken,
    ) -> bool {
        if let Some(queue) = &self.options.queue {
            self.watch(&slots).await;
            return queue.offer(&slots, is_news).await.is_ok();
        }
        for slot in slots {
            if let Entered::Now = self.enter(&slot, None, stop) {
                let (desk, stop) = (self.clone(), stop.clone());
                carriers.spawn(async move { desk.rounds(&slot, &stop).await });
            }
        }
        true
    }

    /// This node, where several share the store.
    fn node(&self) -> Node {
        self.cluster.as_ref().map_or_else(|| "".into(), |cluster| cluster.node())
    }

    /// Whether a webhook is in the hand of this node.
    fn is_own(&self, config: &PushConfig) -> bool {
        self.cluster.is_none() || config.node == Some(self.node())
    }

    /// Takes webhooks in hand whose node is gone.
    async fn take_left(&self) {
        let Some(shared) = self.store.shared().filter(|_| self.cluster.is_some()) else { return };
        loop {
            match shared.take_pushes(&self.node(), now(), BATCH).await {
                Ok(taken) if taken.len() < BATCH => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "webhooks of nodes that are gone could not be taken up");
                    return;
                }
            }
        }
    }

    /// Hears when the tasks of these webhooks go on from here, whoever has done their jobs by then.
    async fn watch(&self, slots: &[Slot]) {
        let Some((cluster, shared)) = self.cluster.as_ref().zip(self.store.shared()) else { return };
        let tasks: Vec<TaskKey> = slots.iter().map(|(task, _)| *task).collect();
        for progress in shared.progress(&tasks).await.unwrap_or_default() {
            if !progress.state.is_final() {
                cluster.ring_after(progress.task, progress.seq);
            }
        }
    }

    fn room(&self) -> usize {
        self.load().1
    }

    /// How many webhooks are in hand, and how many more can be.
    pub(super) fn load(&self) -> (usize, usize) {
        let in_hand = self.busy.lock().len();
        (in_hand, MOST_CARRIERS.saturating_sub(in_hand))
    }

    /// Takes a webhook in hand. Whoever has it already looks once more.
    pub(super) fn enter(&self, slot: &Slot, job: Option<&str>, stop: &CancellationToken) -> Entered {
        let mut all = self.busy.lock();
        match all.get_mut(slot) {
            Some(busy) if job.is_some() && busy.job.as_deref() == job => Entered::Same,
            Some(busy) => {
                busy.again = true;
                Entered::Busy
            }
            None => {
                let busy = Busy { again: true, job: job.map(str::to_owned), stop: stop.child_token() };
                all.insert(slot.clone(), busy);
                Entered::Now
            }
        }
    }

    /// Lets go of a webhook.
    pub(super) fn leave(&self, slot: &Slot) {
        self.busy.lock().remove(slot);
        self.woken.notify_one();
    }

    /// Carries what a webhook in hand has to get, until nothing is left.
    pub(super) async fn rounds(&self, slot: &Slot, stop: &CancellationToken) {
        while let Some(token) = self.next_round(slot, stop) {
            if let Err(error) = self.carry(slot, &token).await
                && error != StoreError::Closed
            {
                tracing::warn!(%error, "a webhook waits for the store");
                self.interrupt(slot.0, &slot.1);
                tokio::time::sleep(BREATH).await;
            }
        }
        self.woken.notify_one();
    }

    /// Whether a carrier has more to do; if not, others may start with its webhook.
    fn next_round(&self, slot: &Slot, stop: &CancellationToken) -> Option<CancellationToken> {
        let mut all = self.busy.lock();
        let busy = all.get_mut(slot).filter(|busy| busy.again && !stop.is_cancelled());
        let Some(busy) = busy else {
            all.remove(slot);
            return None;
        };
        busy.again = false;
        busy.stop = stop.child_token();
        Some(busy.stop.clone())
    }

    /// Reads a webhook as it is now: whoever had it in hand before has left it there.
    async fn carry(&self, (task, id): &Slot, stop: &CancellationToken) -> Result<(), StoreError> {
        let found = self.store.pushes(*task).await?.into_iter().find(|config| config.id == *id);
        // Jobs are for whoever takes them; else a webhook may be in the hand of another node by now.
        let is_mine = |config: &PushConfig| is_ready(config) && (self.options.queue.is_some() || self.is_own(config));
        match found.filter(is_mine) {
            Some(config) => Carrier::new(self, *task, config).run(stop).await,
            None => Ok(()),
        }
    }

    /// A webhook that failed is due then, which the store knows already.
    pub(super) async fn retry_at(&self, slot: &Slot, at: Micros) {
        match &self.options.queue {
            None => self.due_at(at.saturating_add(GRAIN - at.rem_euclid(GRAIN))),
            // If that fails, it is found in the store.
            Some(queue) => drop(queue.later(slot, at).await),
        }
    }

    /// Notes an event that was given up where operators of Redis look. The store knows it in any case.
    pub(super) async fn bury(&self, slot: &Slot, event: &str, why: &str) {
        if let Some(queue) = &self.options.queue
            && queue.bury(slot, event, why).await.is_err()
        {
            tracing::warn!(event, "the dead stream does not have an event that was given up");
        }
    }

    fn due_at(&self, at: Micros) {
        let mut due = self.due.lock();
        if due.insert(at) && due.first() == Some(&at) {
            self.woken.notify_one();
        }
        if due.len() > MOST_KNOWN {
            due.pop_last();
        }
    }

    /// The next moment at which a webhook is due, as far as is known here.
    fn next_due(&self) -> Micros {
        self.due.lock().first().copied().unwrap_or(WAITING)
    }

    async fn count(&self) {
        match self.store.push_backlog().await {
            Ok(backlog) => self.metrics.push.backlog(backlog, now()),
            Err(error) => tracing::debug!(%error, "webhooks could not be counted"),
        }
    }
}

/// Whether there may be something to do for a webhook now.
fn is_ready(config: &PushConfig) -> bool {
    config.due.is_some_and(|due| due == WAITING || due <= now())
}

pub(super) fn now() -> Micros {
    Timestamp::now().as_micros()
}

/// Places among the posts: so many in all, and so many for each host, so that a slow one does not take them all.
pub(super) struct Rooms {
    all: Arc<Semaphore>,
    hosts: Mutex<Map<String, Arc<Semaphore>>>,
    per_host: usize,
}

/// A place among the posts.
pub(super) struct Place {
    _host: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Rooms {
    fn new(all: usize, per_host: usize) -> Self {
        let bounded = |n: usize| n.clamp(1, Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(bounded(all))), hosts: Mutex::default(), per_host: bounded(per_host) }
    }

    /// Waits for a place. None when there will be no more.
    pub(super) async fn enter(&self, host: &str) -> Option<Place> {
        let own = self.host(host);
        let host = own.acquire_owned().await.ok()?;
        let all = self.all.clone().acquire_owned().await.ok()?;
        Some(Place { _host: host, _all: all })
    }

    fn host(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock();
        if let Some(own) = hosts.get(host) {
            return own.clone();
        }
        if hosts.len() >= MOST_CARRIERS {
            // Whoever has or waits for a place holds on to it.
            hosts.retain(|_, own| Arc::strong_count(own) > 1);
        }
        let own = Arc::new(Semaphore::new(self.per_host));
        hosts.insert(host.to_owned(), own.clone());
        own
    }
}
