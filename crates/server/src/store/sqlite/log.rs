//! The rows of the log: events packed by batch and task, and snapshots.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use rusqlite::Connection;

use super::super::packed::{CutOff, Found, Ids, pack, pack_snapshot};
use super::super::{LogEvent, NewTask, Seq, TaskKey};
use super::writer::Batch;
use super::{number, read};

/// Bounds what a reader of one event must take along.
pub(super) const ROW_BYTES: usize = 32 << 10;

/// A snapshot below this stands with the first events: who reads one of them takes the others along.
const SMALL: usize = ROW_BYTES / 4;

/// The place of what is not there; see the schema.
pub(super) const NOWHERE: i64 = i64::MAX;

/// Hands out places, which are never used twice while the process lives, whatever is undone.
#[derive(Clone)]
pub(super) struct Places(Arc<AtomicI64>);

impl Places {
    /// Those after the last one that was ever handed out.
    pub(super) fn after(last: i64) -> Self {
        Self(Arc::new(AtomicI64::new(last)))
    }

    pub(super) fn next(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Writes neighbouring events of one task from number `seq` on, in as few rows as their size allows. The first of them
/// stands at `place`.
pub(super) fn events<'a>(
    batch: &mut Batch<'_>,
    task: TaskKey,
    mut seq: Seq,
    bodies: impl Iterator<Item = &'a Bytes>,
    mut place: i64,
) -> rusqlite::Result<()> {
    let mut bodies = bodies.peekable();
    while bodies.peek().is_some() {
        batch.packed.clear();
        let from = seq;
        while batch.packed.len() < ROW_BYTES
            && let Some(body) = bodies.next()
        {
            pack(&mut batch.packed, body, None);
            seq += 1;
        }
        batch.hot.log.execute((place, task.0, number(from), &*batch.packed))?;
        if bodies.peek().is_some() {
            place = batch.places.next();
        }
    }
    Ok(())
}

/// Packs event 1, before it the snapshot if that is small, and of the events that come with it as many as the row
/// takes. Returns whether the snapshot is there, and how many of those events are.
pub(super) fn pack_first(row: &mut Vec<u8>, task: &NewTask) -> (bool, usize) {
    row.clear();
    let ids = Ids::new(&task.id, &task.context_id);
    let snapshot = task.snapshot().filter(|(_, body)| body.len() < SMALL);
    if let Some((_, body)) = snapshot {
        pack_snapshot(row, body, Some(&ids));
    }
    pack(row, &task.body, Some(&ids));
    let mut early = task.early.iter();
    while row.len() < ROW_BYTES
        && let Some(event) = early.next()
    {
        pack(row, &event.body, Some(&ids));
    }
    (snapshot.is_some(), task.early.len() - early.len())
}

/// Writes a snapshot at this place.
pub(super) fn snapshot(batch: &mut Batch<'_>, place: i64, task: TaskKey, body: &[u8]) -> rusqlite::Result<()> {
    batch.hot.log.execute((place, task.0, 0, body))?;
    Ok(())
}

/// Removes what is at this place.
pub(super) fn remove(batch: &Batch<'_>, place: i64) -> rusqlite::Result<()> {
    if place != NOWHERE {
        batch.db.prepare_cached("DELETE FROM log WHERE place = ?1")?.execute([place])?;
    }
    Ok(())
}

/// Events after `after`: at most `limit`, not many more than `room` bytes, at least one if there is one.
pub(super) fn read(
    db: &Connection,
    task: TaskKey,
    after: Seq,
    limit: usize,
    room: usize,
) -> rusqlite::Result<Vec<LogEvent>> {
    let mut found = Found::new(after, limit, room);
    if after == 0 {
        let mut first = db.prepare_cached(
            "SELECT l.seq, l.body, t.id, t.context_id FROM log AS l JOIN task AS t ON t.key = l.place
             WHERE l.place = ?1 AND l.task = ?1",
        )?;
        take(&mut found, first.query([task.0])?)?;
    }
    let mut start =
        db.prepare_cached("SELECT max(seq) FROM log INDEXED BY log_by_task WHERE task = ?1 AND seq > 2 AND seq <= ?2")?;
    let next = number(after.saturating_add(1));
    let start: Option<i64> = start.query_row((task.0, next), |row| row.get(0))?;
    if start.is_none() {
        let mut second = db.prepare_cached(
            "SELECT s.seq, s.body, t.id, t.context_id FROM task AS t JOIN log AS s ON s.place = t.second
             WHERE t.key = ?1 AND (t.second <> t.key OR ?2)",
        )?;
        // It may stand with the first, which is read already if that was asked for.
        take(&mut found, second.query((task.0, after > 0))?)?;
    }
    let mut rest = db.prepare_cached(
        "SELECT seq, body, NULL, NULL FROM log INDEXED BY log_by_task WHERE task = ?1 AND seq > 2 AND seq >= ?2 ORDER BY seq",
    )?;
    take(&mut found, rest.query((task.0, start.unwrap_or(0)))?)?;
    Ok(found.events)
}

fn take(found: &mut Found, mut rows: rusqlite::Rows<'_>) -> rusqlite::Result<()> {
    while !found.full()
        && let Some(row) = rows.next()?
    {
        let seq = row.get::<_, i64>(0)?.cast_unsigned();
        let ids = row.get_ref(2)?.as_str_or_null()?.zip(row.get_ref(3)?.as_str_or_null()?);
        found.take(seq, read::bytes(row, 1)?, ids).map_err(|error| damaged(&error))?;
    }
    Ok(())
}

/// A row that does not hold what it says is a damaged file.
pub(super) fn damaged(error: &CutOff) -> rusqlite::Error {
    let what = error.to_string();
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), Some(what))
}
