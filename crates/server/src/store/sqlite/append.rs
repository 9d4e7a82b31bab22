//! Appends of one batch: one fenced update per run of a task's events, one insert per event.

use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::super::{Append, AppendError, IdempotencyKey, Micros, Scope, Seq, State, TaskKey};
use super::number;
use super::writer::{Batch, same_writer};

/// Hears what became of the append with this index in its batch.
pub(super) trait Tell: FnMut(&mut Batch<'_>, usize, Option<AppendError>) {}
impl<F: FnMut(&mut Batch<'_>, usize, Option<AppendError>)> Tell for F {}

/// Writes appends that are sorted by task. Refusals are told, not returned: they concern one task.
pub(super) fn appends(batch: &mut Batch<'_>, all: &[Append], mut tell: impl Tell) -> rusqlite::Result<()> {
    let db = batch.db;
    let mut insert = db.prepare_cached("INSERT INTO event (task, seq, at, body) VALUES (?1, ?2, ?3, ?4)")?;
    let mut advance = db.prepare_cached("UPDATE task SET seq = ?4 WHERE key = ?1 AND epoch = ?2 AND seq = ?3 - 1")?;
    let mut start = 0;
    while let Some(run) = all[start..].chunk_by(follows).next() {
        let outcome = match check(batch, run)? {
            Checked { taken: 0, refused } => (0, refused),
            Checked { taken, refused } => {
                if write(batch, &run[..taken], &mut advance, &mut insert)? {
                    (taken, refused)
                } else {
                    (0, Some(AppendError::Fenced))
                }
            }
        };
        // A refusal ends one listener's events; the number may still be the next one of another.
        let run = if outcome.0 == 0 { run.chunk_by(same_writer).next().unwrap_or(run) } else { run };
        tell_run(batch, run, start, outcome, &mut tell);
        start += run.len();
    }
    Ok(())
}

/// Whether two appends are neighbours in the log of the same task under the same lease.
fn follows(a: &Append, b: &Append) -> bool {
    a.task == b.task && a.epoch == b.epoch && a.seq.checked_add(1) == Some(b.seq)
}

/// How many events of a run may be written, and why not the next one.
struct Checked {
    taken: usize,
    refused: Option<AppendError>,
}

/// Looks before writing, so that a refusal leaves nothing to undo. Only keys need that: without
/// them the update itself tells whether the lease and the number hold.
fn check(batch: &mut Batch<'_>, run: &[Append]) -> rusqlite::Result<Checked> {
    let all = Checked { taken: run.len(), refused: None };
    if run.iter().all(|append| append.key.is_none()) {
        return Ok(all);
    }
    let first = &run[0];
    let head = head(batch.db, first.task)?;
    let Some(head) = head.filter(|head| head.epoch == first.epoch && head.seq + 1 == first.seq) else {
        return Ok(Checked { taken: 0, refused: Some(AppendError::Fenced) });
    };
    for (taken, append) in run.iter().enumerate() {
        let Some(used) = &append.key else { continue };
        if find_key(batch.db, &head.scope, used)?.is_some() {
            return Ok(Checked { taken, refused: Some(AppendError::KeyUsed) });
        }
        remember(batch.db, &head.scope, &used.key, (append.task, append.seq, append.at))?;
    }
    Ok(all)
}

/// Writes a whole run, or nothing when its lease or first number does not hold.
fn write(
    batch: &mut Batch<'_>,
    run: &[Append],
    advance: &mut CachedStatement<'_>,
    insert: &mut CachedStatement<'_>,
) -> rusqlite::Result<bool> {
    let Some((first, last)) = run.first().zip(run.last()) else {
        return Ok(true);
    };
    let fence = (first.task.0, first.epoch, number(first.seq), number(last.seq));
    let changed = run.iter().rev().find_map(|append| Some((append.state?, append.at)));
    let written = match changed {
        None => advance.execute(fence)? == 1,
        Some((state, at)) => change_state(batch, fence, state, at)?,
    };
    if !written {
        return Ok(false);
    }
    for append in run {
        insert.execute((append.task.0, number(append.seq), append.at, &*append.body))?;
        if let Some(message) = &append.message {
            batch.db.prepare_cached("INSERT INTO inbox (task, seq, at, body) VALUES (?1, ?2, ?3, ?4)")?.execute((
                append.task.0,
                number(append.seq),
                append.at,
                &**message,
            ))?;
        }
    }
    if let Some((seq, body)) = run.iter().rev().find_map(|append| Some((append.seq, append.snapshot.as_ref()?))) {
        batch.db.prepare_cached("INSERT OR REPLACE INTO snapshot (task, seq, body) VALUES (?1, ?2, ?3)")?.execute((
            first.task.0,
            number(seq),
            &**body,
        ))?;
    }
    batch.events += run.len();
    Ok(true)
}

/// The fenced update where the state changes too: it moves the task in three indexes and two tallies.
fn change_state(
    batch: &mut Batch<'_>,
    (task, epoch, first, last): (i64, i64, i64, i64),
    state: State,
    at: Micros,
) -> rusqlite::Result<bool> {
    let Some(old) = head(batch.db, TaskKey(task))? else {
        return Ok(false);
    };
    let mut update = batch.db.prepare_cached(
        "UPDATE task SET seq = ?4, state = ?5, updated = ?6 WHERE key = ?1 AND epoch = ?2 AND seq = ?3 - 1",
    )?;
    if update.execute((task, epoch, first, last, state.0, at))? != 1 {
        return Ok(false);
    }
    if old.state != state {
        batch.count(old.scope.clone(), old.state, -1);
        batch.count(old.scope, state, 1);
    }
    Ok(true)
}

/// One word per listener: the last event that is durable, and the first that is not.
fn tell_run(
    batch: &mut Batch<'_>,
    run: &[Append],
    start: usize,
    (taken, refused): (usize, Option<AppendError>),
    tell: &mut impl Tell,
) {
    let (done, undone) = run.split_at(taken);
    let mut end = start;
    for part in done.chunk_by(same_writer) {
        end += part.len();
        tell(batch, end - 1, None);
    }
    for part in undone.chunk_by(same_writer) {
        // Those behind the first are refused because the number before them is missing.
        let why = if end == start + taken { refused.clone() } else { None };
        tell(batch, end, Some(why.unwrap_or(AppendError::Fenced)));
        end += part.len();
    }
}

/// What a fence is checked against.
struct Head {
    scope: Scope,
    state: State,
    seq: Seq,
    epoch: i64,
}

fn head(db: &Connection, task: TaskKey) -> rusqlite::Result<Option<Head>> {
    let mut select = db.prepare_cached("SELECT tenant, owner, state, seq, epoch FROM task WHERE key = ?1")?;
    let head = select.query_row([task.0], |row| {
        Ok(Head {
            scope: Scope { tenant: row.get(0)?, owner: row.get(1)? },
            state: State(row.get(2)?),
            seq: row.get::<_, i64>(3)?.cast_unsigned(),
            epoch: row.get(4)?,
        })
    });
    head.optional()
}

/// Where this caller used this key. A key whose task is gone counts as never used.
pub(super) fn find_key(
    db: &Connection,
    scope: &Scope,
    key: &IdempotencyKey,
) -> rusqlite::Result<Option<(TaskKey, Seq)>> {
    let mut select = db.prepare_cached(
        "SELECT used.task, used.seq FROM idempotency AS used
         WHERE used.tenant = ?1 AND used.owner = ?2 AND used.key = ?3 AND used.at >= ?4
           AND EXISTS (SELECT 1 FROM task WHERE task.key = used.task)",
    )?;
    let found = select.query_row((&*scope.tenant, &*scope.owner, &*key.key, key.since), |row| {
        Ok((TaskKey(row.get(0)?), row.get::<_, i64>(1)?.cast_unsigned()))
    });
    found.optional()
}

pub(super) fn remember(
    db: &Connection,
    scope: &Scope,
    key: &Arc<str>,
    (task, seq, at): (TaskKey, Seq, Micros),
) -> rusqlite::Result<()> {
    let mut upsert = db.prepare_cached(
        "INSERT OR REPLACE INTO idempotency (tenant, owner, key, task, seq, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    upsert.execute((&*scope.tenant, &*scope.owner, &**key, task.0, number(seq), at))?;
    Ok(())
}
