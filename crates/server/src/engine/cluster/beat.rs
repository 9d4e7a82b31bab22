//! Staying alive, and stopping in time when that fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::Cluster;
use super::link::fresh_node;
use crate::engine::Engine;
use crate::engine::schedule::Stop;
use crate::store::StoreError;

/// How long to wait after a beat that failed, at most.
const BREATH: Duration = Duration::from_millis(500);
/// How long turns that are told to end may take to do so when the node leaves, and how often to look; and how long the
/// store may take to hear of it.
const LAST_CALL: Duration = Duration::from_secs(1);
const LOOKS: u32 = 100;

impl Engine {
    /// Beats three times per lease.
    pub(super) async fn keep_alive(self: Arc<Self>, cluster: Arc<Cluster>) {
        let ttl = self.options.lease_ttl;
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = cluster.left.cancelled() => return,
            }
            pause = match self.beat(&cluster).await {
                Ok(()) => {
                    if let Ok(nodes) = cluster.shared().nodes().await {
                        cluster.alive.store(u32::try_from(nodes.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
                    }
                    ttl / 3
                }
                Err(error) => {
                    tracing::warn!(%error, "this node could not show that it is alive");
                    (ttl / 10).min(BREATH)
                }
            };
        }
    }

    /// Shows that this node is alive. One that was not begins anew, under another name: what it held is for whoever
    /// takes it up.
    pub(super) async fn beat(&self, cluster: &Cluster) -> Result<(), StoreError> {
        let (ttl, mut node, mut began) = (self.options.lease_ttl, cluster.node(), Instant::now());
        let pulse = &cluster.link.pulse;
        let was_alive = cluster.shared().beat(&node, ttl).await?;
        if cluster.left.is_cancelled() || (was_alive && pulse.renew(began, ttl)) {
            return Ok(());
        }
        if pulse.life() > 0 {
            tracing::warn!(%node, "this node was not heard of in time: its turns are left to others, and it begins anew");
            cluster.metrics.lost.inc();
            pulse.end_now();
            self.end_all();
            cluster.shared().leave(&node).await?;
            (node, began) = (fresh_node(), Instant::now());
            cluster.shared().beat(&node, ttl).await?;
        }
        cluster.link.begin(node, began, ttl);
        cluster.stir();
        Ok(())
    }

    /// Ends every turn when this node has not been heard of for too long, before others take them over.
    pub(super) async fn end_in_time(self: Arc<Self>, cluster: Arc<Cluster>) {
        let pulse = &cluster.link.pulse;
        loop {
            if pulse.life() == 0 {
                pulse.reborn().await;
            }
            let life = pulse.life();
            pulse.gone().await;
            self.end_all();
            while pulse.life() == life {
                pulse.reborn().await;
            }
        }
    }

    /// Stops every turn that runs here; nothing more is written.
    fn end_all(&self) {
        for control in self.schedule.controls() {
            control.stop(Stop::Lost);
        }
        for live in self.hub.all() {
            if live.is_open() {
                live.cut_off();
            }
        }
    }

    /// Lets others have everything that this node holds, at once.
    pub(in crate::engine) async fn leave(&self) {
        let Some(cluster) = &self.cluster else { return };
        cluster.left.cancel();
        cluster.link.pulse.end_now();
        self.end_all();
        // Nobody is to begin what has not ended here.
        for _ in 0..LOOKS {
            if self.is_idle() {
                break;
            }
            tokio::time::sleep(LAST_CALL / LOOKS).await;
        }
        let node = cluster.node();
        // A store that is away keeps nobody: who does not hear of it waits for the lease.
        let why = match tokio::time::timeout(LAST_CALL, cluster.shared().leave(&node)).await {
            Ok(left) => left.err().map(|error| error.to_string()),
            Err(late) => Some(late.to_string()),
        };
        if let Some(why) = why {
            tracing::warn!(why, "the others were not told that this node leaves: they notice when its lease is over");
        }
        cluster.bus.tell(&[crate::bus::Hint::Work]);
    }
}
