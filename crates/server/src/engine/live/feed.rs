//! What is durable of a task in memory, as its readers see it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::TaskState;

use super::Live;
use crate::engine::event::Event;
use crate::store::{Acknowledge, AppendError, Seq};

/// How much of a task's tail stays in memory for its readers; older events come from the store.
const TAIL_EVENTS: usize = 512;
const TAIL_BYTES: usize = 1 << 20;

/// How far a writer may run ahead of the store.
const AHEAD: Seq = 512;

/// The durable end of a task's log.
#[derive(Default)]
pub(super) struct Feed {
    pub(super) committed: Seq,
    pub(super) state: TaskState,
    /// Handed to the store, not yet durable.
    pub(super) pending: VecDeque<Arc<Event>>,
    /// The durable tail.
    pub(super) tail: VecDeque<Arc<Event>>,
    pub(super) tail_bytes: usize,
    /// The whole task where its last turn ended or rests.
    pub(super) snapshot: Option<(Seq, Bytes)>,
    pub(super) broken: Option<AppendError>,
    /// Whether nothing more may be written: it breaks off when the fate of what is pending is known.
    pub(super) cut_off: bool,
}

/// What a reader learns from the feed.
pub(crate) struct Progress {
    pub(crate) committed: Seq,
    pub(crate) state: TaskState,
    /// Whether the events asked for were in memory.
    pub(crate) found: bool,
}

impl Feed {
    /// Why nothing more can be written, if that is so.
    pub(super) fn why_lost(&self) -> Option<AppendError> {
        self.broken.clone().or_else(|| self.cut_off.then_some(AppendError::Fenced))
    }
}

impl Live {
    /// Copies the durable events after `after` that are in memory, and says how far the log goes.
    pub(crate) fn follow(&self, after: Seq, into: &mut Vec<Arc<Event>>) -> Progress {
        let feed = self.feed.lock();
        let first = feed.tail.front().map_or(feed.committed + 1, |event| event.seq);
        let found = after + 1 >= first;
        if found {
            let skip = usize::try_from(after + 1 - first).unwrap_or(usize::MAX);
            into.extend(feed.tail.iter().skip(skip).cloned());
        }
        Progress { committed: feed.committed, state: feed.state, found }
    }

    /// Whether the log has broken off under this task.
    pub(crate) fn broken(&self) -> Option<AppendError> {
        self.feed.lock().broken.clone()
    }

    /// Whether nothing more can be written here.
    pub(crate) fn is_lost(&self) -> bool {
        self.feed.lock().why_lost().is_some()
    }

    /// Whether that is because this node may not.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.feed.lock().cut_off
    }

    /// Breaks off when the fate of what is pending is known.
    pub(super) fn leave_rest(&self) {
        let mut feed = self.feed.lock();
        feed.cut_off = true;
        if feed.pending.is_empty() {
            feed.broken.get_or_insert(AppendError::Fenced);
        }
        drop(feed);
        self.moved.notify_waiters();
        self.lost.notify_waiters();
        self.answered.notify_one();
    }

    /// Resolves when the log has broken off under this task.
    pub(crate) async fn lost(&self) {
        loop {
            let lost = self.lost.notified();
            tokio::pin!(lost);
            lost.as_mut().enable();
            if self.is_lost() {
                return;
            }
            lost.await;
        }
    }

    pub(super) fn break_off(&self, why: AppendError) {
        let mut feed = self.feed.lock();
        feed.pending.clear();
        feed.broken.get_or_insert(why);
        drop(feed);
        self.moved.notify_waiters();
        self.lost.notify_waiters();
        self.answered.notify_one();
    }

    /// The durable number and state.
    pub(crate) fn committed(&self) -> (Seq, TaskState) {
        let feed = self.feed.lock();
        (feed.committed, feed.state)
    }

    /// The stored form of the whole task, if the log ends with one.
    pub(crate) fn snapshot(&self) -> Option<(Seq, Bytes)> {
        let feed = self.feed.lock();
        feed.snapshot.clone().filter(|(seq, _)| *seq == feed.committed)
    }

    /// Waits until `until` says yes to the durable number and state.
    pub(crate) async fn wait(&self, until: impl Fn(Seq, TaskState) -> bool) -> Result<(), AppendError> {
        let outcome = || {
            let feed = self.feed.lock();
            if until(feed.committed, feed.state) {
                return Some(Ok(()));
            }
            feed.broken.clone().map(Err)
        };
        loop {
            // Most often it is so already, and always after the first wait but for who waits for more.
            if let Some(outcome) = outcome() {
                return outcome;
            }
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if let Some(outcome) = outcome() {
                return outcome;
            }
            moved.await;
        }
    }

    /// Waits until the event `seq` is durable.
    pub(crate) async fn durable(&self, seq: Seq) -> Result<(), AppendError> {
        self.wait(|committed, _| committed >= seq).await
    }

    /// Holds a writer back that has run far ahead of the store.
    pub(crate) async fn keep_pace(&self, seq: Seq) -> Result<(), AppendError> {
        if self.feed.lock().committed + AHEAD >= seq {
            return Ok(());
        }
        self.wait(|committed, _| committed + AHEAD / 2 >= seq).await
    }

    /// Everything up to this event is durable that was written here.
    pub(super) fn told(&self, seq: Seq) {
        self.committed_up_to(seq);
        if let Some(link) = &self.link {
            link.outbox.reached(self.key(), seq);
        }
    }

    /// Everything up to this event is durable.
    pub(super) fn committed_up_to(&self, seq: Seq) {
        let mut guard = self.feed.lock();
        let feed = &mut *guard;
        while feed.pending.front().is_some_and(|event| event.seq <= seq) {
            let Some(event) = feed.pending.pop_front() else { break };
            if let Some(state) = event.state {
                feed.state = state;
            }
            if let Some(snapshot) = &event.snapshot {
                feed.snapshot = Some((event.seq, snapshot.clone()));
            }
            feed.tail_bytes += event.body.len();
            feed.tail.push_back(event);
        }
        feed.committed = feed.committed.max(seq);
        if feed.cut_off && feed.pending.is_empty() {
            feed.broken.get_or_insert(AppendError::Fenced);
        }
        while feed.tail.len() > TAIL_EVENTS || (feed.tail_bytes > TAIL_BYTES && feed.tail.len() > 1) {
            let Some(event) = feed.tail.pop_front() else { break };
            feed.tail_bytes -= event.body.len();
        }
        drop(guard);
        self.moved.notify_waiters();
        self.ringer.news(self.key());
    }
}

impl Acknowledge for Live {
    fn committed(&self, seq: Seq) {
        self.told(seq);
    }

    fn refused(&self, seq: Seq, why: AppendError) {
        tracing::error!(task = %self.id, seq, error = %why, "an event could not be stored");
        self.break_off(why);
    }
}
