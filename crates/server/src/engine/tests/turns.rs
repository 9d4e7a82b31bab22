//! What a turn may do, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{Role, StreamResponse, TaskState, codec};

use super::kit::*;
use super::shaky::Shaky;
use crate::agent::OnCrash;
use crate::call::Call;
use crate::engine::{Close, EngineOptions, Manners, Over, PerCaller};
use crate::store::{MemoryStore, Older, Scope, Store};

fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new())
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_agent_gives_up_costs_no_place() {
    let options = EngineOptions { max_running_turns: 1, ..options() };
    let engine = engine_with(&Scripted::new(OnCrash::Fail), memory(), options);
    for _ in 0..3 {
        let task = send(&engine, "askbriefly:10 text").await;
        assert_eq!(settled(&task).await, TaskState::InputRequired);
        a_while().await;
        assert_eq!(get(&engine, task.task_id()).await.status.state, TaskState::Completed);
        assert!(engine.is_idle());
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_a_question_is_no_answer() {
    let engine = engine(&Scripted::new(OnCrash::Fail), memory());
    let task = send(&engine, "sleep:50 approve").await;
    let early = follow_up(&engine, task.task_id(), "y").await.unwrap();
    assert_eq!(settled(&early).await, TaskState::InputRequired);
    a_while().await;
    assert_eq!(get(&engine, task.task_id()).await.status.state, TaskState::InputRequired);
    let late = follow_up(&engine, task.task_id(), "n").await.unwrap();
    assert_eq!(settled(&late).await, TaskState::Completed);
    let artifacts = get(&engine, task.task_id()).await.artifacts;
    assert_eq!(artifacts[0].parts[0].as_text(), Some("Denied"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_an_answer_leaves_the_task_waiting() {
    let engine = engine(&Scripted::new(OnCrash::Fail), memory());
    for script in ["unanswered", "ask", "askbriefly:10 status unanswered"] {
        let task = send(&engine, script).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(get(&engine, task.task_id()).await.status.state, TaskState::InputRequired, "{script}");
        assert!(engine.is_idle());
        let answer = follow_up(&engine, task.task_id(), "text").await.unwrap();
        assert_eq!(settled(&answer).await, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_time_spent_waiting_does_not_count() {
    let options = EngineOptions { approval_timeout: Duration::from_secs(500), ..options() };
    let engine = engine_with(&Scripted::new(OnCrash::Fail), memory(), options);
    tend(&engine);
    for (script, state) in [
        ("ask sleep:40000", TaskState::Completed),
        ("sleep:40000 ask sleep:40000", TaskState::Failed),
        ("sleep:70000", TaskState::Failed),
    ] {
        let task = send(&engine, script).await;
        tokio::time::sleep(Duration::from_secs(200)).await;
        if script.contains("ask") {
            let answer = follow_up(&engine, task.task_id(), "yes").await.unwrap();
            assert_eq!(settled(&answer).await, state, "{script}");
        } else {
            assert_eq!(get(&engine, task.task_id()).await.status.state, state, "{script}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_message_is_answered_with_an_artifact_of_its_own() {
    let engine = engine(&Scripted::new(OnCrash::Fail), memory());
    let task = send(&engine, "sleep:50 text last").await;
    let more = follow_up(&engine, task.task_id(), "last").await.unwrap();
    assert_eq!(settled(&more).await, TaskState::Completed);
    let task = get(&engine, task.task_id()).await;
    assert_eq!(task.artifacts.iter().map(|artifact| artifact.parts.len()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(task.history.iter().filter(|message| message.role == Role::User).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_question_is_not_stored_ends_at_once() {
    let store = Shaky::start(memory(), Duration::from_millis(5));
    let engine = engine(&Scripted::new(OnCrash::Fail), store.clone());
    let task = send_in(&engine, "c", "sleep:50 ask").await;
    tokio::time::sleep(Duration::from_millis(52)).await;
    store.fill_up(1);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(task.settled().await.is_err());
    let began = tokio::time::Instant::now();
    assert_eq!(settled(&send_in(&engine, "c", "text").await).await, TaskState::Completed);
    assert!(began.elapsed() < Duration::from_secs(1), "the context is free for others");
    a_while().await;
    assert!(engine.is_idle());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_works_in_vain_is_told() {
    let store = Shaky::start(memory(), Duration::from_millis(5));
    let engine = engine(&Scripted::new(OnCrash::Fail), store.clone());
    for script in ["hold", "hang"] {
        let task = send(&engine, script).await;
        a_while().await;
        store.fill_up(1);
        assert!(follow_up(&engine, task.task_id(), "y").await.is_err());
        assert!(task.settled().await.is_err());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(engine.is_idle(), "{script}");
    }
}

/// What is old by the clock on the wall is removed when the engine looks next.
async fn grow_old() {
    std::thread::sleep(Duration::from_millis(20));
    tokio::time::sleep(Duration::from_secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn what_rests_goes_where_that_is_an_end() {
    for rest_is_over in [false, true] {
        let manners = Manners { rest_is_over, ..Manners::default() };
        let options = EngineOptions { manners, retention: Duration::from_millis(1), ..options() };
        let engine = engine_with(&Scripted::new(OnCrash::Fail), memory(), options);
        tend(&engine);
        let mut ids = Vec::new();
        for script in ["input", "ask text"] {
            let task = send(&engine, script).await;
            assert_eq!(settled(&task).await, TaskState::InputRequired);
            ids.push(task.task_id().clone());
        }
        grow_old().await;
        assert_eq!(engine.get(&call(), &ids[0]).await.is_err(), rest_is_over);
        // A turn that waits for its answer gets it.
        let answer = follow_up(&engine, &ids[1], "yes").await.unwrap();
        assert_eq!(settled(&answer).await, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_outlives_what_is_removed_early() {
    let options = EngineOptions { retention: Duration::from_millis(1), ..options() };
    let engine = engine_with(&Scripted::new(OnCrash::Fail), memory(), options);
    tend(&engine);
    let call = Call { idempotency_key: Some("pay".into()), ..call() };
    let first = say(&engine, &call, message("hold")).await.unwrap();
    grow_old().await;
    let again = say(&engine, &call, message("hold")).await.unwrap();
    assert_eq!(first.task_id(), again.task_id());
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_a_task_that_is_removed_hears_it() {
    let store = memory();
    let engine = engine(&Scripted::new(OnCrash::Fail), store.clone());
    let task = send(&engine, "burst:600").await;
    assert_eq!(settled(&task).await, TaskState::Completed);
    let mut readers = Vec::new();
    for call in [call_after(Some(0)), call_after(Some(5))] {
        readers.push(engine.subscribe(&call, task.task_id(), Close::WhenOver, Over::Show).await.unwrap());
    }
    store.trim(Older::than(i64::MAX), 10).await.unwrap();
    for mut reader in readers {
        assert!(reader.next(&mut Vec::new()).await.is_err());
    }
}

#[tokio::test]
async fn events_in_a_rush_are_read_together_and_a_first_one_at_once() {
    let engine = engine(&Scripted::new(OnCrash::Fail), memory());
    let script = format!("sleep:50 text sleep:50 {}", "text yield ".repeat(100));
    let task = send(&engine, &script).await;
    let mut reader = engine.subscribe(&call(), task.task_id(), Close::WhenOver, Over::Show).await.unwrap();
    let (mut batches, mut batch) = (Vec::new(), Vec::new());
    while reader.next(&mut batch).await.unwrap() {
        batches.push(batch.drain(..).map(|event| event.seq).collect::<Vec<_>>());
    }
    let all: Vec<u64> = batches.concat();
    assert!(all.is_sorted() && all.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{all:?}");
    assert!(
        batches[..2].iter().all(|batch| batch.len() == 1),
        "what comes after a pause waits for nothing: {batches:?}"
    );
    assert!(batches.len() < all.len() / 2, "{} at {} times", all.len(), batches.len());
}

#[tokio::test(start_paused = true)]
async fn the_tree_of_an_answer_is_what_its_json_says() {
    let engine = engine(&Scripted::new(OnCrash::Fail), memory());
    let task = send(&engine, "approve").await;
    let asked = task.settled().await.unwrap();
    assert_eq!(task.tree(&asked).unwrap(), asked.task().unwrap());
    let trimmed = asked.clone().with_history(Some(0)).unwrap();
    assert!(task.tree(&trimmed).unwrap().history.is_empty());
    let answer = follow_up(&engine, task.task_id(), "y").await.unwrap();
    assert_eq!(settled(&answer).await, TaskState::Completed);
    assert_eq!(task.tree(&asked).unwrap().status.state, TaskState::InputRequired, "the task has moved on");
    let ended = answer.settled().await.unwrap();
    assert_eq!(answer.tree(&ended).unwrap(), ended.task().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_streamed_follow_up_shows_all_of_its_turn_however_late_it_is_read() {
    let engine = engine(&Scripted::new(OnCrash::Fail), memory());
    let task = send(&engine, "text ask status text").await;
    settled(&task).await;
    let answer = follow_up(&engine, task.task_id(), "yes").await.unwrap();
    assert_eq!(settled(&answer).await, TaskState::Completed);
    let mut stream = answer.stream(None).await.unwrap();
    let (first, mut events, mut batch) = (stream.first_seq(), Vec::new(), Vec::new());
    while stream.next(&mut batch).await.unwrap() {
        events.append(&mut batch);
    }
    let row = engine.store().task(&Scope::default(), task.task_id()).await.unwrap().unwrap();
    let all = engine.store().events(row.key, first, 99, usize::MAX).await.unwrap();
    assert!(all.len() >= 3, "{all:?}");
    assert!(events[1..].iter().map(|event| event.seq).eq(all.iter().map(|event| event.seq)));
    // The task as it was: with the answer, without what came of it.
    let shown: StreamResponse = codec::decode(&events[0].body).unwrap();
    let StreamResponse::Task(shown) = shown else { panic!("{shown:?}") };
    assert!(!shown.status.state.is_terminal());
    assert_eq!(shown.history.last().unwrap().text(), "yes");
    assert_eq!(shown.artifacts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_finds_a_task_before_its_sender_hears_of_it_reads_all_of_it() {
    let store = Shaky::start(memory(), Duration::from_secs(1));
    let engine = engine(&Scripted::new(OnCrash::Fail), store.clone());
    let sender = tokio::spawn({
        let engine = engine.clone();
        async move { settled(&send(&engine, "sleep:5000 text").await).await }
    });
    // It is stored, and the answer is on its way.
    tokio::time::sleep(Duration::from_millis(1250)).await;
    let row = store.abandoned("another", 1).await.unwrap().remove(0);
    let mut reader = engine.subscribe(&call(), &row.id, Close::WhenOver, Over::Show).await.unwrap();
    let (mut events, mut batch) = (Vec::new(), Vec::new());
    let read = async {
        while reader.next(&mut batch).await.unwrap() {
            events.append(&mut batch);
        }
    };
    tokio::time::timeout(Duration::from_secs(60), read).await.expect("the stream ends");
    assert_eq!(sender.await.unwrap(), TaskState::Completed);
    let last = store.task_by_key(row.key).await.unwrap().unwrap().seq;
    assert_eq!(events.last().unwrap().seq, last);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_messages_wait_for_a_working_task() {
    let per_caller = PerCaller { queued: Some(3), ..PerCaller::default() };
    for options in [
        EngineOptions { max_history: 4, ..options() },
        EngineOptions { max_queued_turns: 3, ..options() },
        EngineOptions { per_caller, ..options() },
    ] {
        let engine = engine_with(&Scripted::new(OnCrash::Fail), memory(), options);
        let task = send(&engine, "sleep:1000").await;
        a_while().await;
        for _ in 0..3 {
            follow_up(&engine, task.task_id(), "text").await.unwrap();
        }
        assert!(follow_up(&engine, task.task_id(), "text").await.is_err());
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(get(&engine, task.task_id()).await.history.len(), 4);
    }
}
