//! Files that must not be opened, and must not be changed by the attempt.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    Place { _folder: folder, path }
}

fn refused(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap();
    let error = open(path).err().expect("it must not open");
    assert_eq!(fs::read(path).unwrap(), before, "the file was changed");
    error
}

#[tokio::test]
async fn a_second_opener_is_told_that_the_file_is_in_use() {
    let Place { _folder, path } = place();
    let store = open(&path).unwrap();
    create(&store, "t").await;
    assert!(matches!(refused(&path), StoreError::Locked { .. }));
    create(&store, "u").await;
    store.close().await;
    let next = open(&path).unwrap();
    assert_eq!(next.list(all()).await.unwrap().total, 2);
}

#[tokio::test]
async fn a_newer_schema_stays_as_it_is() {
    let Place { _folder, path } = place();
    let store = open(&path).unwrap();
    create(&store, "t").await;
    drop(store);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    // The version stands in the write-ahead log only, as after a crash.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("log.db");
    for end in ["", "-wal"] {
        fs::copy(format!("{}{end}", path.display()), format!("{}{end}", copy.display())).unwrap();
    }
    drop(db);
    for path in [path, copy] {
        let StoreError::Newer { found, known, .. } = refused(&path) else { panic!("it is not refused as newer") };
        assert_eq!((found, known), (99, super::super::migrate::KNOWN));
    }
}

#[test]
fn what_is_not_a_database_is_refused() {
    for content in [&b"hello"[..], &[0; 5_000], &[0xff; 5_000], b"SQLite format 3\0 and no more"] {
        let Place { _folder, path } = place();
        fs::write(&path, content).unwrap();
        let error = refused(&path);
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
}

#[test]
fn an_empty_file_is_a_new_database() {
    let Place { _folder, path } = place();
    fs::write(&path, b"").unwrap();
    open(&path).unwrap();
}

#[test]
fn a_database_of_another_program_is_refused() {
    let Place { _folder, path } = place();
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

async fn filled(path: &Path) -> Vec<TaskKey> {
    let store = open(path).unwrap();
    let mut tasks = Vec::new();
    for n in 0..200 {
        let task = create(&store, &format!("t{n}")).await;
        append(&store, task, 2, |append| append.body = Bytes::from(vec![b'x'; 3_000])).await.unwrap();
        tasks.push(task);
    }
    store.close().await;
    tasks
}

#[tokio::test]
async fn a_damaged_header_is_refused() {
    let Place { _folder, path } = place();
    filled(&path).await;
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[..64].fill(0x55);
    fs::write(&path, &damaged).unwrap();
    assert!(matches!(refused(&path), StoreError::Corrupt { .. }));
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(refused(&path), StoreError::Corrupt { .. }), "cut off");
    fs::write(&path, &whole).unwrap();
    open(&path).unwrap();
}

/// Whichever page is damaged, the store refuses to open or the operation that meets it says so;
/// nothing panics, and whatever is answered is right.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_is_reported_by_what_meets_it() {
    let Place { _folder, path } = place();
    let tasks = filled(&path).await;
    let whole = fs::read(&path).unwrap();
    let pages = whole.len() / 4_096;
    let (mut at_opening, mut at_reading) = (0, 0);
    for page in (1..pages).step_by(7) {
        let mut damaged = whole.clone();
        damaged[page * 4_096..(page + 1) * 4_096].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        let _ = fs::remove_file(path.with_extension("db-wal"));
        let _ = fs::remove_file(path.with_extension("db-shm"));
        let store = match open(&path) {
            Ok(store) => store,
            Err(error) => {
                assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
                assert_eq!(fs::read(&path).unwrap(), damaged, "the file was changed");
                at_opening += 1;
                continue;
            }
        };
        for task in &tasks {
            match store.events(*task, 0, 10, usize::MAX).await {
                Ok(events) if events.len() == 2 && events[1].body.len() == 3_000 => {}
                Ok(events) => panic!("page {page}: {} events", events.len()),
                Err(error) => {
                    assert!(matches!(error, StoreError::Corrupt { .. }), "page {page}: {error}");
                    at_reading += 1;
                }
            }
        }
        // One damaged task must not stop the others from writing.
        let _ = store.create(new_task("fresh")).await;
    }
    assert!(at_reading > 0, "{at_opening} of {pages} pages were found at opening");
}

/// A write that meets damage fails alone, though it shares its batch with others.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_leaves_its_neighbours_alone() {
    let Place { _folder, path } = place();
    let store = open(&path).unwrap();
    let (good, bad) = (create(&store, "good").await, create(&store, "bad").await);
    append(&store, bad, 2, |_| ()).await.unwrap();
    // An event that nobody appended stands where the next one belongs.
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("INSERT INTO log (place, task, seq, body) VALUES (-1, ?1, 3, x'00')", [bad.0]).unwrap();
    drop(db);
    for seq in 2..100 {
        let (one, other) = tokio::join!(append(&store, good, seq, |_| ()), append(&store, bad, 3, |_| ()));
        assert_eq!(one, Ok(seq));
        assert!(matches!(other, Err(AppendError::Store(StoreError::Failed { .. }))), "{other:?}");
    }
}
