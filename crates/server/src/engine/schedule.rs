//! Which turn runs when: one at a time per context, at most so many in all, first come first served.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nuncio_protocol::{ContextId, Message, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::hub::Held;
use super::share::{PerCaller, Shares};
use crate::map::Map;
use crate::store::{Scope, TaskKey};

/// What a turn begins with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cue {
    pub(crate) message: Message,
    /// When it came, if the task waited for its caller then: it may be an answer.
    pub(crate) woke: Option<Timestamp>,
}

impl Cue {
    /// A message that wakes a task at rest.
    pub(crate) fn waking(message: Message) -> Self {
        Self { message, woke: Some(Timestamp::now()) }
    }
}

impl From<Message> for Cue {
    fn from(message: Message) -> Self {
        Self { message, woke: None }
    }
}

/// A turn to run.
pub(crate) struct Job {
    pub(crate) live: Held,
    pub(crate) cue: Cue,
    /// Whether this node holds the lease already.
    pub(crate) claimed: bool,
    /// Whether the agent is to go on with what a crash interrupted.
    pub(crate) resumed: bool,
    pub(crate) control: Arc<Control>,
}

impl Job {
    /// A turn that starts afresh.
    pub(crate) fn new(live: Held, cue: impl Into<Cue>, claimed: bool) -> Self {
        Self { live, cue: cue.into(), claimed, resumed: false, control: Control::new() }
    }
}

/// The handle by which a turn is stopped and watched.
pub(crate) struct Control {
    pub(crate) stop: CancellationToken,
    why: Mutex<Option<Stop>>,
    clock: Mutex<Clock>,
    created: Instant,
    /// Milliseconds after `created` of the last sign of life.
    alive: AtomicU64,
}

#[derive(Default)]
struct Clock {
    /// When the turn began, moved on by the time that it waited for answers.
    began: Option<Instant>,
    /// Since when it waits for an answer: no deadline runs then.
    waiting: Option<Instant>,
}

/// Why a turn is stopped from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Canceled,
    TimedOut(String),
    /// Its events cannot be stored any more, so it works in vain.
    Lost,
}

impl Control {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            stop: CancellationToken::new(),
            why: Mutex::new(None),
            clock: Mutex::default(),
            created: Instant::now(),
            alive: AtomicU64::new(0),
        })
    }

    /// Asks the turn to stop; the first reason counts.
    pub(crate) fn stop(&self, why: Stop) {
        self.why.lock().get_or_insert(why);
        self.stop.cancel();
    }

    pub(crate) fn why(&self) -> Option<Stop> {
        self.why.lock().clone()
    }

    pub(crate) fn begin(&self) {
        self.clock.lock().began = Some(Instant::now());
        self.sign_of_life();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.clock.lock().began.is_some()
    }

    pub(crate) fn sign_of_life(&self) {
        let millis = u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.alive.store(millis, Ordering::Relaxed);
    }

    /// The turn waits for an answer from now on.
    pub(crate) fn wait(&self) {
        self.clock.lock().waiting = Some(Instant::now());
    }

    /// The turn goes on. The time that it waited does not count against it.
    pub(crate) fn go_on(&self) {
        let mut clock = self.clock.lock();
        if let Some(since) = clock.waiting.take() {
            clock.began = clock.began.map(|began| began + since.elapsed());
        }
        drop(clock);
        self.sign_of_life();
    }

    /// For how long the turn runs, and for how long it has been silent; `None` while it waits.
    pub(crate) fn times(&self) -> Option<(Duration, Duration)> {
        let clock = self.clock.lock();
        let began = clock.began.filter(|_| clock.waiting.is_none())?;
        drop(clock);
        let alive = Duration::from_millis(self.alive.load(Ordering::Relaxed));
        Some((began.elapsed(), self.created.elapsed().saturating_sub(alive)))
    }
}

type ContextKey = (Scope, ContextId);

/// Whether a turn can start at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Now,
    Later,
    /// It waits in the store for any node that has a place.
    Anywhere,
}

/// There is no room for a turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The server has all the work it can hold.
    Server,
    /// The caller has all the work that one caller may have.
    Caller,
}

pub(crate) struct Schedule {
    most_running: usize,
    most_queued: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    queued: usize,
    /// Turns that wait for an answer. They run no more, but what they hold is still there.
    paused: usize,
    /// The contexts with a turn under way or ready, each with the turns that wait behind it.
    contexts: Map<ContextKey, VecDeque<Job>>,
    /// Turns whose context is free and that wait for a place.
    ready: VecDeque<Job>,
    /// Everything that runs or waits.
    controls: Map<TaskKey, Arc<Control>>,
    /// What each caller has of all this.
    shares: Shares,
    closed: bool,
}

impl State {
    /// The next turn of the same task may wait already: its handle stays.
    fn forget(&mut self, task: TaskKey, control: &Arc<Control>) {
        if self.controls.get(&task).is_some_and(|known| Arc::ptr_eq(known, control)) {
            self.controls.remove(&task);
        }
    }
}

impl Schedule {
    pub(crate) fn new(most_running: usize, most_queued: usize, per_caller: PerCaller) -> Self {
        let state = State { shares: Shares::new(per_caller), ..State::default() };
        Self { most_running: most_running.max(1), most_queued, state: Mutex::new(state) }
    }

    /// Takes a place for a turn of this context before anything is written for it.
    pub(crate) fn reserve(&self, scope: &Scope, context: &ContextId) -> Result<Room, Full> {
        let mut state = self.state.lock();
        if self.enter(&mut state, scope, context) {
            return Ok(Room::Now);
        }
        if state.queued >= self.most_queued {
            return Err(Full::Server);
        }
        if !state.shares.queue(&scope.owner) {
            return Err(Full::Caller);
        }
        state.queued += 1;
        Ok(Room::Later)
    }

    /// Takes a place for a turn that can start at once, or none.
    pub(crate) fn reserve_now(&self, scope: &Scope, context: &ContextId) -> bool {
        self.enter(&mut self.state.lock(), scope, context)
    }

    fn enter(&self, state: &mut State, scope: &Scope, context: &ContextId) -> bool {
        let key = (scope.clone(), context.clone());
        let may_run = self.has_place(state) && !state.contexts.contains_key(&key);
        let enters = may_run && state.shares.run(&scope.owner);
        if enters {
            state.running += 1;
            state.contexts.insert(key, VecDeque::new());
        }
        enters
    }

    /// Whether there is a place for some turn.
    pub(crate) fn has_room(&self) -> bool {
        self.has_place(&self.state.lock())
    }

    /// Turns that wait for an answer leave their places to others, as long as all that have begun are no more than may
    /// run and wait together.
    fn has_place(&self, state: &State) -> bool {
        let begun = state.running + state.paused;
        !state.closed && state.running < self.most_running && begun < self.most_running.saturating_add(self.most_queued)
    }

    /// Most turns that wait.
    pub(crate) fn most_queued(&self) -> usize {
        self.most_queued
    }

    /// Whether a turn of this context runs or is about to.
    pub(crate) fn is_busy(&self, scope: &Scope, context: &ContextId) -> bool {
        self.state.lock().contexts.contains_key(&(scope.clone(), context.clone()))
    }

    /// Queues beyond the limit: for work that was accepted before.
    pub(crate) fn queue_regardless(&self, scope: &Scope) -> Room {
        let mut state = self.state.lock();
        state.shares.queue_regardless(&scope.owner);
        state.queued += 1;
        Room::Later
    }

    /// Gives a place back that was not used. Returns a turn to start instead.
    pub(crate) fn unreserve(&self, room: Room, scope: &Scope, context: &ContextId) -> Option<Job> {
        match room {
            Room::Now => self.finished(None, scope, context),
            Room::Anywhere => None,
            Room::Later => {
                let mut state = self.state.lock();
                state.shares.leave_queue(&scope.owner);
                state.queued -= 1;
                None
            }
        }
    }

    /// Adds a turn. Returns it when it is to start now.
    pub(crate) fn submit(&self, job: Job, room: Room) -> Option<Job> {
        let mut state = self.state.lock();
        if room == Room::Later && state.closed {
            state.shares.leave_queue(&job.live.scope.owner);
            state.queued -= 1;
            drop(state);
            return None;
        }
        state.controls.insert(job.live.key(), job.control.clone());
        if room == Room::Now {
            return Some(job);
        }
        let key = (job.live.scope.clone(), job.live.context_id.clone());
        if let Some(waiting) = state.contexts.get_mut(&key) {
            waiting.push_back(job);
            return None;
        }
        state.contexts.insert(key, VecDeque::new());
        state.ready.push_back(job);
        self.next(&mut state)
    }

    /// Makes the handle of a turn known that began before its task was stored.
    pub(crate) fn begun(&self, task: TaskKey, control: Arc<Control>) {
        self.state.lock().controls.insert(task, control);
    }

    /// A turn ended. Returns the one that starts in its place.
    pub(crate) fn finished(
        &self,
        turn: Option<(TaskKey, &Arc<Control>)>,
        scope: &Scope,
        context: &ContextId,
    ) -> Option<Job> {
        let mut state = self.state.lock();
        state.running -= 1;
        if let Some((task, control)) = turn {
            state.forget(task, control);
        }
        // It has waited longer than anything that is ready.
        if let Some(held) = state.shares.finished(&scope.owner) {
            state.ready.push_front(held);
        }
        let key = (scope.clone(), context.clone());
        match state.contexts.get_mut(&key).and_then(VecDeque::pop_front) {
            Some(job) => state.ready.push_back(job),
            None => {
                state.contexts.remove(&key);
            }
        }
        self.next(&mut state)
    }

    fn next(&self, state: &mut State) -> Option<Job> {
        if !self.has_place(state) {
            return None;
        }
        loop {
            // A caller who has enough running lets others go first.
            let Some(job) = state.shares.start(state.ready.pop_front()?) else { continue };
            state.running += 1;
            state.queued -= 1;
            return Some(job);
        }
    }

    /// A turn waits for an answer and lets another run meanwhile.
    pub(crate) fn pause(&self) -> Option<Job> {
        let mut state = self.state.lock();
        state.running -= 1;
        state.paused += 1;
        self.next(&mut state)
    }

    /// A turn that waited goes on. It was there before, so it does not queue again, though more may run then than usual.
    pub(crate) fn resume(&self) {
        let mut state = self.state.lock();
        state.paused -= 1;
        state.running += 1;
    }

    /// The handle of a turn that runs or waits.
    pub(crate) fn control(&self, task: TaskKey) -> Option<Arc<Control>> {
        self.state.lock().controls.get(&task).cloned()
    }

    /// All handles.
    pub(crate) fn controls(&self) -> Vec<Arc<Control>> {
        self.state.lock().controls.values().cloned().collect()
    }

    /// Starts nothing more; what waits is in the store for the next start.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let mut left: Vec<Job> = state.ready.drain(..).collect();
        left.extend(state.contexts.values_mut().flat_map(|waiting| waiting.drain(..)));
        left.extend(state.shares.take_held());
        for job in &left {
            state.forget(job.live.key(), &job.control);
            state.shares.leave_queue(&job.live.scope.owner);
        }
        // Places that were taken for turns still to come are given back by whoever took them.
        state.queued -= left.len();
        // The last hold on a task may go with its turn: that is nothing to do under a lock.
        drop(state);
        drop(left);
    }

    /// Whether nothing runs or waits, not even for an answer.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.controls.is_empty()
            && state.contexts.is_empty()
            && state.running == 0
            && state.queued == 0
            && state.shares.is_empty()
    }

    /// How many turns run, and how many wait.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.running, state.queued)
    }

    /// How many turns wait for an answer.
    pub(crate) fn paused(&self) -> usize {
        self.state.lock().paused
    }
}
