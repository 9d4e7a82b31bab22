//! Takes entries and has them carried out, many at a time.
//!
//! Redis may go away at any time. Then nothing new is taken, and what is under way waits for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::RedisError;
use redis::streams::StreamId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Streams, carry};
use crate::bind::App;
use crate::group::{PATIENCE, category};

/// Most entries taken at once.
const BATCH: usize = 64;
/// Most entries kept at once.
const KEPT: usize = 256;
/// How often to look for entries of workers that are gone.
const LOOK: Duration = Duration::from_secs(2);
/// How often to forget workers that are gone.
const TIDY: Duration = Duration::from_secs(3600);
/// How long to wait for Redis at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Answers requests until told to stop; then gives back what is not answered.
pub(crate) async fn run(app: Arc<App>, streams: Arc<Streams>, stop: CancellationToken) {
    let worker = Worker { app, streams, hands: Arc::default(), tasks: TaskTracker::new(), stop };
    let beating = tokio::spawn(beat(worker.streams.clone(), worker.hands.clone()));
    worker.take_on().await;
    worker.stop.cancelled().await;
    worker.tasks.close();
    // Whoever waits for Redis now may wait for long.
    let _ = tokio::time::timeout(PATIENCE, worker.tasks.wait()).await;
    beating.abort();
}

struct Worker {
    app: Arc<App>,
    streams: Arc<Streams>,
    hands: Arc<Hands>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Worker {
    async fn take_on(&self) {
        // Whether Redis answered last, if it was asked.
        let mut well = None;
        let (mut claimed, mut tidied) = (Instant::now(), None::<Instant>);
        let mut pause = PAUSES.0;
        // What comes when no more work is taken is left to other workers.
        while !self.stop.is_cancelled() && !self.app.engine.is_draining() {
            let turn = async {
                if well != Some(true) {
                    self.begin(well.is_some()).await?;
                }
                if tidied.is_none_or(|at| at.elapsed() >= TIDY) {
                    tidied = Some(Instant::now());
                    self.streams.prune().await?;
                }
                if claimed.elapsed() >= LOOK.min(self.streams.group.lease / 2) {
                    claimed = Instant::now();
                    let found = self.streams.group.claim(BATCH).await?;
                    self.app.metrics.redis.taken_over.inc_by(self.take(found));
                }
                match self.streams.options.concurrent.saturating_sub(self.hands.count()) {
                    0 => tokio::time::sleep(Duration::from_millis(20)).await,
                    room => {
                        self.take(self.streams.group.next(room.min(BATCH)).await?);
                    }
                }
                Ok::<_, RedisError>(())
            };
            let done = tokio::select! {
                done = turn => done,
                () = self.stop.cancelled() => return,
            };
            match done {
                Ok(()) => (well, pause) = (Some(true), PAUSES.0),
                Err(error) => {
                    if well != Some(false) {
                        tracing::warn!(error = %category(&error), "requests wait for Redis");
                    }
                    well = Some(false);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.stop.cancelled() => return,
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// Takes up what this worker had in hand when it, or Redis, went away.
    async fn begin(&self, again: bool) -> Result<(), RedisError> {
        self.streams.group.create().await?;
        let mut after = "0".to_owned();
        loop {
            let found = self.streams.group.own(BATCH, &after).await?;
            let Some(last) = found.last() else { break };
            after.clone_from(&last.id);
            self.take(found);
        }
        if again {
            tracing::info!("Redis is back, requests are taken");
        }
        Ok(())
    }

    /// Has entries carried out that are not yet in hand, and says how many those are.
    fn take(&self, found: Vec<StreamId>) -> u64 {
        let mut taken = 0;
        for StreamId { id, map, .. } in found {
            let Some(hand) = Hands::take(&self.hands, &id) else { continue };
            taken += 1;
            let bytes = |value| redis::from_redis_value(value).unwrap_or_default();
            let fields = map.into_iter().map(|(name, value)| (name, bytes(value))).collect();
            let job = carry::Job { app: self.app.clone(), streams: self.streams.clone(), hand };
            self.tasks.spawn(job.run(fields));
        }
        taken
    }
}

/// Lets others know that this worker lives, and whoever has lost an entry that it has.
async fn beat(streams: Arc<Streams>, hands: Arc<Hands>) {
    loop {
        tokio::time::sleep(streams.group.lease / 4).await;
        for ids in hands.ids().chunks(KEPT) {
            match streams.keep(ids).await {
                Ok(lost) => lost.iter().for_each(|id| hands.lose(id)),
                Err(error) => tracing::debug!(error = %category(&error), "requests in hand are not kept"),
            }
        }
    }
}

/// The entries that this worker has in hand.
#[derive(Default)]
pub(super) struct Hands(Mutex<HashMap<String, CancellationToken>>);

impl Hands {
    fn take(hands: &Arc<Self>, id: &str) -> Option<Hand> {
        let mut all = hands.0.lock();
        if all.contains_key(id) {
            return None;
        }
        let lost = CancellationToken::new();
        all.insert(id.to_owned(), lost.clone());
        Some(Hand { id: id.to_owned(), lost, hands: hands.clone() })
    }

    fn count(&self) -> usize {
        self.0.lock().len()
    }

    fn ids(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    fn lose(&self, id: &str) {
        if let Some(lost) = self.0.lock().get(id) {
            lost.cancel();
        }
    }
}

/// One entry in hand.
pub(super) struct Hand {
    pub(super) id: String,
    /// Another worker has taken it over.
    pub(super) lost: CancellationToken,
    hands: Arc<Hands>,
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.hands.0.lock().remove(&self.id);
    }
}
