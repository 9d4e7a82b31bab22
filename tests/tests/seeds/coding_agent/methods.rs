//! Lines 65 to 196 and 255 to 280: the envelope, the methods, the error codes, the example with curl.

use nuncio_tests::{PATIENCE, Sse, Value, answer, client, json};

use super::{call, message, post, printing, script, six_lines, stream, told};

#[tokio::test]
async fn message_send_waits_for_the_end() {
    let stage = printing(&six_lines("fine"), "exit 0");
    let request = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {
            "message": {
                "kind": "message",
                "messageId": "msg-uuid",
                "role": "user",
                "parts": [{ "kind": "text", "text": "Add a health check endpoint" }],
            },
            "configuration": { "blocking": true },
        },
    });
    let response = post(&stage.server, &request).await;
    assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(1)));
    let task = &response["result"];
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")));
    for key in ["id", "contextId"] {
        assert!(task[key].as_str().is_some_and(|id| !id.is_empty()), "{key}");
    }
    assert!(task["status"]["timestamp"].as_str().unwrap().ends_with('Z'));
    let names: Vec<&Value> = task["artifacts"].as_array().unwrap().iter().map(|artifact| &artifact["name"]).collect();
    assert_eq!(names, ["agent-metadata", "assistant-response", "result"]);
    assert_eq!(task["history"][0]["parts"][0]["text"], "Add a health check endpoint");
}

#[tokio::test]
async fn message_stream_has_the_events_of_the_document() {
    let stage = printing(&six_lines("fine"), "exit 0");
    let mut stream = stream(&stage.server, "Refactor the auth module to use JWT").await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut frames = Vec::new();
    while let Some(event) = stream.next().await {
        frames.push(event.body().clone());
    }
    let (task, context) = (frames[0]["id"].clone(), frames[0]["contextId"].clone());
    for frame in &frames[1..] {
        assert_eq!((&frame["taskId"], &frame["contextId"]), (&task, &context), "{frame}");
    }
    let one = |found: &dyn Fn(&&Value) -> bool| frames.iter().find(found).cloned().unwrap_or_default();
    let working = one(&|frame| frame["kind"] == "status-update");
    assert_eq!((&working["status"]["state"], &working["final"]), (&json!("working"), &json!(false)));
    let text = one(&|frame| frame["artifact"]["name"] == "assistant-response" && frame["append"] == true);
    assert_eq!((&text["kind"], &text["append"]), (&json!("artifact-update"), &json!(true)));
    assert_eq!(text["artifact"]["parts"][0], json!({ "kind": "text", "text": "hi" }));
    let tool = one(&|frame| frame["status"]["message"].is_object());
    assert_eq!(tool["status"]["message"]["role"], "agent");
    assert_eq!(tool["status"]["message"]["parts"][0], json!({ "kind": "text", "text": "Using tool: read_file" }));
    let result = &frames[frames.len() - 2];
    assert_eq!((&result["kind"], &result["artifact"]["name"]), (&json!("artifact-update"), &json!("result")));
    assert_eq!(result["artifact"]["parts"][0]["data"]["summary"], "hi");
    let last = &frames[frames.len() - 1];
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("completed"), &json!(true)));
    assert_eq!(frames.iter().filter(|frame| frame["final"] == true).count(), 1, "the stream closes after it");
}

#[tokio::test]
async fn tasks_get_takes_both_names_of_the_id() {
    let stage = script("sleep 60", "");
    let mut stream = stream(&stage.server, "go").await;
    let task = stream.next().await.unwrap().body()["id"].clone();
    for params in [json!({ "taskId": task }), json!({ "id": task })] {
        let request = json!({ "jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": params });
        let response = post(&stage.server, &request).await;
        assert_eq!(response["id"], 2);
        let found = &response["result"];
        assert_eq!((&found["kind"], &found["id"]), (&json!("task"), &task));
        assert!(["submitted", "working"].contains(&found["status"]["state"].as_str().unwrap()), "{found}");
    }
    let unknown = call(&stage.server, "tasks/get", json!({ "taskId": "task-uuid" })).await;
    assert_eq!((&unknown["error"]["code"], &unknown["error"]["message"]), (&json!(-32001), &json!("TaskNotFound")));
}

#[tokio::test]
async fn tasks_cancel_ends_the_program_and_is_nothing_on_a_task_that_is_over() {
    let stage = script("trap 'exit 0' TERM; sleep 60 & wait", "");
    let mut stream = stream(&stage.server, "go").await;
    let task = stream.next().await.unwrap().body()["id"].clone();
    stage.until_busy().await;
    let request = json!({ "jsonrpc": "2.0", "id": 3, "method": "tasks/cancel", "params": { "taskId": task } });
    let response = post(&stage.server, &request).await;
    assert_eq!(response["result"]["status"]["state"], "canceled", "{response}");
    stage.until_idle().await;
    let again = post(&stage.server, &request).await;
    assert_eq!(again["result"], response["result"], "nothing changes");

    let stage = printing(&six_lines("fine"), "exit 0");
    let done = call(&stage.server, "message/send", message("go")).await["result"].clone();
    let canceled = call(&stage.server, "tasks/cancel", json!({ "taskId": done["id"] })).await;
    assert_eq!(canceled["result"]["status"], done["status"], "a completed one stays completed");
    let failing = script("exit 3", "");
    let failed = call(&failing.server, "message/send", message("go")).await["result"].clone();
    let canceled = call(&failing.server, "tasks/cancel", json!({ "id": failed["id"] })).await;
    assert_eq!(canceled["result"]["status"]["state"], "failed");
}

#[tokio::test]
async fn errors_have_their_codes_and_names() {
    let stage = script("true", "");
    let send = async |body: &'static str| {
        let request = client().post(format!("{}/a2a/jsonrpc", stage.server.url));
        let request = request.header("Content-Type", "application/json").body(body);
        let error = answer(request).await.1["error"].clone();
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    };
    let named = |code: i64, name: &str| (code, name.to_owned());
    assert_eq!(send("{").await, named(-32700, "Parse error"));
    assert_eq!(send(r#"{"id":1,"method":"tasks/get"}"#).await, named(-32600, "Invalid request"));
    assert_eq!(send(r#"{"jsonrpc":"2.0","id":1}"#).await, named(-32600, "Invalid request"));
    assert_eq!(send(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/sing"}"#).await, named(-32601, "Method not found"));
    for method in ["tasks/get", "tasks/cancel"] {
        let error = call(&stage.server, method, json!({ "taskId": "none" })).await["error"].clone();
        assert_eq!((&error["code"], &error["message"]), (&json!(-32001), &json!("TaskNotFound")), "{method}");
    }
}

#[tokio::test]
async fn the_example_with_curl_streams() {
    let stage = printing(&six_lines("fine"), "exit 0");
    let body = r#"{
    "jsonrpc": "2.0",
    "id": 1,
    "method": "message/stream",
    "params": {
      "message": {
        "kind": "message",
        "messageId": "test-1",
        "role": "user",
        "parts": [{"kind": "text", "text": "Explain the main function in src/index.ts"}]
      }
    }
  }"#;
    let request = client().post(format!("{}/a2a/jsonrpc", stage.server.url)).header("Content-Type", "application/json");
    let events =
        tokio::time::timeout(PATIENCE, async { Sse::open(request.body(body)).await.all().await }).await.unwrap();
    assert_eq!(told(events.last().unwrap()), "completed");
}
