//! A task that somebody waits for.

use std::sync::Arc;

use nuncio_protocol::{ContextId, Error, Message, Task, TaskId, TaskState};

use crate::engine::hub::Held;
use crate::engine::subscribe::{Close, Subscription};
use crate::engine::{Engine, TaskJson, append_error};
use crate::store::Seq;

/// What became of a message.
pub enum Sent {
    /// The agent answered directly.
    Message(Message),
    /// A task works on it.
    Task(Handle),
}

/// A task that a message started or continued.
pub struct Handle {
    engine: Arc<Engine>,
    live: Held,
    /// The event that the message brought.
    from: Seq,
}

impl Handle {
    /// A task that this message began.
    pub(in crate::engine) fn new(engine: Arc<Engine>, live: Held) -> Self {
        Self { engine, live, from: 1 }
    }

    /// A task, and the event that a message brought to it.
    pub(in crate::engine) fn at(engine: Arc<Engine>, live: Held, from: Seq) -> Self {
        Self { engine, live, from }
    }

    /// Waits until the task ends or waits for the caller.
    pub async fn settled(&self) -> Result<TaskJson, Error> {
        let settled = |seq, state| self.is_settled(seq, state);
        if let Err(error) = self.live.wait(settled).await {
            if self.engine.is_shared() {
                return Box::pin(self.engine.settled_elsewhere(&self.live, settled)).await;
            }
            return Err(append_error(&error));
        }
        match self.engine.current(&self.live).await {
            Err(_) if self.engine.is_shared() => Box::pin(self.engine.settled_elsewhere(&self.live, settled)).await,
            task => task,
        }
    }

    /// The task, if it ended or waits for the caller before anybody could wait for that.
    pub async fn settled_already(&self) -> Result<Option<TaskJson>, Error> {
        let (seq, state) = self.live.committed();
        if !self.is_settled(seq, state) {
            return Ok(None);
        }
        let task = match self.engine.current(&self.live).await {
            // Another server may have it by now: whoever waits for it finds out.
            Err(_) if self.engine.is_shared() => return Ok(None),
            task => task?,
        };
        // Those who ask at the same time come first, so that the answers leave together: waking each reader by
        // itself costs more than all else that is left to do.
        tokio::task::yield_now().await;
        Ok(Some(task))
    }

    fn is_settled(&self, seq: Seq, state: TaskState) -> bool {
        seq >= self.from && (state.is_terminal() || state.is_interrupted())
    }

    /// The task as it is now.
    pub async fn now(&self) -> Result<TaskJson, Error> {
        if self.engine.is_shared() {
            return Box::pin(self.engine.current_anywhere(&self.live)).await;
        }
        self.engine.current(&self.live).await
    }

    /// The tree of what this task was shown as: the one in memory, if nothing has changed since, which takes a fraction
    /// of reading the JSON.
    pub fn tree(&self, shown: &TaskJson) -> Result<Task, Error> {
        let same = self.live.snapshot().filter(|(_, snapshot)| snapshot.as_ptr() == shown.0.as_ptr());
        if let Some((seq, _)) = same
            && let (task, at) = self.live.read(Task::clone)
            && at == seq
        {
            return Ok(task);
        }
        shown.task()
    }

    /// Follows the task from this message on: the task itself first, with at most so many messages of history, then what
    /// happens to it.
    pub async fn stream(&self, history: Option<i32>) -> Result<Subscription, Error> {
        let waits = self.engine.options.manners.stream_waits;
        let close = if waits { Close::WhenOver } else { Close::WhenInputRequired };
        // A new task has one message: what is stored of it is shown, unless that is too much.
        if self.from == 1 && history.is_none_or(|most| most > 0) {
            return Ok(Subscription::after(self.engine.clone(), self.hold(), 0, close));
        }
        Subscription::with_snapshot(self.engine.clone(), self.hold(), self.from, close, history).await
    }

    fn hold(&self) -> Held {
        self.engine.hub.hold(self.live.clone())
    }

    /// The task's id.
    pub fn task_id(&self) -> &TaskId {
        &self.live.id
    }

    /// The id of its context.
    pub fn context_id(&self) -> &ContextId {
        &self.live.context_id
    }
}
