//! Appends of one batch: one fenced update and one row of the log per run of a task's events.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension};

use super::super::{Append, AppendError, IdempotencyKey, Micros, Scope, Seq, State, TaskKey};
use super::head::Head;
use super::writer::{Batch, same_writer};
use super::{head, log, number};

/// Hears what became of the append with this index in its batch.
pub(super) trait Tell: FnMut(&mut Batch<'_>, usize, Option<AppendError>) {}
impl<F: FnMut(&mut Batch<'_>, usize, Option<AppendError>)> Tell for F {}

/// Writes appends that are sorted by task. Refusals are told, not returned: they concern one task.
pub(super) fn appends(batch: &mut Batch<'_>, all: &[Append], mut tell: impl Tell) -> rusqlite::Result<()> {
    let mut start = 0;
    while let Some(run) = all[start..].chunk_by(follows).next() {
        let outcome = match check(batch, run)? {
            Checked { taken: 0, refused } => (0, refused),
            Checked { taken, refused } => {
                if write(batch, &run[..taken])? {
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

/// Looks before writing, so that a refusal leaves nothing to undo. Only keys need that: `write` looks
/// at the lease and the number itself.
fn check(batch: &mut Batch<'_>, run: &[Append]) -> rusqlite::Result<Checked> {
    let all = Checked { taken: run.len(), refused: None };
    if run.iter().all(|append| append.key.is_none()) {
        return Ok(all);
    }
    let first = &run[0];
    let Some(head) = head::find(batch, first.task)?.filter(|head| head.fits(first)) else {
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
fn write(batch: &mut Batch<'_>, run: &[Append]) -> rusqlite::Result<bool> {
    let Some((first, last)) = run.first().zip(run.last()) else {
        return Ok(true);
    };
    let news = News {
        state: run.iter().rev().find_map(|append| Some((append.state?, append.at))),
        snapshot: run.iter().rev().find_map(|append| Some((append.seq, append.snapshot.as_ref()?))),
    };
    let plain = first.seq > 2 && news.state.is_none() && news.snapshot.is_none();
    if plain && advance(batch, first, last)? {
        let place = batch.places.next();
        log::events(batch, first.task, first.seq, run.iter().map(|append| &append.body), place)?;
    } else if !change(batch, run, first, last, news)? {
        return Ok(false);
    }
    for append in run {
        if let Some(message) = &append.message {
            batch.db.prepare_cached("INSERT INTO inbox (task, seq, at, body) VALUES (?1, ?2, ?3, ?4)")?.execute((
                append.task.0,
                number(append.seq),
                append.at,
                &**message,
            ))?;
        }
    }
    batch.events += run.len();
    Ok(true)
}

/// The fenced update of a task that goes on as before, in one step: most of a stream.
fn advance(batch: &mut Batch<'_>, first: &Append, last: &Append) -> rusqlite::Result<bool> {
    let mut update = batch
        .db
        .prepare_cached("UPDATE task SET seq = ?4 WHERE key = ?1 AND epoch = ?2 AND seq = ?3 - 1 AND state < 3")?;
    batch.heads.forget(first.task);
    Ok(update.execute((first.task.0, first.epoch, number(first.seq), number(last.seq)))? == 1)
}

/// What a run says of its task beyond its events.
#[derive(Clone, Copy)]
struct News<'a> {
    state: Option<(State, Micros)>,
    snapshot: Option<(Seq, &'a Bytes)>,
}

/// Writes the events and everything that they change. False when the fence does not hold.
fn change(
    batch: &mut Batch<'_>,
    run: &[Append],
    first: &Append,
    last: &Append,
    news: News<'_>,
) -> rusqlite::Result<bool> {
    let Some(old) = head::find(batch, first.task)?.filter(|head| head.fits(first)) else {
        return Ok(false);
    };
    let place = batch.places.next();
    log::events(batch, first.task, first.seq, run.iter().map(|append| &append.body), place)?;
    let second = if first.seq == 2 { place } else { old.second };
    let (state, updated) = news.state.unwrap_or((old.state, old.updated));
    let (snapshot, snapshot_seq) = match news.snapshot {
        None => old.snapshot,
        Some((seq, body)) => {
            // One that stands with the first events stays until they go.
            if old.snapshot.0 != first.task.0 {
                log::remove(batch, old.snapshot.0)?;
            }
            let place = batch.places.next();
            log::snapshot(batch, place, first.task, body)?;
            (place, number(seq))
        }
    };
    batch.changed_finished |= old.state.is_final();
    let fence = (old.epoch, number(old.seq));
    let changed = batch.hot.change.execute((
        first.task.0,
        number(last.seq),
        state.0,
        updated,
        second,
        snapshot,
        snapshot_seq,
        fence.0,
        fence.1,
    ))?;
    if changed != 1 {
        // Undoes the whole batch, and with it what the writer remembers.
        return Err(rusqlite::Error::StatementChangedRows(changed));
    }
    if old.state != state {
        batch.count(old.scope.clone(), old.state, -1);
        batch.count(old.scope.clone(), state, 1);
    }
    let snapshot = (snapshot, snapshot_seq);
    batch.heads.know(first.task, Head { state, seq: last.seq, updated, second, snapshot, ..old });
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

/// Where this caller used this key. A key whose task is gone counts as never used.
pub(super) fn find_key(
    db: &Connection,
    scope: &Scope,
    key: &IdempotencyKey,
) -> rusqlite::Result<Option<(TaskKey, Seq)>> {
    let mut select = db.prepare_cached(
        "SELECT used.task, used.seq FROM idempotency AS used
         WHERE used.tenant = ?1 || '' AND used.owner = ?2 || '' AND used.key = ?3 AND used.at >= ?4
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
         VALUES (?1 || '', ?2 || '', ?3, ?4, ?5, ?6)",
    )?;
    upsert.execute((&*scope.tenant, &*scope.owner, &**key, task.0, number(seq), at))?;
    Ok(())
}
