//! What became of a batch whose connection died under it.

use std::collections::HashMap;

use tokio_postgres::Error;

use super::super::packed::Found;
use super::super::{Created, TaskKey};
use super::append::Run;
use super::batch::{Batch, Outcome};
use super::link::Link;
use super::text::escape;
use super::writer::{answer, tell};
use super::{number, read};

/// Takes out of a batch, and tells, what an earlier attempt has done.
pub(super) async fn settle(link: &Link, batch: &mut Batch) -> Result<(), Error> {
    settle_these(link, batch, |_| true, |_| true).await
}

/// The same for what was refused now.
pub(super) async fn settle_refused(link: &Link, batch: &mut Batch, outcome: &Outcome) -> Result<(), Error> {
    let (moved, made) = (&outcome.moved, &outcome.made);
    settle_these(link, batch, |task| !moved.contains(&task.0), |task| !made.contains(&task.0)).await
}

async fn settle_these(
    link: &Link,
    batch: &mut Batch,
    runs: impl Fn(TaskKey) -> bool,
    creates: impl Fn(TaskKey) -> bool,
) -> Result<(), Error> {
    let of_runs = batch.runs.iter().map(|run| run.first().task).filter(|task| runs(*task));
    let of_creates = batch.creates.iter().map(|create| TaskKey(create.key)).filter(|task| creates(*task));
    let tasks: Vec<i64> = of_runs.chain(of_creates).map(|task| task.0).collect();
    if tasks.is_empty() {
        return Ok(());
    }
    let sql = "SELECT key, epoch, seq, lease_node, state FROM task WHERE key = ANY($1::int8[])";
    let mut seen = HashMap::new();
    for row in link.client.query(sql, &[&tasks]).await? {
        let (epoch, seq, node, state): (i64, i64, String, i16) =
            (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        seen.insert(row.try_get::<_, i64>(0)?, Seen { epoch, seq, node, state });
    }
    let mut open = Vec::new();
    for run in std::mem::take(&mut batch.runs) {
        let task = run.first().task;
        let done = match seen.get(&task.0).filter(|_| runs(task)) {
            Some(now) if now.epoch == run.first().epoch => now.seq >= number(run.last().seq),
            // Another has taken over: either after these events, or before them.
            Some(now) if now.seq >= number(run.last().seq) => is_there(link, &run).await?,
            _ => false,
        };
        if done {
            batch.written += run.appends.len();
            tell(&run, None);
        } else {
            open.push(run);
        }
    }
    batch.runs = open;
    let mut open = Vec::new();
    for create in std::mem::take(&mut batch.creates) {
        let key = TaskKey(create.key);
        let Some(now) = seen.get(&key.0).filter(|_| creates(key)) else {
            open.push(create);
            continue;
        };
        // Without its lease it may have been taken up by another node by now.
        let hoped = create.hopes();
        let holds = now.node == escape(&create.task.lease.node) || matches!(now.state, 3 | 4 | 5 | 7);
        batch.written += 1 + create.task.early.len();
        answer(create, Ok(if holds || !hoped { Created::New(key) } else { Created::Waiting(key) }));
    }
    batch.creates = open;
    Ok(())
}

struct Seen {
    epoch: i64,
    seq: i64,
    node: String,
    state: i16,
}

/// Whether the log has the last event of a run as the run has it.
async fn is_there(link: &Link, run: &Run) -> Result<bool, Error> {
    let last = run.last();
    let rows = link.client.query(read::EVENTS, &[&last.task.0, &number(last.seq), &1_i64]).await?;
    let mut found = Found::new(last.seq - 1, 1, usize::MAX);
    for row in rows {
        // A row that is cut off has not this event.
        let _ = found.take(row.try_get::<_, i64>(0)?.cast_unsigned(), read::bytes(&row, 1)?, None);
    }
    Ok(found.events.first().is_some_and(|event| event.body == last.body))
}
