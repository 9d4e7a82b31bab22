//! Which tasks have news for their webhooks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// A task's hand on the bell. It rings once for every time that it is armed: as long as nobody has use for news, they
/// cost a task nothing but a look.
pub(crate) struct Ringer {
    armed: AtomicBool,
    bell: Arc<Bell>,
}

impl Ringer {
    /// One that is not armed.
    pub(crate) fn of(bell: &Arc<Bell>) -> Self {
        Self { armed: AtomicBool::new(false), bell: bell.clone() }
    }

    /// Lets the next news ring. Whoever arms looks once more whether there were some just before.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// The task has news.
    pub(crate) fn news(&self, task: TaskKey) {
        if self.armed.load(Ordering::SeqCst) && self.armed.swap(false, Ordering::SeqCst) {
            self.bell.ring(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_armed_task_rings_once() {
        let bell = Arc::new(Bell::default());
        let (one, two) = (Ringer::of(&bell), Ringer::of(&bell));
        one.news(TaskKey(1));
        assert_eq!(bell.take(9), (vec![], false), "nobody has use for it");
        one.arm();
        two.arm();
        one.news(TaskKey(1));
        assert_eq!(bell.take(9), (vec![TaskKey(1)], false));
        one.news(TaskKey(1));
        two.news(TaskKey(2));
        one.arm();
        one.news(TaskKey(1));
        assert_eq!(bell.take(0), (vec![], true));
        assert!(bell.take(1).1);
        assert_eq!(bell.take(9).0.len(), 1);
    }
}
