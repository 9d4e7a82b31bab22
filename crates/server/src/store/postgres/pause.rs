//! How long to wait before trying again.

use std::time::Duration;

use tokio::time::Instant;

/// Pauses that grow, up to a moment at which patience ends.
pub(super) struct Pause {
    until: Instant,
    next: Duration,
}

const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(500);

impl Pause {
    pub(super) fn until(until: Instant) -> Self {
        Self { until, next: FIRST }
    }

    /// Waits a little. False when patience is over.
    pub(super) async fn wait(&mut self) -> bool {
        if Instant::now() >= self.until {
            return false;
        }
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST);
        true
    }
}
