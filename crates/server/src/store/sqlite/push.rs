//! Webhooks and their cursors.

use rusqlite::{Connection, Row};

use nuncio_protocol::PushId;

use super::super::{Backlog, Dead, Micros, PushConfig, State, TaskKey, WAITING};
use super::read::bytes;
use super::writer::Batch;
use super::{limit_of, number};

pub(super) const COLUMNS: &str =
    "task, id, body, version, acked, attempts, due, last_error, epoch, since, told, dead_from, dead_count, dead_at";

/// False when there is no such task.
pub(super) fn put(batch: &Batch<'_>, task: TaskKey, config: &PushConfig) -> rusqlite::Result<bool> {
    let mut upsert = batch.db.prepare_cached(
        "INSERT OR REPLACE INTO push (task, id, body, version, acked, attempts, due, last_error,
                                      since, told, dead_from, dead_count, dead_at, epoch)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
                max(?14, ifnull((SELECT epoch + 1 FROM push WHERE task = ?1 AND id = ?2), ?14))
         WHERE EXISTS (SELECT 1 FROM task WHERE key = ?1)",
    )?;
    let stored = upsert.execute((
        task.0,
        config.id.as_str(),
        &*config.body,
        &*config.version,
        number(config.acked),
        config.attempts,
        config.due,
        &config.last_error,
        config.since,
        config.told.map(|state| state.0),
        config.dead.map(|dead| number(dead.from)),
        config.dead.map_or(0, |dead| number(dead.count)),
        config.dead.map(|dead| dead.at),
        config.epoch,
    ))?;
    Ok(stored == 1)
}

pub(super) fn delete(batch: &Batch<'_>, task: TaskKey, id: &PushId) -> rusqlite::Result<bool> {
    let mut delete = batch.db.prepare_cached("DELETE FROM push WHERE task = ?1 AND id = ?2")?;
    Ok(delete.execute((task.0, id.as_str()))? == 1)
}

/// A cursor behind the stored one, or an old epoch, tells of what is over: all of it is out of date.
pub(super) fn advance(batch: &Batch<'_>, task: TaskKey, config: &PushConfig) -> rusqlite::Result<bool> {
    let mut update = batch.db.prepare_cached(
        "UPDATE push SET acked = ?3, attempts = ?4, due = ?5, last_error = ?6, since = ?7, told = ?8,
                         dead_from = ?9, dead_count = ?10, dead_at = ?11
         WHERE task = ?1 AND id = ?2 AND acked <= ?3 AND epoch = ?12",
    )?;
    let updated = update.execute((
        task.0,
        config.id.as_str(),
        number(config.acked),
        config.attempts,
        config.due,
        &config.last_error,
        config.since,
        config.told.map(|state| state.0),
        config.dead.map(|dead| number(dead.from)),
        config.dead.map_or(0, |dead| number(dead.count)),
        config.dead.map(|dead| dead.at),
        config.epoch,
    ))?;
    Ok(updated == 1)
}

pub(super) fn wake(batch: &Batch<'_>, now: Micros) -> rusqlite::Result<usize> {
    let mut update = batch
        .db
        .prepare_cached("UPDATE push INDEXED BY push_by_due SET due = ?1 WHERE due IS NOT NULL AND due = ?2")?;
    update.execute((now, WAITING))
}

/// Moves a webhook back before what was given up. It may be called by another process than the one that
/// delivers, which notices by the epoch.
pub(super) fn replay(db: &Connection, task: TaskKey, id: &PushId, now: Micros) -> rusqlite::Result<bool> {
    let mut update = db.prepare_cached(
        "UPDATE push SET acked = min(acked, dead_from - 1), attempts = 0, due = ?3, since = NULL, told = NULL,
                         dead_from = NULL, dead_count = 0, dead_at = NULL, epoch = epoch + 1
         WHERE task = ?1 AND id = ?2 AND dead_from IS NOT NULL",
    )?;
    Ok(update.execute((task.0, id.as_str(), now))? == 1)
}

pub(super) fn backlog(db: &Connection) -> rusqlite::Result<Backlog> {
    let mut pending = db.prepare_cached(
        "SELECT count(*), min(since) FROM push INDEXED BY push_by_due WHERE due IS NOT NULL AND due < ?1",
    )?;
    let (pending, oldest) =
        pending.query_row([WAITING], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)))?;
    let mut dead = db.prepare_cached(
        "SELECT ifnull(sum(dead_count), 0) FROM push INDEXED BY push_by_dead WHERE dead_at IS NOT NULL",
    )?;
    let dead = dead.query_row([], |row| Ok(row.get::<_, i64>(0)?.cast_unsigned()))?;
    Ok(Backlog { pending, oldest, dead })
}

pub(super) fn of_task(db: &Connection, task: TaskKey) -> rusqlite::Result<Vec<PushConfig>> {
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM push WHERE task = ?1 ORDER BY id"))?;
    select.query_map([task.0], |row| Ok(config(row)?.1))?.collect()
}

pub(super) fn due(db: &Connection, now: Micros, limit: usize) -> rusqlite::Result<Vec<(TaskKey, PushConfig)>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM push INDEXED BY push_by_due
         WHERE due IS NOT NULL AND due <= ?1 ORDER BY due, task, id LIMIT ?2"
    ))?;
    select.query_map((now, limit_of(limit)), config)?.collect()
}

/// All webhooks, after one of them.
pub(super) fn page(
    db: &Connection,
    (task, id): (i64, &str),
    limit: usize,
) -> rusqlite::Result<Vec<(TaskKey, PushConfig)>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM push WHERE (task, id) > (?1, ?2) ORDER BY task, id LIMIT ?3"
    ))?;
    select.query_map((task, id, limit_of(limit)), config)?.collect()
}

/// Replaces what a webhook is, and not how far it has come. False when it is no longer the same.
pub(super) fn put_body(db: &Connection, task: TaskKey, config: &PushConfig, body: &[u8]) -> rusqlite::Result<bool> {
    let mut update = db.prepare_cached("UPDATE push SET body = ?3 WHERE task = ?1 AND id = ?2 AND body = ?4")?;
    Ok(update.execute((task.0, config.id.as_str(), body, &*config.body))? == 1)
}

pub(super) fn config(row: &Row<'_>) -> rusqlite::Result<(TaskKey, PushConfig)> {
    let number = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.cast_unsigned());
    let dead = match row.get::<_, Option<i64>>(11)? {
        None => None,
        Some(from) => Some(Dead { from: from.cast_unsigned(), count: number(12)?, at: row.get(13)? }),
    };
    let config = PushConfig {
        id: PushId::from(row.get::<_, String>(1)?),
        body: bytes(row, 2)?,
        version: row.get(3)?,
        acked: number(4)?,
        attempts: row.get(5)?,
        due: row.get(6)?,
        last_error: row.get(7)?,
        epoch: row.get(8)?,
        since: row.get(9)?,
        told: row.get::<_, Option<u8>>(10)?.map(State),
        dead,
        node: None,
    };
    Ok((TaskKey(row.get(0)?), config))
}
