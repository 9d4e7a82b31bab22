//! Who runs what.

use std::time::Duration;

use nuncio_protocol::TaskState;
use tokio::time::Instant;

use super::kit::*;
use crate::engine::{EngineOptions, PerCaller};

#[tokio::test(start_paused = true)]
async fn work_without_a_place_is_taken_by_whoever_has_one() {
    let mut place = Place::new();
    place.options = EngineOptions { max_running_turns: 1, ..place.options };
    let [one, two, three] = place.servers().await;
    let began = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..6 {
        tasks.push(send(&one.engine, "sleep:1000 text").await);
    }
    for task in &tasks {
        assert_eq!(settled(task).await, TaskState::Completed);
    }
    assert!(began.elapsed() < Duration::from_secs(3), "three at a time: {:?}", began.elapsed());
    assert_eq!([one.begun(), two.begun(), three.begun()], [2, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_context_has_one_turn_at_a_time_on_all_nodes() {
    let [one, two, three] = Place::new().servers().await;
    let mut tasks = Vec::new();
    for n in 0..4 {
        for server in [&one, &two, &three] {
            tasks.push(send_in(&server.engine, "c", &format!("n{n} sleep:300")).await);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let began = Instant::now();
    for task in &tasks {
        assert_eq!(settled(task).await, TaskState::Completed);
    }
    assert!(began.elapsed() >= Duration::from_millis(12 * 300 - 100), "one after the other");
    let mut ends = Vec::new();
    for task in &tasks {
        ends.push(get(&one.engine, task.task_id()).await.status.timestamp);
    }
    assert!(ends.is_sorted(), "in the order in which they came");
}

#[tokio::test(start_paused = true)]
async fn a_next_turn_waits_for_its_context_wherever_that_is_busy() {
    let [one, two] = Place::new().servers().await;
    let rests = send_in(&one.engine, "c", "input").await;
    assert_eq!(settled(&rests).await, TaskState::InputRequired);
    a_while().await;
    let busy = send_in(&one.engine, "c", "sleep:500").await;
    let next = follow_up(&two.engine, rests.task_id(), "text").await.unwrap();
    assert_eq!(get(&two.engine, rests.task_id()).await.status.state, TaskState::Submitted);
    assert_eq!(settled(&next).await, TaskState::Completed);
    assert_eq!(settled(&busy).await, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_caller_has_so_many_turns_on_all_nodes_together() {
    let mut place = Place::new();
    place.options.per_caller = PerCaller { running: Some(1), queued: Some(2) };
    let [one, two] = place.servers().await;
    let first = send(&one.engine, "sleep:500").await;
    let others = [send(&two.engine, "text").await, send(&one.engine, "text").await];
    assert_eq!((one.begun(), two.begun()), (1, 0));
    let refused = say(&two.engine, &call(), message("text")).await.map(drop).unwrap_err();
    assert_eq!(refused.kind, nuncio_protocol::ErrorKind::TooMany);
    for task in [&first, &others[0], &others[1]] {
        assert_eq!(settled(task).await, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_drains_hands_over_at_once() {
    let mut place = Place::new();
    place.options = EngineOptions { max_running_turns: 1, ..place.options };
    place.on_crash = crate::agent::OnCrash::Retry { max: 1 };
    let one = place.server().await;
    let running = send(&one.engine, "sleep:60000").await;
    let waiting = send(&one.engine, "text").await;
    let two = place.server_with(EngineOptions { max_running_turns: 2, ..place.options.clone() }).await;
    assert_eq!(settled(&waiting).await, TaskState::Completed);
    let began = Instant::now();
    one.engine.drain(Duration::from_secs(1)).await;
    a_while().await;
    assert!(began.elapsed() < Duration::from_secs(2), "long before the lease is over");
    assert_eq!(*two.agent.begun.lock(), ["text", "sleep:60000"]);
    assert!(one.engine.is_idle());
    assert_eq!(settled(&running).await, TaskState::Completed);
}
