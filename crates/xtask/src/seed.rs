//! A database with many finished tasks, written through the store as the server writes them, for measurements
//! beside a million tasks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use nuncio_protocol::{
    Artifact, ArtifactId, ContextId, Message, Part, StreamResponse, Task, TaskArtifactUpdateEvent, TaskId, TaskState,
    TaskStatus, TaskStatusUpdateEvent, codec,
};
use nuncio_server::store::{
    Durability, Early, Lease, Micros, NewTask, Scope, SqliteOptions, SqliteStore, State, Store,
};

/// Tasks that are created at a time, and so share a commit.
const AT_ONCE: u64 = 512;
/// Tasks are spread over so many conversations.
const CONTEXTS: u64 = 1000;
const TEXT: &str = "lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsu";

/// `cargo xtask seed DIR COUNT`
pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<()> {
    let usage = "usage: cargo xtask seed DIR COUNT";
    let folder = words.next().context(usage)?;
    let count: u64 = words.next().context(usage)?.parse().context(usage)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(fill(Path::new(&folder), count))
}

async fn fill(folder: &Path, count: u64) -> Result<()> {
    // Nothing is lost that could not be made again.
    let options = SqliteOptions { durability: Durability::Normal, ..SqliteOptions::default() };
    let store = Arc::new(SqliteStore::open(&folder.join("nuncio.db"), options)?);
    // A millisecond apart, and none in the future.
    let begin = now() - Micros::try_from(count)? * 1000;
    let next = Arc::new(AtomicU64::new(0));
    let writers = (0..AT_ONCE).map(|_| {
        let (store, next) = (store.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    return anyhow::Ok(());
                }
                store.create(finished(n, begin + n.cast_signed() * 1000)).await?;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await??;
    }
    store.close().await;
    println!("{count} finished tasks in {}", folder.display());
    Ok(())
}

fn now() -> Micros {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Micros::try_from(since.as_micros()).unwrap_or(Micros::MAX)
}

/// A task as the demo agent leaves it: submitted, working, one artifact, completed.
fn finished(n: u64, at: Micros) -> NewTask {
    let (id, context_id) = (TaskId::fresh(), ContextId::from(format!("ctx-{:04}", n % CONTEXTS)));
    let message =
        Message { task_id: id.clone(), context_id: context_id.clone(), ..Message::from_user(vec![Part::text(TEXT)]) };
    let status = |state| TaskStatus { state, ..TaskStatus::default() };
    let submitted = Task {
        id: id.clone(),
        context_id: context_id.clone(),
        status: status(TaskState::Submitted),
        history: vec![message],
        ..Task::default()
    };
    let artifact = Artifact { artifact_id: ArtifactId::fresh(), parts: vec![Part::text(TEXT)], ..Artifact::default() };
    let update = |state| {
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: id.clone(),
            context_id: context_id.clone(),
            status: status(state),
            ..TaskStatusUpdateEvent::default()
        })
    };
    let piece = StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: id.clone(),
        context_id: context_id.clone(),
        artifact: artifact.clone(),
        last_chunk: true,
        ..TaskArtifactUpdateEvent::default()
    });
    let body = codec::encode(&StreamResponse::Task(submitted.clone()));
    let completed = Task { status: status(TaskState::Completed), artifacts: vec![artifact], ..submitted };
    let early = |event: &StreamResponse, state: Option<u8>, snapshot| Early {
        body: codec::encode(event),
        at,
        state: state.map(State),
        snapshot,
    };
    NewTask {
        scope: Scope::default(),
        id: id.clone(),
        context_id: context_id.clone(),
        agent: "demo".into(),
        state: State(TaskState::Submitted.number()),
        body,
        at,
        lease: Lease { node: "seed".into() },
        key: None,
        push: None,
        early: vec![
            early(&update(TaskState::Working), Some(TaskState::Working.number()), None),
            early(&piece, None, None),
            early(&update(TaskState::Completed), Some(TaskState::Completed.number()), Some(codec::encode(&completed))),
        ],
    }
}
