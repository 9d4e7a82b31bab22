//! Removing the files of tasks that no longer exist.
//!
//! Only a task that has rested for as long as finished tasks stay can have been removed, and its folder has not
//! changed since. So only old folders are looked at, a bounded number at a time, and the store is asked for each
//! whether its task is still there.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{ArtifactStore, folder};
use crate::store::{Store, TaskKey};

/// How many tasks one sweep asks for.
const MOST: usize = 1000;

impl ArtifactStore {
    /// Removes the files of tasks that the store has removed. `age` is how long tasks stay at least. Returns
    /// how many tasks had files to remove.
    pub async fn sweep(self: &Arc<Self>, store: &dyn Store, age: Duration) -> io::Result<usize> {
        let Some(then) = SystemTime::now().checked_sub(age) else { return Ok(0) };
        // Open tasks stay however old they are: they must not keep the sweep from the others.
        let swept = self.swept.lock().clone();
        let mut old = self.untouched_since(then, &swept, MOST).await?;
        let start = old.partition_point(|name| *name <= swept);
        old.rotate_left(start);
        old.truncate(MOST);
        let mut removed = 0;
        for name in old {
            if let Some(key) = key_of(&name) {
                let row = store.task_by_key(key).await.map_err(io::Error::other)?;
                if row.is_none_or(|row| folder(row.key, &row.id) != name) {
                    self.remove(name.clone()).await?;
                    removed += 1;
                }
            }
            *self.swept.lock() = name;
        }
        Ok(removed)
    }
}

fn key_of(name: &str) -> Option<TaskKey> {
    // A key may be negative, so that the last dash counts.
    name.rsplit_once('-')?.0.parse().ok().map(TaskKey)
}
