//! Removing what is old, in transactions short enough that appends do not notice.

use rusqlite::{Connection, OptionalExtension};

use super::super::{Micros, Older, Scope, State, TaskKey};
use super::log;
use super::writer::Batch;

/// Tasks per transaction.
pub(super) const TASKS: usize = 64;

/// Rows of the log or keys per transaction.
pub(super) const ROWS: i64 = 2_000;

/// Tasks that are old enough, found without looking at the others: caller by caller,
/// because the order by time is kept per caller.
pub(super) fn candidates(db: &Connection, than: &Older, limit: usize) -> rusqlite::Result<Vec<TaskKey>> {
    let mut select = db.prepare_cached(
        "SELECT t.key, t.state FROM (SELECT DISTINCT tenant, owner FROM tally) AS who
         CROSS JOIN task AS t INDEXED BY task_by_time
         WHERE t.tenant = who.tenant AND t.owner = who.owner AND t.updated < ?1
           AND t.state > 2 AND (t.state IN (3, 4, 5, 7) OR ?2 AND t.state IN (6, 8))",
    )?;
    let rows = select.query_map((than.before, than.at_rest.is_some()), |row| {
        let (key, state) = (TaskKey(row.get(0)?), State(row.get(1)?));
        Ok(than.takes(state, key).then_some(key))
    });
    // Not limited by SQL, so that those in hand do not hide the others.
    rows?.filter_map(Result::transpose).take(limit).collect()
}

/// Removes these tasks with everything but the later part of their events, which may be long.
pub(super) fn remove(batch: &mut Batch<'_>, keys: &[TaskKey], than: &Older) -> rusqlite::Result<usize> {
    let mut removed = 0;
    for key in keys {
        let mut delete = batch.db.prepare_cached(
            "DELETE FROM task WHERE key = ?1 AND updated < ?2 AND (state IN (3, 4, 5, 7) OR ?3 AND state IN (6, 8))
             RETURNING tenant, owner, state, second, snapshot",
        )?;
        // Asked here: whoever takes a task in hand later finds out when he claims it.
        let at_rest = than.at_rest.as_ref().is_some_and(|in_hand| !in_hand(*key));
        let gone = delete.query_row((key.0, than.before, at_rest), |row| {
            Ok((
                Scope { tenant: row.get(0)?, owner: row.get(1)? },
                State(row.get(2)?),
                [key.0, row.get(3)?, row.get(4)?],
            ))
        });
        let Some((scope, state, places)) = gone.optional()? else {
            continue;
        };
        for place in places {
            log::remove(batch, place)?;
        }
        for sql in [
            "DELETE FROM inbox WHERE task = ?1",
            "DELETE FROM push WHERE task = ?1",
            "INSERT INTO trash (task) VALUES (?1)",
            "INSERT INTO mark (name, value) VALUES ('trimmed', ?1)
             ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
        ] {
            batch.db.prepare_cached(sql)?.execute([key.0])?;
        }
        batch.count(scope, state, -1);
        batch.changed_finished = true;
        removed += 1;
    }
    Ok(removed)
}

/// Removes some events of trimmed tasks. False when none are left.
pub(super) fn sweep(batch: &mut Batch<'_>) -> rusqlite::Result<bool> {
    let mut room = ROWS;
    while room > 0 {
        let mut next = batch.db.prepare_cached("SELECT task FROM trash LIMIT 1")?;
        let Some(task): Option<i64> = next.query_row([], |row| row.get(0)).optional()? else {
            return Ok(false);
        };
        let mut delete = batch.db.prepare_cached(
            "DELETE FROM log WHERE place IN
             (SELECT place FROM log INDEXED BY log_by_task WHERE task = ?1 AND seq > 2 LIMIT ?2)",
        )?;
        let gone = i64::try_from(delete.execute((task, room))?).unwrap_or(room);
        if gone < room {
            batch.db.prepare_cached("DELETE FROM trash WHERE task = ?1")?.execute([task])?;
        }
        room -= gone.max(1);
    }
    Ok(true)
}

/// Forgets some keys from before this moment. False when none are left.
pub(super) fn forget(batch: &mut Batch<'_>, before: Micros) -> rusqlite::Result<bool> {
    let mut delete = batch.db.prepare_cached(
        "DELETE FROM idempotency WHERE (tenant, owner, key) IN
         (SELECT tenant, owner, key FROM idempotency INDEXED BY idempotency_by_age
          WHERE at < ?1 ORDER BY at LIMIT ?2)",
    )?;
    Ok(delete.execute((before, ROWS))? > 0)
}

/// Forgets callers without tasks. Tallies of this batch are written later and stay.
pub(super) fn forget_callers(batch: &mut Batch<'_>) -> rusqlite::Result<()> {
    batch.db.prepare_cached("DELETE FROM tally WHERE n = 0")?.execute([])?;
    Ok(())
}

/// The largest place that was ever handed out, as far as anything may still point to it.
pub(super) fn last_place(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row(
        "SELECT max(ifnull((SELECT max(place) FROM log), 0), ifnull((SELECT max(key) FROM task), 0),
                    ifnull((SELECT value FROM mark WHERE name = 'trimmed'), 0))",
        [],
        |row| row.get(0),
    )
}
