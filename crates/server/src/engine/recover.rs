//! What a crash leaves behind, and what is done from time to time.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{Message, Part, TaskState};
use tokio_util::sync::CancellationToken;

use super::event::Update;
use super::hub::Held;
use super::live::Live;
use super::said::Line;
use super::schedule::{Cue, Job, Stop};
use super::{Engine, KEY_LIFE, micros, now};
use crate::agent::OnCrash;
use crate::store::{AppendError, Claim, InHand, Older, State, StoreError, TaskKey, TaskRow};

/// How many abandoned tasks are taken up at once.
const BATCH: usize = 256;
/// How many finished tasks are removed at once.
const TRIM_BATCH: usize = 1000;
/// How often deadlines are looked at.
const TICK: Duration = Duration::from_millis(250);
/// How often old tasks are removed, at the least.
const TRIM_EVERY: Duration = Duration::from_secs(600);

impl Engine {
    /// Takes up the tasks whose writer is gone: start-up after a restart, takeover from a dead node and
    /// a store that writes again are the same. Returns how many.
    pub async fn recover(self: &Arc<Self>) -> Result<usize, StoreError> {
        let mut taken = self.recover_stranded().await?;
        if let Some(cluster) = &self.cluster {
            return Ok(taken + Box::pin(self.join(cluster)).await?);
        }
        let mut seen = HashSet::new();
        loop {
            // What waits here has no writer either, and is among them.
            let limit = BATCH + self.schedule.load().1;
            let rows = self.store.abandoned(&self.node, limit).await?;
            let mut progress = false;
            for row in &rows {
                if seen.insert(row.key) && self.take_up(row, "The task was interrupted by a restart").await? {
                    taken += 1;
                    progress = true;
                }
            }
            if rows.len() < limit || !progress {
                return Ok(taken);
            }
        }
    }

    /// Remembers a task of this node whose turn is gone and left it working.
    pub(super) fn strand(&self, live: &Live) {
        let taken_over = live.is_cut_off() || matches!(live.broken(), Some(AppendError::Fenced));
        if State(live.committed().1.number()).is_active() && !taken_over {
            self.stranded.lock().insert(live.key(), live.version().0);
        }
    }

    /// A task was claimed that cannot be opened as it is in memory. If it works, it is taken up again; if it does not, the
    /// lease is of no use to anybody.
    pub(super) fn claimed_in_vain(&self, row: &TaskRow) {
        match &self.cluster {
            Some(cluster) if !row.state.is_active() => cluster.give_back_later(row),
            _ => {
                self.stranded.lock().insert(row.key, row.epoch);
            }
        }
    }

    async fn recover_stranded(self: &Arc<Self>) -> Result<usize, StoreError> {
        let mut left = std::mem::take(&mut *self.stranded.lock()).into_iter();
        let mut taken = 0;
        while let Some((key, epoch)) = left.next() {
            match self.recover_one(key, epoch).await {
                Ok(took) => taken += usize::from(took),
                Err(error) => {
                    self.stranded.lock().extend(left.chain([(key, epoch)]));
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    async fn recover_one(self: &Arc<Self>, key: TaskKey, epoch: i64) -> Result<bool, StoreError> {
        if let Some(row) = self.store.task_by_key(key).await?
            && row.state.is_active()
            && row.epoch == epoch
        {
            if self.is_shared() && !row.leased {
                // It waits, and whoever has a place finds it.
                return Ok(false);
            }
            return self.take_up(&row, "The task was interrupted: its events could not be stored").await;
        }
        // Somebody else has it, or had it. Whoever waits for it here waits for nothing.
        if let Some(live) = self.hub.get(key)
            && live.loaded.initialized()
        {
            let _gate = live.gate.lock().await;
            let row = self.store.task_by_key(key).await?;
            if row.is_none_or(|row| live.version() < (row.epoch, row.seq)) {
                live.lose();
            }
        }
        Ok(false)
    }

    /// Takes up a task that works and has no turn, for somebody who has more to say to it.
    pub(super) async fn recover_now(self: &Arc<Self>, live: &Live) -> Result<(), StoreError> {
        let epoch = self.store.task_by_key(live.key()).await?.map(|row| row.epoch);
        if let Some(epoch) = epoch {
            self.recover_one(live.key(), epoch).await?;
        }
        Ok(())
    }

    async fn take_up(self: &Arc<Self>, row: &TaskRow, why: &str) -> Result<bool, StoreError> {
        if self.schedule.control(row.key).is_some() {
            return Ok(false);
        }
        let _queueing = if row.leased { None } else { Some(self.queueing.write().await) };
        let live = self.hub.open(row);
        match live.loaded.get_or_try_init(|| self.fill(&live)).await {
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(task = %row.id, %error, "a task cannot be taken up");
                // One that cannot be read must not stand in the way of those that can.
                self.store.claim(row.key, row.epoch, self.lease(), false).await?;
                return Ok(false);
            }
            loaded => loaded?,
        };
        let _gate = live.gate.lock().await;
        if self.schedule.control(row.key).is_some() {
            return Ok(false);
        }
        let live = self.hub.hold(live.clone());
        if row.leased { self.go_on(live, row, why).await } else { self.wait_again(live, row).await }
    }

    /// A task whose turn has not begun: it waits again, with every message that waited.
    async fn wait_again(self: &Arc<Self>, live: Held, row: &TaskRow) -> Result<bool, StoreError> {
        let Line { first, waiting, seq } = self.unanswered(&live, row).await?;
        let Some(first) = first else { return Ok(false) };
        match live.version().cmp(&(row.epoch, row.seq)) {
            Ordering::Equal if live.open(row) => {}
            // Another node has it, or had it: it is read anew the next time.
            Ordering::Less => {
                live.lose();
                return Ok(false);
            }
            _ => return Ok(false),
        }
        live.set_mailbox(waiting, seq);
        self.run_again(live, first, false, false);
        Ok(true)
    }

    /// A task whose turn was interrupted: its agent says what that means.
    async fn go_on(self: &Arc<Self>, live: Held, row: &TaskRow, why: &str) -> Result<bool, StoreError> {
        let on_crash = self.roster.get(&row.agent).map_or(OnCrash::Fail, |served| served.agent.on_crash());
        let retry = matches!(on_crash, OnCrash::Retry { .. });
        let Line { first, waiting, seq } = self.said(row).await?.line();
        let Claim::Taken(row) = self.store.claim(row.key, row.epoch, self.lease(), retry).await? else {
            return Ok(false);
        };
        if !live.open(&row) {
            self.stranded.lock().insert(row.key, row.epoch);
            return Ok(false);
        }
        live.set_mailbox(waiting, seq);
        let again = match on_crash {
            OnCrash::Fail => false,
            OnCrash::Retry { max } => row.attempts <= max,
            OnCrash::Resume => true,
        };
        match first.filter(|_| again) {
            Some(cue) => self.run_again(live, cue, true, on_crash == OnCrash::Resume),
            None => {
                tracing::info!(task = %row.id, why, "a task is given up");
                let message = Some(Message::from_agent(vec![Part::text(why)]));
                let metadata = nuncio_protocol::Metadata::new();
                if let Ok(seq) = live.write(Update::Status { state: TaskState::Failed, message, metadata }) {
                    let _ = live.durable(seq).await;
                }
                self.strand(&live);
            }
        }
        Ok(true)
    }

    fn run_again(self: &Arc<Self>, live: Held, cue: Cue, claimed: bool, resumed: bool) {
        tracing::info!(task = %live.id, resumed, "a task is taken up again");
        // A task that was accepted is never turned away for lack of room.
        let room = self
            .schedule
            .reserve(&live.scope, &live.context_id)
            .unwrap_or_else(|_| self.schedule.queue_regardless(&live.scope));
        self.submit(Job { resumed, ..Job::new(live, cue, claimed) }, room);
    }

    /// Looks after deadlines, leases, abandoned and old tasks until `stop`.
    pub async fn tend(self: Arc<Self>, stop: CancellationToken) {
        match &self.cluster {
            None => self.tend_own(stop).await,
            Some(cluster) => {
                tokio::join!(self.tend_own(stop.clone()), self.attend(cluster, stop.clone()));
            }
        }
    }

    async fn tend_own(self: &Arc<Self>, stop: CancellationToken) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let lease_every = (self.options.lease_ttl / 3).max(TICK);
        let mut leased = tokio::time::Instant::now();
        // Where tasks are to stay for a short while, they do not stay for much longer.
        let trim_every = (self.options.retention / 4).clamp(TICK, TRIM_EVERY);
        let mut trimmed: Option<tokio::time::Instant> = None;
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = stop.cancelled() => return,
            }
            self.stop_overdue();
            if leased.elapsed() >= lease_every {
                leased = tokio::time::Instant::now();
                tokio::select! {
                    () = self.keep_leases() => {}
                    () = stop.cancelled() => return,
                }
            }
            if trimmed.is_none_or(|at| at.elapsed() >= trim_every) {
                trimmed = Some(tokio::time::Instant::now());
                tokio::select! {
                    () = self.clear_out() => {}
                    () = stop.cancelled() => return,
                }
            }
        }
    }

    fn stop_overdue(&self) {
        let (turn, silence) = (self.options.turn_timeout, self.options.silence_timeout);
        for control in self.schedule.controls() {
            let Some((running, silent)) = control.times() else { continue };
            if !turn.is_zero() && running > turn {
                control.stop(Stop::TimedOut(format!("The turn took longer than {turn:?}")));
            } else if !silence.is_zero() && silent > silence {
                control.stop(Stop::TimedOut(format!("The agent was silent for longer than {silence:?}")));
            }
        }
    }

    async fn keep_leases(self: &Arc<Self>) {
        self.hub.sweep();
        if self.is_draining() {
            return;
        }
        let recovered = match self.is_shared() {
            // What others leave behind is looked for more often.
            true => Box::pin(self.recover_stranded()).await.and(Box::pin(self.give_up_unused()).await),
            false => self.recover().await.map(drop),
        };
        if let Err(error) = recovered {
            tracing::warn!(%error, "abandoned tasks could not be taken up");
        }
    }

    /// Removes old tasks, and then the files of tasks that are gone.
    async fn clear_out(&self) {
        self.trim().await;
        let retention = self.options.retention;
        if retention.is_zero() {
            return;
        }
        match self.options.artifacts.store.sweep(&*self.store, retention).await {
            Ok(0) => {}
            Ok(tasks) => tracing::debug!(tasks, "files of removed tasks were removed"),
            Err(error) => tracing::warn!(%error, "files of removed tasks could not be removed"),
        }
    }

    async fn trim(&self) {
        if self.options.retention.is_zero() {
            return;
        }
        let now = now();
        let before = now - micros(self.options.retention);
        let hub = self.hub.clone();
        let in_hand: InHand = Arc::new(move |task| hub.has(task));
        let than = Older {
            before,
            // What a key did is known for as long as was promised, however soon other tasks go.
            keys: before.min(now - micros(KEY_LIFE)),
            at_rest: self.options.manners.rest_is_over.then_some(in_hand),
        };
        for _ in 0..1000 {
            match self.store.trim(than.clone(), TRIM_BATCH).await {
                Ok(n) if n < TRIM_BATCH => return,
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => {
                    tracing::warn!(%error, "old tasks could not be removed");
                    return;
                }
            }
        }
    }
}
