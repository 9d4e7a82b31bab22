//! Lines 9 to 40 and 49 to 54: send, get, cancel.

use nuncio_tests::json;

use super::{call, sent, serve, stream};

#[tokio::test]
async fn message_send_returns_the_whole_task_with_its_bill() {
    let server = serve();
    let params = json!({
        "message": { "role": "user", "parts": [{ "text": "usage" }] },
        "metadata": { "skill": "summarize_pr" },
    });
    let task = call(&server, "message/send", params).await["result"].clone();
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")));
    for key in ["id", "contextId"] {
        assert!(task[key].as_str().is_some_and(|id| !id.is_empty()), "{key}");
    }
    assert_eq!(task["data"]["usage"], json!({ "input_tokens": 12, "output_tokens": 34, "total_tokens": 46 }));
    assert!(task["data"]["durationMs"].is_u64(), "{task}");
    let parts = &task["artifacts"][0]["parts"];
    assert_eq!(parts[0], json!({ "kind": "text", "text": "12 tokens in, 34 out" }));
    assert_eq!(parts[1]["metadata"]["mimeType"], "application/vnd.protolabs.cost-v1+json");
    assert_eq!(parts[1]["data"]["usage"]["total_tokens"], 46);
}

#[tokio::test]
async fn an_agent_without_a_bill_has_no_usage_but_took_its_time() {
    let task = sent(&serve(), "summarize https://example.com").await;
    assert_eq!(task["artifacts"][0]["parts"], json!([{ "kind": "text", "text": "summarize https://example.com" }]));
    assert_eq!(task["data"].get("usage"), None);
    assert!(task["data"]["durationMs"].is_u64());
}

#[tokio::test]
async fn a_conversation_is_named_in_the_message_or_beside_it() {
    let server = serve();
    let mut beside = super::message("hello");
    beside["contextId"] = "ctx-1".into();
    assert_eq!(call(&server, "message/send", beside).await["result"]["contextId"], "ctx-1");
    let mut inside = super::message("hello");
    inside["message"]["contextId"] = "ctx-2".into();
    assert_eq!(call(&server, "message/send", inside).await["result"]["contextId"], "ctx-2");
}

#[tokio::test]
async fn tasks_get_returns_the_current_state() {
    let server = serve();
    let mut stream = stream(&server, "message/stream", super::message("hold")).await;
    let task = stream.next().await.unwrap().body()["id"].clone();
    stream.until("working").await;
    let found = call(&server, "tasks/get", json!({ "id": task })).await["result"].clone();
    assert_eq!((&found["kind"], &found["id"], &found["status"]["state"]), (&json!("task"), &task, &json!("working")));
    let canceled = call(&server, "tasks/cancel", json!({ "id": task })).await["result"].clone();
    assert_eq!((&canceled["kind"], &canceled["status"]["state"]), (&json!("task"), &json!("canceled")));
    let again = call(&server, "tasks/cancel", json!({ "id": task })).await["result"].clone();
    assert_eq!(again, canceled, "nothing happens to a task that is over");
    let done = sent(&server, "hello").await;
    assert_eq!(call(&server, "tasks/cancel", json!({ "id": done["id"] })).await["result"]["status"], done["status"]);
}

#[tokio::test]
async fn a_question_comes_as_words_and_as_a_form_and_is_answered_on_its_task() {
    let server = serve();
    for (text, form) in [
        ("ask Which colour?", json!({ "question": "Which colour?" })),
        ("approve rm -rf build", json!({ "kind": "approval", "title": "rm -rf build", "detail": "" })),
    ] {
        let asked = sent(&server, text).await;
        assert_eq!(asked["status"]["state"], "input-required");
        let parts = &asked["status"]["message"]["parts"];
        assert_eq!(parts[0]["kind"], "text");
        assert_eq!(parts[1]["data"], form);
        assert_eq!(parts[1]["metadata"]["mimeType"], "application/vnd.protolabs.hitl-v1+json");
        let mut answer = super::message("yes");
        answer["message"]["taskId"] = asked["id"].clone();
        let done = call(&server, "message/send", answer).await["result"].clone();
        assert_eq!((&done["id"], &done["status"]["state"]), (&asked["id"], &json!("completed")));
    }
}

#[tokio::test]
async fn a_question_outlives_a_restart() {
    let mut server = nuncio_tests::Server::configured("profile: proto-agent");
    let asked = sent(&server, "ask Which colour?").await;
    server.kill();
    server.restart();
    let mut answer = super::message("blue");
    answer["message"]["taskId"] = asked["id"].clone();
    let done = call(&server, "message/send", answer).await["result"].clone();
    assert_eq!((&done["id"], &done["status"]["state"]), (&asked["id"], &json!("completed")), "{done}");
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "blue");
}

#[tokio::test]
async fn thinking_without_a_pause_is_one_entry_of_the_history() {
    let lines = r#"echo '{"type":"thread.started","thread_id":"t"}'; i=0; while [ $i -lt 50 ]; do
        echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"r$i\",\"type\":\"reasoning\",\"text\":\"word$i\"}}";
        i=$((i+1)); done; echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'"#;
    let more = "profile: proto-agent\nstore: memory\nthinking-exposure: [raw-thinking, tool-trace]";
    let stage = nuncio_tests::Stage::new("codex-exec", &json!(["sh", "-c", lines]), more);
    let task = sent(&stage.server, "go").await;
    assert_eq!(task["status"]["state"], "completed", "{task}");
    let history = task["history"].as_array().unwrap();
    let thoughts: Vec<_> = history.iter().filter(|message| message.to_string().contains("reasoning-v1")).collect();
    assert_eq!(thoughts.len(), 1, "{history:?}");
    assert!(thoughts[0].to_string().contains("word49"));
}
