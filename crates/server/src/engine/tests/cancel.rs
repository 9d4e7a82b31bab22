//! Ending a task on request.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::TaskState;

use super::kit::*;
use crate::agent::OnCrash;
use crate::engine::EngineOptions;
use crate::store::MemoryStore;

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_is_canceled_once() {
    let store = Arc::new(MemoryStore::new());
    let options = EngineOptions { max_running_turns: 1, ..options() };
    let engine = engine_with(&Scripted::new(OnCrash::Fail), store.clone(), options);
    let first = send(&engine, "hold").await;
    let second = send(&engine, "text").await;
    a_while().await;
    engine.cancel(&call(), second.task_id()).await.unwrap();
    engine.cancel(&call(), first.task_id()).await.unwrap();
    a_while().await;
    assert!(engine.is_idle());
    assert_eq!(states(&*store, second.task_id()).await, [TaskState::Submitted, TaskState::Canceled]);
}

#[tokio::test(start_paused = true)]
async fn a_task_at_rest_is_canceled() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&Scripted::new(OnCrash::Fail), store.clone());
    let task = send(&engine, "input").await;
    assert_eq!(settled(&task).await, TaskState::InputRequired);
    let canceled = engine.cancel(&call(), task.task_id()).await.unwrap().task().unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(engine.cancel(&call(), task.task_id()).await.unwrap().task().unwrap(), canceled);
    assert_eq!(states(&*store, task.task_id()).await.last(), Some(&TaskState::Canceled));
}

#[tokio::test(start_paused = true)]
async fn a_deaf_agent_is_left_behind() {
    let engine = engine(&Scripted::new(OnCrash::Fail), Arc::new(MemoryStore::new()));
    let task = send(&engine, "hang").await;
    a_while().await;
    let canceled = tokio::time::timeout(Duration::from_secs(3), engine.cancel(&call(), task.task_id())).await;
    assert_eq!(canceled.unwrap().unwrap().task().unwrap().status.state, TaskState::Canceled);
    a_while().await;
    assert!(engine.is_idle());
}
