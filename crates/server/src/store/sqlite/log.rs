//! The rows of the log: events packed by batch and task, and snapshots.

use bytes::{Buf, BufMut, Bytes};
use rusqlite::Connection;

use super::super::{Append, LogEvent, Seq, TaskKey};
use super::writer::Batch;
use super::{number, read};

/// Bounds what a reader of one event must take along.
const ROW_BYTES: usize = 32 << 10;

/// Bytes before each event: its length.
const LENGTH: usize = size_of::<u32>();

/// The next free place. Places are never used twice while the process lives, whatever is undone.
pub(super) fn next_place(batch: &mut Batch<'_>) -> i64 {
    *batch.last_place += 1;
    *batch.last_place
}

/// Writes neighbouring events of one task, in as few rows as their size allows.
pub(super) fn events(batch: &mut Batch<'_>, task: TaskKey, run: &[Append]) -> rusqlite::Result<()> {
    let mut rest = run;
    while let Some(first) = rest.first() {
        let mut room = ROW_BYTES;
        let fits = |append: &&Append| {
            let fits = room > 0;
            room = room.saturating_sub(append.body.len());
            fits
        };
        let (row, behind) = rest.split_at(rest.iter().take_while(fits).count().max(1));
        let mut body = std::mem::take(&mut batch.packed);
        body.clear();
        row.iter().for_each(|append| pack(&mut body, &append.body));
        let place = next_place(batch);
        insert(batch.db, place, task, number(first.seq), &body)?;
        batch.packed = body;
        rest = behind;
    }
    Ok(())
}

/// Writes event 1 at the place that is the key of its task.
pub(super) fn first_event(batch: &mut Batch<'_>, task: TaskKey, event: &[u8]) -> rusqlite::Result<()> {
    let mut body = Vec::with_capacity(LENGTH + event.len());
    pack(&mut body, event);
    insert(batch.db, task.0, task, 1, &body)
}

/// Writes a snapshot and returns its place.
pub(super) fn snapshot(batch: &mut Batch<'_>, task: TaskKey, body: &[u8]) -> rusqlite::Result<i64> {
    let place = next_place(batch);
    insert(batch.db, place, task, 0, body)?;
    Ok(place)
}

/// Removes the snapshot at this place, if there is one: a task has one snapshot.
pub(super) fn drop_snapshot(batch: &Batch<'_>, place: i64) -> rusqlite::Result<()> {
    if place > 0 {
        batch.db.prepare_cached("DELETE FROM log WHERE place = ?1 AND seq = 0")?.execute([place])?;
    }
    Ok(())
}

fn insert(db: &Connection, place: i64, task: TaskKey, seq: i64, body: &[u8]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached("INSERT INTO log (place, task, seq, body) VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute((place, task.0, seq, body))?;
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
    let mut select = db.prepare_cached(
        "SELECT seq, body FROM log INDEXED BY log_by_task WHERE task = ?1 AND seq > 1 AND seq >= ifnull(
             (SELECT max(seq) FROM log INDEXED BY log_by_task WHERE task = ?1 AND seq > 1 AND seq <= ?2), 2)
         ORDER BY seq",
    )?;
    found.take(select.query((task.0, number(after.saturating_add(1))))?)?;
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
