//! What a crash, a full disk or another node leave behind.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::{ContextId, TaskId, TaskState};

use super::kit::*;
use super::shaky::Shaky;
use crate::agent::OnCrash;
use crate::engine::{Engine, EngineOptions, Manners};
use crate::present::Style;
use crate::store::{Lease, MemoryStore, NewTask, Scope, State, Store};

fn one_at_a_time() -> EngineOptions {
    EngineOptions { max_running_turns: 1, ..options() }
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_end_found_no_space_is_taken_up_again() {
    for (on_crash, end) in [
        (OnCrash::Fail, TaskState::Failed),
        (OnCrash::Retry { max: 1 }, TaskState::Completed),
        (OnCrash::Resume, TaskState::Completed),
    ] {
        let store = Shaky::start(Arc::new(MemoryStore::new()), Duration::from_millis(5));
        let engine = engine(&Scripted::new(on_crash), store.clone());
        tend(&engine);
        let task = send(&engine, "sleep:50 text").await;
        a_while().await;
        let task = match get(&engine, task.task_id()).await.status.state {
            TaskState::Completed => send(&engine, "sleep:50 text").await,
            state => panic!("{state:?}"),
        };
        tokio::time::sleep(Duration::from_millis(30)).await;
        store.fill_up(1);
        assert!(task.settled().await.is_err(), "the sender hears that it was not stored");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(get(&engine, task.task_id()).await.status.state, end);
        assert!(engine.is_idle());
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_survives_any_number_of_crashes() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let first = engine_with(&Scripted::new(OnCrash::Fail), store.clone(), one_at_a_time());
    send(&first, "hang").await;
    let task = send(&first, "text").await;
    follow_up(&first, task.task_id(), "status").await.unwrap();
    for _ in 0..3 {
        let next = engine_with(&Scripted::new(OnCrash::Fail), store.clone(), one_at_a_time());
        send(&next, "hang").await;
        next.recover().await.unwrap();
        a_while().await;
        assert_eq!(get(&next, task.task_id()).await.status.state, TaskState::Submitted);
    }
    let agent = Scripted::new(OnCrash::Fail);
    let last = engine(&agent, store.clone());
    last.recover().await.unwrap();
    a_while().await;
    assert_eq!(get(&last, task.task_id()).await.status.state, TaskState::Completed);
    assert_eq!(*agent.begun.lock(), ["text", "status"], "every message that waited has its turn");
}

#[tokio::test(start_paused = true)]
async fn a_next_turn_that_waits_survives_a_crash() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let first = engine_with(&Scripted::new(OnCrash::Fail), store.clone(), one_at_a_time());
    let task = send(&first, "status input").await;
    assert_eq!(settled(&task).await, TaskState::InputRequired);
    a_while().await;
    send(&first, "hang").await;
    follow_up(&first, task.task_id(), "text").await.unwrap();
    let agent = Scripted::new(OnCrash::Fail);
    let next = engine(&agent, store);
    next.recover().await.unwrap();
    a_while().await;
    assert_eq!(get(&next, task.task_id()).await.status.state, TaskState::Completed);
    assert_eq!(*agent.begun.lock(), ["text"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_is_retried_so_often_and_no_more() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let on_crash = OnCrash::Retry { max: 2 };
    let first = engine(&Scripted::new(on_crash), store.clone());
    let task = send(&first, "hang").await;
    a_while().await;
    for attempt in 1..=3 {
        let agent = Scripted::new(on_crash);
        let next = engine(&agent, store.clone());
        next.recover().await.unwrap();
        a_while().await;
        assert_eq!(agent.begun.lock().len(), usize::from(attempt <= 2));
    }
    assert_eq!(states(&*store, task.task_id()).await.last(), Some(&TaskState::Failed));
}

#[tokio::test(start_paused = true)]
async fn a_long_line_is_taken_up_whole() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let line = EngineOptions { max_queued_turns: 1_000, ..one_at_a_time() };
    let first = engine_with(&Scripted::new(OnCrash::Fail), store.clone(), line.clone());
    send(&first, "hang").await;
    for _ in 0..700 {
        send(&first, "text").await;
    }
    let agent = Scripted::new(OnCrash::Fail);
    let next = engine_with(&agent, store, line);
    send(&next, "sleep:50").await;
    assert_eq!(next.recover().await.unwrap(), 701);
    assert_eq!(next.load(), (1, 700));
    assert_eq!(next.recover().await.unwrap(), 0, "once");
    a_while().await;
    assert!(next.is_idle());
    assert_eq!(agent.begun.lock().len(), 701);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_read_is_not_in_the_way_of_others() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let damaged = NewTask {
        scope: Scope::default(),
        id: TaskId::from("damaged"),
        context_id: ContextId::from("c"),
        agent: "agent".into(),
        state: State(TaskState::Submitted.number()),
        body: Bytes::from("no JSON"),
        at: 1,
        lease: Lease { node: "dead".into() },
        key: None,
        push: None,
        early: Vec::new(),
    };
    store.create(damaged).await.unwrap();
    let first = engine(&Scripted::new(OnCrash::Fail), store.clone());
    let task = send(&first, "hang").await;
    a_while().await;
    let next = engine(&Scripted::new(OnCrash::Fail), store);
    assert_eq!(next.recover().await.unwrap(), 1);
    assert_eq!(get(&next, task.task_id()).await.status.state, TaskState::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_task_on_its_way_into_the_line_is_not_taken_up_as_well() {
    let store = Shaky::start(Arc::new(MemoryStore::new()), Duration::from_millis(20));
    let agent = Scripted::new(OnCrash::Fail);
    let engine = engine_with(&agent, store, one_at_a_time());
    send(&engine, "sleep:1000").await;
    let looking = tokio::spawn({
        let engine = engine.clone();
        async move {
            for _ in 0..900 {
                assert_eq!(engine.recover().await.unwrap(), 0);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let mut tasks = Vec::new();
    for _ in 0..20 {
        tasks.push(send(&engine, "text").await);
    }
    looking.await.unwrap();
    for task in tasks {
        assert_eq!(settled(&task).await, TaskState::Completed);
    }
    assert_eq!(agent.begun.lock().len(), 21, "every turn once");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_task_that_another_node_takes_hears_it() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let engine = engine_with(&Scripted::new(OnCrash::Fail), store.clone(), one_at_a_time());
    let working = send(&engine, "sleep:200 text").await;
    let waiting = send(&engine, "text").await;
    for task in [&working, &waiting] {
        let row = store.task(&Scope::default(), task.task_id()).await.unwrap().unwrap();
        let lease = Lease { node: "other".into() };
        store.claim(row.key, row.epoch, lease, false).await.unwrap().taken().unwrap();
    }
    let before = states(&*store, working.task_id()).await;
    assert!(working.settled().await.is_err());
    assert!(waiting.settled().await.is_err());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(engine.is_idle());
    assert_eq!(states(&*store, working.task_id()).await, before, "nothing is written under an old lease");
}

#[tokio::test(start_paused = true)]
async fn what_was_said_to_a_working_task_has_its_turn_after_a_crash() {
    for on_crash in [OnCrash::Resume, OnCrash::Retry { max: 3 }] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let first = engine(&Scripted::new(on_crash), store.clone());
        let task = send(&first, "sleep:50 text").await;
        for script in ["status sleep:1000", "think", "usage"] {
            follow_up(&first, task.task_id(), script).await.unwrap();
        }
        a_while().await;
        // The second message is being worked on.
        let agent = Scripted::new(on_crash);
        let next = engine(&agent, store.clone());
        next.recover().await.unwrap();
        a_while().await;
        assert_eq!(*agent.begun.lock(), ["status sleep:1000"], "{on_crash:?}: what was done is not done again");
        // Another crash, in the middle of the turn that was taken up again.
        let agent = Scripted::new(on_crash);
        let last = engine(&agent, store);
        last.recover().await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(*agent.begun.lock(), ["status sleep:1000", "think", "usage"], "{on_crash:?}");
        assert_eq!(get(&last, task.task_id()).await.status.state, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_without_words_is_not_asked_again() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let manners = Manners { style: Style::IacCode, ..Manners::default() };
    let options = || EngineOptions { manners, ..one_at_a_time() };
    let first = engine_with(&Scripted::new(OnCrash::Fail), store.clone(), options());
    let task = send(&first, "artifact:1").await;
    assert_eq!(settled(&task).await, TaskState::InputRequired);
    a_while().await;
    send(&first, "hang").await;
    follow_up(&first, task.task_id(), "artifact:2").await.unwrap();
    let agent = Scripted::new(OnCrash::Fail);
    let next = engine_with(&agent, store, EngineOptions { max_running_turns: 2, ..options() });
    next.recover().await.unwrap();
    a_while().await;
    assert_eq!(*agent.begun.lock(), ["artifact:2"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_for_a_turn_that_was_broken_off_waits_for_it() {
    for (on_crash, end) in [(OnCrash::Fail, TaskState::Failed), (OnCrash::Retry { max: 1 }, TaskState::Completed)] {
        let store = Shaky::start(Arc::new(MemoryStore::new()), Duration::from_millis(5));
        let agent = Scripted::new(on_crash);
        let engine = engine(&agent, store.clone());
        let task = send(&engine, "sleep:50 text").await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        store.fill_up(1);
        assert!(task.settled().await.is_err(), "the sender hears that it was not stored");
        a_while().await;
        let more = follow_up(&engine, task.task_id(), "status").await;
        a_while().await;
        let end_now = get(&engine, task.task_id()).await.status.state;
        assert_eq!((end_now, more.is_ok()), (end, on_crash != OnCrash::Fail));
        let begun = agent.begun.lock().clone();
        let expected: &[&str] =
            if more.is_ok() { &["sleep:50 text", "sleep:50 text", "status"] } else { &["sleep:50 text"] };
        assert_eq!(begun, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_question_has_its_turn_after_any_number_of_crashes() {
    for crashes in 1..=3 {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let first = engine(&Scripted::new(OnCrash::Fail), store.clone());
        let task = send(&first, "sleep:50 approve").await;
        for script in ["think", "usage"] {
            follow_up(&first, task.task_id(), script).await.unwrap();
        }
        assert_eq!(settled(&task).await, TaskState::InputRequired);
        a_while().await;
        // The answer finds no place, and the next server begins with it.
        for crash in 1..crashes {
            let busy = engine_with(&Scripted::new(OnCrash::Fail), store.clone(), one_at_a_time());
            send(&busy, "hang").await;
            busy.recover().await.unwrap();
            if crash == 1 {
                follow_up(&busy, task.task_id(), "y").await.unwrap();
                follow_up(&busy, task.task_id(), "artifact").await.unwrap();
            }
            a_while().await;
            assert_eq!(get(&busy, task.task_id()).await.status.state, TaskState::Submitted);
        }
        let agent = Scripted::new(OnCrash::Fail);
        let last = engine(&agent, store);
        last.recover().await.unwrap();
        if crashes == 1 {
            follow_up(&last, task.task_id(), "y").await.unwrap();
            follow_up(&last, task.task_id(), "artifact").await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(get(&last, task.task_id()).await.status.state, TaskState::Completed);
        assert_eq!(*agent.begun.lock(), ["y", "think", "usage", "artifact"], "{crashes} crashes");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_before_a_task_came_to_rest_is_not_taken_again() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let first = engine(&Scripted::new(OnCrash::Fail), store.clone());
    let task = send(&first, "sleep:50 text").await;
    follow_up(&first, task.task_id(), "ask input").await.unwrap();
    first_rest(&first, task.task_id()).await;
    follow_up(&first, task.task_id(), "blue").await.unwrap();
    first_rest(&first, task.task_id()).await;
    let agent = Scripted::new(OnCrash::Fail);
    let next = engine(&agent, store);
    next.recover().await.unwrap();
    let last = follow_up(&next, task.task_id(), "text").await.unwrap();
    assert_eq!(settled(&last).await, TaskState::Completed);
    assert_eq!(*agent.begun.lock(), ["text"]);
}

async fn first_rest(engine: &Arc<Engine>, task: &TaskId) {
    a_while().await;
    assert_eq!(get(engine, task).await.status.state, TaskState::InputRequired);
}
