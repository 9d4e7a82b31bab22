//! Messages and cancellations for tasks that other nodes run.

use std::time::Duration;

use nuncio_protocol::{ErrorKind, Role, TaskState};

use super::kit::*;
use crate::Call;
use crate::engine::EngineOptions;

#[tokio::test(start_paused = true)]
async fn a_message_reaches_a_turn_on_another_node() {
    let [one, two] = Place::new().servers().await;
    let task = send(&one.engine, "sleep:200 text").await;
    let more = follow_up(&two.engine, task.task_id(), "status").await.unwrap();
    assert_eq!(settled(&more).await, TaskState::Completed);
    assert_eq!(*one.agent.begun.lock(), ["sleep:200 text", "status"]);
    assert_eq!(two.begun(), 0);
    let said = get(&two.engine, task.task_id()).await.history;
    assert_eq!(said.iter().filter(|message| message.role == Role::User).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_from_any_node() {
    let [one, two] = Place::new().servers().await;
    for (script, answer) in [("ask text", "blue"), ("approve", "y")] {
        let task = send(&one.engine, script).await;
        assert_eq!(settled(&task).await, TaskState::InputRequired);
        let answered = follow_up(&two.engine, task.task_id(), answer).await.unwrap();
        assert_eq!(settled(&answered).await, TaskState::Completed);
    }
    assert_eq!((one.begun(), two.begun()), (2, 0), "the turn that asked has gone on");
}

#[tokio::test(start_paused = true)]
async fn a_letter_finds_its_way_without_hints() {
    let [one, two] = Place::new().servers().await;
    two.bus.cut(true);
    let task = send(&one.engine, "ask text").await;
    assert_eq!(settled(&task).await, TaskState::InputRequired);
    let answered = follow_up(&two.engine, task.task_id(), "blue").await.unwrap();
    assert_eq!(settled(&answered).await, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_task_at_rest_goes_on_anywhere() {
    let [one, two] = Place::new().servers().await;
    let task = send(&one.engine, "text input").await;
    assert_eq!(settled(&task).await, TaskState::InputRequired);
    a_while().await;
    let next = follow_up(&two.engine, task.task_id(), "text input").await.unwrap();
    assert_eq!(settled(&next).await, TaskState::InputRequired);
    let last = follow_up(&one.engine, task.task_id(), "complete").await.unwrap();
    assert_eq!(settled(&last).await, TaskState::Completed);
    assert_eq!((one.begun(), two.begun()), (2, 1));
    let over = follow_up(&two.engine, task.task_id(), "text").await;
    assert_eq!(over.map(drop).unwrap_err().kind, ErrorKind::UnsupportedOperation);
}

#[tokio::test(start_paused = true)]
async fn a_message_to_a_task_that_waits_is_kept_for_its_turn() {
    let place = Place::new();
    let [one, two] = place.servers().await;
    let busy = send_in(&one.engine, "c", "sleep:500").await;
    let task = send_in(&two.engine, "c", "text").await;
    let more = follow_up(&one.engine, task.task_id(), "status").await.unwrap();
    assert_eq!(settled(&more).await, TaskState::Completed);
    assert_eq!(settled(&busy).await, TaskState::Completed);
    let mut begun = one.agent.begun.lock().clone();
    begun.extend(two.agent.begun.lock().clone());
    assert_eq!(begun, ["sleep:500", "text", "status"]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_message_is_one_message_on_all_nodes() {
    let [one, two, three] = Place::new().servers().await;
    let keyed = Call { idempotency_key: Some("k".into()), ..call() };
    let (first, second) =
        tokio::join!(say(&one.engine, &keyed, message("sleep:100")), say(&two.engine, &keyed, message("sleep:100")));
    assert_eq!(first.unwrap().task_id(), second.unwrap().task_id());
    let task = send(&one.engine, "sleep:500 text").await;
    let again = |server: &super::kit::Server| {
        let call = Call { idempotency_key: Some("again".into()), ..call() };
        let message = nuncio_protocol::Message { task_id: task.task_id().clone(), ..message("status") };
        let engine = server.engine.clone();
        async move { say(&engine, &call, message).await.unwrap() }
    };
    let (here, there, elsewhere) = tokio::join!(again(&one), again(&two), again(&three));
    for sent in [here, there, elsewhere] {
        assert_eq!(settled(&sent).await, TaskState::Completed);
    }
    assert_eq!(*one.agent.begun.lock(), ["sleep:100", "sleep:500 text", "status"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_canceled_from_any_node() {
    let place = Place::new();
    let [one, two] = place.servers().await;
    for script in ["hold", "hang", "ask", "input"] {
        let task = send(&one.engine, script).await;
        a_while().await;
        let canceled = two.engine.cancel(&call(), task.task_id()).await.unwrap().task().unwrap();
        assert_eq!(canceled.status.state, TaskState::Canceled, "{script}");
        assert_eq!(settled(&task).await, TaskState::Canceled);
        assert_eq!(two.engine.cancel(&call(), task.task_id()).await.unwrap().task().unwrap(), canceled);
    }
    let done = send(&one.engine, "text").await;
    assert_eq!(settled(&done).await, TaskState::Completed);
    assert_eq!(two.engine.cancel(&call(), done.task_id()).await.unwrap_err().kind, ErrorKind::TaskNotCancelable);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(one.engine.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_is_canceled_from_any_node() {
    let mut place = Place::new();
    place.options = EngineOptions { max_running_turns: 1, ..place.options };
    let [one, two] = place.servers().await;
    let held = [send(&one.engine, "hold").await, send(&two.engine, "hold").await];
    let task = send(&one.engine, "text").await;
    two.engine.cancel(&call(), task.task_id()).await.unwrap();
    assert_eq!(settled(&task).await, TaskState::Canceled);
    assert_eq!(states(&*place.store, task.task_id()).await, [TaskState::Submitted, TaskState::Canceled]);
    for (server, task) in [(&two, &held[0]), (&one, &held[1])] {
        server.engine.cancel(&call(), task.task_id()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_question_goes_on_with_its_answer_when_its_node_is_gone() {
    for is_busy in [false, true] {
        let mut place = Place::new();
        place.options = EngineOptions { max_running_turns: 1, ..place.options };
        let [one, two] = place.servers().await;
        let task = send(&one.engine, "sleep:50 approve").await;
        follow_up(&one.engine, task.task_id(), "think").await.unwrap();
        assert_eq!(settled(&task).await, TaskState::InputRequired);
        a_while().await;
        one.die();
        a_lease().await;
        if is_busy {
            send(&two.engine, "sleep:300").await;
        }
        let answered = follow_up(&two.engine, task.task_id(), "y").await.unwrap();
        assert_eq!(settled(&answered).await, TaskState::Completed);
        let begun = two.agent.begun.lock().clone();
        assert_eq!(begun[usize::from(is_busy)..], ["y", "think"], "busy: {is_busy}");
    }
}
