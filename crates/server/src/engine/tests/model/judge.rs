//! What must hold whatever happened.

use nuncio_protocol::{Message, StreamResponse, Task, TaskId, TaskState, codec};

use bytes::Bytes;

use super::super::kit::call;
use super::super::naive::apply;
use super::world::{End, Reader, Removed, Shared, World};
use crate::store::{LogEvent, Scope, Seq, Store};

pub(super) async fn judge(world: &World) {
    let life = world.life();
    assert_eq!(life.agent.overlaps.load(std::sync::atomic::Ordering::Relaxed), 0, "turns at once in one context");
    assert_eq!(world.shared.lock().surprises, Vec::<String>::new());
    let tasks = world.shared.lock().tasks.clone();
    for task in tasks {
        let Some(log) = read_log(world, &task).await else { continue };
        let folds = judge_log(&log);
        judge_witnesses(&world.shared.lock(), &task, &log, &folds);
        if let Ok(json) = life.engine.get(&call(), &task).await {
            assert_eq!(json.task().unwrap(), folds[log.events.len()], "the task is the sum of its log");
        }
    }
    world.let_go().await;
    assert_eq!(life.engine.load(), (0, 0));
    life.engine.hub.sweep();
    assert_eq!(life.engine.tasks_in_memory(), 0, "tasks are held that nobody needs");
}

/// What everyone was shown of a task has been true at some time.
fn judge_witnesses(shared: &Shared, task: &TaskId, log: &Removed, folds: &[Task]) {
    for (_, json) in shared.shown.iter().filter(|(id, _)| id == task) {
        let shown: Task = codec::decode(json).unwrap();
        assert!(folds.contains(&shown), "somebody was shown a task that never was: {shown:?}");
    }
    for reader in &shared.readers {
        let reader = reader.lock();
        if reader.task == *task {
            let complete = reader.stays && reader.life == shared.over && !shared.divided;
            judge_reader(&reader, log, folds, complete);
        }
    }
}

async fn read_log(world: &World, task: &TaskId) -> Option<Removed> {
    let store = &world.life().store;
    if let Some(row) = store.task(&Scope::default(), task).await.unwrap() {
        let events = store.events(row.key, 0, usize::MAX, usize::MAX).await.unwrap();
        let messages = store.messages(row.key).await.unwrap();
        assert_eq!(row.seq, events.len() as Seq);
        return Some(Removed { events, messages });
    }
    world.shared.lock().removed.remove(task)
}

/// Numbers without gaps, one end, nothing after it. Returns the task after each event, by number.
pub(super) fn judge_log(log: &Removed) -> Vec<Task> {
    let mut folds = vec![Task::default()];
    for (event, n) in log.events.iter().zip(1..) {
        assert_eq!(event.seq, n, "numbers have no gaps");
        let before = folds.last().unwrap();
        assert!(!before.status.state.is_terminal(), "event {n} comes after the end: {}", text(&log.events));
        let mut task = before.clone();
        apply(&mut task, codec::decode(&event.body).unwrap());
        let said = log.messages.iter().filter(|(seq, _)| *seq == n);
        task.history.extend(said.map(|(_, body)| codec::decode::<Message>(body).unwrap()));
        folds.push(task);
    }
    let last = folds.last().unwrap().status.state;
    assert!(last.is_terminal() || last.is_interrupted(), "the task is left {last:?}: {}", text(&log.events));
    folds
}

fn text(events: &[LogEvent]) -> String {
    events.iter().map(|event| format!("\n{} {}", event.seq, String::from_utf8_lossy(&event.body))).collect()
}

pub(super) fn judge_reader(reader: &Reader, log: &Removed, folds: &[Task], complete: bool) {
    let mut seen = reader.seen.iter();
    let mut cursor = match reader.after {
        Some(after) => after,
        None => match seen.next() {
            Some((seq, body)) => {
                judge_snapshot(*seq, body, folds);
                *seq
            }
            None => return,
        },
    };
    for (seq, body) in seen {
        assert_eq!(*seq, cursor + 1, "a reader is shown every event once and in order");
        let event = usize::try_from(*seq - 1).ok().and_then(|n| log.events.get(n));
        assert_eq!(event.map(|event| &event.body), Some(body), "nobody is shown what the log does not hold");
        cursor = *seq;
    }
    let closes = |state: TaskState| state.is_terminal() || (reader.until_input && state == TaskState::InputRequired);
    let state = usize::try_from(cursor).ok().and_then(|n| folds.get(n)).map(|task| task.status.state);
    match reader.end {
        End::Over => assert!(state.is_some_and(closes), "a stream ended at {state:?}"),
        End::Open if complete => {
            assert_eq!(cursor, log.events.len() as Seq, "a reader is not shown the rest");
            assert!(!state.is_some_and(closes), "a stream is open at {state:?}");
        }
        End::Open | End::Broken => {}
    }
}

fn judge_snapshot(seq: Seq, body: &Bytes, folds: &[Task]) {
    let StreamResponse::Task(shown) = codec::decode(body).unwrap() else { panic!("the first event is the task") };
    let fold = usize::try_from(seq).ok().and_then(|n| folds.get(n));
    assert_eq!(Some(&shown), fold, "a snapshot is the sum of the events up to its number");
}
