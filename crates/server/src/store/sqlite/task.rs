//! Creating and claiming tasks: writes with an answer.

use super::super::{Claim, Created, Lease, Micros, NewTask, Scope, Seq, State, StoreError, TaskKey};
use super::append::{find_key, remember};
use super::head::Head;
use super::writer::Batch;
use super::{log, number, push, read};

pub(super) fn create(batch: &mut Batch<'_>, task: &NewTask) -> rusqlite::Result<Result<Created, StoreError>> {
    if let Some(key) = &task.key
        && let Some((known, seq)) = find_key(batch.db, &task.scope, key)?
    {
        return Ok(Ok(Created::Known(known, seq)));
    }
    let key = batch.places.next();
    // Right behind it stand its snapshot and the events that it comes with, as far as the first row does not hold them.
    let (with_snapshot, packed) = log::pack_first(&mut batch.packed, task);
    let rest = &task.early[packed..];
    let (apart, snapshot) = match task.snapshot() {
        None => (None, (log::NOWHERE, 0)),
        Some((seq, _)) if with_snapshot => (None, (key, number(seq))),
        Some((seq, body)) => {
            let place = batch.places.next();
            (Some((place, body)), (place, number(seq)))
        }
    };
    let second = match packed {
        0 if rest.is_empty() => log::NOWHERE,
        0 => batch.places.next(),
        _ => key,
    };
    let (state, updated) = task.present();
    let row = Row {
        key: TaskKey(key),
        scope: &task.scope,
        id: task.id.as_str(),
        context_id: task.context_id.as_str(),
        agent: &task.agent,
        node: &task.lease.node,
        state,
        seq: task.seq(),
        created: task.at,
        updated,
        second,
        snapshot,
    };
    if !insert(batch, &row)? {
        return Ok(Err(batch.at.failed("the task id exists")));
    }
    batch.hot.log.execute((key, key, 1, &*batch.packed))?;
    if let Some((place, body)) = apart {
        log::snapshot(batch, place, TaskKey(key), body)?;
    }
    if !rest.is_empty() {
        let place = if packed == 0 { second } else { batch.places.next() };
        log::events(batch, TaskKey(key), 2 + packed as Seq, rest.iter().map(|event| &event.body), place)?;
    }
    if let Some(used) = &task.key {
        remember(batch.db, &task.scope, &used.key, (TaskKey(key), 1, task.at))?;
    }
    if let Some(config) = &task.push {
        push::put(batch, TaskKey(key), config)?;
    }
    batch.events += 1 + task.early.len();
    Ok(Ok(Created::New(TaskKey(key))))
}

/// What `task` says of a new one.
pub(super) struct Row<'a> {
    pub(super) key: TaskKey,
    pub(super) scope: &'a Scope,
    pub(super) id: &'a str,
    pub(super) context_id: &'a str,
    pub(super) agent: &'a str,
    pub(super) node: &'a str,
    pub(super) state: State,
    pub(super) seq: Seq,
    pub(super) created: Micros,
    pub(super) updated: Micros,
    /// The place of its second event.
    pub(super) second: i64,
    /// The place of its snapshot, and the event that it includes last.
    pub(super) snapshot: (i64, i64),
}

/// False when the tenant has a task with this id.
pub(super) fn insert(batch: &mut Batch<'_>, row: &Row<'_>) -> rusqlite::Result<bool> {
    let inserted = batch.hot.create.execute((
        row.key.0,
        &*row.scope.tenant,
        row.id,
        row.context_id,
        &*row.scope.owner,
        row.agent,
        row.state.0,
        number(row.seq),
        row.node,
        row.created,
        row.updated,
        row.second,
        row.snapshot.0,
        row.snapshot.1,
    ))?;
    if inserted == 0 {
        return Ok(false);
    }
    let (scope, state, seq, updated) = (row.scope.clone(), row.state, row.seq, row.updated);
    let head = Head { scope, state, seq, epoch: 1, updated, second: row.second, snapshot: row.snapshot };
    batch.heads.know(row.key, head);
    batch.count(row.scope.clone(), state, 1);
    Ok(true)
}

pub(super) fn claim(
    batch: &mut Batch<'_>,
    task: TaskKey,
    epoch: i64,
    lease: &Lease,
    retry: bool,
) -> rusqlite::Result<Claim> {
    let mut update = batch.db.prepare_cached(
        "UPDATE task SET epoch = epoch + 1, attempts = iif(?3, attempts + 1, 0), lease_node = ?4
         WHERE key = ?1 AND epoch = ?2",
    )?;
    batch.heads.forget(task);
    if update.execute((task.0, epoch, retry, &*lease.node))? == 0 {
        return Ok(Claim::Lost);
    }
    let row = read::task_by_key(batch.db, task)?;
    batch.changed_finished |= row.as_ref().is_some_and(|row| row.state.is_final());
    Ok(row.map_or(Claim::Lost, |row| Claim::Taken(Box::new(row))))
}
