//! Lines 77 to 207 and 298 to 317: methods, types, errors, conversations.

use nuncio_tests::{Value, answer, client, json};

use super::{call, message, sent, serve, serve_in};

#[tokio::test]
async fn send_message_waits_and_get_task_finds_the_task() {
    let server = serve();
    let task = sent(&server, "hello").await;
    assert_eq!((&task["status"]["state"], &task["taskId"]), (&json!("completed"), &task["id"]));
    assert!(task["status"]["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(task["artifacts"][0]["parts"], json!([{ "text": "hello" }]));
    assert_eq!((&task["history"][0]["role"], &task["history"][0]["messageId"]), (&json!("user"), &json!("msg-1")));
    for params in [json!({ "id": task["id"] }), json!({ "taskId": task["id"] })] {
        let found = call(&server, "GetTask", params).await["result"].clone();
        assert_eq!((&found["id"], &found["contextId"]), (&task["id"], &task["contextId"]));
        assert_eq!(found["status"], task["status"]);
    }
}

#[tokio::test]
async fn cancelled_has_two_l() {
    let server = serve();
    let mut params = message("hold");
    params["configuration"] = json!({ "blocking": false });
    let task = call(&server, "SendMessage", params).await["result"].clone();
    assert!(["submitted", "working"].contains(&task["status"]["state"].as_str().unwrap()), "{task}");
    let cancelled = call(&server, "CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(cancelled["result"]["status"]["state"], "cancelled");
}

#[tokio::test]
async fn states_have_their_names() {
    let server = serve();
    for (text, state) in [
        ("hello", "completed"),
        ("fail on purpose", "failed"),
        ("ask what?", "input-required"),
        ("auth who are you", "auth-required"),
        ("reject this", "rejected"),
    ] {
        assert_eq!(sent(&server, text).await["status"]["state"], state, "{text}");
    }
}

#[tokio::test]
async fn parts_hold_one_thing_each() {
    let server = serve();
    let parts = json!([
        { "text": "echo me", "metadata": { "k": "v" } },
        { "file": { "fileWithUri": { "uri": "https://x.test/a.csv", "mimeType": "text/csv" }, "mediaType": "text/csv" } },
        { "file": { "fileWithBytes": { "bytes": "aGk=", "mimeType": "text/plain" }, "mediaType": "text/plain" } },
        { "data": { "data": [1, { "a": null }] } },
    ]);
    let params = json!({ "message": { "messageId": "m", "role": "user", "parts": parts } });
    let task = call(&server, "SendMessage", params).await["result"].clone();
    assert_eq!(task["history"][0]["parts"], parts, "they come back as they were");
    let both = json!([{ "text": "a", "data": { "data": 1 } }]);
    let params = json!({ "message": { "messageId": "m", "role": "user", "parts": both } });
    assert_eq!(call(&server, "SendMessage", params).await["error"]["code"], -32602);
    let file = sent(&server, "file notes.txt 5").await;
    let made = &file["artifacts"][0];
    assert_eq!(made["parts"][0]["file"]["fileWithBytes"]["bytes"], "YWJjZGU=", "{made}");
}

#[tokio::test]
async fn errors_have_their_codes() {
    let server = serve_in("push-notifications: false", &[]);
    let done = sent(&server, "hello").await;
    let id = json!({ "id": done["id"] });
    for (method, params, code) in [
        ("GetTask", json!({ "id": "none" }), -32001),
        ("CancelTask", id.clone(), -32002),
        ("SetTaskPushNotificationConfig", json!({ "taskId": done["id"] }), -32003),
        ("SubscribeToTask", id, -32004),
        ("GetExtendedAgentCard", json!({}), -32004),
        ("Sing", json!({}), -32601),
        ("SendMessage", json!({}), -32602),
    ] {
        let response = call(&server, method, params).await;
        assert_eq!(response["error"]["code"], code, "{method}: {response}");
    }
    let text = client().post(format!("{}/a2a", server.url)).header("Content-Type", "text/plain").body("hello");
    assert_eq!(answer(text).await.1["error"]["code"], -32005);
    let extended = serve_in("extended-card: on", &[]);
    assert!(call(&extended, "GetExtendedAgentCard", json!({})).await["result"]["skills"].is_array());
}

#[tokio::test]
async fn a_conversation_is_the_clients_or_made() {
    let server = serve();
    let mut named = message("hello");
    named["message"]["contextId"] = "ctx-1".into();
    let first = call(&server, "SendMessage", named.clone()).await["result"].clone();
    let second = call(&server, "SendMessage", named).await["result"].clone();
    assert_eq!((&first["contextId"], &second["contextId"]), (&json!("ctx-1"), &json!("ctx-1")));
    assert_ne!(first["id"], second["id"]);
    let made = sent(&server, "hello").await;
    assert!(made["contextId"].as_str().is_some_and(|id| !id.is_empty()));
}

#[tokio::test]
async fn referenced_tasks_belong_to_the_conversation() {
    let server = serve();
    let (mine, other) = (sent(&server, "hello").await, sent(&server, "hello").await);
    let refer = |to: &Value| {
        let mut params = message("go on");
        params["message"]["contextId"] = mine["contextId"].clone();
        params["message"]["referenceTaskIds"] = json!([to]);
        params
    };
    let taken = call(&server, "SendMessage", refer(&mine["id"])).await;
    assert_eq!(taken["result"]["status"]["state"], "completed", "{taken}");
    let refused = call(&server, "SendMessage", refer(&other["id"])).await;
    assert_eq!(refused["error"]["message"], "Referenced task does not belong to this context");
    assert_eq!(call(&server, "SendMessage", refer(&json!("unknown"))).await["result"]["status"]["state"], "completed");
}
