//! All shelves keep the same promises.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::{Artifact, ArtifactId, Content, Part, Task, TaskId, json};

use super::content::{Held, find};
use super::{ArtifactStore, Artifacts, Blob, FILE, FileContent, Hash, Place, Stored};
use crate::store::postgres::tests::server;
use crate::store::{
    Created, Lease, MemoryStore, NewTask, Older, PostgresOptions, PostgresStore, Scope, State, Store, TaskKey,
};

const MOMENT: Duration = Duration::from_millis(1);

fn shelves() -> (tempfile::TempDir, [Arc<ArtifactStore>; 2]) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let disk = ArtifactStore::open(dir.path().join("artifacts")).expect("opened");
    (dir, [Arc::new(disk), Arc::new(ArtifactStore::in_memory(1 << 20))])
}

/// With the one in a database.
async fn all_shelves() -> (tempfile::TempDir, Vec<Arc<ArtifactStore>>) {
    let (dir, shelves) = shelves();
    let store = PostgresStore::open(&server().database(), PostgresOptions::default()).await.expect("opened");
    let mut all = Vec::from(shelves);
    all.push(Arc::new(ArtifactStore::in_database(Arc::new(store))));
    (dir, all)
}

async fn content(blob: &Blob) -> Vec<u8> {
    match blob {
        Blob::Pieces(pieces) => {
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < pieces.size() {
                // Pieces of an odd size, across those that are stored.
                let more = pieces.read(bytes.len() as u64, 100_003).await.expect("read");
                assert!(!more.is_empty(), "all of it is there");
                bytes.extend_from_slice(&more);
            }
            bytes
        }
        Blob::Bytes(bytes) => bytes.to_vec(),
        Blob::File(file, size) => {
            let mut bytes = vec![0; usize::try_from(*size).expect("small")];
            file.read_exact_at(&mut bytes, 0).expect("all of it");
            bytes
        }
    }
}

/// All files below a folder.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found
}

#[tokio::test]
async fn what_is_put_for_a_task_is_there_for_that_task_alone() {
    let (_dir, shelves) = all_shelves().await;
    let (one, other) = (TaskId::from("../../one"), TaskId::from("other"));
    for shelf in shelves {
        let stored = shelf.put(TaskKey(1), &one, "hello".into()).await.expect("kept");
        let name = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!((stored.sha256.to_string().as_str(), stored.size), (name, 5));
        let got = shelf.get(TaskKey(1), &one, stored.sha256).await.expect("read").expect("there");
        assert_eq!((got.size(), content(&got).await), (5, b"hello".to_vec()));
        for (key, id) in [(2, &other), (1, &other), (2, &one)] {
            assert!(shelf.get(TaskKey(key), id, stored.sha256).await.expect("read").is_none(), "{key} {id}");
        }
        assert!(shelf.get(TaskKey(1), &one, Hash([0; 32])).await.expect("read").is_none());
    }
}

#[tokio::test]
async fn equal_contents_are_kept_once_and_nobody_else_can_read_them() {
    let (dir, [disk, memory]) = shelves();
    let half = Bytes::from(vec![7; 600 << 10]);
    for n in 0..3 {
        let id = TaskId::from(format!("t{n}").as_str());
        for shelf in [&disk, &memory] {
            shelf.put(TaskKey(n), &id, half.clone()).await.expect("kept");
            shelf.put(TaskKey(n), &id, half.clone()).await.expect("kept again");
        }
    }
    let found = files(dir.path());
    assert_eq!(found.len(), 4, "one by its hash, and one for each task");
    let inodes: std::collections::HashSet<_> = found.iter().map(|path| path.metadata().expect("there").ino()).collect();
    assert_eq!(inodes.len(), 1, "all of them the same file");
    for path in found {
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        let folder = path.parent().expect("a folder").metadata().expect("there");
        assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    }
    let error = memory.put(TaskKey(1), &TaskId::from("t1"), vec![8; 600 << 10].into()).await.expect_err("full");
    assert_eq!(error.kind(), ErrorKind::StorageFull);
}

#[tokio::test]
async fn files_are_copied_up_to_a_limit() {
    let (dir, shelves) = all_shelves().await;
    let path = dir.path().join("source");
    let source: Vec<u8> = (0..=250).cycle().take(700 << 10).collect();
    fs::write(&path, &source).expect("written");
    for shelf in shelves {
        let open = || fs::File::open(&path).expect("there");
        let id = TaskId::from("t");
        let stored = shelf.put_file(TaskKey(1), &id, open(), 1 << 20).await.expect("kept");
        assert_eq!(stored.size, 700 << 10);
        let got = shelf.get(TaskKey(1), &id, stored.sha256).await.expect("read").expect("there");
        assert!(content(&got).await == source);
        let error = shelf.put_file(TaskKey(1), &id, open(), 1000).await.expect_err("too large");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
    assert!(files(&dir.path().join("artifacts/tmp")).is_empty(), "nothing half written is left");
}

#[tokio::test]
async fn a_shelf_on_disk_is_there_again_after_a_restart() {
    let (dir, [disk, _]) = shelves();
    let id = TaskId::from("t");
    let Stored { sha256, .. } = disk.put(TaskKey(1), &id, "kept".into()).await.expect("kept");
    drop(disk);
    let again = Arc::new(ArtifactStore::open(dir.path().join("artifacts")).expect("opened"));
    assert!(again.get(TaskKey(1), &id, sha256).await.expect("read").is_some());
}

async fn new_task(store: &MemoryStore, id: &str, state: u8, at: i64) -> TaskKey {
    let new = NewTask {
        scope: Scope::default(),
        id: id.into(),
        context_id: "c".into(),
        agent: "a".into(),
        state: State(state),
        body: "{}".into(),
        at,
        lease: Lease { node: "n".into() },
        key: None,
        push: None,
        early: Vec::new(),
    };
    match store.create(new).await.expect("created") {
        Created::New(key) | Created::Waiting(key) | Created::Known(key, _) => key,
    }
}

#[tokio::test]
async fn files_go_with_their_task_and_not_before() {
    let (dir, shelves) = all_shelves().await;
    for shelf in shelves {
        let store = MemoryStore::new();
        let gone = new_task(&store, "gone", State(3).0, 1).await;
        let open = new_task(&store, "open", State(6).0, 1).await;
        let both = shelf.put(gone, &"gone".into(), "both".into()).await.expect("kept");
        let alone = shelf.put(gone, &"gone".into(), "alone".into()).await.expect("kept");
        shelf.put(open, &"open".into(), "both".into()).await.expect("kept");
        // A task of a former database, whose number another task has by now.
        shelf.put(open, &"former".into(), "former".into()).await.expect("kept");
        assert_eq!(shelf.sweep(&store, Duration::from_secs(3600)).await.expect("swept"), 0, "all of them are young");
        tokio::time::sleep(MOMENT * 20).await;
        assert_eq!(shelf.sweep(&store, MOMENT).await.expect("swept"), 1, "the former one");
        assert_eq!(store.trim(Older::than(i64::MAX), 10).await.expect("trimmed"), 1);
        assert_eq!(shelf.sweep(&store, MOMENT).await.expect("swept"), 1);
        assert_eq!(shelf.sweep(&store, MOMENT).await.expect("swept"), 0);
        assert!(shelf.get(open, &"open".into(), both.sha256).await.expect("read").is_some());
        for sha256 in [both.sha256, alone.sha256] {
            assert!(shelf.get(gone, &"gone".into(), sha256).await.expect("read").is_none());
        }
    }
    assert_eq!(files(dir.path()).len(), 2, "one content, by its hash and for the open task");
}

#[tokio::test]
async fn open_tasks_do_not_keep_the_sweep_from_others() {
    let shelf = Arc::new(ArtifactStore::in_memory(1 << 20));
    let store = MemoryStore::new();
    for n in 0..1500 {
        let id = format!("open-{n}");
        let key = new_task(&store, &id, State(6).0, 1).await;
        shelf.put(key, &(&*id).into(), "open".into()).await.expect("kept");
    }
    for n in 0..10 {
        shelf.put(TaskKey(90_000 + n), &"gone".into(), "gone".into()).await.expect("kept");
    }
    tokio::time::sleep(MOMENT * 20).await;
    let mut removed = 0;
    for _ in 0..2 {
        removed += shelf.sweep(&store, MOMENT).await.expect("swept");
    }
    assert_eq!(removed, 10);
}

/// Tasks that get and lose the same content at the same time, on several servers.
#[tokio::test(flavor = "multi_thread")]
async fn a_content_that_comes_and_goes_is_whole_or_not_there() {
    let url = server().database();
    let mut workers = Vec::new();
    for n in 0..4 {
        let store = PostgresStore::open(&url, PostgresOptions::default()).await.expect("opened");
        let shelf = Arc::new(ArtifactStore::in_database(Arc::new(store)));
        workers.push(tokio::spawn(async move {
            let bytes = Bytes::from(vec![7; 300 << 10]);
            for round in 0..15 {
                let (key, id) = (TaskKey(n * 100 + round), TaskId::from("t"));
                let stored = shelf.put(key, &id, bytes.clone()).await.expect("kept");
                let got = shelf.get(key, &id, stored.sha256).await.expect("read").expect("there");
                assert!(content(&got).await == bytes);
                shelf.remove(super::folder(key, &id)).await.expect("removed");
                assert!(shelf.get(key, &id, stored.sha256).await.expect("read").is_none());
            }
        }));
    }
    for worker in workers {
        worker.await.expect("done");
    }
    let database = url.rsplit('/').next().expect("a name");
    assert_eq!(server().ask(database, "SELECT count(*) FROM nuncio.content"), "0");
    assert_eq!(server().ask(database, "SELECT count(*) FROM nuncio.piece"), "0");
}

fn place(id: &TaskId, part: usize) -> Place<'_> {
    Place { tenant: "", key: TaskKey(1), id, artifact: "a/../b", part }
}

#[tokio::test]
async fn small_contents_stay_in_the_events_and_large_ones_become_urls() {
    let (dir, [disk, _]) = shelves();
    let artifacts = Artifacts { store: disk, inline_max: 4, ..Artifacts::default() };
    artifacts.reached_at("https://agents.example/x/");
    artifacts.listening_at(([127, 0, 0, 1], 1).into(), false);
    let id = TaskId::from("t");
    let mut small = Part::from(Content::Raw("four".into()));
    artifacts.attach(&place(&id, 0), &mut small).await.expect("nothing to do");
    assert_eq!(small, Part::from(Content::Raw("four".into())));
    let large = || Part { filename: "n".into(), media_type: "x/y".into(), ..Part::from(Content::Raw("fives".into())) };
    let mut part = large();
    artifacts.attach(&Place { tenant: "a b", ..place(&id, 2) }, &mut part).await.expect("kept");
    assert_eq!(part.content, Content::Url("https://agents.example/x/a%20b/artifacts/t/a%2F..%2Fb?part=2".into()));
    assert_eq!((&*part.filename, &*part.media_type), ("n", "x/y"));
    assert_eq!(part.metadata[FILE]["size"], 5);
    let path = dir.path().join("file");
    fs::write(&path, "fives").expect("written");
    let contents = [
        FileContent::from(path.clone()),
        FileContent::from(fs::File::open(&path).expect("there")),
        FileContent::from(b"fives".to_vec()),
    ];
    for content in contents {
        let mut filled = large();
        artifacts.fill(&place(&id, 0), &mut filled, content).await.expect("kept");
        assert_eq!(filled.content, Content::Url("https://agents.example/x/artifacts/t/a%2F..%2Fb".into()));
        assert_eq!(filled.metadata, part.metadata);
    }
    let local = Artifacts { file_urls: true, file_max: 5, ..artifacts };
    let mut part = large();
    local.attach(&place(&id, 0), &mut part).await.expect("kept");
    let Content::Url(url) = &part.content else { return assert_eq!(part.content, Content::Url(String::new())) };
    assert_eq!(fs::read(url.strip_prefix("file://").expect("a file")).expect("there"), b"fives");
    let mut part = Part::from(Content::Raw("sixsix".into()));
    assert!(local.attach(&place(&id, 0), &mut part).await.is_err(), "larger than what is kept at all");
}

#[test]
fn a_server_on_every_address_names_one_that_clients_can_use() {
    let artifacts = Artifacts::default();
    artifacts.listening_at(([0, 0, 0, 0], 80).into(), false);
    assert_eq!(artifacts.base.get().map(String::as_str), Some("http://127.0.0.1:80"));
}

#[test]
fn only_a_whole_hash_is_a_hash() {
    let good = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(good.parse::<Hash>().map(|hash| hash.to_string()).as_deref(), Ok(good));
    let long = format!("{good}0");
    for wrong in ["", "..", &good[..63], &good.to_uppercase(), &good.replace('2', "/"), &long] {
        assert_eq!(wrong.parse::<Hash>(), Err(()), "{wrong}");
    }
}

#[test]
fn a_url_stands_for_a_part_or_for_all_pieces_of_one_content() {
    let task = |parts: Vec<Part>| Task {
        artifacts: vec![Artifact { artifact_id: ArtifactId::from("a"), parts, ..Artifact::default() }],
        ..Task::default()
    };
    let inline = |task: &Task, part| match find(task, "a", part).map(|found| found.held) {
        Some(Held::Inline(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    };
    let text = task(vec![Part::text("one "), Part::text("two")]);
    assert_eq!(inline(&text, None).as_deref(), Some("one two"));
    assert_eq!(inline(&text, Some(1)).as_deref(), Some("two"));
    assert_eq!(inline(&text, Some(2)), None);
    assert!(find(&text, "b", None).is_none() && find(&task(vec![]), "a", None).is_none());
    let mixed = task(vec![Part::data(json!({"x": 1})), Part::text("two")]);
    assert_eq!(inline(&mixed, None).as_deref(), Some("{\"x\":1}"));
    let elsewhere = task(vec![Part::from(Content::Url("http://example.org/".into()))]);
    assert!(find(&elsewhere, "a", None).is_none(), "what lies elsewhere is not handed out");
    let mut forged = Part::from(Content::Url("x".into()));
    forged.metadata.insert(FILE.into(), json!({ "sha256": "../../../etc/passwd" }));
    assert!(find(&task(vec![forged]), "a", None).is_none());
}
