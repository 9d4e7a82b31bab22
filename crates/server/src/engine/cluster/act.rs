//! Messages for tasks that may be run by any node, and cancelling them.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{ContextId, Error, ErrorKind, TaskId, TaskState, codec};
use tokio::time::Instant;

use super::Cluster;
use crate::call::Call;
use crate::engine::accept::{Handle, Sent, check_decision, check_follow_up, follow_up_error, over};
use crate::engine::cancel::not_cancelable;
use crate::engine::hub::Held;
use crate::engine::live::{Incoming, Live, WriteError};
use crate::engine::manners::{LOOKS, NoRoom, PAUSE};
use crate::engine::schedule::{Cue, Full, Job, Room};
use crate::engine::{Engine, TaskJson, now, store_error};
use crate::store::{AppendError, Claim, Lease, Letter, ListQuery, Posted, Scope, Seq, StoreError, TaskKey, TaskRow};

/// How long a message may look for whoever takes it.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait before another look at who has a task, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// What came of an attempt to act on a task.
enum Acted {
    /// The message came with this event.
    With(Seq),
    /// Somebody else was faster: it is looked at anew.
    Again,
}

/// Whether somebody runs a turn of a task, or has to take it up first: not whether that is this node.
fn is_held(row: &TaskRow) -> bool {
    row.leased && (row.writer.is_some() || row.state.is_active())
}

fn failed(error: &StoreError) -> Error {
    store_error(error)
}

impl Engine {
    /// A message for a task that exists, whoever runs it.
    pub(in crate::engine) async fn follow_up_anywhere(
        self: &Arc<Self>,
        row: &TaskRow,
        incoming: Incoming,
    ) -> Result<Sent, Error> {
        let Some(cluster) = &self.cluster else { return Err(Error::internal()) };
        let (key, deadline) = (row.key, Instant::now() + PATIENCE);
        let (mut row, mut pause) = (row.clone(), PAUSES.0);
        loop {
            let live = self.open(&row).await?;
            self.check_idle(&live).await?;
            if let Acted::With(from) = self.act(cluster, &live, &row, &incoming).await? {
                match self.reach(&live, from).await {
                    Ok(()) => return Ok(Sent::Task(Handle::at(self.clone(), live, from))),
                    // Somebody has taken the task over before the message was stored.
                    Err(error) => match live.broken() {
                        Some(AppendError::Store(_)) | None => return Err(error),
                        Some(_) => {}
                    },
                }
            }
            drop(live);
            if Instant::now() >= deadline {
                return Err(busy());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
            if let Some(key) = &incoming.key
                && let Some(again) = self.said_before(&row.scope, key).await?
            {
                return Ok(again);
            }
            row = self.row_of(key, &row.id).await?;
            check_follow_up(&row, &incoming.message)?;
        }
    }

    async fn row_of(&self, key: TaskKey, id: &TaskId) -> Result<TaskRow, Error> {
        let row = self.store.task_by_key(key).await.map_err(|error| failed(&error))?;
        row.ok_or_else(|| Error::task_not_found(id.as_str()))
    }

    async fn act(
        self: &Arc<Self>,
        cluster: &Arc<Cluster>,
        live: &Held,
        row: &TaskRow,
        incoming: &Incoming,
    ) -> Result<Acted, Error> {
        let gate = live.gate.lock().await;
        check_decision(live, &incoming.message)?;
        if live.is_open() {
            self.check_next(live)?;
            return match live.deliver(Box::new(incoming.clone())) {
                Ok(Ok(seq)) => Ok(Acted::With(seq)),
                // Over, or lost: the next look tells which.
                Ok(Err(_)) | Err(_) => Ok(Acted::Again),
            };
        }
        if is_held(row) {
            if row.writer.as_ref() == Some(&cluster.node()) {
                // Its turn is about to begin or to end here.
                return Ok(Acted::Again);
            }
            drop(gate);
            self.check_next(live)?;
            return self.post(cluster, live, row, incoming).await;
        }
        if live.version() != (row.epoch, row.seq) {
            return Ok(Acted::Again);
        }
        if row.state.is_active() {
            return match live.say_unheld(incoming.clone()) {
                Ok(seq) => Ok(Acted::With(seq)),
                Err(WriteError::Store(AppendError::Fenced) | WriteError::Closed) => Ok(Acted::Again),
                Err(error) => Err(follow_up_error(live, &error)),
            };
        }
        self.next_turn_anywhere(live, row, incoming).await
    }

    /// Begins another turn of a task that rests: here, if there is room and its context is free.
    async fn next_turn_anywhere(
        self: &Arc<Self>,
        live: &Held,
        row: &TaskRow,
        incoming: &Incoming,
    ) -> Result<Acted, Error> {
        self.recall_waiting(live).await.map_err(|error| failed(&error))?;
        self.check_next(live)?;
        let mut room = self.room_anywhere(&live.scope, &live.context_id).await?;
        if room == Room::Now {
            let claimed = self.claim_row(live, row, self.lease()).await;
            if let Ok(Claim::Taken(_)) = claimed {
                return match live.begin(incoming.clone()) {
                    Ok(seq) => {
                        let cue = Cue::waking(incoming.message.clone());
                        self.submit(Job::new(self.hub.hold((**live).clone()), cue, true), room);
                        Ok(Acted::With(seq))
                    }
                    Err(_) => {
                        self.strand(live);
                        self.unreserve(room, &live.scope, &live.context_id);
                        Ok(Acted::Again)
                    }
                };
            }
            self.unreserve(room, &live.scope, &live.context_id);
            match claimed.map_err(|error| failed(&error))? {
                // Another turn of the same context runs: this one waits for it.
                Claim::Busy => room = Room::Anywhere,
                _ => return Ok(Acted::Again),
            }
        }
        debug_assert_eq!(room, Room::Anywhere);
        let Claim::Taken(row) = self.claim_row(live, row, Self::no_lease()).await.map_err(|error| failed(&error))?
        else {
            return Ok(Acted::Again);
        };
        let begun = live.begin(incoming.clone());
        live.set_aside();
        match begun {
            Ok(seq) => {
                self.waits(live.key(), row.epoch);
                Ok(Acted::With(seq))
            }
            Err(_) => Ok(Acted::Again),
        }
    }

    /// Claims a task as its row says it is, and opens it as it is then.
    pub(super) async fn claim_row(&self, live: &Held, row: &TaskRow, lease: Lease) -> Result<Claim, StoreError> {
        self.claim_again(live, row, lease, false).await
    }

    /// The same, perhaps as one more attempt at the same turn.
    pub(super) async fn claim_again(
        &self,
        live: &Held,
        row: &TaskRow,
        lease: Lease,
        retry: bool,
    ) -> Result<Claim, StoreError> {
        let claim = self.store.claim(row.key, row.epoch, lease, retry).await?;
        if let Claim::Taken(row) = &claim {
            // What was written meanwhile belongs to it.
            let caught_up = self.catch_up(live, row.seq).await;
            if caught_up.is_err() || !live.open(row) {
                self.claimed_in_vain(row);
                return caught_up.map(|()| Claim::Lost);
            }
        }
        Ok(claim)
    }

    /// Leaves a letter for whoever runs the task, and waits until it is taken.
    async fn post(
        self: &Arc<Self>,
        cluster: &Arc<Cluster>,
        live: &Held,
        row: &TaskRow,
        incoming: &Incoming,
    ) -> Result<Acted, Error> {
        let message = codec::encode(&incoming.message);
        let letter = Letter { message, key: incoming.key.clone(), at: now() };
        let shared = cluster.shared();
        let id = shared.post(row.key, letter).await.map_err(|error| failed(&error))?;
        cluster.metrics.posted.inc();
        let (mut row, deadline) = (row.clone(), Instant::now() + PATIENCE);
        loop {
            if let Some(writer) = &row.writer {
                cluster.link.outbox.orders(writer);
            }
            moved(live, row.seq).await;
            match shared.posted(id).await.map_err(|error| failed(&error))? {
                Posted::Taken(seq) => return Ok(Acted::With(seq)),
                Posted::Gone => return Ok(Acted::Again),
                Posted::Waits => {}
            }
            row = self.row_of(row.key, &row.id).await?;
            // A letter with a key waits for whoever sends with that key here: for this one, once the task has come here.
            let is_own = incoming.key.is_some() && row.writer.as_ref() == Some(&cluster.node());
            if is_held(&row) && !is_own && Instant::now() < deadline {
                continue;
            }
            let state = TaskState::from_number(row.state.0.into()).filter(|state| state.is_terminal());
            return match (shared.recall(id).await.map_err(|error| failed(&error))?, state) {
                (Posted::Taken(seq), _) => Ok(Acted::With(seq)),
                (_, Some(state)) => Err(over(&row.id, state)),
                (Posted::Waits | Posted::Gone, None) => Ok(Acted::Again),
            };
        }
    }

    /// A place for a turn that any node may run.
    pub(in crate::engine) async fn room_anywhere(&self, scope: &Scope, context: &ContextId) -> Result<Room, NoRoom> {
        let Some(cluster) = &self.cluster else { return Ok(Room::Later) };
        if let Some(words) = self.options.manners.busy {
            let mut looks = 0;
            while self.is_context_busy(scope, context).await.unwrap_or(false) {
                looks += 1;
                if looks >= LOOKS {
                    return Err(NoRoom::Busy(words));
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        let limits = self.options.per_caller;
        let (mut running, mut queued) = (0, 0);
        if limits.running.is_some() || limits.queued.is_some() {
            // Without an answer, what this node knows by itself has to do.
            (running, queued) = cluster.shared().load(&scope.owner).await.unwrap_or_default();
        }
        if limits.running.is_none_or(|most| running < most.max(1)) && self.schedule.reserve_now(scope, context) {
            return Ok(Room::Now);
        }
        if limits.queued.is_some_and(|most| queued >= most) {
            return Err(NoRoom::Full(Full::Caller));
        }
        if cluster.waiting.lock().len() >= self.schedule.most_queued() {
            return Err(NoRoom::Full(Full::Server));
        }
        Ok(Room::Anywhere)
    }

    /// Whether a turn of this context runs or waits anywhere.
    async fn is_context_busy(&self, scope: &Scope, context: &ContextId) -> Result<bool, StoreError> {
        if self.schedule.is_busy(scope, context) {
            return Ok(true);
        }
        let query = ListQuery {
            scope: scope.clone(),
            context_id: Some(context.clone()),
            state: None,
            since: None,
            after: None,
            limit: 50,
            bytes: usize::MAX,
        };
        let page = self.store.list(query).await?;
        Ok(page.tasks.iter().any(|row| row.state.is_active() || row.writer.is_some()))
    }

    /// Cancels a task, whoever runs it.
    pub(in crate::engine) async fn cancel_anywhere(
        self: &Arc<Self>,
        call: &Call,
        id: &TaskId,
    ) -> Result<TaskJson, Error> {
        let Some(cluster) = &self.cluster else { return Err(Error::internal()) };
        let (mut row, deadline) = (self.find(&call.scope, id).await?, Instant::now() + PATIENCE * 2);
        let mut is_first = true;
        loop {
            let live = self.open(&row).await?;
            let state = live.committed().1;
            let rests = state.is_interrupted() && !is_held(&row) && !live.is_open();
            if self.options.manners.rest_is_over && is_first && (state.is_terminal() || rests) {
                return Err(not_cancelable(id, state));
            }
            if state.is_terminal() {
                return match state {
                    TaskState::Canceled => self.current_anywhere(&live).await,
                    state => Err(not_cancelable(id, state)),
                };
            }
            if Instant::now() >= deadline {
                return Err(busy());
            }
            self.end_anywhere(cluster, &live, &row).await?;
            is_first = false;
            row = self.row_of(row.key, id).await?;
        }
    }

    /// One step towards the end of a task.
    async fn end_anywhere(self: &Arc<Self>, cluster: &Arc<Cluster>, live: &Held, row: &TaskRow) -> Result<(), Error> {
        let is_here = live.is_open() || self.schedule.control(row.key).is_some();
        if is_here || (is_held(row) && row.writer.as_ref() == Some(&cluster.node())) {
            match self.stop(live).await {
                // Somebody else has it now, or its context.
                Err(error) if error.kind == ErrorKind::Unavailable => tokio::time::sleep(PAUSES.0).await,
                stopped => stopped?,
            }
            // Not if its turn was lost in between: then somebody has to take it up.
            let _ = tokio::time::timeout(PAUSES.1, live.wait(|_, state| state.is_terminal())).await;
            return Ok(());
        }
        if is_held(row) {
            cluster.shared().ask_cancel(row.key).await.map_err(|error| failed(&error))?;
            if let Some(writer) = &row.writer {
                cluster.link.outbox.orders(writer);
            }
            moved(live, row.seq).await;
            return Ok(());
        }
        let _gate = live.gate.lock().await;
        let rested = !row.state.is_active();
        let claimed = self.claim_row(live, row, Self::no_lease()).await.map_err(|error| failed(&error))?;
        if let Claim::Taken(_) = claimed
            && let Ok(seq) = live.write(self.canceled())
        {
            if live.durable(seq).await.is_ok() && rested {
                self.tell_agent(live);
            }
        } else {
            live.set_aside();
            tokio::time::sleep(PAUSES.0).await;
        }
        Ok(())
    }
}

/// Waits until a task has gone on beyond `seq` here, or for a second.
async fn moved(live: &Live, seq: Seq) {
    let wait = live.wait(|committed, _| committed > seq);
    if let Ok(Err(_)) = tokio::time::timeout(super::LOOK_EVERY, wait).await {
        // What has broken off is read anew a little later.
        tokio::time::sleep(PAUSES.1).await;
    }
}

fn busy() -> Error {
    Error::new(ErrorKind::Unavailable, "The task is busy elsewhere: try again")
}
