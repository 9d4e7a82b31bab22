//! What only a database on disk can get right or wrong.

mod damage;
mod full;
mod model;
mod plans;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use nuncio_protocol::{ContextId, PushId, TaskId};
use rusqlite::Connection;
use tokio::sync::watch;

use super::{Durability, SqliteOptions, SqliteStore};
use crate::store::{
    Acknowledge, Append, AppendError, Claim, Created, Dead, Early, IdempotencyKey, Lease, ListQuery, NewTask, Older,
    PushConfig, Scope, Seq, Session, SessionKey, State, Store, StoreError, TaskKey, packed, suite,
};

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, SqliteOptions::default())
}

fn new_task(id: &str) -> NewTask {
    NewTask {
        scope: Scope::default(),
        id: TaskId::from(id),
        context_id: ContextId::from("c"),
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

async fn create(store: &dyn Store, id: &str) -> TaskKey {
    match store.create(new_task(id)).await.unwrap() {
        Created::New(key) => key,
        other => panic!("{id}: {other:?}"),
    }
}

/// Keeps the last word of a store.
struct Last(watch::Sender<Option<Result<Seq, AppendError>>>);

impl Acknowledge for Last {
    fn committed(&self, seq: Seq) {
        self.0.send_replace(Some(Ok(seq)));
    }

    fn refused(&self, _: Seq, why: AppendError) {
        self.0.send_replace(Some(Err(why)));
    }
}

/// Appends one event, changed as wanted, and waits for the outcome.
async fn append(
    store: &dyn Store,
    task: TaskKey,
    seq: Seq,
    change: impl FnOnce(&mut Append),
) -> Result<Seq, AppendError> {
    let (last, mut heard) = watch::channel(None);
    let mut append = Append {
        task,
        epoch: 1,
        seq,
        body: Bytes::from(format!("event {seq}")),
        at: 1,
        state: None,
        snapshot: None,
        message: None,
        key: None,
        letter: None,
        ack: Arc::new(Last(last)),
    };
    change(&mut append);
    store.append(append);
    heard.wait_for(Option::is_some).await.unwrap().clone().unwrap()
}

fn all() -> ListQuery {
    let scope = Scope::default();
    ListQuery { scope, context_id: None, state: None, since: None, after: None, limit: 100, bytes: usize::MAX }
}

#[tokio::test(flavor = "multi_thread")]
async fn does_what_every_store_does() {
    let folder = tempfile::tempdir().unwrap();
    for durability in [Durability::Full, Durability::Normal] {
        let next = AtomicUsize::new(0);
        let folder = folder.path().join(format!("{durability:?}"));
        suite::run_all(|| {
            let path = folder.join(format!("{}/log.db", next.fetch_add(1, Ordering::Relaxed)));
            let options = SqliteOptions { durability, ..SqliteOptions::default() };
            async move { Arc::new(SqliteStore::open(&path, options).unwrap()) as Arc<dyn Store> }
        })
        .await;
    }
}

#[tokio::test]
async fn reopening_finds_everything_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    for close in [true, false] {
        let store = open(&path).unwrap();
        let mut task = new_task(&format!("t{close}"));
        task.key = Some(IdempotencyKey { key: format!("k{close}").into(), since: 0 });
        let push = PushConfig {
            id: PushId::from("p"),
            body: Bytes::from("there"),
            version: "1.0".into(),
            acked: 3,
            attempts: 1,
            due: Some(9),
            last_error: Some("why".into()),
            epoch: 4,
            since: Some(7),
            told: Some(State(2)),
            dead: Some(Dead { from: 2, count: 1, at: 8 }),
            node: None,
        };
        task.push = Some(push.clone());
        let (scope, id, key) = (task.scope.clone(), task.id.clone(), task.key.clone().unwrap());
        let Created::New(task_key) = store.create(task).await.unwrap() else { panic!("known") };
        append(&store, task_key, 2, |append| {
            append.state = Some(State(2));
            append.snapshot = Some(Bytes::from("snapshot"));
            append.message = Some(Bytes::from("message"));
        })
        .await
        .unwrap();
        store.claim(task_key, 1, Lease { node: "m".into() }, true).await.unwrap().taken().unwrap();
        let before = store.task(&scope, &id).await.unwrap();
        let events = store.events(task_key, 0, 10, 1_000).await.unwrap();
        let total = store.list(all()).await.unwrap().total;
        if close {
            store.close().await;
        }
        drop(store);

        let store = open(&path).unwrap();
        assert_eq!(store.task(&scope, &id).await.unwrap(), before);
        assert_eq!(store.events(task_key, 0, 10, 1_000).await.unwrap(), events);
        assert_eq!(store.messages(task_key).await.unwrap(), [(2, Bytes::from("message"))]);
        assert_eq!(store.pushes(task_key).await.unwrap(), [push]);
        assert_eq!(store.find_key(&scope, &key).await.unwrap(), Some((task_key, 1)));
        assert_eq!(store.list(all()).await.unwrap().total, total);
        assert_eq!(store.abandoned("other", 9).await.unwrap().last(), before.as_ref());
    }
}

#[tokio::test]
async fn what_was_handed_over_survives_a_drop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = open(&path).unwrap();
    let task = create(&store, "t").await;
    let (last, mut heard) = watch::channel(None);
    let ack: Arc<dyn Acknowledge> = Arc::new(Last(last));
    for seq in 2..=3_000 {
        let body = Bytes::from("x");
        let (message, key, snapshot, state) = (None, None, None, None);
        store.append(Append {
            task,
            epoch: 1,
            seq,
            body,
            at: 1,
            state,
            snapshot,
            message,
            key,
            letter: None,
            ack: ack.clone(),
        });
    }
    drop(store);
    heard.wait_for(|last| *last == Some(Ok(3_000))).await.unwrap();
    let store = open(&path).unwrap();
    assert_eq!(store.events(task, 0, usize::MAX, usize::MAX).await.unwrap().len(), 3_000);
}

/// Events that came at once share rows, which readers do not notice.
#[tokio::test]
async fn a_replay_starts_and_stops_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("log.db")).unwrap();
    let task = create(&store, "t").await;
    let (last, mut heard) = watch::channel(None);
    let ack: Arc<dyn Acknowledge> = Arc::new(Last(last));
    for seq in 2..=200 {
        let body = Bytes::from(format!("{seq:01000}"));
        let (message, key, snapshot, state) = (None, None, None, None);
        store.append(Append {
            task,
            epoch: 1,
            seq,
            body,
            at: 1,
            state,
            snapshot,
            message,
            key,
            letter: None,
            ack: ack.clone(),
        });
    }
    heard.wait_for(|last| *last == Some(Ok(200))).await.unwrap();
    for after in 0..=201 {
        for (limit, room) in [(1, 1), (7, usize::MAX), (usize::MAX, 5_000), (usize::MAX, usize::MAX)] {
            let events = store.events(task, after, limit, room).await.unwrap();
            let most = usize::try_from(200_u64.saturating_sub(after)).unwrap();
            // The first event is short, so that one more may fit.
            let fits = if room == 5_000 { 5 + usize::from(after == 0) } else { usize::MAX };
            assert_eq!(events.len(), most.min(limit).min(fits), "{after} {limit} {room}");
            assert!(events.iter().map(|event| event.seq).eq((after + 1)..=(after + events.len() as Seq)));
            assert!(
                events.iter().filter(|event| event.seq > 1).all(|event| event.body == format!("{:01000}", event.seq))
            );
        }
    }
}

/// What is written reaches the file beside the writing, and the write-ahead log begins anew.
#[tokio::test]
async fn the_write_ahead_log_stays_small() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = open(&path).unwrap();
    let task = create(&store, "t").await;
    let body = Bytes::from(vec![b'x'; 256 << 10]);
    let size = |end: &str| std::fs::metadata(format!("{}{end}", path.display())).unwrap().len() >> 20;
    for seq in 2..=400 {
        append(&store, task, seq, |append| append.body = body.clone()).await.unwrap();
        assert!(size("-wal") < 40, "{} MiB after {seq} events", size("-wal"));
    }
    assert!(size("") > 50, "only {} of 100 MiB are in the file", size(""));
    drop(store);
    assert!(!folder.path().join("log.db-wal").exists(), "one tidy file is left");
    let found = open(&path).unwrap().events(task, 399, 9, usize::MAX).await.unwrap();
    assert_eq!(found.last().map(|event| event.body.len()), Some(body.len()));
}

/// The files as a killed process leaves them: nothing is closed, and the write-ahead log is full.
#[tokio::test]
async fn whatever_was_confirmed_survives_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = open(&path).unwrap();
    let task = create(&store, "t").await;
    for seq in 2..=40 {
        append(&store, task, seq, |append| append.state = Some(State(2))).await.unwrap();
        let crashed = folder.path().join(format!("crash{seq}.db"));
        for end in ["", "-wal"] {
            let from = format!("{}{end}", path.display());
            std::fs::copy(from, format!("{}{end}", crashed.display())).unwrap();
        }
        let found = open(&crashed).unwrap();
        assert_eq!(found.events(task, 0, 99, usize::MAX).await.unwrap().len() as Seq, seq);
        assert_eq!(found.task_by_key(task).await.unwrap().unwrap().seq, seq);
        append(&found, task, seq + 1, |_| ()).await.unwrap();
    }
}

#[tokio::test]
async fn ids_of_a_short_task_take_a_byte_each_and_are_read_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nuncio.db");
    let store = open(&path).unwrap();
    let (id, context_id) = (TaskId::fresh(), ContextId::fresh());
    let body = |n: u8| Bytes::from(format!(r#"{{"n":{n},"taskId":"{id}","contextId":"{context_id}"}}"#));
    let early = Early { body: body(2), at: 2, state: Some(State(3)), snapshot: Some(body(3)) };
    let task =
        NewTask { id: id.clone(), context_id: context_id.clone(), body: body(1), early: vec![early], ..new_task("") };
    let Created::New(key) = store.create(task).await.unwrap() else { panic!("it is new") };
    let read = async |store: &SqliteStore| {
        let task = store.task(&Scope::default(), &id).await.unwrap().unwrap();
        let events = store.events(key, 0, 10, usize::MAX).await.unwrap();
        let second = store.events(key, 1, 10, usize::MAX).await.unwrap();
        assert_eq!(second, &events[1..]);
        (task.snapshot, events.into_iter().map(|event| event.body).collect::<Vec<_>>())
    };
    let expected = (Some(body(3)), vec![body(1), body(2)]);
    assert_eq!(read(&store).await, expected);
    drop(store);

    let db = Connection::open(&path).unwrap();
    let row: Vec<u8> = db.query_row("SELECT body FROM log", [], |row| row.get(0)).unwrap();
    assert_eq!(row.len(), 3 * (4 + body(1).len() - 2 * 35));
    // As the release before wrote it.
    let mut plain = Vec::new();
    packed::pack_snapshot(&mut plain, &body(3), None);
    packed::pack(&mut plain, &body(1), None);
    packed::pack(&mut plain, &body(2), None);
    db.execute("UPDATE log SET body = ?1", [plain]).unwrap();
    db.pragma_update(None, "user_version", 3).unwrap();
    drop(db);
    assert_eq!(read(&open(&path).unwrap()).await, expected);
}

#[tokio::test]
async fn keys_are_never_used_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = open(&path).unwrap();
    let task = create(&store, "t").await;
    append(&store, task, 2, |append| append.state = Some(State(3))).await.unwrap();
    assert_eq!(store.trim(Older::than(2), 10).await.unwrap(), 1);
    drop(store);
    let store = open(&path).unwrap();
    assert!(create(&store, "t").await > task);
}

/// However many sessions are old and in use, and of the same age, those behind them are looked at.
#[tokio::test]
async fn sessions_in_use_hide_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("log.db")).unwrap();
    create(&store, "t").await;
    let key = |context: &str, agent: usize| SessionKey {
        scope: Scope::default(),
        context_id: context.into(),
        agent: format!("{agent:05}").into(),
    };
    let used = usize::try_from(super::trim::ROWS).unwrap() + 10;
    let keys = || (0..used).map(|n| key("c", n)).chain([key("unused", 0)]);
    let put = keys().map(|key| {
        let store = &store;
        async move { store.put_session(&key, Session::default(), 1).await.unwrap() }
    });
    futures_util::future::join_all(put).await;
    store.trim(Older::than(2), 10).await.unwrap();
    let mut left = 0;
    for key in keys() {
        left += usize::from(store.session(&key).await.unwrap().is_some());
    }
    assert_eq!(left, used);
    assert_eq!(store.session(&key("unused", 0)).await.unwrap(), None);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_removed_or_replaced_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, away) = (folder.path().join("log.db"), folder.path().join("away.db"));
    let store = open(&path).unwrap();
    store.check().await.unwrap();
    std::fs::rename(&path, &away).unwrap();
    let says = |error: StoreError| assert!(error.to_string().contains("removed or replaced"), "{error}");
    says(store.check().await.unwrap_err());
    std::fs::copy(&away, &path).unwrap();
    says(store.check().await.unwrap_err());
    std::fs::rename(&away, &path).unwrap();
    store.check().await.unwrap();
}

#[tokio::test]
async fn hooks_hear_of_every_event() {
    let folder = tempfile::tempdir().unwrap();
    let events = Arc::new(AtomicUsize::new(0));
    let counter = events.clone();
    let on_commit: super::OnCommit = Arc::new(move |n, _| {
        counter.fetch_add(n, Ordering::Relaxed);
    });
    let options = SqliteOptions { on_commit: Some(on_commit), ..SqliteOptions::default() };
    let store = SqliteStore::open(&folder.path().join("log.db"), options).unwrap();
    let task = create(&store, "t").await;
    for seq in 2..=10 {
        append(&store, task, seq, |_| ()).await.unwrap();
    }
    assert_eq!(append(&store, task, 10, |_| ()).await, Err(AppendError::Fenced));
    assert_eq!(events.load(Ordering::Relaxed), 10);
}

#[tokio::test]
async fn a_listener_that_panics_harms_nobody_else() {
    struct Panics;
    impl Acknowledge for Panics {
        fn committed(&self, _: Seq) {
            panic!("a listener's own trouble");
        }
        fn refused(&self, _: Seq, _: AppendError) {}
    }
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("log.db")).unwrap();
    let task = create(&store, "t").await;
    let (body, ack) = (Bytes::new(), Arc::new(Panics));
    let (message, key, snapshot, state) = (None, None, None, None);
    store.append(Append { task, epoch: 1, seq: 2, body, at: 1, state, snapshot, message, key, letter: None, ack });
    append(&store, task, 3, |_| ()).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn others_cannot_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/deep/log.db");
    let store = open(&path).unwrap();
    create(&store, "t").await;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in path.parent().unwrap().read_dir().unwrap() {
        assert_eq!(mode(&file.as_ref().unwrap().path()), 0o600, "{file:?}");
    }
}
