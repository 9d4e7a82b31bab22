//! What the behaviours have in common.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::{ContextId, PushId, TaskId};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::store::{
    Acknowledge, Append, AppendError, Created, IdempotencyKey, Lease, ListQuery, Micros, NewTask, PushConfig, Scope,
    Seq, State, Store, TaskKey,
};

pub(super) const SUBMITTED: State = State(1);
pub(super) const WORKING: State = State(2);
pub(super) const COMPLETED: State = State(3);
pub(super) const FAILED: State = State(4);
pub(super) const INPUT_REQUIRED: State = State(6);

pub(super) fn scope(tenant: &str, owner: &str) -> Scope {
    Scope { tenant: tenant.into(), owner: owner.into() }
}

pub(super) fn alice() -> Scope {
    scope("acme", "alice")
}

pub(super) fn lease(node: &str) -> Lease {
    Lease { node: node.into() }
}

pub(super) fn key(key: &str, since: Micros) -> IdempotencyKey {
    IdempotencyKey { key: key.into(), since }
}

/// A submitted task of Alice's at moment 1 on node "n1", in a context of its own.
pub(super) fn task(id: &str) -> NewTask {
    NewTask {
        scope: alice(),
        id: TaskId::from(id),
        context_id: ContextId::from(format!("context of {id}")),
        agent: "demo".into(),
        state: SUBMITTED,
        body: Bytes::from(format!("{id}/1")),
        at: 1,
        lease: lease("n1"),
        key: None,
        push: None,
        early: Vec::new(),
    }
}

pub(super) fn config(id: &str, due: Option<Micros>) -> PushConfig {
    PushConfig {
        id: PushId::from(id),
        body: Bytes::from(format!("config {id}")),
        version: "1.0".into(),
        acked: 0,
        attempts: 0,
        due,
        last_error: None,
        epoch: 0,
        since: None,
        told: None,
        dead: None,
        node: Some("n1".into()),
    }
}

/// The webhooks of a task, as [`kept`] has them.
pub(super) async fn pushes(store: &dyn Store, task: TaskKey) -> Vec<PushConfig> {
    store.pushes(task).await.unwrap().into_iter().map(|config| kept(store, config)).collect()
}

/// A webhook as it may be compared: in an embedded store it does not matter who has it in hand.
pub(super) fn kept(store: &dyn Store, config: PushConfig) -> PushConfig {
    PushConfig { node: config.node.filter(|_| store.shared().is_some()), ..config }
}

/// Long enough for every test.
pub(super) const TTL: Duration = Duration::from_secs(600);

/// Where servers share the store, these are alive.
pub(super) async fn alive(store: &dyn Store, nodes: &[&str]) {
    for node in nodes {
        if let Some(shared) = store.shared() {
            shared.beat(&(*node).into(), TTL).await.unwrap();
        }
    }
}

/// And this one is not any more.
pub(super) async fn gone(store: &dyn Store, node: &str) {
    if let Some(shared) = store.shared() {
        shared.leave(&node.into()).await.unwrap();
    }
}

pub(super) fn all(scope: Scope) -> ListQuery {
    ListQuery { scope, context_id: None, state: None, since: None, after: None, limit: 100, bytes: usize::MAX }
}

pub(super) async fn create(store: &dyn Store, task: NewTask) -> TaskKey {
    match store.create(task).await.unwrap() {
        Created::New(key) => key,
        other => panic!("{other:?} is not new"),
    }
}

/// Remembers what a store has said.
#[derive(Default)]
pub(super) struct Heard {
    words: Mutex<Vec<Result<Seq, (Seq, AppendError)>>>,
    news: Notify,
}

impl Acknowledge for Heard {
    fn committed(&self, seq: Seq) {
        self.words.lock().push(Ok(seq));
        self.news.notify_waiters();
    }

    fn refused(&self, seq: Seq, why: AppendError) {
        self.words.lock().push(Err((seq, why)));
        self.news.notify_waiters();
    }
}

impl Heard {
    pub(super) fn words(&self) -> Vec<Result<Seq, (Seq, AppendError)>> {
        self.words.lock().clone()
    }

    /// Waits until the store has said what became of the event `seq`.
    pub(super) async fn outcome(&self, seq: Seq) -> Result<(), AppendError> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            for word in self.words.lock().iter() {
                match word {
                    Ok(upto) if *upto >= seq => return Ok(()),
                    Err((from, why)) if *from <= seq => return Err(why.clone()),
                    Ok(_) | Err(_) => {}
                }
            }
            news.await;
        }
    }
}

/// An append of the given number under epoch 1.
pub(super) fn event(task: TaskKey, seq: Seq, ack: &Arc<Heard>) -> Append {
    Append {
        task,
        epoch: 1,
        seq,
        body: Bytes::from(format!("event {seq}")),
        at: Micros::try_from(seq).unwrap(),
        state: None,
        snapshot: None,
        message: None,
        key: None,
        letter: None,
        ack: ack.clone(),
    }
}

/// Appends one event, changed as wanted, and waits for the outcome.
pub(super) async fn append(
    store: &dyn Store,
    task: TaskKey,
    seq: Seq,
    change: impl FnOnce(&mut Append),
) -> Result<(), AppendError> {
    let heard = Arc::new(Heard::default());
    let mut append = event(task, seq, &heard);
    change(&mut append);
    store.append(append);
    heard.outcome(seq).await
}

/// Puts a task into a state at a moment, under its next number.
pub(super) async fn state(store: &dyn Store, task: TaskKey, state: State, at: Micros) {
    let row = store.task_by_key(task).await.unwrap().unwrap();
    let changed = append(store, task, row.seq + 1, |append| {
        append.epoch = row.epoch;
        append.state = Some(state);
        append.at = at;
    });
    changed.await.unwrap();
}

/// The numbers and bodies of all events.
pub(super) async fn replay(store: &dyn Store, task: TaskKey) -> Vec<(Seq, String)> {
    let events = store.events(task, 0, usize::MAX, usize::MAX).await.unwrap();
    events.into_iter().map(|event| (event.seq, String::from_utf8(event.body.to_vec()).unwrap())).collect()
}
