//! What waits for a place on any node, and what dead nodes leave behind.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{Message, Metadata, Part, TaskState};

use super::{Cluster, LOOK_EVERY};
use crate::agent::OnCrash;
use crate::engine::Engine;
use crate::engine::accept::{Handle, Sent};
use crate::engine::event::Update;
use crate::engine::hub::Held;
use crate::engine::said::Line;
use crate::engine::schedule::{Job, Room};
use crate::store::{Claim, StoreError, TaskKey, TaskRow};

/// How many tasks are looked at at once, at first and at most.
const BATCH: (usize, usize) = (64, 4096);
/// For so long after a sign of work that waits, the end of a turn is a reason to look for it.
pub(super) const STIRRED: Duration = Duration::from_secs(60);

impl Engine {
    /// Looks for work at a hint, when a turn ends, and once a second.
    pub(super) async fn find_work(self: Arc<Self>, cluster: Arc<Cluster>) {
        let mut told = tokio::time::Instant::now();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = cluster.heard_work.notified() => {}
            }
            if self.is_draining() || !cluster.link.pulse.is_good() {
                continue;
            }
            if let Err(error) = self.take_work(&cluster).await {
                tracing::debug!(%error, "work could not be looked for");
            }
            // Others forget after a while that work waits.
            if told.elapsed() >= STIRRED / 2 && !cluster.waiting.lock().is_empty() {
                told = tokio::time::Instant::now();
                cluster.link.outbox.work();
            }
        }
    }

    /// Takes up what this node has room for. Returns how many tasks.
    pub(in crate::engine) async fn take_work(self: &Arc<Self>, cluster: &Arc<Cluster>) -> Result<usize, StoreError> {
        let (mut taken, mut limit) = (0, BATCH.0);
        loop {
            let rows = self.store.abandoned(&cluster.node(), limit).await?;
            let mut took = 0;
            let mut callers = HashMap::new();
            for row in &rows {
                if self.is_draining() || !cluster.link.pulse.is_good() {
                    return Ok(taken);
                }
                let done = match row.leased {
                    true => self.take_over(cluster, row).await,
                    false if self.has_share(cluster, row, &mut callers).await? => self.take_waiting(cluster, row).await,
                    false => Ok(false),
                };
                match done {
                    Ok(done) => took += usize::from(done),
                    // One that cannot be read must not stand in the way of those that can.
                    Err(error @ StoreError::Corrupt { .. }) => {
                        tracing::error!(task = %row.id, %error, "a task cannot be taken up");
                        self.store.claim(row.key, row.epoch, self.lease(), false).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
            taken += took;
            if rows.len() < limit || !self.schedule.has_room() {
                return Ok(taken);
            }
            if took == 0 {
                // Those in front are held up by their callers' limits.
                limit *= 8;
                if limit > BATCH.1 {
                    return Ok(taken);
                }
            }
        }
    }

    /// Whether the caller of a task may have one more turn.
    async fn has_share(
        &self,
        cluster: &Cluster,
        row: &TaskRow,
        callers: &mut HashMap<std::sync::Arc<str>, usize>,
    ) -> Result<bool, StoreError> {
        if !self.schedule.has_room() {
            return Ok(false);
        }
        let Some(most) = self.options.per_caller.running else { return Ok(true) };
        let owner = &row.scope.owner;
        let running = match callers.get(owner) {
            Some(running) => *running,
            None => cluster.shared().load(owner).await?.0,
        };
        callers.insert(owner.clone(), running + 1);
        Ok(running < most.max(1))
    }

    /// A task that waits for its turn.
    async fn take_waiting(self: &Arc<Self>, cluster: &Cluster, row: &TaskRow) -> Result<bool, StoreError> {
        if self.schedule.control(row.key).is_some() || !self.schedule.reserve_now(&row.scope, &row.context_id) {
            return Ok(false);
        }
        let started = self.start_waiting(cluster, row).await;
        if !matches!(started, Ok(true))
            && let Some(next) = self.schedule.unreserve(Room::Now, &row.scope, &row.context_id)
        {
            self.start(next);
        }
        started
    }

    async fn start_waiting(self: &Arc<Self>, cluster: &Cluster, row: &TaskRow) -> Result<bool, StoreError> {
        let Some(live) = self.open_for_work(row).await? else { return Ok(false) };
        let _gate = live.gate.lock().await;
        let Claim::Taken(row) = self.claim_row(&live, row, self.lease()).await? else { return Ok(false) };
        cluster.waiting.lock().remove(&row.key);
        let line = self.unanswered(&live, &row).await.inspect_err(|_| self.claimed_in_vain(&row))?;
        let Line { first, waiting, seq } = line;
        let Some(first) = first else {
            self.end_interrupted(&live, TaskState::Failed, "The task has no message to answer").await;
            return Ok(false);
        };
        live.set_mailbox(waiting, seq);
        let live = self.hub.hold(live.clone());
        self.submit(Job::new(live, first, true), Room::Now);
        Ok(true)
    }

    async fn open_for_work(&self, row: &TaskRow) -> Result<Option<Held>, StoreError> {
        let live = self.hub.open(row);
        live.loaded.get_or_try_init(|| self.fill(&live)).await?;
        let usable = self.caught_up(&live, row).await? && !live.is_open();
        Ok(usable.then_some(live))
    }

    /// A task whose turn was interrupted by the end of its node: its agent says what that means.
    async fn take_over(self: &Arc<Self>, cluster: &Cluster, row: &TaskRow) -> Result<bool, StoreError> {
        // What is left of an earlier life of this node ends first.
        if self.schedule.control(row.key).is_some() {
            return Ok(false);
        }
        let on_crash = self.roster.get(&row.agent).map_or(OnCrash::Fail, |served| served.agent.on_crash());
        let canceled = cluster.shared().is_cancel_asked(row.key).await?;
        let again = !canceled
            && match on_crash {
                OnCrash::Fail => false,
                OnCrash::Retry { max } => row.attempts < max,
                OnCrash::Resume => true,
            };
        if again && !self.schedule.reserve_now(&row.scope, &row.context_id) {
            return Ok(false);
        }
        let taken = self.interrupted(row, on_crash, again, canceled).await;
        if matches!(taken, Ok(true)) {
            cluster.metrics.taken_over.inc();
            // Letters may wait for it.
            cluster.heard_orders.notify_one();
        } else if again && let Some(next) = self.schedule.unreserve(Room::Now, &row.scope, &row.context_id) {
            self.start(next);
        }
        taken
    }

    async fn interrupted(
        self: &Arc<Self>,
        row: &TaskRow,
        on_crash: OnCrash,
        again: bool,
        canceled: bool,
    ) -> Result<bool, StoreError> {
        let Some(live) = self.open_for_work(row).await? else { return Ok(false) };
        let _gate = live.gate.lock().await;
        let retry = matches!(on_crash, OnCrash::Retry { .. });
        let Claim::Taken(row) = self.claim_again(&live, row, self.lease(), retry).await? else { return Ok(false) };
        let said = self.said(&row).await.inspect_err(|_| self.claimed_in_vain(&row))?;
        let Line { first, waiting, seq } = said.line();
        live.set_mailbox(waiting, seq);
        match first.filter(|_| again) {
            Some(cue) => {
                tracing::info!(task = %row.id, "a task of a node that is gone is taken up");
                let resumed = on_crash == OnCrash::Resume;
                let live = self.hub.hold(live.clone());
                self.submit(Job { resumed, ..Job::new(live, cue, true) }, Room::Now);
            }
            None if canceled => {
                if let Ok(seq) = live.write(self.canceled()) {
                    let _ = live.durable(seq).await;
                }
                self.strand(&live);
            }
            None => {
                let why = "The task was interrupted: the server that worked on it is gone";
                self.end_interrupted(&live, TaskState::Failed, why).await;
                // A place was kept for nothing.
                if again {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn end_interrupted(self: &Arc<Self>, live: &Held, state: TaskState, why: &str) {
        tracing::info!(task = %live.id, why, "a task is given up");
        let message = Some(Message::from_agent(vec![Part::text(why)]));
        if let Ok(seq) = live.write(Update::Status { state, message, metadata: Metadata::new() }) {
            let _ = live.durable(seq).await;
        }
        self.strand(live);
    }

    /// A place is free: if work waits anywhere, it is looked for.
    pub(in crate::engine) fn place_is_free(&self) {
        if let Some(cluster) = &self.cluster
            && cluster.work_at.lock().is_some_and(|at| at.elapsed() < STIRRED)
        {
            cluster.heard_work.notify_one();
        }
    }

    /// A task waits from now on for any node that has a place.
    pub(super) fn waits(&self, task: TaskKey, epoch: i64) {
        let Some(cluster) = &self.cluster else { return };
        cluster.waiting.lock().insert(task, epoch);
        cluster.link.outbox.work();
        cluster.stir();
    }

    /// A new task that finds no place here, or whose context is busy elsewhere.
    pub(in crate::engine) fn left_to_others(self: &Arc<Self>, live: Held, room: Room, told: bool) -> Sent {
        live.set_aside();
        self.metrics.events.inc();
        if let Some(next) = self.schedule.unreserve(room, &live.scope, &live.context_id) {
            self.start(next);
        }
        self.waits(live.key(), live.epoch());
        if told {
            self.hub.bell().ring(live.key());
        }
        tracing::debug!(task = %live.id, context = live.context_id.as_str(), "a task was accepted, and waits");
        Sent::Task(Handle::new(self.clone(), live))
    }

    /// Joins the others, and takes up what waits.
    pub(in crate::engine) async fn join(self: &Arc<Self>, cluster: &Arc<Cluster>) -> Result<usize, StoreError> {
        if cluster.link.pulse.life() == 0 {
            self.beat(cluster).await?;
        }
        if self.is_draining() {
            return Ok(0);
        }
        self.take_work(cluster).await
    }
}
