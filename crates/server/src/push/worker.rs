//! Takes jobs from Redis and has them carried, one worker at a time for each webhook.
//!
//! Redis may go away at any time. Then nothing is delivered, nothing is lost, and nobody else waits; when it is back,
//! what it may have forgotten is taken from the store.

use std::sync::Arc;
use std::time::Duration;

use redis::RedisError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::desk::{BREATH, Desk, now};
use super::queue::{Held, Job, Queue};
use crate::group::category;

#[cfg(test)]
mod tests;

/// Most jobs taken at once.
const BATCH: usize = 64;
/// Most jobs taken at once by a worker that has enough to do.
const FEW: usize = 8;
/// How often to look for jobs of workers that are gone, and for what is due later.
const LOOK: Duration = Duration::from_secs(2);
/// When to look again at a webhook that another worker has in hand, in microseconds.
const ELSEWHERE: i64 = 500_000;

/// A worker, and whoever makes jobs of what is due later.
pub(super) fn start(desk: &Arc<Desk>, queue: &Arc<Queue>, tasks: &TaskTracker, stop: &CancellationToken) {
    let worker = Worker { desk: desk.clone(), queue: queue.clone(), tasks: tasks.clone(), stop: stop.clone() };
    tasks.spawn(worker.run());
    let (queue, stop) = (queue.clone(), stop.clone());
    tasks.spawn(async move {
        while !stop.is_cancelled() {
            let pause = match queue.promote().await {
                Ok(Some(at)) => Duration::from_micros(u64::try_from(at - now()).unwrap_or_default()).min(LOOK),
                Ok(None) => LOOK,
                Err(_) => BREATH,
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = queue.sooner.notified() => {}
                () = stop.cancelled() => {}
            }
        }
    });
}

struct Worker {
    desk: Arc<Desk>,
    queue: Arc<Queue>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Worker {
    async fn run(self) {
        // Whether Redis answered last, if it was asked.
        let mut well = None;
        let mut claimed = Instant::now();
        while !self.stop.is_cancelled() {
            let turn = async {
                if well != Some(true) {
                    self.begin(well.is_some()).await?;
                }
                if claimed.elapsed() >= LOOK.min(self.queue.options.lease) {
                    claimed = Instant::now();
                    self.take(self.queue.claim(BATCH).await?);
                }
                match self.appetite().await {
                    0 => {}
                    most => self.take(self.queue.next(most).await?),
                }
                Ok::<_, RedisError>(())
            };
            let done = tokio::select! {
                done = turn => done,
                () = self.stop.cancelled() => return,
            };
            match done {
                Ok(()) => well = Some(true),
                Err(error) => {
                    if well != Some(false) {
                        tracing::warn!(error = %category(&error), "webhooks wait for Redis");
                    }
                    well = Some(false);
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }

    /// Takes up what this worker had in hand when it, or Redis, went away.
    async fn begin(&self, again: bool) -> Result<(), RedisError> {
        let created = self.queue.group.create().await?;
        let mut after = "0".to_owned();
        while let (jobs, Some(last)) = self.queue.own(BATCH, &after).await? {
            self.take(jobs);
            after = last;
        }
        if again {
            tracing::info!("Redis is back");
        }
        if (again || created)
            && let Err(error) = self.desk.store.wake_pushes(now()).await
        {
            tracing::error!(%error, "what Redis may have forgotten could not be looked for");
        }
        Ok(())
    }

    /// How many jobs to take: as many as can be posted at once. Beyond that slowly, so that other workers come first,
    /// and yet what waits for a host that hangs does not hold up the rest.
    async fn appetite(&self) -> usize {
        let (in_hand, room) = self.desk.load();
        match self.desk.options.concurrent.saturating_sub(in_hand) {
            0 => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                room.min(FEW)
            }
            free => free.min(room).min(BATCH),
        }
    }

    fn take(&self, jobs: Vec<Job>) {
        for job in jobs {
            match self.desk.enter(&job.slot, Some(&job.id), &self.stop) {
                Entered::Now => {
                    self.tasks.spawn(deliver(self.desk.clone(), self.queue.clone(), job, self.stop.clone()));
                }
                Entered::Same => {}
                // Whoever has it in hand looks once more.
                Entered::Busy => {
                    let queue = self.queue.clone();
                    self.tasks.spawn(async move { report(queue.group.finish(&job.id).await) });
                }
            }
        }
    }
}

/// Whether a webhook is free to be carried.
pub(super) enum Entered {
    Now,
    /// It is carried, for another job.
    Busy,
    /// It is carried, for this very job.
    Same,
}

async fn deliver(desk: Arc<Desk>, queue: Arc<Queue>, job: Job, stop: CancellationToken) {
    let held = loop {
        match queue.hold(&job.slot).await {
            Ok(held) => break held,
            Err(_) if !stop.is_cancelled() => tokio::time::sleep(BREATH).await,
            Err(_) => return desk.leave(&job.slot),
        }
    };
    let Some(held) = held else {
        desk.leave(&job.slot);
        let put = queue.later(&job.slot, now() + ELSEWHERE).await;
        if put.is_ok() {
            report(queue.group.finish(&job.id).await);
        }
        return report(put);
    };
    let own = stop.child_token();
    tokio::select! {
        () = desk.rounds(&job.slot, &own) => {}
        () = keep(&queue, &job, &held, &own) => {}
    }
    if own.is_cancelled()
        && let Err(error) = queue.later(&job.slot, now()).await
    {
        // Not all may be done, and so neither is the job.
        return report(Err(error));
    }
    report(queue.done(&job, &held).await);
}

/// Keeps a webhook in hand, and stops its carrier when that is no longer sure. Ends with its carrier only.
async fn keep(queue: &Queue, job: &Job, held: &Held, own: &CancellationToken) {
    let lease = queue.options.lease;
    let mut sure = Instant::now();
    loop {
        tokio::time::sleep(lease / 4).await;
        let asked = Instant::now();
        let kept = tokio::time::timeout(lease / 4, queue.keep(job, held)).await;
        match kept {
            Ok(Ok(true)) => sure = asked,
            Ok(Ok(false)) => break,
            _ if sure.elapsed() >= lease / 2 => break,
            _ => {}
        }
    }
    own.cancel();
    std::future::pending::<()>().await;
}

/// What fails here is repaired when Redis is back.
fn report(done: Result<(), RedisError>) {
    if let Err(error) = done {
        tracing::debug!(error = %category(&error), "Redis did not take something");
    }
}
