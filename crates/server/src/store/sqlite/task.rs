//! Creating and claiming tasks: writes with an answer.

use super::super::{Created, Lease, NewTask, StoreError, TaskKey, TaskRow};
use super::append::{find_key, remember};
use super::head::Head;
use super::writer::Batch;
use super::{log, push, read};

pub(super) fn create(batch: &mut Batch<'_>, task: &NewTask) -> rusqlite::Result<Result<Created, StoreError>> {
    if let Some(key) = &task.key
        && let Some((known, seq)) = find_key(batch.db, &task.scope, key)?
    {
        return Ok(Ok(Created::Known(known, seq)));
    }
    let key = log::next_place(batch);
    if !insert(batch, key, task)? {
        return Ok(Err(batch.at.failed("the task id exists")));
    }
    log::first_event(batch, TaskKey(key), &task.body)?;
    if let Some(used) = &task.key {
        remember(batch.db, &task.scope, &used.key, (TaskKey(key), 1, task.at))?;
    }
    if let Some(config) = &task.push {
        push::put(batch, TaskKey(key), config)?;
    }
    let scope = task.scope.clone();
    let (state, updated, none) = (task.state, task.at, log::NOWHERE);
    batch.heads.know(TaskKey(key), Head { scope, state, seq: 1, epoch: 1, updated, second: none, snapshot: (none, 0) });
    batch.count(task.scope.clone(), task.state, 1);
    batch.events += 1;
    Ok(Ok(Created::New(TaskKey(key))))
}

/// False when the tenant has a task with this id.
fn insert(batch: &mut Batch<'_>, key: i64, task: &NewTask) -> rusqlite::Result<bool> {
    let inserted = batch.hot.create.execute((
        key,
        &*task.scope.tenant,
        task.id.as_str(),
        task.context_id.as_str(),
        &*task.scope.owner,
        &*task.agent,
        task.state.0,
        &*task.lease.node,
        task.at,
        log::NOWHERE,
    ))?;
    Ok(inserted == 1)
}

pub(super) fn claim(
    batch: &mut Batch<'_>,
    task: TaskKey,
    epoch: i64,
    lease: &Lease,
    retry: bool,
) -> rusqlite::Result<Option<TaskRow>> {
    let mut update = batch.db.prepare_cached(
        "UPDATE task SET epoch = epoch + 1, attempts = iif(?3, attempts + 1, 0), lease_node = ?4
         WHERE key = ?1 AND epoch = ?2",
    )?;
    batch.heads.forget(task);
    if update.execute((task.0, epoch, retry, &*lease.node))? == 0 {
        return Ok(None);
    }
    read::task_by_key(batch.db, task)
}
