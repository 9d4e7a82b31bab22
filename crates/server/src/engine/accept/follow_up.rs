//! A message for a task that exists: an answer to its running turn, or its next turn.

use std::sync::Arc;

use nuncio_protocol::{Error, ErrorKind, Message, TaskId, TaskState};

use super::{Handle, Sent};
use crate::engine::approval::is_late;
use crate::engine::live::{Incoming, Live, WriteError};
use crate::engine::schedule::{Cue, Full, Job, Room};
use crate::engine::weight;
use crate::engine::{Engine, append_error, store_error};
use crate::store::{Claim, Lease, Seq, StoreError, TaskRow};

impl Engine {
    /// A message for a task that exists: an answer to its running turn, or its next turn.
    pub(super) async fn follow_up(self: &Arc<Self>, row: &TaskRow, mut incoming: Box<Incoming>) -> Result<Sent, Error> {
        incoming.message.task_id = row.id.clone();
        if self.is_shared() {
            return Box::pin(self.follow_up_anywhere(row, *incoming)).await;
        }
        let mut live = self.open(row).await?;
        self.check_idle(&live).await?;
        self.check_next(&live)?;
        if is_broken_off(&live) {
            Box::pin(self.recover_now(&live)).await.map_err(|error| store_error(&error))?;
            live = self.open(row).await?;
        }
        let gate = live.gate.lock().await;
        check_decision(&live, &incoming.message)?;
        let from = match live.deliver(incoming) {
            Ok(written) => written.map_err(|error| follow_up_error(&live, &error))?,
            Err(_) if is_broken_off(&live) => return Err(busy_elsewhere()),
            Err(incoming) => self.next_turn(&live, incoming).await?,
        };
        live.durable(from).await.map_err(|error| append_error(&error))?;
        drop(gate);
        Ok(Sent::Task(Handle::at(self.clone(), live, from)))
    }

    /// Whether a task can have another message.
    pub(in crate::engine) fn check_next(&self, live: &Live) -> Result<(), Error> {
        let ((state, messages, bytes), _) =
            live.read(|task| (task.status.state, task.history.len(), weight::of(&task.history)));
        if state.is_terminal() {
            return Err(over(&live.id, state));
        }
        if messages >= self.options.max_history || bytes >= self.options.max_history_bytes {
            let text = "The task has all the messages it can hold: send a new one with its contextId and without its \
                        taskId";
            return Err(Error::new(ErrorKind::UnsupportedOperation, text).fact("taskId", live.id.as_str()));
        }
        let waiting = live.waiting();
        if waiting >= self.options.per_caller.queued.unwrap_or(usize::MAX) {
            return Err(no_room(&Full::Caller));
        }
        if waiting >= self.options.max_queued_turns {
            return Err(no_room(&Full::Server));
        }
        Ok(())
    }

    /// Begins another turn of a task that rests.
    async fn next_turn(self: &Arc<Self>, live: &Arc<Live>, incoming: Box<Incoming>) -> Result<Seq, Error> {
        self.recall_waiting(live).await.map_err(|error| store_error(&error))?;
        self.check_next(live)?;
        let room = self.room_for(&live.scope, &live.context_id).await?;
        let cue = Cue::waking(incoming.message.clone());
        match self.claim_and_begin(live, incoming, room).await {
            Ok(from) => {
                self.submit(Job::new(self.hub.hold(live.clone()), cue, room == Room::Now), room);
                Ok(from)
            }
            Err(error) => {
                self.unreserve(room, &live.scope, &live.context_id);
                Err(error)
            }
        }
    }

    async fn claim_and_begin(&self, live: &Arc<Live>, incoming: Box<Incoming>, room: Room) -> Result<Seq, Error> {
        self.claim_now(live, self.lease_for(room)).await?;
        live.begin(*incoming).map_err(|error| {
            self.strand(live);
            follow_up_error(live, &error)
        })
    }

    /// Claims a task for a caller who waits.
    pub(in crate::engine) async fn claim_now(&self, live: &Arc<Live>, lease: Lease) -> Result<(), Error> {
        if self.claim(live, lease).await.map_err(|error| store_error(&error))? {
            return Ok(());
        }
        Err(busy_elsewhere())
    }

    /// Claims a task as it is in memory and opens it. False when another node was first; then it is
    /// read anew by the next who asks for it.
    pub(in crate::engine) async fn claim(&self, live: &Arc<Live>, lease: Lease) -> Result<bool, StoreError> {
        match self.store.claim(live.key(), live.epoch(), lease, false).await? {
            Claim::Lost | Claim::Busy => live.lose(),
            Claim::Taken(row) if live.open(&row) => return Ok(true),
            Claim::Taken(row) => self.claimed_in_vain(&row),
        }
        Ok(false)
    }

    /// Only a turn that starts at once needs the lease: what waits may be started by any node, and
    /// after a crash it is known not to have begun.
    pub(super) fn lease_for(&self, room: Room) -> Lease {
        match room {
            Room::Now => self.lease(),
            Room::Later | Room::Anywhere => Self::no_lease(),
        }
    }
}

/// Whether the task works and nobody works on it: its turn could not be stored, and is still to be taken up again.
fn is_broken_off(live: &Live) -> bool {
    !live.is_open() && live.read(|task| matches!(task.status.state, TaskState::Submitted | TaskState::Working)).0
}

/// A decision about what nobody waits for any more is no order to the agent.
pub(in crate::engine) fn check_decision(live: &Live, message: &Message) -> Result<(), Error> {
    if !live.read(|task| is_late(task, message)).0 {
        return Ok(());
    }
    let text = "This approval is not waited for any more: it was decided, or withdrawn, or has expired";
    Err(Error::new(ErrorKind::UnsupportedOperation, text).fact("taskId", live.id.as_str()))
}

fn busy_elsewhere() -> Error {
    Error::new(ErrorKind::Unavailable, "The task is busy elsewhere: try again")
}

pub(in crate::engine) fn check_follow_up(row: &TaskRow, message: &Message) -> Result<(), Error> {
    if !message.context_id.is_empty() && message.context_id != row.context_id {
        return Err(Error::invalid("message.contextId", "is not the context of this task: leave it out"));
    }
    match TaskState::from_number(row.state.0.into()) {
        Some(state) if state.is_terminal() => Err(over(&row.id, state)),
        _ => Ok(()),
    }
}

/// Terminal tasks do not change: a refinement is a new task in the same context.
pub(in crate::engine) fn over(id: &TaskId, state: TaskState) -> Error {
    let text =
        format!("The task is over ({}): send a new message with its contextId and without its taskId", state.name());
    Error::new(ErrorKind::UnsupportedOperation, text).fact("taskId", id.as_str())
}

pub(in crate::engine) fn follow_up_error(live: &Live, error: &WriteError) -> Error {
    match error {
        WriteError::Closed => over(&live.id, live.read(|task| task.status.state).0),
        WriteError::Store(error) => append_error(error),
    }
}

pub(in crate::engine) fn no_room(full: &Full) -> Error {
    match full {
        Full::Server => Error::new(ErrorKind::Unavailable, "The server has all the work it can hold: try again later"),
        Full::Caller => {
            let text = "You have all the work waiting that one caller may have: try again when some of it is done";
            Error::new(ErrorKind::TooMany, text)
        }
    }
}
