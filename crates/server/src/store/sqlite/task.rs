//! Creating and claiming tasks: writes with an answer.

use super::super::{Claim, Created, Lease, NewTask, Seq, StoreError, TaskKey};
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
    let key = log::next_place(batch);
    // Right behind it stand its snapshot and the events that it comes with, as far as the first row does not hold them.
    let (with_snapshot, packed) = log::pack_first(batch, task);
    let (apart, snapshot) = match task.snapshot() {
        None => (None, (log::NOWHERE, 0)),
        Some((seq, _)) if with_snapshot => (None, (key, number(seq))),
        Some((seq, body)) => (Some(body), (key + 1, number(seq))),
    };
    let second = match (packed, task.early.len()) {
        (_, 0) => log::NOWHERE,
        (0, _) => key + 1 + i64::from(apart.is_some()),
        _ => key,
    };
    if !insert(batch, key, task, second, snapshot)? {
        return Ok(Err(batch.at.failed("the task id exists")));
    }
    log::first_row(batch, TaskKey(key))?;
    if let Some(body) = apart {
        log::snapshot(batch, TaskKey(key), body)?;
    }
    let rest = task.early[packed..].iter().map(|event| &event.body);
    log::events(batch, TaskKey(key), 2 + packed as Seq, rest)?;
    if let Some(used) = &task.key {
        remember(batch.db, &task.scope, &used.key, (TaskKey(key), 1, task.at))?;
    }
    if let Some(config) = &task.push {
        push::put(batch, TaskKey(key), config)?;
    }
    let (scope, seq, (state, updated)) = (task.scope.clone(), task.seq(), task.present());
    batch.heads.know(TaskKey(key), Head { scope, state, seq, epoch: 1, updated, second, snapshot });
    batch.count(task.scope.clone(), state, 1);
    batch.events += 1 + task.early.len();
    Ok(Ok(Created::New(TaskKey(key))))
}

/// False when the tenant has a task with this id.
fn insert(
    batch: &mut Batch<'_>,
    key: i64,
    task: &NewTask,
    second: i64,
    snapshot: (i64, i64),
) -> rusqlite::Result<bool> {
    let (state, updated) = task.present();
    let inserted = batch.hot.create.execute((
        key,
        &*task.scope.tenant,
        task.id.as_str(),
        task.context_id.as_str(),
        &*task.scope.owner,
        &*task.agent,
        state.0,
        number(task.seq()),
        &*task.lease.node,
        task.at,
        updated,
        second,
        snapshot.0,
        snapshot.1,
    ))?;
    Ok(inserted == 1)
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
