//! Which of the callers' messages the turns of a task have taken, as its log tells it.

use std::collections::VecDeque;
use std::mem;

use nuncio_protocol::{Message, MessageId, Role, StreamResponse, Task, TaskState, TaskStatusUpdateEvent, codec};

use super::Engine;
use super::event::TURN;
use super::live::Live;
use super::schedule::Cue;
use crate::store::{Seq, StoreError, TaskRow};

/// How many events are read at once.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// What a task was told.
#[derive(Debug, Default)]
pub(super) struct Said {
    state: TaskState,
    /// What the next turn of a task that rested begins with.
    first: Option<Cue>,
    /// What its turn was given last: the message that it began with, or the answer to a question.
    taken: Option<Cue>,
    /// What arrived meanwhile.
    waiting: VecDeque<Message>,
    /// The last event that counts.
    seq: Seq,
}

/// What a task has still to answer.
pub(super) struct Line {
    /// The message of the turn that was interrupted, or that has not begun.
    pub(super) first: Option<Cue>,
    /// Those that wait behind it.
    pub(super) waiting: VecDeque<Message>,
    /// The last event that counts.
    pub(super) seq: Seq,
}

impl Said {
    pub(super) fn line(mut self) -> Line {
        let first = self.taken.or(self.first).or_else(|| self.waiting.pop_front().map(Cue::from));
        Line { first, waiting: self.waiting, seq: self.seq }
    }

    fn begun(&mut self, task: Task) {
        self.state = task.status.state;
        self.first = task.history.into_iter().rfind(|message| message.role == Role::User).map(Cue::from);
    }

    fn status(&mut self, update: &TaskStatusUpdateEvent, messages: Vec<Message>) {
        let before = mem::replace(&mut self.state, update.status.state);
        let came = !messages.is_empty();
        for message in messages {
            let woke = update.status.timestamp;
            match self.state {
                // The turn before it is over.
                TaskState::Submitted if before.is_interrupted() => {
                    (self.first, self.taken) = (Some(Cue { message, woke }), None);
                }
                TaskState::Working if before.is_interrupted() => self.taken = Some(Cue { message, woke }),
                _ => self.waiting.push_back(message),
            }
        }
        if before == TaskState::Submitted && self.state == TaskState::Working && !came {
            self.taken = self.first.take();
        }
        if let Some(id) = update.metadata.get(TURN).and_then(|turn| turn["messageId"].as_str())
            && let Some(place) = self.waiting.iter().position(|message| message.message_id == MessageId::from(id))
        {
            self.taken = self.waiting.remove(place).map(Cue::from);
        }
    }
}

impl Engine {
    /// What a task was told so far.
    pub(super) async fn said(&self, row: &TaskRow) -> Result<Said, StoreError> {
        let unreadable = |what: String| StoreError::Corrupt { at: format!("task {}", row.id), what };
        let mut messages = self.store.messages(row.key).await?.into_iter().peekable();
        let mut said = Said::default();
        while said.seq < row.seq {
            let events = self.store.events(row.key, said.seq, PAGE, PAGE_BYTES).await?;
            if events.is_empty() {
                break;
            }
            for event in events.into_iter().filter(|event| event.seq <= row.seq) {
                said.seq = event.seq;
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

    /// What a task was told whose turn has not begun.
    pub(super) async fn unanswered(&self, live: &Live, row: &TaskRow) -> Result<Line, StoreError> {
        if row.snapshot_seq > 0 {
            return Ok(self.said(row).await?.line());
        }
        // It never rested, so that it has answered nothing.
        let from_user = |task: &Task| {
            let history = task.history.iter();
            history.filter(|message| message.role == Role::User).cloned().collect()
        };
        let (mut waiting, seq): (VecDeque<Message>, Seq) = live.read(from_user);
        Ok(Line { first: waiting.pop_front().map(Cue::from), waiting, seq })
    }

    /// Puts back what still waits for a task at rest, if only the log tells: the turn that asked ended with its server.
    pub(super) async fn recall_waiting(&self, live: &Live) -> Result<(), StoreError> {
        if live.knows_what_waits() {
            return Ok(());
        }
        let mut said = Said { seq: live.version().1, ..Said::default() };
        if !self.store.messages(live.key()).await?.is_empty()
            && let Some(row) = self.store.task_by_key(live.key()).await?
        {
            said = self.said(&row).await?;
        }
        live.set_mailbox(said.waiting, said.seq);
        Ok(())
    }
}
