//! Reads of single tasks and their logs, and the connections that reads share.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Row};
use tokio::sync::Semaphore;

use nuncio_protocol::{ContextId, TaskId};

use super::super::{Scope, Seq, State, StoreError, TaskKey, TaskRow, packed};
use super::error::At;
use super::{limit_of, log, open};

/// Read-only connections. Readers never wait for the writer, nor the writer for them.
pub(super) struct Readers {
    path: PathBuf,
    at: At,
    idle: Mutex<Vec<Connection>>,
    /// Bounds the connections, and with them their caches.
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, at: At, size: usize) -> Self {
        Self { path, at, idle: Mutex::default(), permits: Arc::new(Semaphore::new(size.max(1))) }
    }

    /// Runs a read on a thread that may block.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let readers = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            // Goes along, because the read runs to its end even when nobody waits for it any more.
            let _permit = permit;
            readers.run(work)
        });
        let read = read.await;
        read.map_err(|error| self.at.failed(error))?
    }

    fn run<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        // A statement of its own, so that the lock is not held while a connection opens.
        let idle = self.idle.lock().pop();
        let db = match idle {
            Some(db) => db,
            None => open::reader(&self.path).map_err(|error| self.at.sql(&error))?,
        };
        // After an error the connection goes away with whatever state it is in.
        let found = work(&db).map_err(|error| self.at.sql(&error))?;
        self.idle.lock().push(db);
        Ok(found)
    }

    pub(super) fn close_idle(&self) {
        let idle = std::mem::take(&mut *self.idle.lock());
        drop(idle);
    }
}

/// The columns of a [`TaskRow`], for `task AS t` and [`SNAPSHOT`].
pub(super) const COLUMNS: &str = "t.key, t.tenant, t.owner, t.id, t.context_id, t.agent, t.state, \
     t.seq, t.epoch, t.attempts, s.body, t.snapshot_seq, t.created, t.updated, t.lease_node <> '', t.snapshot = t.key";

/// Joins a task with its snapshot.
pub(super) const SNAPSHOT: &str = "LEFT JOIN log AS s ON s.place = t.snapshot";

pub(super) fn row(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    Ok(TaskRow {
        key: TaskKey(row.get(0)?),
        scope: Scope { tenant: row.get(1)?, owner: row.get(2)? },
        id: TaskId::from(row.get_ref(3)?.as_str()?),
        context_id: ContextId::from(row.get_ref(4)?.as_str()?),
        agent: row.get(5)?,
        state: State(row.get(6)?),
        seq: row.get::<_, i64>(7)?.cast_unsigned(),
        epoch: row.get(8)?,
        attempts: row.get(9)?,
        leased: row.get(14)?,
        writer: None,
        snapshot: snapshot(row)?,
        snapshot_seq: row.get::<_, i64>(11)?.cast_unsigned(),
        created: row.get(12)?,
        updated: row.get(13)?,
    })
}

/// The snapshot from its row, which may be that of the first events.
fn snapshot(row: &Row<'_>) -> rusqlite::Result<Option<Bytes>> {
    let Some(body) = row.get_ref(10)?.as_blob_or_null()? else { return Ok(None) };
    if !row.get::<_, bool>(15)? {
        return Ok(Some(Bytes::copy_from_slice(body)));
    }
    let ids = (row.get_ref(3)?.as_str()?, row.get_ref(4)?.as_str()?);
    packed::snapshot_of(body, Some(ids)).map(Some).map_err(|error| log::damaged(&error))
}

pub(super) fn bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Bytes> {
    Ok(Bytes::copy_from_slice(row.get_ref(column)?.as_blob()?))
}

pub(super) fn task_by_key(db: &Connection, key: TaskKey) -> rusqlite::Result<Option<TaskRow>> {
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM task AS t {SNAPSHOT} WHERE t.key = ?1"))?;
    select.query_row([key.0], row).optional()
}

pub(super) fn task(db: &Connection, scope: &Scope, id: &TaskId) -> rusqlite::Result<Option<TaskRow>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM task AS t INDEXED BY task_by_id {SNAPSHOT}
         WHERE t.tenant = ?1 AND t.id = ?2 AND t.owner = ?3"
    ))?;
    select.query_row((&*scope.tenant, id.as_str(), &*scope.owner), row).optional()
}

pub(super) fn abandoned(db: &Connection, node: &str, limit: usize) -> rusqlite::Result<Vec<TaskRow>> {
    // The inner query sorts keys, not snapshots. `< 3` says what the IN says already, in the words of
    // the partial index.
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM task AS t {SNAPSHOT}
         WHERE t.key IN (SELECT key FROM task INDEXED BY task_active
                         WHERE state IN (1, 2) AND state < 3 AND lease_node <> ?1
                         ORDER BY created, key LIMIT ?2)
         ORDER BY t.created, t.key"
    ))?;
    select.query_map((node, limit_of(limit)), row)?.collect()
}

pub(super) fn messages(db: &Connection, task: TaskKey) -> rusqlite::Result<Vec<(Seq, Bytes)>> {
    let mut select = db.prepare_cached("SELECT seq, body FROM inbox WHERE task = ?1 ORDER BY seq")?;
    select.query_map([task.0], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), bytes(row, 1)?)))?.collect()
}
