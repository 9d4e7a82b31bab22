//! Finished tasks that were read lately. They never change again, so that a copy is as good as the store.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::TaskId;
use parking_lot::Mutex;

use super::{Scope, TaskRow};
use crate::map::Map;

/// What a task takes beside its snapshot and its id.
const OVERHEAD: usize = 512;

/// Copies of finished tasks, within a number of bytes. Two halves: what is read moves to the first, and when
/// that is full the second is dropped and takes its place.
pub(crate) struct Finished {
    most: usize,
    halves: Mutex<Halves>,
}

#[derive(Default)]
struct Halves {
    /// Counts removals from the store: what was read before one may be gone.
    removals: u64,
    recent: Map<(Arc<str>, TaskId), TaskRow>,
    older: Map<(Arc<str>, TaskId), TaskRow>,
    /// What `recent` takes.
    bytes: usize,
}

/// When a read began, so that nothing is kept that was removed meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Began(u64);

impl Finished {
    /// Keeps no more than this many bytes; none for zero.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, halves: Mutex::default() }
    }

    /// The task, or what [`Finished::keep`] needs when it has been read from the store.
    pub(crate) fn find(&self, scope: &Scope, id: &TaskId) -> Result<TaskRow, Began> {
        let mut halves = self.halves.lock();
        let key = (scope.tenant.clone(), id.clone());
        if let Some(row) = halves.recent.get(&key) {
            return if row.scope == *scope { Ok(row.clone()) } else { Err(Began(halves.removals)) };
        }
        match halves.older.remove(&key) {
            Some(row) => {
                let found = (row.scope == *scope).then(|| row.clone());
                self.put(&mut halves, key, row);
                found.ok_or(Began(halves.removals))
            }
            None => Err(Began(halves.removals)),
        }
    }

    /// Keeps a task that is over, unless something was removed since it was read.
    pub(crate) fn keep(&self, began: Began, row: &TaskRow) {
        if !row.state.is_final() || row.snapshot_seq != row.seq || weight(row) > self.most / 2 {
            return;
        }
        let mut halves = self.halves.lock();
        if halves.removals == began.0 {
            self.put(&mut halves, (row.scope.tenant.clone(), row.id.clone()), row.clone());
        }
    }

    /// The store has removed some tasks.
    pub(crate) fn forget_all(&self) {
        let mut halves = self.halves.lock();
        let removals = halves.removals + 1;
        let gone = mem::replace(&mut *halves, Halves { removals, ..Halves::default() });
        drop(halves);
        drop(gone);
    }

    fn put(&self, halves: &mut Halves, key: (Arc<str>, TaskId), row: TaskRow) {
        halves.bytes += weight(&row);
        if halves.bytes > self.most / 2 {
            halves.bytes = weight(&row);
            halves.older = mem::take(&mut halves.recent);
        }
        if let Some(same) = halves.recent.insert(key, row) {
            halves.bytes -= weight(&same);
        }
    }
}

fn weight(row: &TaskRow) -> usize {
    OVERHEAD + row.id.as_str().len() + row.snapshot.as_ref().map_or(0, Bytes::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{State, TaskKey};

    fn row(n: i64, owner: &str, state: u8) -> TaskRow {
        TaskRow {
            key: TaskKey(n),
            scope: Scope { tenant: "t".into(), owner: owner.into() },
            id: n.to_string().into(),
            context_id: "c".into(),
            agent: "a".into(),
            state: State(state),
            seq: 2,
            epoch: 1,
            leased: false,
            writer: None,
            attempts: 0,
            snapshot: Some(vec![b'x'; 1000].into()),
            snapshot_seq: 2,
            created: 0,
            updated: 0,
        }
    }

    fn find(finished: &Finished, row: &TaskRow) -> Result<TaskRow, Began> {
        finished.find(&row.scope, &row.id)
    }

    fn put(finished: &Finished, row: &TaskRow) {
        if let Err(began) = find(finished, row) {
            finished.keep(began, row);
        }
    }

    #[test]
    fn what_is_over_is_kept_for_its_owner_alone() {
        let finished = Finished::new(1 << 20);
        let (over, foreign) = (row(1, "anna", 3), row(1, "ben", 3));
        put(&finished, &over);
        assert!(find(&finished, &over).is_ok_and(|found| found == over));
        assert!(find(&finished, &foreign).is_err());
        for unfit in [row(2, "anna", 2), row(3, "anna", 6), TaskRow { snapshot_seq: 1, ..row(4, "anna", 3) }] {
            put(&finished, &unfit);
            assert!(find(&finished, &unfit).is_err(), "{unfit:?}");
        }
    }

    #[test]
    fn what_is_not_read_makes_room_for_what_is() {
        let finished = Finished::new(100_000);
        let often = row(0, "anna", 3);
        for n in 1..1000 {
            put(&finished, &often);
            put(&finished, &row(n, "anna", 3));
            let halves = finished.halves.lock();
            let all = halves.recent.values().chain(halves.older.values());
            assert!(all.map(weight).sum::<usize>() <= 100_000);
            assert_eq!(halves.bytes, halves.recent.values().map(weight).sum::<usize>());
        }
        assert!(find(&finished, &often).is_ok());
        assert!(find(&finished, &row(1, "anna", 3)).is_err());
        assert!(find(&finished, &row(999, "anna", 3)).is_ok());
        put(&finished, &TaskRow { snapshot: Some(vec![0; 60_000].into()), ..row(5000, "anna", 3) });
        assert!(find(&finished, &row(5000, "anna", 3)).is_err(), "it would fill more than its half");
    }

    #[test]
    fn what_is_removed_while_it_is_read_is_not_kept() {
        let finished = Finished::new(1 << 20);
        let (early, late) = (row(1, "anna", 3), row(2, "anna", 3));
        put(&finished, &early);
        let Err(began) = find(&finished, &late) else { panic!("nobody kept it") };
        finished.forget_all();
        finished.keep(began, &late);
        assert!(find(&finished, &early).is_err());
        assert!(find(&finished, &late).is_err());
    }
}
