//! The rows of the log: events packed by batch and task, and snapshots.

use bytes::{Buf, BufMut, Bytes};
use rusqlite::Connection;

use super::super::{LogEvent, Seq, TaskKey};
use super::writer::Batch;
use super::{number, read};

/// Bounds what a reader of one event must take along.
const ROW_BYTES: usize = 32 << 10;

/// The place of what is not there; see the schema.
pub(super) const NOWHERE: i64 = i64::MAX;

/// The next free place. Places are never used twice while the process lives, whatever is undone.
pub(super) fn next_place(batch: &mut Batch<'_>) -> i64 {
    *batch.last_place += 1;
    *batch.last_place
}

/// Writes neighbouring events of one task from number `seq` on, in as few rows as their size allows.
/// Returns the first place.
pub(super) fn events<'a>(
    batch: &mut Batch<'_>,
    task: TaskKey,
    mut seq: Seq,
    bodies: impl Iterator<Item = &'a Bytes>,
) -> rusqlite::Result<i64> {
    let first = *batch.last_place + 1;
    let mut bodies = bodies.peekable();
    while bodies.peek().is_some() {
        batch.packed.clear();
        let from = seq;
        while batch.packed.len() < ROW_BYTES
            && let Some(body) = bodies.next()
        {
            pack(&mut batch.packed, body);
            seq += 1;
        }
        let place = next_place(batch);
        batch.hot.log.execute((place, task.0, number(from), &*batch.packed))?;
    }
    Ok(first)
}

/// Writes event 1 at the place that is the key of its task.
pub(super) fn first_event(batch: &mut Batch<'_>, task: TaskKey, event: &[u8]) -> rusqlite::Result<()> {
    batch.packed.clear();
    pack(&mut batch.packed, event);
    batch.hot.log.execute((task.0, task.0, 1, &*batch.packed))?;
    Ok(())
}

/// Writes a snapshot and returns its place.
pub(super) fn snapshot(batch: &mut Batch<'_>, task: TaskKey, body: &[u8]) -> rusqlite::Result<i64> {
    let place = next_place(batch);
    batch.hot.log.execute((place, task.0, 0, body))?;
    Ok(place)
}

/// Removes what is at this place.
pub(super) fn remove(batch: &Batch<'_>, place: i64) -> rusqlite::Result<()> {
    if place != NOWHERE {
        batch.db.prepare_cached("DELETE FROM log WHERE place = ?1")?.execute([place])?;
    }
    Ok(())
}

fn pack(into: &mut Vec<u8>, event: &[u8]) {
    // No event comes near four gigabytes: a database row holds one at most.
    into.put_u32_le(u32::try_from(event.len()).unwrap_or(u32::MAX));
    into.extend_from_slice(event);
}

/// Takes the next event from a row. None where the row ends before its event does.
fn unpack(row: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(row.try_get_u32_le().ok()?).ok()?;
    (length <= row.len()).then(|| row.split_to(length))
}

/// Events after `after`: at most `limit`, not many more than `room` bytes, at least one if there is one.
pub(super) fn read(
    db: &Connection,
    task: TaskKey,
    after: Seq,
    limit: usize,
    room: usize,
) -> rusqlite::Result<Vec<LogEvent>> {
    let mut found = Found { events: Vec::new(), after, limit, room };
    if after == 0 {
        let mut first = db.prepare_cached("SELECT seq, body FROM log WHERE place = ?1 AND task = ?1")?;
        found.take(first.query([task.0])?)?;
    }
    let mut start =
        db.prepare_cached("SELECT max(seq) FROM log INDEXED BY log_by_task WHERE task = ?1 AND seq > 2 AND seq <= ?2")?;
    let next = number(after.saturating_add(1));
    let start: Option<i64> = start.query_row((task.0, next), |row| row.get(0))?;
    if start.is_none() {
        let mut second = db.prepare_cached(
            "SELECT s.seq, s.body FROM task AS t JOIN log AS s ON s.place = t.second WHERE t.key = ?1",
        )?;
        found.take(second.query([task.0])?)?;
    }
    let mut rest = db.prepare_cached(
        "SELECT seq, body FROM log INDEXED BY log_by_task WHERE task = ?1 AND seq > 2 AND seq >= ?2 ORDER BY seq",
    )?;
    found.take(rest.query((task.0, start.unwrap_or(0)))?)?;
    Ok(found.events)
}

struct Found {
    events: Vec<LogEvent>,
    after: Seq,
    limit: usize,
    room: usize,
}

impl Found {
    fn full(&self) -> bool {
        self.events.len() >= self.limit || (self.room == 0 && !self.events.is_empty())
    }

    fn take(&mut self, mut rows: rusqlite::Rows<'_>) -> rusqlite::Result<()> {
        while !self.full()
            && let Some(row) = rows.next()?
        {
            let mut seq = row.get::<_, i64>(0)?.cast_unsigned();
            let mut body = read::bytes(row, 1)?;
            while !body.is_empty() && !self.full() {
                let body = unpack(&mut body).ok_or_else(cut_off)?;
                if seq > self.after {
                    self.room = self.room.saturating_sub(body.len());
                    self.events.push(LogEvent { seq, body });
                }
                seq += 1;
            }
        }
        Ok(())
    }
}

/// A row that does not hold what it says is a damaged file.
fn cut_off() -> rusqlite::Error {
    let what = "a row of events is cut off".to_owned();
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), Some(what))
}
