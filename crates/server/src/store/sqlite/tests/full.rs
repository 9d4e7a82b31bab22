//! A disk that is really full: a small file system in memory. Needs the right to mount one.

use std::path::PathBuf;
use std::process::Command;

use super::*;

struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// None where mounting is not allowed.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(folder.path()).output();
        mount.is_ok_and(|mount| mount.status.success()).then_some(Self(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("log.db")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

fn is_full(why: &AppendError) -> bool {
    matches!(why, AppendError::Store(StoreError::Full { .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_and_writing_goes_on_by_itself() {
    let Some(disk) = SmallDisk::new() else {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    };
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    let store = open(&disk.path()).unwrap();
    let task = create(&store, "t").await;
    let mut seq = 1;
    let big = |append: &mut Append| {
        append.body = Bytes::from(vec![b'x'; 20_000]);
        append.state = Some(State(2));
    };
    let why = loop {
        match append(&store, task, seq + 1, big).await {
            Ok(durable) => seq = durable,
            Err(why) => break why,
        }
        assert!(seq < 1_000, "two megabytes hold no more");
    };
    assert!(is_full(&why), "{why}");
    // Still full, still answering, still readable, and a later number is not taken for the next.
    for _ in 0..20 {
        assert!(is_full(&append(&store, task, seq + 1, big).await.unwrap_err()));
    }
    assert_eq!(append(&store, task, seq + 2, |_| ()).await, Err(AppendError::Fenced));
    let error = store.create(NewTask { body: Bytes::from(vec![0; 500_000]), ..new_task("u") }).await;
    assert!(matches!(error, Err(StoreError::Full { .. })), "{error:?}");
    assert_eq!(store.task_by_key(task).await.unwrap().unwrap().seq, seq);
    let whole = usize::try_from(seq).unwrap();
    assert_eq!(store.events(task, 0, usize::MAX, usize::MAX).await.unwrap().len(), whole);

    std::fs::remove_file(&ballast).unwrap();
    append(&store, task, seq + 1, big).await.unwrap();
    store.check().await.unwrap();
    create(&store, "u").await;
    drop(store);
    let store = open(&disk.path()).unwrap();
    assert_eq!(store.events(task, 0, usize::MAX, usize::MAX).await.unwrap().len(), whole + 1);
    assert_eq!(store.list(all()).await.unwrap().total, 2);
}

#[test]
fn opening_on_a_full_disk_says_so() {
    let Some(disk) = SmallDisk::new() else { return };
    let ballast = disk.0.path().join("ballast");
    let _ = std::fs::write(&ballast, vec![1; 3 << 20]);
    let error = open(&disk.path()).err().unwrap();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    std::fs::remove_file(&ballast).unwrap();
    open(&disk.path()).unwrap();
}
