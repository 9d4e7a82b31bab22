//! What one caller has of all that runs and waits. Without limits for callers, nothing is counted.

use std::collections::VecDeque;
use std::sync::Arc;

use super::schedule::Job;
use crate::map::Map;

/// How many turns one caller may have at a time. A turn that waits for an answer counts as running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerCaller {
    /// Running; others wait.
    pub running: Option<usize>,
    /// Waiting; others are refused.
    pub queued: Option<usize>,
}

/// The shares of all callers who have any.
#[derive(Default)]
pub(super) struct Shares {
    limits: PerCaller,
    callers: Map<Arc<str>, Share>,
}

#[derive(Default)]
struct Share {
    running: usize,
    queued: usize,
    /// Turns that could run if their caller had fewer running.
    held: VecDeque<Job>,
}

impl Shares {
    pub(super) fn new(limits: PerCaller) -> Self {
        Self { limits, callers: Map::default() }
    }

    fn is_off(&self) -> bool {
        self.limits == PerCaller::default()
    }

    fn of(&mut self, caller: &Arc<str>) -> &mut Share {
        self.callers.entry(caller.clone()).or_default()
    }

    fn forget_if_empty(&mut self, caller: &Arc<str>) {
        if self.callers.get(caller).is_some_and(|share| share.running == 0 && share.queued == 0) {
            self.callers.remove(caller);
        }
    }

    /// Counts a turn that runs at once. False when it may not.
    pub(super) fn run(&mut self, caller: &Arc<str>) -> bool {
        if self.is_off() {
            return true;
        }
        let most = self.limits.running.unwrap_or(usize::MAX).max(1);
        let share = self.of(caller);
        if share.running >= most {
            return false;
        }
        share.running += 1;
        true
    }

    /// Counts a turn that waits. False when it may not.
    pub(super) fn queue(&mut self, caller: &Arc<str>) -> bool {
        let most = self.limits.queued.unwrap_or(usize::MAX);
        if !self.is_off() && self.callers.get(caller).map_or(0, |share| share.queued) >= most {
            return false;
        }
        self.queue_regardless(caller);
        true
    }

    /// Counts a turn that was accepted before.
    pub(super) fn queue_regardless(&mut self, caller: &Arc<str>) {
        if !self.is_off() {
            self.of(caller).queued += 1;
        }
    }

    /// A turn does not wait any more, and does not run either.
    pub(super) fn leave_queue(&mut self, caller: &Arc<str>) {
        if self.is_off() {
            return;
        }
        let share = self.of(caller);
        share.queued = share.queued.saturating_sub(1);
        self.forget_if_empty(caller);
    }

    /// Lets a turn that waited run, or holds it back until its caller has fewer running.
    pub(super) fn start(&mut self, job: Job) -> Option<Job> {
        if self.is_off() {
            return Some(job);
        }
        let most = self.limits.running.unwrap_or(usize::MAX).max(1);
        let share = self.of(&job.live.scope.owner);
        if share.running >= most {
            share.held.push_back(job);
            return None;
        }
        share.running += 1;
        share.queued = share.queued.saturating_sub(1);
        Some(job)
    }

    /// A turn ended. Returns one that was held back for it.
    pub(super) fn finished(&mut self, caller: &Arc<str>) -> Option<Job> {
        if self.is_off() {
            return None;
        }
        let share = self.of(caller);
        share.running = share.running.saturating_sub(1);
        let held = share.held.pop_front();
        self.forget_if_empty(caller);
        held
    }

    /// Everything that is held back.
    pub(super) fn take_held(&mut self) -> Vec<Job> {
        self.callers.values_mut().flat_map(|share| share.held.drain(..)).collect()
    }

    /// Whether nobody has anything.
    pub(super) fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }
}
