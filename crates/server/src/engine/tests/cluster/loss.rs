//! Nodes that die, stand still or lose the store.

use std::time::Duration;

use nuncio_protocol::{ErrorKind, Message, TaskState};

use tokio_util::sync::CancellationToken;

use super::super::line::Way;
use super::kit::*;
use crate::agent::OnCrash;
use crate::engine::{Close, Over};
use crate::push::PushOptions;
use crate::push::guard::{Guard, Openings};
use crate::store::{Store, TaskKey};

#[tokio::test(start_paused = true)]
async fn what_a_dead_node_ran_ends_as_its_agent_says() {
    for (on_crash, end, begun) in [
        (OnCrash::Fail, TaskState::Failed, 0),
        (OnCrash::Retry { max: 1 }, TaskState::Completed, 2),
        (OnCrash::Resume, TaskState::Completed, 2),
    ] {
        let place = Place { on_crash, ..Place::new() };
        let [one, two, three] = place.servers().await;
        let task = send(&one.engine, "sleep:200 text").await;
        let mut reader =
            three.engine.subscribe(&call_after(Some(0)), task.task_id(), Close::WhenOver, Over::Show).await.unwrap();
        let waits = follow_up(&three.engine, task.task_id(), "y").await.unwrap();
        one.die();
        let seen = read_all(&mut reader).await;
        assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>(), "{on_crash:?}");
        assert_eq!(settled(&waits).await, end, "{on_crash:?}");
        assert_eq!(two.begun() + three.begun(), begun, "{on_crash:?}");
        let last = states(&*place.store, task.task_id()).await;
        assert_eq!(last.iter().filter(|state| is_over(**state)).count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_across_nodes() {
    let place = Place { on_crash: OnCrash::Retry { max: 2 }, ..Place::new() };
    let first = place.server().await;
    let task = send(&first.engine, "hang").await;
    let mut last = first;
    for _ in 0..3 {
        let next = place.server().await;
        a_while().await;
        last.die();
        a_lease().await;
        last = next;
    }
    assert_eq!(get(&last.engine, task.task_id()).await.status.state, TaskState::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_outlives_the_node_that_was_asked() {
    let place = Place { on_crash: OnCrash::Retry { max: 9 }, ..Place::new() };
    let [one, two, three] = place.servers().await;
    let task = send(&one.engine, "hold").await;
    a_while().await;
    one.die();
    let canceled = two.engine.cancel(&call(), task.task_id()).await.unwrap().task().unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(two.begun() + three.begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_outlives_the_node_that_was_to_take_it() {
    for (on_crash, begun) in [(OnCrash::Retry { max: 9 }, vec!["sleep:500", "text"]), (OnCrash::Fail, vec![])] {
        let place = Place { on_crash, ..Place::new() };
        let [one, two] = place.servers().await;
        let task = send(&one.engine, "sleep:500").await;
        a_while().await;
        one.die();
        let sent = follow_up(&two.engine, task.task_id(), "text").await;
        match on_crash {
            OnCrash::Fail => assert!(sent.is_err(), "the task is over"),
            _ => assert_eq!(settled(&sent.unwrap()).await, TaskState::Completed),
        }
        assert_eq!(*two.agent.begun.lock(), begun);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_dead_node_is_answered_by_a_new_turn() {
    let place = Place::new();
    let [one, two] = place.servers().await;
    let task = send_in(&one.engine, "c", "ask").await;
    assert_eq!(settled(&task).await, TaskState::InputRequired);
    one.die();
    a_lease().await;
    let other = send_in(&two.engine, "c", "text").await;
    assert_eq!(settled(&other).await, TaskState::Completed, "the context is free");
    let answered = follow_up(&two.engine, task.task_id(), "text").await.unwrap();
    assert_eq!(settled(&answered).await, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stood_still_writes_nothing_more_and_begins_anew() {
    for way in [Way::Stands, Way::Fails] {
        let place = Place { on_crash: OnCrash::Retry { max: 9 }, ..Place::new() };
        let [one, two] = place.servers().await;
        let task = send(&one.engine, "sleep:100 text sleep:20000 text").await;
        a_while().await;
        let before = one.engine.node();
        one.line.set(way);
        a_lease().await;
        assert!(one.engine.is_idle(), "{way:?}: its turns ended before others took over");
        assert_eq!(two.begun(), 1, "{way:?}");
        one.line.set(Way::Open);
        assert_eq!(settled(&task).await, TaskState::Completed, "{way:?}");
        assert_ne!(one.engine.node(), before);
        let ends = states(&*place.store, task.task_id()).await.into_iter().filter(|state| is_over(*state));
        assert_eq!(ends.count(), 1, "{way:?}");
        assert_eq!(settled(&send(&one.engine, "text").await).await, TaskState::Completed, "{way:?}");
        assert_eq!(place.store.shared().unwrap().nodes().await.unwrap().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_silence_changes_nothing() {
    let place = Place::new();
    let [one, two] = place.servers().await;
    let task = send(&one.engine, "sleep:3000 text").await;
    a_while().await;
    for _ in 0..3 {
        one.line.set(Way::Stands);
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        one.line.set(Way::Open);
        a_while().await;
    }
    assert_eq!(settled(&task).await, TaskState::Completed);
    assert_eq!((one.begun(), two.begun()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_stored_in_the_next_life_of_its_node_is_not_held_on_to() {
    let place = Place { pure: true, ..Place::new() };
    let [one, two] = place.servers().await;
    one.line.set(Way::Stands);
    one.line.slow_down(Duration::from_secs(3));
    let engine = one.engine.clone();
    let sending = tokio::spawn(async move { send(&engine, "hold").await });
    a_lease().await;
    let before = one.engine.node();
    one.line.set(Way::Open);
    let task = sending.await.unwrap();
    assert_ne!(one.engine.node(), before, "it lives again");
    // Long before its turn would be timed out.
    let end = tokio::time::timeout(Duration::from_secs(5), task.settled()).await;
    let end = end.expect("whoever waits here hears how it ends elsewhere").unwrap().task().unwrap();
    assert_eq!(end.status.state, TaskState::Failed);
    a_while().await;
    assert!(one.engine.is_idle() && two.engine.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_alive_begins_nothing_and_keeps_its_places() {
    let place = Place { pure: true, ..Place::new() };
    let [one, two] = place.servers().await;
    one.line.set(Way::Fails);
    a_lease().await;
    for _ in 0..5 {
        let refused = say(&one.engine, &call(), message("hold")).await.map(drop).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        assert!(one.engine.is_idle());
    }
    one.line.set(Way::Open);
    a_lease().await;
    for engine in [&one.engine, &two.engine] {
        assert_eq!(settled(&send(engine, "text").await).await, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_is_lost_is_found_again() {
    let place = Place { on_crash: OnCrash::Retry { max: 9 }, ..Place::new() };
    let [one, two] = place.servers().await;
    let task = send(&one.engine, "sleep:20000 text").await;
    a_while().await;
    two.line.set(Way::Forgets);
    one.die();
    a_lease().await;
    assert_eq!(two.begun(), 0, "its claim is not known here");
    two.line.set(Way::Open);
    let waits = two.engine.subscribe(&call_after(Some(0)), task.task_id(), Close::WhenOver, Over::Show).await;
    read_all(&mut waits.unwrap()).await;
    assert_eq!(get(&two.engine, task.task_id()).await.status.state, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_new_task_whose_answer_is_lost_is_found_by_its_key_and_runs() {
    for pure in [false, true] {
        let place = Place { on_crash: OnCrash::Retry { max: 9 }, pure, ..Place::new() };
        let [one, two] = place.servers().await;
        one.line.set(Way::Forgets);
        say_with_key(&one.engine, message("text")).await.map(drop).unwrap_err();
        one.line.set(Way::Open);
        let again = say_with_key(&two.engine, message("text")).await.unwrap();
        assert_eq!(settled(&again).await, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_message_of_a_task_is_known_again() {
    let place = Place { lag: Duration::from_millis(10), ..Place::new() };
    let [one, two] = place.servers().await;
    let task = send(&one.engine, "ask").await;
    assert_eq!(settled(&task).await, TaskState::InputRequired);
    let last = Message { task_id: task.task_id().clone(), ..message("fail") };
    let (engine, again) = (two.engine.clone(), last.clone());
    let repeated = tokio::spawn(async move { say_with_key(&engine, again).await });
    // It has asked for the key, and asks for the task next.
    tokio::time::sleep(Duration::from_millis(18)).await;
    two.line.set(Way::Stands);
    let said = say_with_key(&one.engine, last).await.unwrap();
    assert!(settled(&said).await.is_terminal());
    two.line.set(Way::Open);
    let repeated = repeated.await.unwrap().expect("it was said, and by whom does not matter");
    assert_eq!(repeated.task_id(), task.task_id());
}

/// However many tasks have news for their webhooks, and whatever the store does, a server that is to end ends.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_keeps_no_server() {
    for way in [Way::Fails, Way::Stands] {
        let mut place = Place::new();
        place.options.push = Some(PushOptions::new(Guard::new(Openings::default()).unwrap()));
        let server = place.server().await;
        let (stop, desk) = (CancellationToken::new(), server.engine.push.clone().unwrap());
        let delivering = tokio::spawn(desk.run(stop.clone()));
        a_while().await;
        server.line.set(way);
        (1..=60).for_each(|task| server.engine.hub.bell().ring(TaskKey(task)));
        a_while().await;
        let ending = async {
            server.engine.drain(Duration::ZERO).await;
            stop.cancel();
            delivering.await.unwrap();
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), ending).await;
        assert!(ended.is_ok(), "{way:?}");
    }
}
