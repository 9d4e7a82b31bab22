//! How conversations go on, and how they end.

use std::time::Duration;

use nuncio_tests::{Random, at_once, id, in_context, is_over, json, message, state, texts, words};

use super::{answer_with, finals, said, stage};

#[tokio::test]
async fn a_conversation_keeps_its_agent_and_others_have_their_own() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let first = server.send("remember the number 1").await;
    let one = stage.processes();
    let second = server.send("remember the number 2").await;
    assert_eq!(stage.processes().len(), 2);
    let in_first = in_context(&first["contextId"], "recall");
    let in_second = in_context(&second["contextId"], "recall");
    let (in_first, in_second) = tokio::join!(server.send_params(in_first), server.send_params(in_second));
    assert_eq!((said(&in_first), said(&in_second)), ("number 1 of 2".into(), "number 2 of 2".into()));
    assert!(one.iter().all(|pid| stage.processes().contains(pid)), "the same program answered again");
    assert_eq!(stage.processes().len(), 2);
}

#[tokio::test]
async fn two_conversations_work_at_once_and_one_alone_is_canceled() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let (slow, other) = (server.send_params(at_once(message("slow"))).await, server.send("permission").await);
    let done = answer_with(server, &other, "y").await;
    assert_eq!(said(&done), "chose yes");
    assert_eq!(state(&server.task(id(&slow)).await), "WORKING");
    assert_eq!(state(&server.cancel(id(&slow)).await), "CANCELED");
    // Both agents are there for the next turn of their conversations.
    for task in [&slow, &done] {
        let next = server.send_params(in_context(&task["contextId"], "hello")).await;
        assert_eq!(said(&next), "echo hello");
    }
    assert_eq!(stage.processes().len(), 2);
}

#[tokio::test]
async fn an_idle_agent_is_released_and_remembers_when_it_is_back() {
    for kind in ["", "resumes"] {
        let stage = stage(kind, "store: memory\ncontext-idle-timeout: 100ms");
        let server = &stage.server;
        let first = server.send("remember the number 5").await;
        stage.until_idle().await;
        let recall = server.send_params(in_context(&first["contextId"], "recall")).await;
        // What the agent tells of the past when it loads is not told again.
        assert_eq!(said(&recall), "number 5 of 2", "{kind}: {recall}");
        stage.until_idle().await;
    }
    let forgets = stage("forgets", "store: memory\ncontext-idle-timeout: 100ms");
    let server = &forgets.server;
    let first = server.send("remember the number 5").await;
    forgets.until_idle().await;
    let recall = server.send_params(in_context(&first["contextId"], "recall")).await;
    assert_eq!(said(&recall), "number None of 1");
    let told = super::status_texts(&server.log(id(&recall)).await);
    assert!(told.iter().any(|text| text.contains("begins a new one")), "{told:?}");
}

#[tokio::test]
async fn conversations_go_on_after_a_restart() {
    for hard in [false, true] {
        let mut stage = stage("", "");
        let first = stage.server.send("remember the number 7").await;
        let asked = stage.server.send("permission").await;
        let slow = stage.server.send_params(at_once(in_context(&first["contextId"], "slow"))).await;
        stage.server.until(id(&slow), "WORKING").await;
        let before = stage.processes();
        assert!(!before.is_empty());
        if hard {
            stage.server.kill();
            stage.server.restart();
            let after = stage.processes();
            assert!(before.iter().all(|pid| !after.contains(pid)), "{before:?} {after:?}");
            // The agent is told to go on where it was.
            let over = stage.server.until(id(&slow), "COMPLETED").await;
            let told = said(&over);
            assert!(told.contains("echo Continue where you were interrupted."), "{over}");
            assert!(told.ends_with("slow"), "and what it was asked to do, which it may not have read: {over}");
        } else {
            assert_eq!(state(&stage.server.cancel(id(&slow)).await), "CANCELED");
            stage.server.terminate();
            stage.until_idle().await;
            stage.server.restart();
        }
        let server = &stage.server;
        let recall = server.send_params(in_context(&first["contextId"], "recall")).await;
        assert!(said(&recall).starts_with("number 7 of "), "{recall}");
        // A decision that comes after the restart is told in words.
        let decided = answer_with(server, &server.task(id(&asked)).await, "y").await;
        assert!(said(&decided).ends_with("is approved. Go on."), "{decided}");
    }
}

#[tokio::test]
async fn a_cancel_answers_what_was_asked_and_ends_what_does_not_listen() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let asked = server.send("permission").await;
    assert_eq!(state(&server.cancel(id(&asked)).await), "CANCELED");
    assert_eq!(finals(&server.log(id(&asked)).await), ["TASK_STATE_CANCELED"]);
    // It was told so, and is ready for the next turn.
    let next = server.send_params(in_context(&asked["contextId"], "hello")).await;
    assert_eq!(said(&next), "echo hello");
    assert_eq!(stage.processes().len(), 1);

    let deaf = super::stage("deaf", "store: memory\ncancel-grace: 600ms");
    let task = deaf.server.send_params(at_once(message("slow"))).await;
    deaf.server.until(id(&task), "WORKING").await;
    assert_eq!(state(&deaf.server.cancel(id(&task)).await), "CANCELED");
    deaf.until_idle().await;
    assert_eq!(finals(&deaf.server.log(id(&task)).await), ["TASK_STATE_CANCELED"]);
}

#[tokio::test]
async fn fifty_cancels_at_any_moment_end_once_and_leave_nothing() {
    let stage = stage("", "store: memory\ncancel-grace: 1s\ncontext-idle-timeout: 100ms");
    let server = &stage.server;
    let mut random = Random::new();
    let texts = ["slow", "permission", "leave", "run sleep 60", "form", "tools"];
    for round in 0..10 {
        let mut tasks = Vec::new();
        for _ in 0..5 {
            let text = texts[usize::try_from(random.below(texts.len() as u64)).unwrap()];
            tasks.push(server.send_params(at_once(message(text))).await);
        }
        tokio::time::sleep(Duration::from_millis(random.below(400))).await;
        let cancel = |n: usize| server.rpc("CancelTask", json!({ "id": id(&tasks[n]) }));
        let answers = tokio::join!(cancel(0), cancel(1), cancel(2), cancel(3), cancel(4));
        for answer in [answers.0, answers.1, answers.2, answers.3, answers.4] {
            assert!(answer["result"].is_object() || answer["error"]["code"] == -32002, "round {round}: {answer}");
        }
        for task in &tasks {
            let over = server.task(id(task)).await;
            assert!(is_over(&over), "round {round}: {over}");
            let finals = finals(&server.log(id(task)).await);
            assert_eq!(finals.len(), 1, "round {round}: {finals:?} {}", words(&over));
        }
    }
    stage.until_idle().await;
}

#[tokio::test]
async fn what_is_said_while_the_agent_starts_is_told_to_it_once() {
    let stage = stage("late", "store: memory");
    let server = &stage.server;
    let task = server.send_params(at_once(message("one"))).await;
    stage.until_busy().await;
    server.send_params(at_once(nuncio_tests::follow_up(&task, "two"))).await;
    std::fs::write(stage.workspace.path().join("ready"), "").unwrap();
    let done = server.until(id(&task), "COMPLETED").await;
    assert_eq!(texts(&done), ["echo one", "echo two"], "{done}");
}
