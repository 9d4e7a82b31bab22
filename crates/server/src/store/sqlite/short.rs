//! A short task: one that came with all that has happened to it, which fits one row of the log.

use bytes::{Buf, BufMut};
use nuncio_protocol::{ContextId, TaskId};

use super::super::{Micros, NewTask, Node, Scope, Seq, State, TaskKey, TaskRow, packed};
use super::task::{Row, insert};
use super::writer::Batch;
use super::{log, number};

/// Such a task, as it will be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) key: TaskKey,
    pub(super) scope: Scope,
    pub(super) id: TaskId,
    pub(super) context_id: ContextId,
    pub(super) agent: String,
    pub(super) node: Node,
    pub(super) state: State,
    pub(super) seq: Seq,
    pub(super) snapshot_seq: Seq,
    pub(super) created: Micros,
    pub(super) updated: Micros,
    /// Its row of the log.
    pub(super) events: Vec<u8>,
}

impl Short {
    /// The task without its key, if it is one.
    pub(super) fn of(task: &NewTask) -> Option<Self> {
        let bytes: usize = task.early.iter().map(|event| event.body.len()).sum();
        let is_short = task.key.is_none() && task.push.is_none() && !task.early.is_empty();
        if !is_short || task.body.len() + bytes >= log::ROW_BYTES {
            return None;
        }
        let mut events = Vec::with_capacity(1024);
        let (with_snapshot, packed) = log::pack_first(&mut events, task);
        if packed < task.early.len() || with_snapshot != task.snapshot().is_some() {
            return None;
        }
        let (state, updated) = task.present();
        Some(Self {
            key: TaskKey::NONE,
            scope: task.scope.clone(),
            id: task.id.clone(),
            context_id: task.context_id.clone(),
            agent: task.agent.to_string(),
            node: task.lease.node.clone(),
            state,
            seq: task.seq(),
            snapshot_seq: task.snapshot().map_or(0, |(seq, _)| seq),
            created: task.at,
            updated,
            events,
        })
    }

    /// False when it is there already.
    pub(super) fn insert(&self, batch: &mut Batch<'_>) -> rusqlite::Result<bool> {
        let snapshot = if self.snapshot_seq == 0 { (log::NOWHERE, 0) } else { (self.key.0, number(self.snapshot_seq)) };
        let row = Row {
            key: self.key,
            scope: &self.scope,
            id: self.id.as_str(),
            context_id: self.context_id.as_str(),
            agent: &self.agent,
            node: &self.node,
            state: self.state,
            seq: self.seq,
            created: self.created,
            updated: self.updated,
            second: self.key.0,
            snapshot,
        };
        let is_new = insert(batch, &row)?;
        if is_new {
            batch.hot.log.execute((self.key.0, self.key.0, 1, &*self.events))?;
        }
        Ok(is_new)
    }

    /// What a read of it finds. None where it cannot be read.
    pub(super) fn row(&self) -> Option<TaskRow> {
        let ids = (self.id.as_str(), self.context_id.as_str());
        let snapshot = match self.snapshot_seq {
            0 => None,
            _ => Some(packed::snapshot_of(&self.events, Some(ids)).ok()?),
        };
        Some(TaskRow {
            key: self.key,
            scope: self.scope.clone(),
            id: self.id.clone(),
            context_id: self.context_id.clone(),
            agent: self.agent.as_str().into(),
            state: self.state,
            seq: self.seq,
            epoch: 1,
            leased: !self.node.is_empty(),
            writer: None,
            attempts: 0,
            snapshot,
            snapshot_seq: self.snapshot_seq,
            created: self.created,
            updated: self.updated,
        })
    }

    fn texts(&self) -> [&str; 6] {
        let Self { scope, id, context_id, agent, node, .. } = self;
        [&scope.tenant, &scope.owner, id.as_str(), context_id.as_str(), agent, node]
    }

    /// How many bytes [`Short::write`] takes.
    pub(super) fn len(&self) -> usize {
        4 + 41 + self.texts().iter().map(|text| 4 + text.len()).sum::<usize>() + self.events.len()
    }

    /// Writes it behind its length.
    pub(super) fn write(&self, into: &mut impl BufMut) {
        into.put_u32_le(length(self.len() - 4));
        into.put_i64_le(self.key.0);
        into.put_u8(self.state.0);
        into.put_u64_le(self.seq);
        into.put_u64_le(self.snapshot_seq);
        into.put_i64_le(self.created);
        into.put_i64_le(self.updated);
        for text in self.texts() {
            into.put_u32_le(length(text.len()));
            into.put_slice(text.as_bytes());
        }
        into.put_slice(&self.events);
    }

    /// Reads the next one. None where there is none.
    pub(super) fn read(from: &mut &[u8]) -> Option<Self> {
        let mut body = piece(from)?;
        let body = &mut body;
        let key = TaskKey(body.try_get_i64_le().ok()?);
        let state = State(body.try_get_u8().ok()?);
        let (seq, snapshot_seq) = (body.try_get_u64_le().ok()?, body.try_get_u64_le().ok()?);
        let (created, updated) = (body.try_get_i64_le().ok()?, body.try_get_i64_le().ok()?);
        let mut text = || std::str::from_utf8(piece(body)?).ok();
        let scope = Scope { tenant: text()?.into(), owner: text()?.into() };
        let (id, context_id) = (TaskId::from(text()?), ContextId::from(text()?));
        let (agent, node) = (text()?.to_owned(), text()?.into());
        let events = body.to_vec();
        Some(Self { key, scope, id, context_id, agent, node, state, seq, snapshot_seq, created, updated, events })
    }
}

/// What stands behind its length.
fn piece<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(from.try_get_u32_le().ok()?).ok()?;
    let (piece, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(piece)
}

/// Nothing that is short comes near four gigabytes.
fn length(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn short() -> impl Strategy<Value = Short> {
        let texts = prop::collection::vec("[a-zé\u{0}]{0,12}", 6);
        let numbers = (any::<i64>(), any::<u8>(), any::<u64>(), any::<u64>(), any::<i64>(), any::<i64>());
        let events = prop::collection::vec(any::<u8>(), 0..2_000);
        (texts, numbers, events).prop_map(|(texts, numbers, events)| {
            let (key, state, seq, snapshot_seq, created, updated) = numbers;
            Short {
                key: TaskKey(key),
                scope: Scope { tenant: texts[0].as_str().into(), owner: texts[1].as_str().into() },
                id: TaskId::from(&*texts[2]),
                context_id: ContextId::from(&*texts[3]),
                agent: texts[4].clone(),
                node: texts[5].as_str().into(),
                state: State(state),
                seq,
                snapshot_seq,
                created,
                updated,
                events,
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(tasks in prop::collection::vec(short(), 0..4)) {
            let mut bytes = Vec::new();
            for task in &tasks {
                let before = bytes.len();
                task.write(&mut bytes);
                prop_assert_eq!(bytes.len() - before, task.len());
            }
            let mut rest = &*bytes;
            for task in &tasks {
                prop_assert_eq!(Short::read(&mut rest), Some(task.clone()));
            }
            prop_assert_eq!(Short::read(&mut rest), None);
        }

        #[test]
        fn what_is_no_task_is_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = &*bytes;
            while Short::read(&mut rest).is_some() {}
        }

        #[test]
        fn a_task_that_is_cut_off_is_none(task in short(), cut in 1_usize..40) {
            let mut bytes = Vec::new();
            task.write(&mut bytes);
            bytes.truncate(bytes.len().saturating_sub(cut));
            prop_assert_eq!(Short::read(&mut &*bytes), None);
        }
    }
}
