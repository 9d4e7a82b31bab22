//! Whether the store works, for everybody who asks: a look at it is written like any task, so that it is looked at once
//! a second at most, however many want to know.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::store::StoreError;

/// How long an answer is repeated.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// What the store said last, and when.
#[derive(Default)]
pub(crate) struct Pulse(Mutex<Option<(Instant, Result<(), StoreError>)>>);

impl Pulse {
    /// The last answer, if it is a fresh one, else another one. Whoever comes while the store is asked waits for that.
    pub(crate) async fn feel(&self, ask: impl AsyncFnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
        let mut last = self.0.lock().await;
        match &*last {
            Some((at, said)) if at.elapsed() < GOOD_FOR => said.clone(),
            _ => {
                let said = ask().await;
                *last = Some((Instant::now(), said.clone()));
                said
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_at_once_and_again_are_one_look_at_the_store() {
        let (pulse, looks) = (Pulse::default(), AtomicUsize::new(0));
        let ask = || {
            pulse.feel(async || {
                looks.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(100)).await;
                Err(StoreError::Closed)
            })
        };
        let at_once = futures_util::future::join_all((0..100).map(|_| ask())).await;
        assert!(at_once.iter().all(|said| *said == Err(StoreError::Closed)));
        assert_eq!(ask().await, Err(StoreError::Closed), "a failure is repeated as well");
        assert_eq!(looks.load(Ordering::Relaxed), 1);
        tokio::time::advance(GOOD_FOR).await;
        let _ = ask().await;
        assert_eq!(looks.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_leaves_during_a_look_leaves_it_to_the_next() {
        let pulse = Pulse::default();
        let left = tokio::time::timeout(Duration::from_secs(1), pulse.feel(std::future::pending)).await;
        assert!(left.is_err());
        assert_eq!(pulse.feel(async || Ok(())).await, Ok(()));
    }
}
