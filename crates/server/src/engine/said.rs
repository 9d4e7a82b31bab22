//! Which of the callers' messages the turns of a task have taken, as its log tells it.

use std::collections::VecDeque;

use nuncio_protocol::{Message, MessageId, Role, StreamResponse, Task, TaskState, TaskStatusUpdateEvent, codec};

use super::Engine;
use super::event::TURN;
use super::live::Live;
use crate::store::{StoreError, TaskRow};

/// How many events are read at once.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// What a task was told.
#[derive(Debug, Default)]
pub(super) struct Said {
    state: TaskState,
    /// What the next turn of a task that rested begins with.
    first: Option<Message>,
    /// What its turn was given last: the message that it began with, or the answer to a question.
    taken: Option<Message>,
    /// What arrived meanwhile.
    waiting: VecDeque<Message>,
}

impl Said {
    /// The message of the turn that was interrupted, and those that wait behind it.
    pub(super) fn split(mut self) -> (Option<Message>, VecDeque<Message>) {
        let current = self.taken.or(self.first).or_else(|| self.waiting.pop_front());
        (current, self.waiting)
    }

    fn begun(&mut self, task: Task) {
        self.state = task.status.state;
        self.first = task.history.into_iter().rfind(|message| message.role == Role::User);
    }

    fn status(&mut self, update: &TaskStatusUpdateEvent, messages: Vec<Message>) {
        let before = std::mem::replace(&mut self.state, update.status.state);
        let came = !messages.is_empty();
        for message in messages {
            match self.state {
                TaskState::Submitted if before.is_interrupted() => self.first = Some(message),
                TaskState::Working if before.is_interrupted() => self.taken = Some(message),
                _ => self.waiting.push_back(message),
            }
        }
        if before == TaskState::Submitted && self.state == TaskState::Working && !came {
            self.taken = self.first.take();
        }
        if let Some(id) = update.metadata.get(TURN).and_then(|turn| turn["messageId"].as_str())
            && let Some(place) = self.waiting.iter().position(|message| message.message_id == MessageId::from(id))
        {
            self.taken = self.waiting.remove(place);
        }
    }
}

impl Engine {
    /// What a task was told whose turn was interrupted.
    pub(super) async fn said(&self, row: &TaskRow) -> Result<Said, StoreError> {
        let unreadable = |what: String| StoreError::Corrupt { at: format!("task {}", row.id), what };
        let mut messages = self.store.messages(row.key).await?.into_iter().peekable();
        let (mut said, mut seq) = (Said::default(), 0);
        while seq < row.seq {
            let events = self.store.events(row.key, seq, PAGE, PAGE_BYTES).await?;
            let Some(last) = events.last() else { break };
            seq = last.seq;
            for event in events {
                let mut came = Vec::new();
                while let Some((_, message)) = messages.next_if(|(at, _)| *at <= event.seq) {
                    came.push(codec::decode(&message).map_err(|error| unreadable(error.to_string()))?);
                }
                match codec::decode(&event.body).map_err(|error| unreadable(error.to_string()))? {
                    StreamResponse::Task(task) => said.begun(task),
                    StreamResponse::StatusUpdate(update) => said.status(&update, came),
                    _ => {}
                }
            }
        }
        Ok(said)
    }

    /// What a task was told since it rested, or ever, and whose turn has not begun.
    pub(super) async fn unanswered(&self, live: &Live, row: &TaskRow) -> Result<Vec<Message>, StoreError> {
        if row.snapshot_seq == 0 {
            let from_user = |task: &Task| {
                let history = task.history.iter();
                history.filter(|message| message.role == Role::User).cloned().collect()
            };
            return Ok(live.read(from_user).0);
        }
        let messages = self.store.messages(row.key).await?.into_iter();
        let since = messages.filter(|(seq, _)| *seq > row.snapshot_seq);
        since
            .map(|(_, message)| {
                let unreadable = |what: String| StoreError::Corrupt { at: format!("task {}", row.id), what };
                codec::decode(&message).map_err(|error| unreadable(error.to_string()))
            })
            .collect()
    }
}
