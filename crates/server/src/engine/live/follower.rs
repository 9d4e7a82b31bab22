//! A task that another node writes: what is in the log is added here, and readers see no difference.

use std::sync::Arc;

use nuncio_protocol::{Message, StreamResponse, TaskState};

use super::{Incoming, Live, WriteError};
use crate::engine::event::{Event, Update};
use crate::store::{LogEvent, Seq};

impl Live {
    /// Whether a turn is written here.
    pub(crate) fn is_open(&self) -> bool {
        self.writer.lock().open
    }

    /// The last event that is known here, if others may have written more: none while the task is written or has broken
    /// off here.
    pub(crate) fn follows_from(&self) -> Option<Seq> {
        if !self.loaded.initialized() {
            return None;
        }
        let writer = self.writer.lock();
        let feed = self.feed.lock();
        let idle = !writer.open && writer.early.is_none() && feed.pending.is_empty() && feed.why_lost().is_none();
        idle.then_some(writer.seq)
    }

    /// Adds what another node has written, with the messages that came along. Events that are known are left out.
    pub(crate) fn advance(&self, events: Vec<(LogEvent, StreamResponse)>, said: Vec<(Seq, Message)>) {
        let mut writer = self.writer.lock();
        let mut said = said.into_iter().peekable();
        let mut last = None;
        for (LogEvent { seq, body }, event) in events {
            {
                let mut feed = self.feed.lock();
                if writer.open || writer.seq + 1 != seq || feed.why_lost().is_some() {
                    continue;
                }
                let state = match &event {
                    StreamResponse::StatusUpdate(update) => Some(update.status.state),
                    StreamResponse::Task(task) => Some(task.status.state),
                    _ => None,
                };
                feed.pending.push_back(Arc::new(Event::written(seq, body, state, None)));
            }
            writer.fold.apply(event);
            writer.seq = seq;
            writer.mailbox.clear();
            writer.knows_all = false;
            while let Some((at, message)) = said.next_if(|(at, _)| *at <= seq) {
                if at == seq {
                    writer.fold.say(message);
                }
            }
            last = Some(seq);
        }
        // Before anyone else adds to what is pending.
        if let Some(seq) = last {
            self.committed_up_to(seq);
        }
        drop(writer);
    }

    /// The lease under which the task is written, by whomever.
    pub(crate) fn set_epoch(&self, epoch: i64) {
        let mut writer = self.writer.lock();
        if !writer.open {
            writer.epoch = writer.epoch.max(epoch);
        }
    }

    /// Leaves the task to whoever takes it up.
    pub(crate) fn set_aside(&self) {
        self.writer.lock().open = false;
    }

    /// Writes to a task that nobody holds, under the lease that it was last held under. Whoever takes it up at the same
    /// time wins, and this is refused then.
    pub(crate) fn write_unheld(
        self: &Arc<Self>,
        update: Update,
        incoming: Option<Incoming>,
    ) -> Result<Seq, WriteError> {
        let mut writer = self.writer.lock();
        let state = writer.fold.state();
        if writer.open || state.is_terminal() {
            return Err(WriteError::Closed);
        }
        (writer.open, writer.life) = (true, self.link.as_ref().map_or(0, |link| link.life_of("")));
        let written = self.write_locked(&mut writer, update, incoming);
        writer.open = false;
        written
    }

    /// Adds a message to a task that waits for its turn.
    pub(crate) fn say_unheld(self: &Arc<Self>, incoming: Incoming) -> Result<Seq, WriteError> {
        self.write_unheld(Update::state(TaskState::Submitted), Some(incoming))
    }
}
