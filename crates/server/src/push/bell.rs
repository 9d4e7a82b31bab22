//! Which tasks have news for their webhooks.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::map::Map;
use crate::store::TaskKey;

/// Rung by whoever writes, heard by the desk. A task that rings twice before it is looked at rings once.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Mutex<Map<TaskKey, ()>>,
    heard: Notify,
}

impl Bell {
    /// Says that a task has news.
    pub(crate) fn ring(&self, task: TaskKey) {
        self.rung.lock().insert(task, ());
        self.heard.notify_one();
    }

    /// Waits until somebody rings.
    pub(crate) async fn heard(&self) {
        self.heard.notified().await;
    }

    /// Takes at most so many tasks, and says whether more are there.
    pub(super) fn take(&self, most: usize) -> (Vec<TaskKey>, bool) {
        let mut rung = self.rung.lock();
        let taken: Vec<_> = rung.keys().take(most).copied().collect();
        for task in &taken {
            rung.remove(task);
        }
        (taken, !rung.is_empty())
    }
}
