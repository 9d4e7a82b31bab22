//! Webhooks and their cursors.

use rusqlite::{Connection, Row};

use nuncio_protocol::PushId;

use super::super::{Micros, PushConfig, TaskKey};
use super::read::bytes;
use super::writer::Batch;
use super::{limit_of, number};

const COLUMNS: &str = "task, id, body, version, acked, attempts, due, last_error";

/// False when there is no such task.
pub(super) fn put(batch: &Batch<'_>, task: TaskKey, config: &PushConfig) -> rusqlite::Result<bool> {
    let mut upsert = batch.db.prepare_cached(
        "INSERT OR REPLACE INTO push (task, id, body, version, acked, attempts, due, last_error)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE EXISTS (SELECT 1 FROM task WHERE key = ?1)",
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
    ))?;
    Ok(stored == 1)
}

pub(super) fn delete(batch: &Batch<'_>, task: TaskKey, id: &PushId) -> rusqlite::Result<bool> {
    let mut delete = batch.db.prepare_cached("DELETE FROM push WHERE task = ?1 AND id = ?2")?;
    Ok(delete.execute((task.0, id.as_str()))? == 1)
}

/// A cursor behind the stored one tells of an older delivery, so all of it is out of date.
pub(super) fn advance(batch: &Batch<'_>, task: TaskKey, config: &PushConfig) -> rusqlite::Result<()> {
    let mut update = batch.db.prepare_cached(
        "UPDATE push SET acked = ?3, attempts = ?4, due = ?5, last_error = ?6
         WHERE task = ?1 AND id = ?2 AND acked <= ?3",
    )?;
    let acked = number(config.acked);
    update.execute((task.0, config.id.as_str(), acked, config.attempts, config.due, &config.last_error))?;
    Ok(())
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

fn config(row: &Row<'_>) -> rusqlite::Result<(TaskKey, PushConfig)> {
    let config = PushConfig {
        id: PushId::from(row.get::<_, String>(1)?),
        body: bytes(row, 2)?,
        version: row.get(3)?,
        acked: row.get::<_, i64>(4)?.cast_unsigned(),
        attempts: row.get(5)?,
        due: row.get(6)?,
        last_error: row.get(7)?,
    };
    Ok((TaskKey(row.get(0)?), config))
}
