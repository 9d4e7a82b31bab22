//! Following tasks that other nodes run.

use std::time::Duration;

use nuncio_protocol::TaskState;
use tokio::time::Instant;

use super::kit::*;
use crate::engine::{Close, Over};

#[tokio::test(start_paused = true)]
async fn readers_on_any_node_see_the_log_exactly() {
    let [one, two] = Place::new().servers().await;
    let task = send(&one.engine, "sleep:50 burst:700 sleep:50 artifact:1 text").await;
    let mut readers = Vec::new();
    for after in [None, Some(0), Some(1)] {
        readers
            .push(two.engine.subscribe(&call_after(after), task.task_id(), Close::WhenOver, Over::Show).await.unwrap());
    }
    let last = one.engine.find(&call().scope, task.task_id()).await.unwrap().seq;
    for (mut reader, after) in readers.into_iter().zip([last, 1, 2]) {
        let seen = read_all(&mut reader).await;
        let events = one.engine.find(&call().scope, task.task_id()).await.unwrap().seq;
        assert_eq!(seen, (after..=events).collect::<Vec<_>>());
    }
    assert_eq!(get(&two.engine, task.task_id()).await, get(&one.engine, task.task_id()).await);
    assert_eq!(two.begun(), 0, "who is asked for a task does not run it");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_the_same_on_every_node_with_all_that_was_said() {
    let [one, two] = Place::new().servers().await;
    let task = send(&one.engine, "sleep:50 text input").await;
    let mut reader = two.engine.subscribe(&call(), task.task_id(), Close::WhenOver, Over::Show).await.unwrap();
    assert_eq!(settled(&task).await, TaskState::InputRequired);
    follow_up(&one.engine, task.task_id(), "status complete").await.unwrap();
    read_all(&mut reader).await;
    // From the task in memory, which has followed everything, and from the log.
    let live = two.engine.hub.get(two.engine.find(&call().scope, task.task_id()).await.unwrap().key).unwrap();
    let (followed, _) = live.read(Clone::clone);
    assert_eq!(followed, get(&one.engine, task.task_id()).await);
    assert_eq!(followed.history.iter().filter(|said| said.role == nuncio_protocol::Role::User).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_quick_and_a_lost_one_costs_a_second() {
    let [one, two] = Place::new().servers().await;
    for (cut, longest) in [(false, Duration::from_millis(50)), (true, Duration::from_millis(1_100))] {
        one.bus.cut(cut);
        let task = send(&one.engine, "sleep:3000 text").await;
        let mut reader = two.engine.subscribe(&call(), task.task_id(), Close::WhenOver, Over::Show).await.unwrap();
        let seen = tokio::spawn(async move {
            read_all(&mut reader).await;
            Instant::now()
        });
        assert_eq!(settled(&task).await, TaskState::Completed);
        let over = Instant::now();
        let late = seen.await.unwrap().saturating_duration_since(over);
        assert!(late <= longest, "{late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_followed_that_nobody_reads() {
    let [one, two] = Place::new().servers().await;
    let task = send(&one.engine, "sleep:500 text").await;
    let mut reader = two.engine.subscribe(&call(), task.task_id(), Close::WhenOver, Over::Show).await.unwrap();
    read_all(&mut reader).await;
    drop((reader, task));
    tokio::time::sleep(Duration::from_secs(2)).await;
    for server in [&one, &two] {
        server.engine.hub.sweep();
        assert_eq!(server.engine.tasks_in_memory(), 0);
        assert!(server.engine.is_idle());
    }
}
