//! What must hold whatever happened to the nodes.

use std::sync::atomic::Ordering;

use nuncio_protocol::{Task, TaskId, codec};

use super::super::super::kit::call;
use super::super::judge::{judge_log, judge_reader};
use super::super::world::Removed;
use super::world::World;
use crate::store::{Scope, Store};

pub(super) async fn judge(world: &World) {
    assert_eq!(world.overlaps(), 0, "turns at once in one context");
    assert_eq!(world.told.lock().surprises, Vec::<String>::new());
    let tasks = world.told.lock().tasks.clone();
    for task in tasks {
        let log = read_log(world, &task).await;
        let folds = judge_log(&log);
        let last = &folds[log.events.len()];
        judge_witnesses(world, &task, &log, &folds);
        for node in &world.nodes {
            let got = node.engine.get(&call(), &task).await.unwrap().task().unwrap();
            assert_eq!(got, *last, "the task is the sum of its log on every node");
        }
    }
    world.let_go().await;
    for node in &world.nodes {
        assert_eq!(node.engine.load(), (0, 0));
        node.engine.hub.sweep();
        assert_eq!(node.engine.tasks_in_memory(), 0, "tasks are held that nobody needs");
    }
}

/// What everyone was shown of a task has been true at some time, and what was accepted is part of it.
fn judge_witnesses(world: &World, task: &TaskId, log: &Removed, folds: &[Task]) {
    let told = world.told.lock();
    for (_, json) in told.shown.iter().filter(|(id, _)| id == task) {
        let shown: Task = codec::decode(json).unwrap();
        assert!(folds.contains(&shown), "somebody was shown a task that never was: {shown:?}");
    }
    let last = &folds[log.events.len()];
    for (_, id) in told.accepted.iter().filter(|(id, _)| id == task) {
        let said = last.history.iter().filter(|message| message.message_id == *id).count();
        assert_eq!(said, 1, "a message that was accepted is said once");
    }
    for (reader, gone) in &told.readers {
        let reader = reader.lock();
        if reader.task == *task {
            let complete = reader.stays && !gone.load(Ordering::SeqCst);
            judge_reader(&reader, log, folds, complete);
        }
    }
}

async fn read_log(world: &World, task: &TaskId) -> Removed {
    let row = world.store.task(&Scope::default(), task).await.unwrap().unwrap();
    let events = world.store.events(row.key, 0, usize::MAX, usize::MAX).await.unwrap();
    let messages = world.store.messages(row.key).await.unwrap();
    assert_eq!(row.seq, events.len() as u64);
    assert_eq!(row.writer, None, "a lease is held for nothing");
    Removed { events, messages }
}
