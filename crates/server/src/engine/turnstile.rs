//! One at a time for each key, and nobody waits for a stranger.

use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::map::Map;

/// A turnstile for every key that somebody passes or waits for.
pub(super) struct Turnstiles<K>(Mutex<Map<K, Arc<tokio::sync::Mutex<()>>>>);

/// Whoever holds this is the only one with the key.
pub(super) struct Passed<'a, K: Eq + Hash> {
    all: &'a Turnstiles<K>,
    key: K,
    held: Option<OwnedMutexGuard<()>>,
}

impl<K> Default for Turnstiles<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone> Turnstiles<K> {
    fn enter(&self, key: K) -> (Passed<'_, K>, Arc<tokio::sync::Mutex<()>>) {
        let turnstile = self.0.lock().entry(key.clone()).or_default().clone();
        (Passed { all: self, key, held: None }, turnstile)
    }

    /// Waits until nobody else has this key.
    pub(super) async fn pass(&self, key: K) -> Passed<'_, K> {
        let (mut passed, turnstile) = self.enter(key);
        passed.held = Some(turnstile.lock_owned().await);
        passed
    }

    /// Passes if nobody else has this key.
    pub(super) fn try_pass(&self, key: K) -> Option<Passed<'_, K>> {
        let (mut passed, turnstile) = self.enter(key);
        passed.held = Some(turnstile.try_lock_owned().ok()?);
        Some(passed)
    }
}

impl<K: Eq + Hash> Drop for Passed<'_, K> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        self.held = None;
        if all.get(&self.key).is_some_and(|turnstile| Arc::strong_count(turnstile) == 1) {
            all.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_at_a_time_for_each_key_and_nothing_is_left_behind() {
        let all = Turnstiles::default();
        let first = all.pass(1).await;
        assert!(all.try_pass(1).is_none());
        assert!(all.try_pass(2).is_some());
        let mut second = Box::pin(all.pass(1));
        let mut third = Box::pin(all.pass(1));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        // Gone without having passed.
        drop(second);
        let third = third.await;
        assert!(all.try_pass(1).is_none());
        drop(third);
        assert!(all.0.lock().is_empty());
        let first = all.pass(1).await;
        let mut second = Box::pin(all.pass(1));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        drop(second);
        assert!(all.0.lock().is_empty());
    }
}
