//! What is on the disk ahead of the database comes to it, whatever happens in between.

use std::fs;
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::{ContextId, TaskId};
use tokio::task::JoinSet;

use super::super::{SqliteOptions, SqliteStore};
use super::block::SLOT;
use super::*;
use crate::store::{
    Acknowledge, Append, AppendError, Created, Early, Lease, ListQuery, Scope, Seq, State, Store, TaskRow,
};

const DONE: u8 = 3;
const RESTS: u8 = 6;

/// A folder on a real disk: temporary files may be in memory, where there are no such writes.
fn folder() -> tempfile::TempDir {
    let here = std::env::current_exe().unwrap();
    tempfile::tempdir_in(here.parent().unwrap()).unwrap()
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).unwrap()
}

/// Opens one that writes ahead.
fn open_ahead(path: &Path) -> SqliteStore {
    let store = open(path);
    let ahead = store.ahead.as_ref().expect("this disk takes no such writes: run the tests on one that does");
    // However slow this machine is.
    ahead.desk.lock().slow = Duration::MAX;
    store
}

fn task(n: usize, state: u8, bytes: usize) -> NewTask {
    let early = |body: String| Early { body: body.into(), at: 2, state: None, snapshot: None };
    let mut last = early(format!("event 3 of {n}"));
    (last.state, last.snapshot) = (Some(State(state)), Some(Bytes::from(format!("task {n}"))));
    NewTask {
        scope: Scope { tenant: "".into(), owner: "me".into() },
        id: TaskId::from(n.to_string()),
        context_id: ContextId::from("c"),
        agent: "demo".into(),
        state: State(1),
        body: Bytes::from("submitted"),
        at: 1,
        lease: Lease { node: "n".into() },
        key: None,
        push: None,
        early: vec![early("x".repeat(bytes)), last],
    }
}

async fn create(store: &SqliteStore, n: usize, state: u8) -> TaskKey {
    match store.create(task(n, state, n % 7 * 700)).await.unwrap() {
        Created::New(key) => key,
        other => panic!("{other:?}"),
    }
}

fn all(scope: &NewTask) -> ListQuery {
    let scope = scope.scope.clone();
    ListQuery { scope, context_id: None, state: None, since: None, after: None, limit: 1_000_000, bytes: usize::MAX }
}

/// Exactly these tasks are there, each of them whole.
async fn has(store: &SqliteStore, wanted: std::ops::Range<usize>) {
    let found = store.list(all(&task(0, DONE, 0))).await.unwrap();
    let mut ids: Vec<usize> = found.tasks.iter().map(|row| row.id.as_str().parse().unwrap()).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(wanted.clone()), "{} instead of {wanted:?}", ids.len());
    assert_eq!(found.total, wanted.len() as u64);
    for row in &found.tasks {
        is_whole(store, row).await;
    }
}

async fn is_whole(store: &SqliteStore, row: &TaskRow) {
    let n: usize = row.id.as_str().parse().unwrap();
    assert_eq!(row.snapshot.as_deref(), Some(format!("task {n}").as_bytes()));
    let events = store.events(row.key, 0, 99, usize::MAX).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq(1..=3));
    let bodies = ["submitted".to_owned(), "x".repeat(n % 7 * 700), format!("event 3 of {n}")];
    assert!(events.iter().map(|event| &event.body[..]).eq(bodies.iter().map(String::as_bytes)));
}

/// Copies the database, or what stands beside it, as a killed process leaves it.
fn copy(from: &Path, to: &Path, ends: &[&str]) {
    for end in ends {
        let name = |path: &Path| format!("{}{end}", path.display());
        fs::copy(name(from), name(to)).unwrap();
    }
}

const DATABASE: [&str; 2] = ["", "-wal"];
const AHEAD: [&str; 1] = ["-ahead"];

async fn append(store: &SqliteStore, key: TaskKey, seq: Seq) -> Result<(), AppendError> {
    struct Tell(tokio::sync::mpsc::UnboundedSender<Result<(), AppendError>>);
    impl Acknowledge for Tell {
        fn committed(&self, _: Seq) {
            let _ = self.0.send(Ok(()));
        }
        fn refused(&self, _: Seq, why: AppendError) {
            let _ = self.0.send(Err(why));
        }
    }
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (body, ack) = (Bytes::from("more"), Arc::new(Tell(tell)));
    let (state, snapshot, message, letter) = (None, None, None, None);
    store.append(Append { task: key, epoch: 1, seq, body, at: 9, state, snapshot, message, key: None, letter, ack });
    told.recv().await.unwrap()
}

#[tokio::test]
async fn what_was_confirmed_is_there_after_a_crash_that_kept_all_of_it_from_the_database() {
    let folder = folder();
    let (path, empty) = (folder.path().join("log.db"), folder.path().join("empty.db"));
    let store = open_ahead(&path);
    copy(&path, &empty, &DATABASE);
    for n in 0..300 {
        create(&store, n, if n % 5 == 0 { RESTS } else { DONE }).await;
        if n % 60 == 59 {
            let crashed = folder.path().join(format!("crash{n}.db"));
            copy(&empty, &crashed, &DATABASE);
            fs::copy(file::path(&path), file::path(&crashed)).unwrap();
            has(&open(&crashed), 0..n + 1).await;
            // What the next start finds is neither less nor more.
            has(&open(&crashed), 0..n + 1).await;
        }
    }
    has(&store, 0..300).await;
}

#[tokio::test]
async fn whenever_it_crashes_nothing_is_lost_or_doubled() {
    let folder = folder();
    let path = folder.path().join("log.db");
    let store = open_ahead(&path);
    for n in 0..120 {
        create(&store, n, DONE).await;
        if n % 3 == 0 {
            // The database first: a power cut leaves it no newer than what stands beside it.
            let crashed = folder.path().join(format!("crash{n}.db"));
            copy(&path, &crashed, &DATABASE);
            copy(&path, &crashed, &AHEAD);
            let found = open(&crashed);
            has(&found, 0..n + 1).await;
            create(&found, n + 1, DONE).await;
            drop(found);
            has(&open(&crashed), 0..n + 2).await;
        }
        if n % 10 == 0 {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_used_round_and_round() {
    let folder = folder();
    let path = folder.path().join("log.db");
    let store = Arc::new(open_ahead(&path));
    let mut made = 0;
    // Four rounds of it, alone and in company.
    while store.ahead.as_ref().unwrap().desk.lock().next < 4 * SLOTS {
        let mut company = JoinSet::new();
        for _ in 0..1 + made % 30 {
            let (store, n) = (store.clone(), made);
            company.spawn(async move { create(&store, n, DONE).await });
            made += 1;
        }
        company.join_all().await;
        assert!(made < 100_000);
    }
    let crashed = folder.path().join("crash.db");
    copy(&path, &crashed, &DATABASE);
    copy(&path, &crashed, &AHEAD);
    has(&open(&crashed), 0..made).await;
    has(&store, 0..made).await;
}

#[tokio::test]
async fn whoever_reads_sees_what_was_confirmed_before() {
    let folder = folder();
    let store = open_ahead(&folder.path().join("log.db"));
    for n in 0..40 {
        let state = if n % 2 == 0 { DONE } else { RESTS };
        let key = create(&store, n, state).await;
        let scope = task(n, state, 0).scope;
        match n % 5 {
            0 => assert_eq!(store.task(&scope, &TaskId::from(n.to_string())).await.unwrap().unwrap().key, key),
            1 => assert_eq!(store.task_by_key(key).await.unwrap().unwrap().seq, 3),
            2 => assert_eq!(store.events(key, 0, 9, usize::MAX).await.unwrap().len(), 3),
            3 => assert_eq!(store.list(all(&task(n, state, 0))).await.unwrap().total, n as u64 + 1),
            _ => append(&store, key, 4).await.unwrap(),
        }
        let other = Scope { owner: "other".into(), ..scope };
        assert_eq!(store.task(&other, &TaskId::from(n.to_string())).await.unwrap(), None);
    }
}

/// What the cache is given is what the database says.
#[tokio::test]
async fn a_task_is_the_same_before_and_after_it_is_in_the_database() {
    let folder = folder();
    let path = folder.path().join("log.db");
    let store = open_ahead(&path);
    create(&store, 1, DONE).await;
    let (scope, id) = (task(1, DONE, 0).scope, TaskId::from("1"));
    assert!(store.progress.is_behind());
    let before = store.task(&scope, &id).await.unwrap();
    assert!(store.progress.is_behind(), "it was not put there for this");
    drop(store);
    assert_eq!(open(&path).task(&scope, &id).await.unwrap(), before);
}

#[tokio::test]
async fn a_file_in_which_something_is_missing_is_no_reason_to_go_on_without_it() {
    let folder = folder();
    let (path, crashed) = (folder.path().join("log.db"), folder.path().join("crashed.db"));
    let store = open_ahead(&path);
    copy(&path, &crashed, &DATABASE);
    for n in 0..10 {
        create(&store, n, DONE).await;
    }
    copy(&path, &crashed, &AHEAD);
    drop(store);
    let file = folder.path().join("crashed.db-ahead");
    let whole = fs::read(&file).unwrap();
    // The last block may be cut off: nobody has heard of it.
    let mut bytes = whole.clone();
    let last = bytes.chunks(SLOT).rposition(|slot| slot.starts_with(b"nahd")).unwrap();
    bytes[last * SLOT + 500] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let cut = folder.path().join("cut.db");
    copy(&crashed, &cut, &DATABASE);
    copy(&crashed, &cut, &AHEAD);
    has(&open(&cut), 0..9).await;
    // Nothing comes behind a block that is cut off.
    let mut bytes = whole.clone();
    bytes[SLOT + 500] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let error = SqliteStore::open(&crashed, SqliteOptions::default()).err().unwrap().to_string();
    assert!(error.contains("crashed.db-ahead") && error.contains("lost"), "{error}");
    // And without the file the rest can be had, as the error says.
    fs::remove_file(&file).unwrap();
    has(&open(&crashed), 0..0).await;
}

#[tokio::test]
async fn what_stands_beside_another_database_is_not_taken_for_its_own() {
    let folder = folder();
    let (path, other) = (folder.path().join("log.db"), folder.path().join("other.db"));
    let store = open_ahead(&path);
    create(&store, 1, DONE).await;
    drop(open(&other));
    copy(&path, &other, &AHEAD);
    has(&open(&other), 0..0).await;
}

/// Nor is what was written for a later state of a database that was put back.
#[tokio::test]
async fn a_copy_that_is_put_back_goes_on_from_what_it_has() {
    let folder = folder();
    let (path, kept) = (folder.path().join("log.db"), folder.path().join("kept.db"));
    let store = open_ahead(&path);
    for n in 0..10 {
        create(&store, n, DONE).await;
    }
    drop(store);
    fs::copy(&path, &kept).unwrap();
    let store = open_ahead(&path);
    for n in 10..60 {
        create(&store, n, DONE).await;
    }
    drop(store);
    fs::copy(&kept, &path).unwrap();
    let store = open_ahead(&path);
    has(&store, 0..10).await;
    for n in 10..15 {
        create(&store, n, RESTS).await;
    }
    let crashed = folder.path().join("crash.db");
    copy(&path, &crashed, &DATABASE);
    copy(&path, &crashed, &AHEAD);
    has(&open(&crashed), 0..15).await;
}

/// Whatever is in the way, tasks are stored.
#[tokio::test]
async fn tasks_go_to_the_database_where_nothing_can_be_written_ahead_of_it() {
    let folder = folder();
    let path = folder.path().join("log.db");
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder.path().join("log.db-ahead")).unwrap();
    let store = open(&path);
    assert!(store.ahead.is_none());
    create(&store, 0, DONE).await;
    drop(store);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
    fs::remove_file(folder.path().join("log.db-ahead")).unwrap();

    let store = open_ahead(&path);
    create(&store, 1, DONE).await;
    store.ahead.as_ref().unwrap().desk.lock().paused = Some(Instant::now() + PAUSE);
    create(&store, 2, DONE).await;
    store.ahead.as_ref().unwrap().settle();
    create(&store, 3, DONE).await;
    has(&store, 0..4).await;
}

#[tokio::test]
async fn a_write_that_fails_sends_everybody_to_the_database() {
    let folder = folder();
    let path = folder.path().join("log.db");
    let store = Arc::new(open_ahead(&path));
    create(&store, 0, DONE).await;
    // A file that cannot be written: the write cannot begin.
    let ahead = store.ahead.as_ref().unwrap();
    let broken = Direct::new(fs::File::open(file::path(&path)).unwrap()).unwrap();
    ahead.disk.lock().direct = broken;
    let mut company = JoinSet::new();
    for n in 1..9 {
        let store = store.clone();
        company.spawn(async move { create(&store, n, DONE).await });
    }
    company.join_all().await;
    assert!(ahead.desk.lock().closed);
    create(&store, 9, DONE).await;
    has(&store, 0..10).await;
    drop(store);
    has(&open(&path), 0..10).await;
}

#[test]
fn slow_writes_make_a_pause_and_single_ones_do_not() {
    let mut desk = Desk::new(0);
    for _ in 0..100 {
        desk.note(SLOW * 100);
        desk.note(SLOW / 10);
        desk.note(SLOW / 10);
    }
    for n in 0..MANY {
        assert!(desk.is_open(), "{n} are not enough");
        desk.note(SLOW * 2);
    }
    assert!(!desk.is_open());
    // What was still on its way makes it no longer.
    let until = desk.paused;
    desk.note(SLOW * 2);
    assert_eq!(desk.paused, until);
    desk.paused = Some(Instant::now());
    assert!(desk.is_open() && desk.delays == 0);
}

/// The database is somebody else's for longer than a write waits for it.
#[tokio::test]
async fn what_is_confirmed_while_the_database_takes_nothing_comes_to_it_later() {
    let folder = folder();
    let path = folder.path().join("log.db");
    let store = open_ahead(&path);
    create(&store, 0, DONE).await;
    has(&store, 0..1).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for n in 1..50 {
        create(&store, n, RESTS).await;
    }
    // A task that the database cannot take yet is not said to be missing.
    let scope = task(0, DONE, 0).scope;
    store.task(&scope, &TaskId::from("7")).await.unwrap_err();
    // What it has can be read, and is all that there is to read.
    assert_eq!(store.list(all(&task(0, DONE, 0))).await.unwrap().total, 1);
    let crashed = folder.path().join("crash.db");
    copy(&path, &crashed, &DATABASE);
    copy(&path, &crashed, &AHEAD);
    has(&open(&crashed), 0..50).await;
    other.execute_batch("ROLLBACK").unwrap();
    has(&store, 0..50).await;
}
