//! What a crash leaves behind, and what is done from time to time.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{Message, Part, Role, Task, TaskState};
use tokio_util::sync::CancellationToken;

use super::hub::Held;
use super::live::{Live, Update};
use super::schedule::Stop;
use super::{Engine, micros, now};
use crate::agent::OnCrash;
use crate::store::{StoreError, TaskRow};

/// How many abandoned tasks are taken up at once.
const BATCH: usize = 256;
/// How many finished tasks are removed at once.
const TRIM_BATCH: usize = 1000;
/// How often deadlines are looked at.
const TICK: Duration = Duration::from_millis(250);
/// How often old tasks are removed.
const TRIM_EVERY: Duration = Duration::from_secs(600);

impl Engine {
    /// Takes up the tasks whose writer is gone: start-up after a restart and takeover from a dead
    /// node are the same. Returns how many.
    pub async fn recover(self: &Arc<Self>) -> Result<usize, StoreError> {
        let mut taken = 0;
        loop {
            // Those that wait here stay without a lease until they begin, so they are seen every time.
            let most = BATCH + self.load().1;
            let rows = self.store.abandoned(&self.node, now(), most).await?;
            let mut progress = false;
            for row in &rows {
                if self.take_up(row).await? {
                    taken += 1;
                    progress = true;
                }
            }
            if rows.len() < most || !progress {
                return Ok(taken);
            }
        }
    }

    async fn take_up(self: &Arc<Self>, row: &TaskRow) -> Result<bool, StoreError> {
        if self.schedule.control(row.key).is_some() {
            return Ok(false);
        }
        if !row.leased {
            return self.take_up_waiting(row).await;
        }
        let retry = matches!(self.agent.on_crash(), OnCrash::Retry { .. });
        let Some(row) = self.store.claim(row.key, row.epoch, self.lease(), retry).await? else {
            return Ok(false);
        };
        let live = self.hub.open(&row, &self.store);
        live.loaded.get_or_try_init(|| self.fill(&live)).await?;
        live.open(row.epoch);
        let again = match self.agent.on_crash() {
            OnCrash::Fail => false,
            OnCrash::Retry { max } => row.attempts <= max,
            OnCrash::Resume => true,
        };
        let resumed = self.agent.on_crash() == OnCrash::Resume;
        match last_message(&live).filter(|_| again) {
            Some(message) => self.run_again(live, message, true, resumed),
            None => {
                tracing::info!(task = %row.id, "a task was interrupted by a restart");
                let text = "The task was interrupted by a restart";
                let message = Some(Message::from_agent(vec![Part::text(text)]));
                let metadata = nuncio_protocol::Metadata::new();
                if let Ok(seq) = live.write(Update::Status { state: TaskState::Failed, message, metadata }) {
                    let _ = live.durable(seq).await;
                }
            }
        }
        Ok(true)
    }

    /// Queues a task that found no room before. It keeps waiting without a lease, so that another
    /// crash finds it as it was.
    async fn take_up_waiting(self: &Arc<Self>, row: &TaskRow) -> Result<bool, StoreError> {
        // Whoever stored it just now is about to queue it.
        if row.updated >= self.since && row.updated > now() - micros(self.options.lease_ttl) {
            return Ok(false);
        }
        let live = self.hub.open(row, &self.store);
        live.loaded.get_or_try_init(|| self.fill(&live)).await?;
        let mut messages = unanswered(&live).into_iter();
        let Some(first) = messages.next().filter(|_| !live.committed().1.is_terminal()) else { return Ok(false) };
        live.open(live.epoch());
        live.remember(messages);
        self.run_again(live, first, false, false);
        Ok(true)
    }

    fn run_again(self: &Arc<Self>, live: Held, message: Message, claimed: bool, resumed: bool) {
        tracing::info!(task = %live.id, resumed, "a task is taken up again");
        // A task that was accepted is never turned away for lack of room.
        let room =
            self.schedule.reserve(&live.scope, &live.context_id).unwrap_or_else(|_| self.schedule.queue_regardless());
        self.submit(live, message, room, claimed, resumed);
    }

    /// Looks after deadlines, leases, abandoned and old tasks until `stop`.
    pub async fn tend(self: Arc<Self>, stop: CancellationToken) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let lease_every = (self.options.lease_ttl / 3).max(TICK);
        let mut leased = tokio::time::Instant::now();
        let mut trimmed: Option<tokio::time::Instant> = None;
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = stop.cancelled() => return,
            }
            self.stop_overdue();
            if leased.elapsed() >= lease_every {
                leased = tokio::time::Instant::now();
                self.keep_leases().await;
            }
            if trimmed.is_none_or(|at| at.elapsed() >= TRIM_EVERY) {
                trimmed = Some(tokio::time::Instant::now());
                self.trim().await;
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
        if let Err(error) = self.store.renew(self.lease()).await {
            tracing::warn!(%error, "leases could not be renewed");
        }
        if self.is_draining() {
            return;
        }
        if let Err(error) = self.recover().await {
            tracing::warn!(%error, "abandoned tasks could not be taken up");
        }
    }

    async fn trim(&self) {
        if self.options.retention.is_zero() {
            return;
        }
        let before = now() - micros(self.options.retention);
        for _ in 0..1000 {
            match self.store.trim(before, TRIM_BATCH).await {
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

/// The caller's messages that the agent has not seen, of a task whose turn has not begun.
fn unanswered(live: &Live) -> Vec<Message> {
    let is_user = |message: &&Message| message.role == Role::User;
    let newest_first = |task: &Task| task.history.iter().rev().take_while(is_user).cloned().collect::<Vec<_>>();
    let (mut messages, _) = live.read(newest_first);
    messages.reverse();
    messages
}

fn last_message(live: &Live) -> Option<Message> {
    live.read(|task| task.history.iter().rev().find(|message| message.role == Role::User).cloned()).0
}
