//! Random histories, told to both stores and to a model that is too simple to be wrong.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::store::{ListCursor, MemoryStore, Micros};

const TASKS: usize = 5;

#[derive(Clone, Debug)]
enum Step {
    /// `early` is the state that a second event says, which the task comes with.
    Create {
        task: usize,
        owner: u8,
        key: Option<u8>,
        state: u8,
        early: Option<u8>,
    },
    /// `stale` lowers the epoch, `skip` moves the number.
    Append {
        task: usize,
        stale: bool,
        skip: i8,
        state: Option<u8>,
        key: Option<u8>,
        rest: bool,
    },
    Claim {
        task: usize,
        stale: bool,
        retry: bool,
    },
    Trim {
        age: Micros,
        limit: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let key = || proptest::option::weighted(0.3, 0..4_u8);
    let rarely = || proptest::bool::weighted(0.15);
    prop_oneof![
        3 => (0..TASKS, 0..2_u8, key(), 1..4_u8, proptest::option::of(1..9_u8))
            .prop_map(|(task, owner, key, state, early)| Step::Create { task, owner, key, state, early }),
        8 => (0..TASKS, rarely(), prop_oneof![8 => Just(0), 1 => -2..3_i8],
              proptest::option::of(1..9_u8), key(), any::<bool>())
            .prop_map(|(task, stale, skip, state, key, rest)| {
                Step::Append { task, stale, skip, state, key, rest }
            }),
        2 => (0..TASKS, rarely(), any::<bool>())
            .prop_map(|(task, stale, retry)| Step::Claim { task, stale, retry }),
        1 => (0..20_i64, 0..4_usize).prop_map(|(age, limit)| Step::Trim { age, limit }),
    ]
}

#[derive(Clone, Debug)]
struct Model {
    id: usize,
    owner: u8,
    state: u8,
    epoch: i64,
    attempts: u32,
    updated: Micros,
    snapshot_seq: Seq,
    bodies: Vec<String>,
    messages: Vec<Seq>,
}

/// Tasks under their store keys, and where and when each key of each owner was used.
#[derive(Default)]
struct World {
    now: Micros,
    tasks: BTreeMap<TaskKey, Model>,
    keys: BTreeMap<(u8, u8), (TaskKey, Seq, Micros)>,
}

/// Keys are remembered for so long.
const MEMORY: Micros = 15;

fn scope(owner: u8) -> Scope {
    Scope { tenant: "".into(), owner: owner.to_string().into() }
}

impl World {
    fn key(&self, name: u8) -> IdempotencyKey {
        IdempotencyKey { key: name.to_string().into(), since: self.now - MEMORY }
    }

    fn used(&self, owner: u8, name: u8) -> Option<(TaskKey, Seq)> {
        let (task, seq, at) = *self.keys.get(&(owner, name))?;
        (at >= self.now - MEMORY && self.tasks.contains_key(&task)).then_some((task, seq))
    }

    fn find(&self, id: usize) -> Option<TaskKey> {
        self.tasks.iter().find(|(_, task)| task.id == id).map(|(key, _)| *key)
    }

    async fn take(&mut self, store: &dyn Store, step: Step) {
        self.now += 1;
        match step {
            Step::Create { .. } => self.create(store, step).await,
            Step::Append { .. } => self.append(store, step).await,
            Step::Claim { task, stale, retry } => self.claim(store, task, stale, retry).await,
            Step::Trim { age, limit } => self.trim(store, self.now - age, limit).await,
        }
    }

    async fn create(&mut self, store: &dyn Store, step: Step) {
        let Step::Create { task: id, owner, key, mut state, early } = step else { return };
        // Only a fresh id may come with events.
        let early = early.filter(|_| self.find(id).is_none());
        let mut task = new_task(&id.to_string());
        task.scope = scope(owner);
        task.at = self.now;
        task.state = State(state);
        task.key = key.map(|name| self.key(name));
        if let Some(then) = early {
            let (body, snapshot) = (Bytes::from("event 2"), Some(Bytes::from("snapshot")));
            task.early = vec![Early { body, at: self.now, state: Some(State(then)), snapshot }];
            state = then;
        }
        let made = store.create(task).await;
        if let Some(known) = key.and_then(|name| self.used(owner, name)) {
            assert_eq!(made.unwrap(), Created::Known(known.0, known.1));
        } else if self.find(id).is_some() {
            made.unwrap_err();
        } else {
            let Created::New(made) = made.unwrap() else { panic!("not known") };
            assert!(self.tasks.keys().all(|key| *key < made));
            if let Some(name) = key {
                self.keys.insert((owner, name), (made, 1, self.now));
            }
            let (mut bodies, messages) = (vec!["submitted".to_owned()], Vec::new());
            bodies.extend(early.map(|_| "event 2".to_owned()));
            let (updated, snapshot_seq) = (self.now, if early.is_some() { 2 } else { 0 });
            let model = Model { id, owner, state, epoch: 1, attempts: 0, updated, snapshot_seq, bodies, messages };
            self.tasks.insert(made, model);
        }
    }

    async fn append(&mut self, store: &dyn Store, step: Step) {
        let Step::Append { task, stale, skip, state, key, rest } = step else { return };
        let Some(at) = self.find(task) else { return };
        let model = self.tasks[&at].clone();
        let next = model.bodies.len() as Seq + 1;
        let seq = next.saturating_add_signed(i64::from(skip));
        let outcome = append(store, at, seq, |append| {
            append.at = self.now;
            append.epoch = model.epoch - i64::from(stale);
            append.state = state.map(State);
            append.key = key.map(|name| self.key(name));
            append.snapshot = rest.then(|| Bytes::from("snapshot"));
            append.message = rest.then(|| Bytes::from("message"));
        })
        .await;
        if stale || seq != next {
            assert_eq!(outcome, Err(AppendError::Fenced));
            return;
        }
        if key.is_some_and(|name| self.used(model.owner, name).is_some()) {
            assert_eq!(outcome, Err(AppendError::KeyUsed));
            return;
        }
        assert_eq!(outcome, Ok(seq));
        if let Some(name) = key {
            self.keys.insert((model.owner, name), (at, seq, self.now));
        }
        let task = self.tasks.get_mut(&at).unwrap();
        task.bodies.push(format!("event {seq}"));
        if let Some(state) = state {
            (task.state, task.updated) = (state, self.now);
        }
        if rest {
            task.snapshot_seq = seq;
            task.messages.push(seq);
        }
    }

    async fn claim(&mut self, store: &dyn Store, task: usize, stale: bool, retry: bool) {
        let Some(at) = self.find(task) else { return };
        let task = self.tasks.get_mut(&at).unwrap();
        let lease = Lease { node: "m".into() };
        let claimed = store.claim(at, task.epoch - i64::from(stale), lease, retry).await.unwrap();
        if stale {
            assert_eq!(claimed, Claim::Lost);
            return;
        }
        task.epoch += 1;
        task.attempts = if retry { task.attempts + 1 } else { 0 };
        let claimed = claimed.taken().unwrap();
        assert_eq!((claimed.epoch, claimed.attempts), (task.epoch, task.attempts));
    }

    /// Which of the old tasks go first is the store's choice, so the model follows it.
    async fn trim(&mut self, store: &dyn Store, before: Micros, limit: usize) {
        let removed = store.trim(Older::than(before), limit).await.unwrap();
        let old = |task: &Model| State(task.state).is_final() && task.updated < before;
        let able = self.tasks.values().filter(|task| old(task)).count();
        assert_eq!(removed, able.min(limit));
        let mut gone = Vec::new();
        for (key, task) in &self.tasks {
            if store.task_by_key(*key).await.unwrap().is_none() {
                assert!(old(task), "{task:?}");
                assert!(store.events(*key, 0, 99, 9_999).await.unwrap().is_empty());
                gone.push(*key);
            }
        }
        assert_eq!(gone.len(), removed);
        self.tasks.retain(|key, _| !gone.contains(key));
        self.keys.retain(|_, used| used.2 >= before);
    }

    async fn compare(&self, store: &dyn Store) {
        for (key, task) in &self.tasks {
            let id = TaskId::from(task.id.to_string());
            let row = store.task(&scope(task.owner), &id).await.unwrap().unwrap();
            assert_eq!(store.task_by_key(*key).await.unwrap().as_ref(), Some(&row));
            assert_eq!((row.key, row.state, row.seq), (*key, State(task.state), task.bodies.len() as Seq));
            assert_eq!((row.epoch, row.attempts), (task.epoch, task.attempts));
            assert_eq!((row.updated, row.snapshot_seq), (task.updated, task.snapshot_seq));
            assert_eq!(row.snapshot.is_some(), task.snapshot_seq > 0);
            assert_eq!(store.task(&scope(1 - task.owner), &id).await.unwrap(), None);
            let events = store.events(*key, 0, 9_999, usize::MAX).await.unwrap();
            assert!(events.iter().map(|event| event.seq).eq(1..=row.seq));
            assert!(events.iter().map(|event| &event.body[..]).eq(task.bodies.iter().map(String::as_bytes)));
            let messages = store.messages(*key).await.unwrap();
            assert!(messages.iter().map(|message| message.0).eq(task.messages.iter().copied()));
        }
        for owner in 0..2 {
            for name in 0..4 {
                let found = store.find_key(&scope(owner), &self.key(name)).await.unwrap();
                assert_eq!(found, self.used(owner, name));
            }
            for state in (1..9).map(|state| Some(State(state))).chain([None]) {
                self.compare_list(store, owner, state).await;
            }
        }
        let active = self.tasks.values().filter(|task| State(task.state).is_active()).count();
        assert_eq!(store.abandoned("nobody", 99).await.unwrap().len(), active);
    }

    async fn compare_list(&self, store: &dyn Store, owner: u8, state: Option<State>) {
        let mine = self.tasks.values().filter(|task| task.owner == owner);
        let wanted = mine.filter(|task| state.is_none_or(|state| state.0 == task.state));
        let mut expected: Vec<_> = wanted.map(|task| (task.updated, task.id.to_string())).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        let mut found = Vec::new();
        let mut query = ListQuery { scope: scope(owner), state, limit: 2, ..all() };
        loop {
            let page = store.list(query.clone()).await.unwrap();
            assert_eq!(page.total, expected.len() as u64);
            found.extend(page.tasks.into_iter().map(|row| (row.updated, row.id.to_string())));
            if !page.more {
                break;
            }
            let (updated, id) = found.last().cloned().unwrap();
            query.after = Some(ListCursor { updated, id: TaskId::from(id) });
        }
        assert_eq!(found, expected);
    }
}

async fn live(store: &dyn Store, steps: Vec<Step>) {
    let mut world = World::default();
    for (n, step) in steps.into_iter().enumerate() {
        world.take(store, step).await;
        if n % 16 == 15 {
            world.compare(store).await;
        }
    }
    world.compare(store).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_agree_with_the_model(steps in proptest::collection::vec(step(), 1..120), is_full: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            live(&MemoryStore::new(), steps.clone()).await;
            let folder = tempfile::tempdir().unwrap();
            let durability = if is_full { Durability::Full } else { Durability::Normal };
            let options = SqliteOptions { durability, ..SqliteOptions::default() };
            let store = SqliteStore::open(&folder.path().join("log.db"), options).unwrap();
            live(&store, steps).await;
        });
    }
}
