//! One pace for a caller on all servers of a store.
//!
//! Asking whoever counts for every request would cost more than most requests. So a server borrows a few at a time, a
//! tenth of a second's worth, and what it has not used after a second is forfeit: a caller who goes to many servers at
//! once may be refused a little early, and is never let through more often than the rate and burst say.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::Error;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{MOST_CALLERS, Pace, Who, too_many};
use crate::call::Way;
use crate::engine::cluster::Cluster;
use crate::map::Map;

/// How long something borrowed is good.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// How long a refusal is believed, at most.
const BELIEVED: Duration = Duration::from_millis(100);

/// What this server has borrowed for each caller, and until when that counts. Nothing left means that there is nothing
/// to borrow either.
#[derive(Default)]
pub(super) struct Loans(Mutex<Map<Who, (u32, Instant)>>);

impl Loans {
    /// Uses one; `None` when nothing is known.
    fn spend(&self, who: &Who) -> Option<bool> {
        let mut all = self.0.lock();
        let (left, until) = all.get_mut(who)?;
        if *until <= Instant::now() {
            all.remove(who);
            return None;
        }
        match left.checked_sub(1) {
            None => Some(false),
            Some(0) => {
                all.remove(who);
                Some(true)
            }
            Some(rest) => {
                *left = rest;
                Some(true)
            }
        }
    }

    fn keep(&self, who: Who, left: u32, time: Duration) {
        let now = Instant::now();
        let mut all = self.0.lock();
        if all.len() >= MOST_CALLERS {
            all.retain(|_, (_, until)| *until > now);
        }
        if all.len() < MOST_CALLERS {
            all.insert(who, (left, now + time));
        }
    }
}

impl Pace {
    /// Counts a request on all servers together, or refuses it.
    pub(crate) async fn check_with(&self, cluster: &Cluster, name: &Arc<str>, way: Way) -> Result<(), Error> {
        let Some(who) = Who::of(name, way) else { return Ok(()) };
        let (most, tenth) = (self.slack.div_duration_f64(self.interval), 0.1 / self.interval.as_secs_f64());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // both are small and not negative
        let some = tenth.min(most + 1.0).clamp(1.0, 1000.0) as u32;
        let may = match self.loans.spend(&who) {
            Some(may) => may,
            None => match cluster.borrow(&who.to_string(), self.interval, self.slack, some).await {
                Some(0) => {
                    self.loans.keep(who, 0, self.interval.min(BELIEVED));
                    false
                }
                Some(got) => {
                    if got > 1 {
                        self.loans.keep(who, got - 1, GOOD_FOR);
                    }
                    true
                }
                // Nobody counts: each server lets its part through.
                None => self.take_part(who, cluster.nodes()),
            },
        };
        if may { Ok(()) } else { Err(too_many()) }
    }
}
