//! The jobs that were read to their end or canceled, and are no jobs any more. Their tasks stay.

use std::collections::{HashSet, VecDeque};

use nuncio_protocol::TaskId;
use parking_lot::Mutex;

use crate::store::Scope;

/// So many are remembered. Whoever asks for an older one, or after a restart, reads its result once more.
const MOST: usize = 10_000;

/// The forgotten jobs, the latest ones.
#[derive(Default)]
pub(crate) struct Forgotten(Mutex<Known>);

#[derive(Default)]
struct Known {
    jobs: HashSet<(Scope, TaskId)>,
    order: VecDeque<(Scope, TaskId)>,
}

impl Forgotten {
    /// Whether a job is forgotten.
    pub(super) fn has(&self, scope: &Scope, id: &TaskId) -> bool {
        let known = self.0.lock();
        !known.jobs.is_empty() && known.jobs.contains(&(scope.clone(), id.clone()))
    }

    /// Forgets a job of the caller. `false` if that was done before.
    pub(super) fn add(&self, scope: Scope, id: TaskId) -> bool {
        let mut known = self.0.lock();
        let job = (scope, id);
        if !known.jobs.insert(job.clone()) {
            return false;
        }
        known.order.push_back(job);
        if known.order.len() > MOST
            && let Some(oldest) = known.order.pop_front()
        {
            known.jobs.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(owner: &str) -> Scope {
        Scope { tenant: "".into(), owner: owner.into() }
    }

    #[test]
    fn a_job_is_forgotten_once_and_for_its_owner() {
        let forgotten = Forgotten::default();
        let id = TaskId::from("1");
        assert!(!forgotten.has(&scope("ann"), &id));
        assert!(forgotten.add(scope("ann"), id.clone()));
        assert!(!forgotten.add(scope("ann"), id.clone()));
        assert!(forgotten.has(&scope("ann"), &id) && !forgotten.has(&scope("bob"), &id));
    }

    #[test]
    fn the_oldest_makes_room() {
        let forgotten = Forgotten::default();
        for number in 0..=MOST {
            forgotten.add(scope(""), number.to_string().into());
        }
        assert!(!forgotten.has(&scope(""), &"0".into()));
        assert!(forgotten.has(&scope(""), &"1".into()) && forgotten.has(&scope(""), &MOST.to_string().into()));
        let known = forgotten.0.lock();
        assert_eq!((known.jobs.len(), known.order.len()), (MOST, MOST));
    }
}
