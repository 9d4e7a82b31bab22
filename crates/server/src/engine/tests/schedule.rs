//! The schedule against rules that are too simple to be wrong: who may start, in which order, and that
//! every place comes back.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::{ContextId, Message, Task};
use proptest::prelude::*;

use crate::engine::hub::Hub;
use crate::engine::live::{Live, Ties};
use crate::engine::schedule::{Control, Full, Job, Room, Schedule};
use crate::engine::share::PerCaller;
use crate::store::{Lease, MemoryStore, Scope, Store, TaskKey};

const RUNNING: usize = 2;
const QUEUED: usize = 6;

#[derive(Clone, Debug)]
enum Step {
    Reserve {
        context: u8,
    },
    /// Uses one of the places that were taken.
    Submit {
        nth: usize,
    },
    /// Gives one of them back.
    Unreserve {
        nth: usize,
    },
    Finish {
        nth: usize,
    },
    Pause {
        nth: usize,
    },
    Resume {
        nth: usize,
    },
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let nth = || 0..8_usize;
    prop_oneof![
        8 => (0..4_u8).prop_map(|context| Step::Reserve { context }),
        8 => nth().prop_map(|nth| Step::Submit { nth }),
        2 => nth().prop_map(|nth| Step::Unreserve { nth }),
        6 => nth().prop_map(|nth| Step::Finish { nth }),
        3 => nth().prop_map(|nth| Step::Pause { nth }),
        3 => nth().prop_map(|nth| Step::Resume { nth }),
        1 => Just(Step::Close),
    ]
}

/// A turn as the rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    key: i64,
    context: u8,
}

fn ties(store: Arc<dyn Store>) -> Ties {
    let events = prometheus_client::metrics::counter::Counter::default();
    Ties { store, events, bell: Arc::default(), link: None }
}

struct Rules {
    schedule: Schedule,
    hub: Arc<Hub>,
    last_key: i64,
    reserved: Vec<(Room, u8)>,
    waiting: Vec<Turn>,
    running: Vec<(Turn, Arc<Control>)>,
    paused: Vec<(Turn, Arc<Control>)>,
    closed: bool,
}

impl Rules {
    fn new() -> Self {
        Self {
            schedule: Schedule::new(RUNNING, QUEUED, PerCaller::default()),
            hub: Hub::new(ties(Arc::new(MemoryStore::new()))),
            last_key: 0,
            reserved: Vec::new(),
            waiting: Vec::new(),
            running: Vec::new(),
            paused: Vec::new(),
            closed: false,
        }
    }

    fn job(&mut self, context: u8) -> Job {
        self.job_of("", context)
    }

    fn job_of(&mut self, caller: &str, context: u8) -> Job {
        self.last_key += 1;
        let task = Task { context_id: context_id(context), ..Task::default() };
        let (scope, lease) = (scope_of(caller), Lease { node: "".into() });
        let live = Arc::new(Live::fresh(scope, "agent".into(), task, Bytes::new(), &lease, &self.hub.ties));
        live.stored(TaskKey(self.last_key), 1);
        let live = self.hub.insert(&live);
        Job::new(live, Message::default(), true)
    }

    fn is_busy(&self, context: u8) -> bool {
        let places = self.reserved.iter().filter(|(room, _)| *room == Room::Now).map(|(_, context)| *context);
        let turns = self.running.iter().chain(&self.paused).map(|(turn, _)| turn.context);
        places.chain(turns).any(|busy| busy == context)
    }

    /// How many places are in use.
    fn load(&self) -> usize {
        self.running.len() + self.reserved.iter().filter(|(room, _)| *room == Room::Now).count()
    }

    /// Whether another turn may begin beside those that run and those that wait for an answer.
    fn has_place(&self) -> bool {
        self.load() < RUNNING && self.load() + self.paused.len() < RUNNING + QUEUED
    }

    fn started(&mut self, job: Option<Job>) {
        let Some(job) = job else { return };
        let key = job.live.key().0;
        assert!(!self.closed, "nothing starts after the end");
        let place = self.waiting.iter().position(|turn| turn.key == key).expect("what starts has waited");
        let turn = self.waiting.remove(place);
        assert!(!self.is_busy(turn.context), "one turn at a time in a context");
        let first = self.waiting[..place].iter().all(|earlier| earlier.context != turn.context);
        assert!(first, "first come, first served in a context");
        assert!(self.has_place());
        self.running.push((turn, job.control));
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Reserve { context } => {
                let free = !self.closed && self.has_place() && !self.is_busy(context);
                let free = free && self.waiting.iter().all(|turn| turn.context != context);
                let room = self.schedule.reserve(&Scope::default(), &context_id(context));
                let queued = self.waiting.len() + self.reserved.iter().filter(|(room, _)| *room == Room::Later).count();
                match room {
                    Ok(room) => {
                        assert_eq!(room == Room::Now, free);
                        self.reserved.push((room, context));
                    }
                    Err(_) => assert!(!free && queued >= QUEUED),
                }
            }
            Step::Submit { nth } if nth < self.reserved.len() => {
                let (room, context) = self.reserved.remove(nth);
                let job = self.job(context);
                let turn = Turn { key: job.live.key().0, context };
                if room == Room::Now {
                    let job = self.schedule.submit(job, room).expect("a place was free");
                    self.running.push((turn, job.control));
                    return;
                }
                if !self.closed {
                    self.waiting.push(turn);
                }
                let next = self.schedule.submit(job, room);
                self.started(next);
            }
            Step::Unreserve { nth } if nth < self.reserved.len() => {
                let (room, context) = self.reserved.remove(nth);
                let next = self.schedule.unreserve(room, &Scope::default(), &context_id(context));
                self.started(next);
            }
            Step::Finish { nth } if nth < self.running.len() => {
                let (turn, control) = self.running.remove(nth);
                let done = Some((TaskKey(turn.key), &control));
                let next = self.schedule.finished(done, &Scope::default(), &context_id(turn.context));
                self.started(next);
            }
            Step::Pause { nth } if nth < self.running.len() => {
                let turn = self.running.remove(nth);
                self.paused.push(turn);
                let next = self.schedule.pause();
                self.started(next);
            }
            Step::Resume { nth } if nth < self.paused.len() => {
                self.schedule.resume();
                let turn = self.paused.remove(nth);
                self.running.push(turn);
            }
            Step::Close => {
                self.schedule.close();
                self.closed = true;
                self.waiting.clear();
            }
            _ => {}
        }
    }

    fn check(&self) {
        let later = self.reserved.iter().filter(|(room, _)| *room == Room::Later).count();
        assert_eq!(self.schedule.load(), (self.load(), self.waiting.len() + later));
        assert_eq!(self.schedule.paused(), self.paused.len());
        if self.has_place() {
            let idle = self.waiting.iter().find(|turn| !self.is_busy(turn.context));
            assert_eq!(idle, None, "nobody waits while there is room");
        }
        for (turn, control) in self.running.iter().chain(&self.paused) {
            let known = self.schedule.control(TaskKey(turn.key));
            assert!(known.is_some_and(|known| Arc::ptr_eq(&known, control)), "what runs can be stopped");
        }
    }

    /// Everything comes to its end.
    fn finish(&mut self) {
        while !self.reserved.is_empty() {
            self.step(&Step::Unreserve { nth: 0 });
        }
        while !self.running.is_empty() || !self.paused.is_empty() {
            self.step(&Step::Resume { nth: 0 });
            self.step(&Step::Finish { nth: 0 });
        }
        assert_eq!(self.waiting, []);
        assert_eq!(self.schedule.load(), (0, 0));
        assert!(self.closed || self.schedule.is_empty());
        assert_eq!(self.hub.len(), 0, "no task is held");
    }
}

fn scope_of(caller: &str) -> Scope {
    Scope { owner: caller.into(), ..Scope::default() }
}

fn context_id(context: u8) -> ContextId {
    ContextId::from(format!("c{context}").as_str())
}

/// The next turn of a task may be there before the last one has gone.
#[test]
fn a_turn_on_the_heels_of_another_keeps_its_handle() {
    let mut rules = Rules::new();
    let (first, second) = (rules.job(0), rules.job(0));
    let second = Job { live: rules.hub.hold(first.live.clone()), ..second };
    let key = first.live.key();
    let (scope, context) = (Scope::default(), context_id(0));
    let room = rules.schedule.reserve(&scope, &context).unwrap();
    let first = rules.schedule.submit(first, room).unwrap();
    let room = rules.schedule.reserve(&scope, &context).unwrap();
    assert!(rules.schedule.submit(second, room).is_none());
    let second = rules.schedule.finished(Some((key, &first.control)), &scope, &context).unwrap();
    assert!(rules.schedule.control(key).is_some_and(|control| Arc::ptr_eq(&control, &second.control)));
    assert!(rules.schedule.finished(Some((key, &second.control)), &scope, &context).is_none());
    assert!(rules.schedule.is_empty());
}

/// A caller who has enough running waits for himself alone, and first come is first served among his own.
#[test]
fn a_caller_has_so_many_running_and_so_many_waiting() {
    let mut rules = Rules::new();
    let limits = PerCaller { running: Some(1), queued: Some(2) };
    rules.schedule = Schedule::new(RUNNING, QUEUED, limits);
    let (alice, bob) = (scope_of("alice"), scope_of("bob"));
    let mut jobs: Vec<Job> = (0..3).map(|context| rules.job_of("alice", context)).collect();
    let keys: Vec<TaskKey> = jobs.iter().map(|job| job.live.key()).collect();
    let rooms: Vec<_> = (0..4).map(|context| rules.schedule.reserve(&alice, &context_id(context))).collect();
    assert_eq!(rooms, [Ok(Room::Now), Ok(Room::Later), Ok(Room::Later), Err(Full::Caller)]);
    assert_eq!(rules.schedule.reserve(&bob, &context_id(0)), Ok(Room::Now), "bob does not notice");
    let (third, second, first) = (jobs.pop().unwrap(), jobs.pop().unwrap(), jobs.pop().unwrap());
    let first = rules.schedule.submit(first, Room::Now).unwrap();
    assert!(rules.schedule.submit(second, Room::Later).is_none());
    assert!(rules.schedule.submit(third, Room::Later).is_none());
    let second = rules.schedule.finished(Some((keys[0], &first.control)), &alice, &context_id(0)).unwrap();
    assert_eq!(second.live.key(), keys[1]);
    assert_eq!(rules.schedule.load(), (2, 1));
    let third = rules.schedule.finished(Some((keys[1], &second.control)), &alice, &context_id(1)).unwrap();
    assert!(rules.schedule.finished(Some((keys[2], &third.control)), &alice, &context_id(2)).is_none());
    assert!(rules.schedule.unreserve(Room::Now, &bob, &context_id(0)).is_none());
    assert!(rules.schedule.is_empty());
}

/// What is held back for its caller goes with all else at the end.
#[test]
fn nothing_is_held_back_after_the_end() {
    let mut rules = Rules::new();
    rules.schedule = Schedule::new(RUNNING, QUEUED, PerCaller { running: Some(1), queued: None });
    let alice = scope_of("alice");
    let (first, second) = (rules.job_of("alice", 0), rules.job_of("alice", 1));
    let key = first.live.key();
    for (job, context) in [(first, 0), (second, 1)] {
        let room = rules.schedule.reserve(&alice, &context_id(context)).unwrap();
        assert_eq!(rules.schedule.submit(job, room).is_some(), context == 0);
    }
    rules.schedule.close();
    assert_eq!(rules.schedule.load(), (1, 0));
    let control = rules.schedule.control(key).unwrap();
    assert!(rules.schedule.finished(Some((key, &control)), &alice, &context_id(0)).is_none());
}

proptest! {
    #[test]
    fn turns_start_by_the_rules(steps in prop::collection::vec(step(), 0..80)) {
        let mut rules = Rules::new();
        for step in &steps {
            rules.step(step);
            rules.check();
        }
        rules.finish();
    }
}
