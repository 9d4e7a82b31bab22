//! The tasks that somebody on this node writes or follows.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::live::{Live, Ties};
use crate::map::Map;
use crate::push::Bell;
use crate::store::{TaskKey, TaskRow};

/// One [`Live`] per task for all who need it; it goes when the last of them has gone.
pub(crate) struct Hub {
    tasks: Mutex<Map<TaskKey, Weak<Live>>>,
    /// What these tasks are tied to.
    pub(crate) ties: Ties,
}

/// A hold on a task in memory.
pub(crate) struct Held {
    hub: Arc<Hub>,
    live: Option<Arc<Live>>,
}

impl Deref for Held {
    type Target = Arc<Live>;

    fn deref(&self) -> &Arc<Live> {
        self.live.as_ref().expect("it is given up only when dropped")
    }
}

impl Drop for Held {
    /// Under the lock, so that of two who let go at the same time one sees that it was the last.
    fn drop(&mut self) {
        let Some(live) = self.live.take() else { return };
        let key = live.key();
        let mut tasks = self.hub.tasks.lock();
        drop(live);
        if tasks.get(&key).is_some_and(|weak| weak.strong_count() == 0) {
            tasks.remove(&key);
        }
    }
}

impl Hub {
    /// Without tasks.
    pub(crate) fn new(ties: Ties) -> Arc<Self> {
        Arc::new(Self { tasks: Mutex::default(), ties })
    }

    /// Rung by tasks that have news for their webhooks.
    pub(crate) fn bell(&self) -> &Arc<Bell> {
        &self.ties.bell
    }

    /// A hold on a task, which forgets the task when it was the last one.
    pub(crate) fn hold(self: &Arc<Self>, live: Arc<Live>) -> Held {
        Held { hub: self.clone(), live: Some(live) }
    }

    /// The task, if anyone here has it in hand.
    pub(crate) fn get(self: &Arc<Self>, key: TaskKey) -> Option<Held> {
        let live = self.tasks.lock().get(&key).and_then(Weak::upgrade)?;
        Some(self.hold(live))
    }

    /// Whether anyone here has it in hand.
    pub(crate) fn has(&self, key: TaskKey) -> bool {
        self.tasks.lock().get(&key).is_some_and(|weak| weak.strong_count() > 0)
    }

    /// The task in hand, or a new one that is still to be loaded. Whatever is written from now on
    /// goes through it, and whatever was written before is in the store: nothing falls between.
    pub(crate) fn open(self: &Arc<Self>, row: &TaskRow) -> Held {
        let mut tasks = self.tasks.lock();
        if let Some(live) = tasks.get(&row.key).and_then(Weak::upgrade)
            && !live.is_lost()
        {
            return self.hold(live);
        }
        let live = Arc::new(Live::known(row, &self.ties));
        tasks.insert(row.key, Arc::downgrade(&live));
        self.hold(live)
    }

    /// Registers a task that was created just now.
    pub(crate) fn insert(self: &Arc<Self>, live: &Arc<Live>) -> Held {
        let before = self.tasks.lock().insert(live.key(), Arc::downgrade(live));
        // Who found it in the store before this node heard that it is there opened it by itself, and is fed by nobody.
        if let Some(before) = before.and_then(|weak| weak.upgrade()) {
            before.lose();
        }
        self.hold(live.clone())
    }

    /// All tasks in hand.
    pub(crate) fn all(self: &Arc<Self>) -> Vec<Held> {
        let all: Vec<_> = self.tasks.lock().values().filter_map(Weak::upgrade).collect();
        all.into_iter().map(|live| self.hold(live)).collect()
    }

    /// Forgets tasks whose last holder was the store.
    pub(crate) fn sweep(&self) {
        self.tasks.lock().retain(|_, weak| weak.strong_count() > 0);
    }

    /// How many tasks are in hand.
    pub(crate) fn len(&self) -> usize {
        self.tasks.lock().len()
    }
}
