//! Tasks that other nodes write: their events are read from the log as they come.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use nuncio_protocol::{Error, Message, StreamResponse, TaskState, codec};

use super::{Cluster, LOOK_EVERY};
use crate::engine::hub::Held;
use crate::engine::live::Live;
use crate::engine::{Engine, TaskJson, append_error, store_error};
use crate::store::{LogEvent, Progress, Seq, StoreError, TaskKey, TaskRow};

/// How many events are read from the log at once.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 1 << 20;
/// How many tasks are read at the same time.
const AT_ONCE: usize = 16;
/// How many tasks are asked for in one question.
const QUESTION: usize = 5_000;

impl Engine {
    /// Reads what others have written: at a hint, and of all tasks together once a second.
    pub(super) async fn follow_others(self: Arc<Self>, cluster: Arc<Cluster>) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let looked = tokio::select! {
                _ = look.tick() => self.look_at_all(&cluster).await,
                () = cluster.heard_news.notified() => self.look_at_news(&cluster).await,
            };
            if let Err(error) = looked {
                tracing::debug!(%error, "tasks of other nodes could not be read");
            }
        }
    }

    /// Tasks that this node follows and does not write.
    fn followed(&self) -> Vec<Held> {
        self.hub.all().into_iter().filter(|live| live.follows_from().is_some()).collect()
    }

    async fn look_at_news(&self, cluster: &Cluster) -> Result<(), StoreError> {
        let news = std::mem::take(&mut *cluster.news.lock());
        let mut behind = Vec::new();
        for (task, seq) in news {
            self.ring(cluster, task, seq);
            if let Some(live) = self.hub.get(task)
                && live.follows_from().is_some_and(|from| from < seq)
            {
                behind.push((live, seq));
            }
        }
        self.catch_up_all(behind).await
    }

    fn ring(&self, cluster: &Cluster, task: TaskKey, seq: Seq) {
        let mut rings = cluster.rings.lock();
        if rings.get(&task).is_some_and(|after| *after < seq) {
            rings.remove(&task);
            drop(rings);
            self.hub.bell().ring(task);
        }
    }

    async fn look_at_all(&self, cluster: &Cluster) -> Result<(), StoreError> {
        let followed = self.followed();
        cluster.metrics.followed.set(i64::try_from(followed.len()).unwrap_or(i64::MAX));
        let mut tasks: Vec<TaskKey> = followed.iter().map(|live| live.key()).collect();
        drop(followed);
        tasks.extend(cluster.rings.lock().keys());
        tasks.extend(cluster.waiting.lock().keys());
        tasks.sort_unstable();
        tasks.dedup();
        for some in tasks.chunks(QUESTION) {
            let found = cluster.shared().progress(some).await?;
            let mut behind = Vec::new();
            for progress in &found {
                self.ring(cluster, progress.task, progress.seq);
                if let Some(live) = self.compare(cluster, progress) {
                    behind.push((live, progress.seq));
                }
            }
            if cluster.bus.kind() != "local" {
                cluster.metrics.missed.inc_by(behind.len() as u64);
            }
            self.catch_up_all(behind).await?;
            self.forget_gone(cluster, some, &found);
        }
        Ok(())
    }

    /// The task in memory, if it is behind.
    fn compare(&self, cluster: &Cluster, progress: &Progress) -> Option<Held> {
        let Progress { task, epoch, seq, state, .. } = *progress;
        {
            let mut waiting = cluster.waiting.lock();
            if waiting.get(&task).is_some_and(|under| *under < epoch || !state.is_active()) {
                waiting.remove(&task);
            }
        }
        let live = self.hub.get(task)?;
        let from = live.follows_from()?;
        if from < seq {
            return Some(live);
        }
        if from == seq {
            live.set_epoch(epoch);
        }
        None
    }

    /// Tasks that are not there any more were removed for their age.
    fn forget_gone(&self, cluster: &Cluster, asked: &[TaskKey], found: &[Progress]) {
        if found.len() == asked.len() {
            return;
        }
        let found: std::collections::HashSet<_> = found.iter().map(|progress| progress.task).collect();
        for task in asked.iter().filter(|task| !found.contains(task)) {
            cluster.rings.lock().remove(task);
            cluster.waiting.lock().remove(task);
            if let Some(live) = self.hub.get(*task) {
                live.lose();
            }
        }
    }

    async fn catch_up_all(&self, behind: Vec<(Held, Seq)>) -> Result<(), StoreError> {
        let mut reading = stream::iter(behind)
            .map(|(live, seq)| async move { self.catch_up(&live, seq).await })
            .buffer_unordered(AT_ONCE);
        let mut outcome = Ok(());
        while let Some(read) = reading.next().await {
            outcome = outcome.and(read);
        }
        outcome
    }

    /// Reads the events up to `seq` that are not known here, unless the task is written here.
    pub(super) async fn catch_up(&self, live: &Live, seq: Seq) -> Result<(), StoreError> {
        while let Some(from) = live.follows_from().filter(|from| *from < seq) {
            let events = self.store.events(live.key(), from, PAGE, PAGE_BYTES).await?;
            if events.first().is_none_or(|event| event.seq != from + 1) {
                return Ok(());
            }
            let unreadable = |what: String| StoreError::Corrupt { at: format!("task {}", live.id), what };
            let read = |event: LogEvent| {
                let decoded = codec::decode::<StreamResponse>(&event.body);
                decoded.map(|change| (event, change)).map_err(|error| unreadable(error.to_string()))
            };
            let events = events.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
            let mut said = Vec::new();
            if events.iter().any(|(_, event)| may_bring_message(event)) {
                for (at, body) in self.store.messages(live.key()).await?.into_iter().filter(|(at, _)| *at > from) {
                    let message: Message = codec::decode(&body).map_err(|error| unreadable(error.to_string()))?;
                    said.push((at, message));
                }
            }
            live.advance(events, said);
        }
        Ok(())
    }

    /// Brings a task in memory to where its row is. False when it is of no use any more: then it is opened anew.
    pub(in crate::engine) async fn caught_up(&self, live: &Arc<Live>, row: &TaskRow) -> Result<bool, StoreError> {
        if live.is_open() && live.epoch() < row.epoch {
            // Another node has taken it over, and nothing was written here since.
            live.cut_off();
        }
        self.catch_up(live, row.seq).await?;
        if live.version().1 == row.seq {
            live.set_epoch(row.epoch);
        }
        Ok(!live.is_lost())
    }

    /// The task, opened anew after it has broken off here.
    pub(in crate::engine) async fn reopen(&self, live: &Live) -> Result<Held, Error> {
        let row = self.store.task_by_key(live.key()).await.map_err(|error| store_error(&error))?;
        self.open(&row.ok_or_else(|| Error::task_not_found(live.id.as_str()))?).await
    }

    /// Waits for a task to settle that another node has taken over from this one.
    pub(in crate::engine) async fn settled_elsewhere(
        &self,
        live: &Live,
        settled: impl Fn(Seq, TaskState) -> bool,
    ) -> Result<TaskJson, Error> {
        let mut live = self.reopen(live).await?;
        loop {
            if live.wait(&settled).await.is_ok()
                && let Ok(json) = self.current(&live).await
                // The next turn may have begun already.
                && settled(Seq::MAX, json.task()?.status.state)
            {
                return Ok(json);
            }
            if live.broken().is_some() {
                live = self.reopen(&live).await?;
            }
        }
    }

    /// The task in memory, whoever writes it.
    pub(in crate::engine) async fn current_anywhere(&self, live: &Arc<Live>) -> Result<TaskJson, Error> {
        let mut live = self.hub.hold(live.clone());
        loop {
            match self.current(&live).await {
                Ok(task) => return Ok(task),
                Err(_) if live.broken().is_some() => live = self.reopen(&live).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until an event is durable here.
    pub(super) async fn reach(&self, live: &Live, seq: Seq) -> Result<(), Error> {
        self.catch_up(live, seq).await.map_err(|error| store_error(&error))?;
        live.durable(seq).await.map_err(|error| append_error(&error))
    }
}

/// Messages of callers come with changes of state that say nothing else.
fn may_bring_message(event: &StreamResponse) -> bool {
    match event {
        StreamResponse::StatusUpdate(update) => {
            let state = update.status.state;
            update.status.message.is_none() && matches!(state, TaskState::Submitted | TaskState::Working)
        }
        _ => false,
    }
}
