//! What the writer knows of a task without reading it: where its events have come to.

use rusqlite::OptionalExtension;

use super::super::{Append, Micros, Scope, Seq, State, TaskKey};
use super::writer::Batch;
use crate::map::Map;

/// Bounds the memory for tasks in progress; beyond it they are read again.
const MOST: usize = 4_096;

/// What a fence is checked against, and what a change replaces.
#[derive(Clone)]
pub(super) struct Head {
    pub(super) scope: Scope,
    pub(super) state: State,
    pub(super) seq: Seq,
    pub(super) epoch: i64,
    pub(super) updated: Micros,
    /// The place of its second event.
    pub(super) second: i64,
    /// The place of its snapshot, and the event that it includes last.
    pub(super) snapshot: (i64, i64),
}

impl Head {
    /// Whether the event is the next one and its writer holds the lease.
    pub(super) fn fits(&self, next: &Append) -> bool {
        self.epoch == next.epoch && self.seq.checked_add(1) == Some(next.seq)
    }
}

/// The heads of tasks in progress, as the transaction at hand sees them. Only this process writes to
/// the file, so they are what the file says; when a transaction is undone, all are forgotten.
#[derive(Default)]
pub(super) struct Heads(Map<TaskKey, Head>);

impl Heads {
    pub(super) fn know(&mut self, task: TaskKey, head: Head) {
        if !head.state.is_active() {
            self.0.remove(&task);
            return;
        }
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(task, head);
    }

    pub(super) fn forget(&mut self, task: TaskKey) {
        self.0.remove(&task);
    }

    pub(super) fn forget_all(&mut self) {
        self.0.clear();
    }
}

/// The head of a task, from memory or from the file.
pub(super) fn find(batch: &mut Batch<'_>, task: TaskKey) -> rusqlite::Result<Option<Head>> {
    if let Some(head) = batch.heads.0.get(&task) {
        return Ok(Some(head.clone()));
    }
    let head = batch.hot.head.query_row([task.0], |row| {
        Ok(Head {
            scope: Scope { tenant: row.get(0)?, owner: row.get(1)? },
            state: State(row.get(2)?),
            seq: row.get::<_, i64>(3)?.cast_unsigned(),
            epoch: row.get(4)?,
            updated: row.get(5)?,
            second: row.get(6)?,
            snapshot: (row.get(7)?, row.get(8)?),
        })
    });
    head.optional()
}
