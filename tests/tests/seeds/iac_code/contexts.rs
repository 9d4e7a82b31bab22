//! Document 000, lines 211 to 230: contexts, ids and states.

use nuncio_tests::{Stage, at_once, follow_up, id, in_context, json, state, words};

use super::{echo, events, params, said, serve};

/// 000:215-216.
#[tokio::test]
async fn a_context_is_made_and_continued() {
    // What the program remembers under the conversation's id.
    let stage = Stage::fake("claude-code", "claude", "profile: iac-code\nstore: memory");
    let first = stage.server.send("hello").await;
    assert!(!first["contextId"].as_str().unwrap().is_empty());
    let second = stage.server.send_params(in_context(&first["contextId"], "hello again")).await;
    assert_eq!(second["contextId"], first["contextId"]);
    assert_ne!(second["id"], first["id"]);
    let third = stage.server.send_params(follow_up(&second, "and again")).await;
    assert_eq!((&third["id"], state(&third)), (&second["id"], "INPUT_REQUIRED"));
    assert_eq!(third["history"].as_array().unwrap().iter().filter(|m| m["role"] == "ROLE_USER").count(), 2);
}

/// 000:217.
#[tokio::test]
async fn a_context_stays_in_its_workspace() {
    let stage = echo("");
    let other = tempfile::tempdir().unwrap();
    let first = stage.server.send("hello").await;
    let mut elsewhere = params("hello", other.path().to_str());
    elsewhere["message"]["contextId"] = first["contextId"].clone();
    let refused = stage.server.send_params(elsewhere).await;
    assert_eq!((state(&refused), words(&refused)), ("FAILED", "A2A context belongs to a different workspace"));
}

/// 000:218-219.
#[tokio::test]
async fn one_message_at_a_time_in_a_context_and_many_beside_it() {
    let server = serve("");
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    let second = server.send_params(in_context(&running["contextId"], "hello")).await;
    assert_eq!((state(&second), words(&second)), ("FAILED", "Task is already working."));
    let same = server.rpc("SendMessage", at_once(follow_up(&running, "hello"))).await;
    assert_eq!(same["error"]["message"], "Task is already working.");
    let elsewhere = server.send("hello").await;
    assert_eq!(state(&elsewhere), "INPUT_REQUIRED");
    assert_eq!(state(&server.task(id(&running)).await), "WORKING", "it was not disturbed");
    server.cancel(id(&running)).await;
    let after = server.send_params(in_context(&running["contextId"], "hello")).await;
    assert_eq!((state(&after), said(&after).as_str()), ("INPUT_REQUIRED", "hello"));
}

/// 000:220: what an idle conversation needs is on disk; its time in memory is a setting.
#[tokio::test]
async fn an_idle_context_can_be_continued() {
    let server = nuncio_tests::Server::configured("profile: iac-code\ncontext-idle-timeout: 1s");
    let first = server.send("hello").await;
    let mut server = server;
    server.kill();
    server.restart();
    let second = server.send_params(in_context(&first["contextId"], "again")).await;
    assert_eq!(state(&second), "INPUT_REQUIRED");
    assert_eq!(said(&server.task(id(&first)).await), "hello", "history is kept");
}

/// 000:221.
#[tokio::test]
async fn ids_are_short_and_plain() {
    let server = serve("");
    let good = [String::from("ctx_1.a:b-C"), "x".repeat(128)];
    for context in &good {
        let task = server.send_params(in_context(&json!(context), "hello")).await;
        assert_eq!(task["contextId"], **context);
    }
    let long = "x".repeat(129);
    for bad in ["a b", "a/b", "ctx-é", "a\nb", long.as_str()] {
        let mut send = params("hello", None);
        send["message"]["contextId"] = json!(bad);
        for (method, params) in [
            ("SendMessage", send),
            ("GetTask", json!({ "id": bad })),
            ("CancelTask", json!({ "id": bad })),
            ("SubscribeToTask", json!({ "id": bad })),
            ("ListTasks", json!({ "contextId": bad })),
        ] {
            let refused = server.rpc(method, params).await;
            assert_eq!(refused["error"]["message"], "Invalid A2A id", "{method} {bad:?}: {refused}");
            assert_eq!(refused["error"]["code"], -32602);
        }
    }
    let empty = server.rpc("GetTask", json!({ "id": "" })).await;
    assert_eq!(empty["error"]["code"], -32602, "{empty}");
}

/// 000:222-230.
#[tokio::test]
async fn the_states_of_a_task() {
    let server = serve("");
    let finished = events(&server, "hello").await;
    let states: Vec<&str> = finished.iter().map(nuncio_tests::SseEvent::state).collect();
    let expected = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"];
    assert_eq!(states, expected);
    let failed = events(&server, "fail on purpose").await;
    assert_eq!(failed.last().unwrap().state(), "TASK_STATE_FAILED");
    // No other end has a name in the document.
    for (text, end) in
        [("reject it", "FAILED"), ("auth please", "FAILED"), ("crash", "FAILED"), ("ask What?", "INPUT_REQUIRED")]
    {
        assert_eq!(state(&server.send(text).await), end, "{text}");
    }
    let running = server.send_async("hold").await;
    assert_eq!(state(&server.cancel(id(&running)).await), "CANCELED");
}
