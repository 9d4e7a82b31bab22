//! No room left: for the file, and on a disk that is really full.

use std::path::PathBuf;
use std::process::Command;

use super::super::error::At;
use super::*;

/// A small file system in memory.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(folder.path()).status();
        assert!(mount.unwrap().success(), "this test must be allowed to mount a file system");
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("log.db")
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// Lets the file have so many pages; SQLite then says what it says of a full disk.
async fn allow_pages(store: &SqliteStore, most: i64) {
    store
        .ask(move |batch| batch.db.query_row(&format!("PRAGMA max_page_count = {most}"), [], |_| Ok(())))
        .await
        .unwrap();
}

fn is_full(why: &AppendError) -> bool {
    matches!(why, AppendError::Store(StoreError::Full { .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_loses_nothing_and_writing_goes_on_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = open(&path).unwrap();
    allow_pages(&store, 200).await;
    let full = fill(&store).await;
    allow_pages(&store, 2_000).await;
    goes_on(store, &path, full).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the right to mount a file system"]
async fn a_full_disk_loses_nothing_and_writing_goes_on_by_itself() {
    let disk = SmallDisk::new();
    std::fs::write(disk.ballast(), vec![1; 1 << 20]).unwrap();
    let store = open(&disk.path()).unwrap();
    let full = fill(&store).await;
    std::fs::remove_file(disk.ballast()).unwrap();
    goes_on(store, &disk.path(), full).await;
}

fn big(append: &mut Append) {
    append.body = Bytes::from(vec![b'x'; 20_000]);
    append.state = Some(State(2));
}

/// Appends until there is no room, and looks at what a full store does. Returns the task and its last event.
async fn fill(store: &SqliteStore) -> (TaskKey, Seq) {
    let task = create(store, "t").await;
    let mut seq = 1;
    let why = loop {
        match append(store, task, seq + 1, big).await {
            Ok(durable) => seq = durable,
            Err(why) => break why,
        }
        assert!(seq < 1_000, "there is no room for more");
    };
    assert!(is_full(&why), "{why}");
    // Still full, still answering, still readable, and a later number is not taken for the next.
    for _ in 0..20 {
        assert!(is_full(&append(store, task, seq + 1, big).await.unwrap_err()));
    }
    assert_eq!(append(store, task, seq + 2, |_| ()).await, Err(AppendError::Fenced));
    let error = store.create(NewTask { body: Bytes::from(vec![0; 500_000]), ..new_task("u") }).await;
    assert!(matches!(error, Err(StoreError::Full { .. })), "{error:?}");
    assert_eq!(store.task_by_key(task).await.unwrap().unwrap().seq, seq);
    let whole = usize::try_from(seq).unwrap();
    assert_eq!(store.events(task, 0, usize::MAX, usize::MAX).await.unwrap().len(), whole);
    (task, seq)
}

/// There is room again.
async fn goes_on(store: SqliteStore, path: &Path, (task, seq): (TaskKey, Seq)) {
    append(&store, task, seq + 1, big).await.unwrap();
    store.check().await.unwrap();
    create(&store, "u").await;
    drop(store);
    let store = open(path).unwrap();
    let whole = usize::try_from(seq + 1).unwrap();
    assert_eq!(store.events(task, 0, usize::MAX, usize::MAX).await.unwrap().len(), whole);
    assert_eq!(store.list(all()).await.unwrap().total, 2);
}

#[test]
fn a_disk_that_is_full_when_opening_has_its_own_error() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    assert!(matches!(At::new(Path::new("log.db")).io(&full), StoreError::Full { .. }));
}

#[test]
#[ignore = "needs the right to mount a file system"]
fn opening_on_a_full_disk_says_so() {
    let disk = SmallDisk::new();
    let _ = std::fs::write(disk.ballast(), vec![1; 3 << 20]);
    let error = open(&disk.path()).err().unwrap();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    std::fs::remove_file(disk.ballast()).unwrap();
    open(&disk.path()).unwrap();
}
