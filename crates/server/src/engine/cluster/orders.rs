//! What other nodes ask of the tasks that this one runs.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{Message, codec};
use tokio::time::Instant;

use super::{Cluster, LOOK_EVERY};
use crate::engine::approval::is_late;
use crate::engine::live::{Incoming, Live};
use crate::engine::{Engine, store_error};
use crate::store::{AppendError, Letter, LetterId, Order, State, StoreError, TaskKey};

/// For so long a lease may be without a turn: longer than the store is tried for, so that what is on its way arrives.
const UNUSED: Duration = Duration::from_secs(60);

impl Engine {
    /// Does what is asked, at a hint and once a second.
    pub(super) async fn obey_orders(self: Arc<Self>, cluster: Arc<Cluster>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = cluster.heard_orders.notified() => {}
            }
            if let Err(error) = self.obey(&cluster).await {
                tracing::debug!(%error, "what other nodes ask for could not be read");
            }
        }
    }

    async fn obey(self: &Arc<Self>, cluster: &Arc<Cluster>) -> Result<(), StoreError> {
        for order in cluster.shared().orders(&cluster.node()).await? {
            match order {
                Order::Cancel(task) => {
                    if cluster.cancels.lock().insert(task) {
                        let (engine, cluster) = (self.clone(), cluster.clone());
                        tokio::spawn(async move {
                            engine.cancel_here(task).await;
                            cluster.cancels.lock().remove(&task);
                        });
                    }
                }
                Order::Deliver(task, id, letter) => {
                    if cluster.letters.lock().insert(id) {
                        let taken = self.take_letter(cluster, task, id, letter).await;
                        if !matches!(taken, Ok(true)) {
                            cluster.letters.lock().remove(&id);
                        }
                        taken?;
                    }
                }
            }
        }
        let idle: Vec<TaskKey> = cluster.idle.lock().iter().copied().collect();
        for task in idle {
            if self.schedule.control(task).is_none() {
                self.give_up_idle(task).await?;
                cluster.idle.lock().remove(&task);
            }
        }
        self.release_rest(cluster).await
    }

    async fn cancel_here(self: &Arc<Self>, task: TaskKey) {
        let stopped = async {
            let row = self.store.task_by_key(task).await.map_err(|error| store_error(&error))?;
            let Some(row) = row.filter(|row| !row.state.is_final()) else { return Ok(()) };
            let live = self.open(&row).await?;
            self.stop(&live).await
        };
        if let Err(error) = stopped.await {
            tracing::debug!(%error, "a task could not be canceled for another node; it is tried again");
        }
    }

    /// Hands a letter to the turn that runs here. False when it is left for later.
    async fn take_letter(
        self: &Arc<Self>,
        cluster: &Arc<Cluster>,
        task: TaskKey,
        id: LetterId,
        letter: Letter,
    ) -> Result<bool, StoreError> {
        let live = self.hub.get(task).filter(|live| live.is_open());
        let Some(live) = live else {
            self.give_up_idle(task).await?;
            return Ok(false);
        };
        // Of sends with the same key, those that come by letter wait for those that came here, and the other way round.
        let turnstile = match &letter.key {
            None => None,
            Some(key) => match self.keys.try_pass((live.scope.clone(), key.key.clone())) {
                None => return Ok(false),
                passed => passed,
            },
        };
        if let Some(key) = &letter.key
            && self.store.find_key(&live.scope, key).await?.is_some()
        {
            // It was said already; its sender finds what came of that.
            cluster.shared().recall(id).await?;
            return Ok(false);
        }
        let Ok(message) = codec::decode::<Message>(&letter.message) else {
            tracing::error!(task = %live.id, "a letter cannot be read");
            cluster.shared().recall(id).await?;
            return Ok(false);
        };
        if live.read(|task| is_late(task, &message)).0 || self.check_next(&live).is_err() {
            // Its sender looks again, and hears why.
            cluster.shared().recall(id).await?;
            return Ok(false);
        }
        let incoming = Incoming { message, key: letter.key.clone(), letter: Some(id) };
        let Ok(Ok(seq)) = live.deliver(Box::new(incoming)) else { return Ok(false) };
        cluster.metrics.delivered.inc();
        if turnstile.is_some() {
            let _ = live.durable(seq).await;
            cluster.letters.lock().remove(&id);
        } else {
            let cluster = cluster.clone();
            tokio::spawn(async move {
                let _ = live.durable(seq).await;
                cluster.letters.lock().remove(&id);
            });
        }
        Ok(true)
    }

    /// A task whose lease this node holds without a turn: it is released, or taken up again.
    async fn give_up_idle(&self, task: TaskKey) -> Result<(), StoreError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        if self.schedule.control(task).is_some() || self.stranded.lock().contains_key(&task) {
            return Ok(());
        }
        let row = self.store.task_by_key(task).await?;
        let Some(row) = row.filter(|row| row.writer.as_ref() == Some(&cluster.node())) else { return Ok(()) };
        // A turn may have begun since.
        if self.schedule.control(task).is_some() || self.hub.get(task).is_some_and(|live| live.is_open()) {
            return Ok(());
        }
        if row.state.is_active() {
            self.stranded.lock().insert(task, row.epoch);
            return Ok(());
        }
        cluster.shared().release(task, row.epoch).await
    }

    /// Leases of this node that nobody here knows of: the answer to a claim was lost, or a task was stored whose sender
    /// heard that it could not be.
    pub(in crate::engine) async fn give_up_unused(&self) -> Result<(), StoreError> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let held = cluster.shared().held(&cluster.node()).await?;
        let mut before = std::mem::take(&mut *cluster.unused.lock());
        for (task, epoch) in held {
            if self.schedule.control(task).is_some() || self.hub.get(task).is_some_and(|live| live.is_open()) {
                continue;
            }
            let since = before.remove(&task).filter(|(under, _)| *under == epoch);
            let (_, since) = since.unwrap_or_else(|| (epoch, Instant::now()));
            cluster.unused.lock().insert(task, (epoch, since));
            if since.elapsed() >= UNUSED {
                tracing::warn!(task = task.0, "a task that nobody works on is taken up again");
                self.give_up_idle(task).await?;
            }
        }
        Ok(())
    }

    /// The turn that held this lease is over. If its task rests, any node may begin the next one.
    pub(in crate::engine) async fn give_back(&self, live: &Live, epoch: i64) {
        let Some(cluster) = &self.cluster else { return };
        let state = State(live.committed().1.number());
        // Whoever has begun the next turn here already has another lease.
        let rests = live.epoch() == epoch && !state.is_active() && !state.is_final();
        match live.broken() {
            _ if !rests || live.is_cut_off() => {}
            Some(AppendError::Fenced) => {}
            // What could not be stored has broken the turn off: whether the task rests, the store knows.
            Some(_) => {
                cluster.idle.lock().insert(live.key());
            }
            None => {
                cluster.unreleased.lock().insert(live.key(), epoch);
                if let Err(error) = self.release_rest(cluster).await {
                    tracing::debug!(task = %live.id, %error, "a lease could not be given back; it is tried again");
                }
            }
        }
    }

    async fn release_rest(&self, cluster: &Cluster) -> Result<(), StoreError> {
        let all = std::mem::take(&mut *cluster.unreleased.lock());
        let mut outcome = Ok(());
        for (task, epoch) in all {
            if let Err(error) = cluster.shared().release(task, epoch).await {
                cluster.unreleased.lock().entry(task).or_insert(epoch);
                outcome = Err(error);
            }
        }
        outcome
    }
}
