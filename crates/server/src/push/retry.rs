//! What an answer means, and when to try again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::guard::{Reply, SendError};
use crate::store::Micros;

/// No receiver makes us wait longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// When to try again, and when to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The pause after the first failure; it doubles with every further one.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// Attempts in a row after which an event is given up.
    pub attempts: u32,
    /// How long attempts may fail before an event is given up.
    pub age: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(600),
            attempts: 50,
            age: Duration::from_secs(86_400),
        }
    }
}

impl Retry {
    /// The pause after so many failures in a row: what the receiver asks for, else twice the one before and a
    /// fifth more or less, so that many webhooks of one host do not come back together.
    pub(super) fn pause(&self, failures: u32, asked: Option<Duration>) -> Duration {
        if let Some(asked) = asked {
            return asked.clamp(self.first, LONGEST_PAUSE.max(self.first));
        }
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(30));
        doubled.min(self.longest).mul_f64(0.8 + 0.4 * chance())
    }

    /// Whether an event has had its attempts.
    pub(super) fn is_over(&self, failures: u32, since: Micros, now: Micros) -> bool {
        let age = Duration::from_micros(u64::try_from(now - since).unwrap_or_default());
        failures >= self.attempts || age >= self.age
    }
}

/// From 0 to 1. Seeds of hash maps are random enough for this.
#[allow(clippy::cast_precision_loss)] // chance needs no more
fn chance() -> f64 {
    (RandomState::new().hash_one(0) >> 11) as f64 / (1_u64 << 53) as f64
}

/// What came of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The receiver has it.
    Delivered,
    /// It may work later; the receiver may have said when.
    Later(String, Option<Duration>),
    /// It will not.
    Never(String),
}

/// Any 2xx is success. What may pass is tried again; what the receiver says about this very request is not.
pub(super) fn verdict(sent: &Result<Reply, SendError>) -> Verdict {
    let reply = match sent {
        Ok(reply) => reply,
        Err(error @ SendError::Refused(_)) => return Verdict::Never(error.to_string()),
        Err(error) => return Verdict::Later(error.to_string(), None),
    };
    let text = || format!("The receiver answered {}.", reply.status);
    match reply.status {
        200..=299 => Verdict::Delivered,
        408 | 409 | 423 | 425 | 429 | 500 | 502..=504 | 506.. => Verdict::Later(text(), reply.retry_after),
        _ => Verdict::Never(text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let answer = |status| verdict(&Ok(Reply { status, retry_after: None }));
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(answer(status), Verdict::Delivered, "{status}");
        }
        for status in [408, 409, 423, 425, 429, 500, 502, 503, 504, 599] {
            assert!(matches!(answer(status), Verdict::Later(..)), "{status}");
        }
        for status in [100, 301, 302, 307, 400, 401, 403, 404, 410, 413, 422, 501, 505] {
            assert!(matches!(answer(status), Verdict::Never(_)), "{status}");
        }
        let asked = Duration::from_secs(7);
        let answer = verdict(&Ok(Reply { status: 429, retry_after: Some(asked) }));
        assert_eq!(answer, Verdict::Later("The receiver answered 429.".into(), Some(asked)));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let retry = Retry { longest: Duration::from_secs(20), ..Retry::default() };
        for (failures, around) in [(1, 1.0), (2, 2.0), (3, 4.0), (5, 16.0), (6, 20.0), (60, 20.0)] {
            for _ in 0..50 {
                let pause = retry.pause(failures, None).as_secs_f64();
                assert!((around * 0.8..=around * 1.2).contains(&pause), "{failures}: {pause}");
            }
        }
    }

    #[test]
    fn what_the_receiver_asks_for_has_bounds() {
        let retry = Retry::default();
        assert_eq!(retry.pause(1, Some(Duration::from_secs(30))), Duration::from_secs(30));
        assert_eq!(retry.pause(1, Some(Duration::ZERO)), retry.first);
        assert_eq!(retry.pause(1, Some(Duration::from_secs(1 << 40))), LONGEST_PAUSE);
    }

    #[test]
    fn attempts_and_age_are_bounded() {
        let retry = Retry { attempts: 3, age: Duration::from_secs(10), ..Retry::default() };
        assert!(!retry.is_over(2, 0, 9_999_999));
        assert!(retry.is_over(3, 0, 0));
        assert!(retry.is_over(1, 0, 10_000_000));
        assert!(!retry.is_over(1, 50, 0), "a clock that was set back");
    }
}
