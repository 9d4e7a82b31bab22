//! What only a database elsewhere can get right or wrong.

mod loss;
mod operator;
mod plans;
mod proxy;
mod start;
mod tls;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use nuncio_protocol::{ContextId, TaskId};
use nuncio_tests::Postgres;
use tokio::sync::watch;

use super::{PostgresOptions, PostgresStore};
use crate::store::{
    Acknowledge, Append, AppendError, Created, Durability, IdempotencyKey, Lease, ListQuery, NewTask, Older, Scope,
    Seq, Session, SessionKey, State, Store, StoreError, TaskKey, suite,
};

/// One server for all tests that do it no harm.
pub(crate) fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(Postgres::quick)
}

async fn open(url: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(url, PostgresOptions::default()).await
}

fn new_task(id: &str) -> NewTask {
    NewTask {
        scope: Scope::default(),
        id: TaskId::from(id),
        context_id: ContextId::from(id),
        agent: "demo".into(),
        state: State(1),
        body: Bytes::from("submitted"),
        at: 1,
        lease: Lease { node: "n".into() },
        key: None,
        push: None,
        early: Vec::new(),
    }
}

fn with_key(id: &str, key: &str) -> NewTask {
    NewTask { key: Some(IdempotencyKey { key: key.into(), since: 0 }), ..new_task(id) }
}

async fn create(store: &dyn Store, id: &str) -> TaskKey {
    match store.create(new_task(id)).await.unwrap() {
        Created::New(key) => key,
        other => panic!("{id} is {other:?}"),
    }
}

/// Keeps the last word of a store.
struct Last(watch::Sender<Result<Seq, AppendError>>);

impl Acknowledge for Last {
    fn committed(&self, seq: Seq) {
        drop(self.0.send_replace(Ok(seq)));
    }

    fn refused(&self, _: Seq, why: AppendError) {
        drop(self.0.send_replace(Err(why)));
    }
}

fn event(task: TaskKey, seq: Seq, ack: &Arc<Last>) -> Append {
    Append {
        task,
        epoch: 1,
        seq,
        body: Bytes::from(format!("event {seq} of {}", task.0)),
        at: 1,
        state: None,
        snapshot: None,
        message: None,
        key: None,
        letter: None,
        ack: ack.clone(),
    }
}

async fn append(store: &dyn Store, task: TaskKey, seq: Seq) -> Result<Seq, AppendError> {
    let (last, mut heard) = watch::channel(Ok(0));
    store.append(event(task, seq, &Arc::new(Last(last))));
    heard.wait_for(|last| *last != Ok(0)).await.unwrap().clone()
}

fn all() -> ListQuery {
    ListQuery {
        scope: Scope::default(),
        context_id: None,
        state: None,
        since: None,
        after: None,
        limit: 1_000,
        bytes: usize::MAX,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn does_what_every_store_does() {
    let url = server().database();
    for (writers, durability) in [(1, Durability::Full), (3, Durability::Normal)] {
        let next = AtomicUsize::new(0);
        suite::run_all(|| {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let url = format!("{url}?schema=s{writers}_{n}&writers={writers}&pool=4");
            let options = PostgresOptions { durability, ..PostgresOptions::default() };
            async move { Arc::new(PostgresStore::open(&url, options).await.unwrap()) as Arc<dyn Store> }
        })
        .await;
    }
}

/// Two servers with the same key at the same time make one task, again and again.
#[tokio::test(flavor = "multi_thread")]
async fn two_servers_with_one_key_make_one_task() {
    let url = server().database();
    let stores = [Arc::new(open(&url).await.unwrap()), Arc::new(open(&url).await.unwrap())];
    assert_eq!(stores[0].name, stores[1].name);
    for round in 0..30 {
        let creates = (0..8).map(|n| {
            let (store, task) = (stores[n % 2].clone(), with_key(&format!("{round}/{n}"), &format!("k{round}")));
            tokio::spawn(async move { store.create(task).await.unwrap() })
        });
        let mut made = Vec::new();
        let mut known = Vec::new();
        for create in creates.collect::<Vec<_>>() {
            match create.await.unwrap() {
                Created::Known(task, seq) => known.push((task, seq)),
                Created::New(task) | Created::Waiting(task) => made.push(task),
            }
        }
        assert_eq!((made.len(), known.len()), (1, 7));
        assert!(known.iter().all(|known| *known == (made[0], 1)));
    }
    assert_eq!(stores[1].list(all()).await.unwrap().total, 30);
}

/// A key whose task is gone can be used by one of many.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_trimmed_task_is_free_once() {
    let url = server().database();
    let store = Arc::new(open(&url).await.unwrap());
    for round in 0..10 {
        let old = NewTask { state: State(3), at: 10, ..with_key(&format!("old {round}"), "k") };
        assert!(matches!(store.create(old).await.unwrap(), Created::New(_)));
        // The key is younger than what is trimmed, the state older.
        server().ask(
            url.rsplit('/').next().unwrap(),
            "UPDATE nuncio.idempotency SET at = 100; UPDATE nuncio.task SET updated = 1 WHERE state = 3",
        );
        assert_eq!(store.trim(Older::than(50), 10).await.unwrap(), 1);
        let creates = (0..8).map(|n| {
            let (store, task) = (store.clone(), with_key(&format!("{round}/{n}"), "k"));
            tokio::spawn(async move { store.create(task).await.unwrap() })
        });
        let mut made = 0;
        for create in creates.collect::<Vec<_>>() {
            made += usize::from(!matches!(create.await.unwrap(), Created::Known(..)));
        }
        assert_eq!(made, 1);
        let (key, _) =
            store.find_key(&Scope::default(), &IdempotencyKey { key: "k".into(), since: 0 }).await.unwrap().unwrap();
        let (last, mut heard) = watch::channel(Ok(0));
        store.append(Append { state: Some(State(3)), ..event(key, 2, &Arc::new(Last(last))) });
        heard.wait_for(|last| *last == Ok(2)).await.unwrap();
        server().ask(
            url.rsplit('/').next().unwrap(),
            "UPDATE nuncio.idempotency SET at = 0; UPDATE nuncio.task SET updated = 1",
        );
        assert_eq!(store.trim(Older::than(50), 10).await.unwrap(), 1);
    }
}

/// Several servers that trim at once remove everything once, and none of them fails.
#[tokio::test(flavor = "multi_thread")]
async fn several_servers_can_trim_at_once() {
    let url = server().database();
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(Arc::new(open(&url).await.unwrap()));
    }
    for n in 0..300 {
        let done = NewTask { state: State(3), ..new_task(&n.to_string()) };
        stores[n % 3].create(done).await.unwrap();
    }
    let mut removed = 0;
    while stores[0].list(all()).await.unwrap().total > 0 {
        let trims = stores.iter().map(|store| {
            let store = store.clone();
            tokio::spawn(async move { store.trim(Older::than(100), 50).await.unwrap() })
        });
        for trim in trims.collect::<Vec<_>>() {
            removed += trim.await.unwrap();
        }
    }
    assert_eq!(removed, 300);
}

#[tokio::test]
async fn hooks_hear_of_every_event() {
    let events = Arc::new(AtomicUsize::new(0));
    let counter = events.clone();
    let on_commit: super::OnCommit = Arc::new(move |n, _| {
        counter.fetch_add(n, Ordering::Relaxed);
    });
    let options = PostgresOptions { on_commit: Some(on_commit), ..PostgresOptions::default() };
    let store = PostgresStore::open(&server().database(), options).await.unwrap();
    let task = create(&store, "t").await;
    for seq in 2..=10 {
        append(&store, task, seq).await.unwrap();
    }
    assert_eq!(append(&store, task, 10).await, Err(AppendError::Fenced));
    assert_eq!(events.load(Ordering::Relaxed), 10);
}

/// Copies are tasks like others: found, listed and counted, and their events name them.
#[tokio::test]
async fn a_task_can_be_multiplied() {
    let store = open(&server().database()).await.unwrap();
    let (id, context) = (TaskId::fresh(), ContextId::fresh());
    let early =
        |text: String, state, snapshot| crate::store::Early { body: Bytes::from(text), at: 2_000_000, state, snapshot };
    let model = NewTask {
        id: id.clone(),
        context_id: context.clone(),
        body: Bytes::from(format!("{id} in {context}")),
        early: vec![
            early(format!("of {id}"), None, None),
            early("done".into(), Some(State(3)), Some(Bytes::from(format!("all of {id}")))),
        ],
        ..new_task("")
    };
    let Created::New(task) = store.create(model).await.unwrap() else { panic!("known") };
    assert_eq!(store.multiply(task, 2_000).await.unwrap(), 2_048);
    let page = store.list(ListQuery { limit: 3, ..all() }).await.unwrap();
    assert_eq!((page.total, page.tasks.len()), (2_049, 3));
    let copy = &page.tasks[2];
    assert_eq!((copy.seq, copy.state, copy.updated), (3, State(3), 2_000_000 - 1_000));
    assert_eq!(copy.snapshot.as_deref(), Some(format!("all of {}", copy.id).as_bytes()));
    assert_eq!(store.task(&Scope::default(), &copy.id).await.unwrap().as_ref(), Some(copy));
    let events = store.events(copy.key, 0, 9, usize::MAX).await.unwrap();
    assert_eq!(events[0].body, format!("{} in {}", copy.id, copy.context_id));
    assert_eq!((events[1].body.clone(), events.len()), (Bytes::from(format!("of {}", copy.id)), 3));
    let same = ListQuery { context_id: Some(copy.context_id.clone()), ..all() };
    assert_eq!(store.list(same).await.unwrap().tasks, std::slice::from_ref(copy));
    assert!(store.multiply(create(&store, "t").await, 1).await.is_err());
}
