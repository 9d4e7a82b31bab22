//! Lines 229 to 294: streams.

use nuncio_tests::{SseEvent, Value, answer, json};

use super::{call, message, request, serve, stream};

fn frames(events: &[SseEvent]) -> Vec<Value> {
    events.iter().map(|event| event.data["result"].clone()).collect()
}

#[tokio::test]
async fn the_example_has_its_four_frames() {
    let server = serve();
    for method in ["SendMessage", "StreamMessage", "SendStreamingMessage"] {
        let events = stream(&server, method, message("Hello, agent!")).await.all().await;
        for event in &events {
            assert_eq!((&event.data["jsonrpc"], &event.data["id"]), (&json!("2.0"), &json!("1")));
        }
        let frames = frames(&events);
        assert_eq!(frames.len(), 4, "{method}: {frames:?}");
        let task = frames[0]["taskId"].clone();
        assert!(task.is_string() && frames.iter().all(|frame| frame["taskId"] == task));
        assert!(frames[0]["contextId"].is_string());
        assert_eq!((frames[0].get("type"), &frames[0]["status"]["state"]), (None, &json!("submitted")));
        assert_eq!((&frames[1]["type"], &frames[1]["status"]["state"]), (&json!("status"), &json!("working")));
        assert_eq!(frames[1].get("final"), None);
        assert_eq!(
            (&frames[2]["type"], &frames[2]["artifact"]["parts"]),
            (&json!("artifact"), &json!([{ "text": "Hello, agent!" }]))
        );
        let last = &frames[3];
        assert_eq!(
            (&last["type"], &last["status"]["state"], &last["final"]),
            (&json!("status"), &json!("completed"), &json!(true))
        );
        let stored = call(&server, "GetTask", json!({ "id": task })).await;
        assert_eq!(stored["result"]["status"]["state"], "completed", "it is in the store");
    }
}

#[tokio::test]
async fn a_task_can_be_followed_again() {
    let server = serve();
    for method in ["Resubscribe", "SubscribeToTask"] {
        let mut first = stream(&server, "SendMessage", message("stream 30 20")).await;
        let task = first.next().await.unwrap().data["result"]["taskId"].clone();
        while first.next().await.is_some_and(|event| event.data["result"]["type"] != "artifact") {}
        drop(first);
        let frames = frames(&stream(&server, method, json!({ "id": task })).await.all().await);
        let text = |artifact: &Value| -> String {
            let parts = artifact["parts"].as_array().cloned().unwrap_or_default();
            parts.iter().filter_map(|part| part["text"].as_str()).collect()
        };
        let mut said = text(&frames[0]["artifacts"][0]);
        said.extend(
            frames[1..].iter().filter(|frame| frame["type"] == "artifact").map(|frame| text(&frame["artifact"])),
        );
        assert_eq!(said, (0..30).map(|n| format!("chunk {n}")).collect::<String>(), "{method}");
        assert_eq!(frames.last().unwrap()["final"], true);
    }
}

#[tokio::test]
async fn the_path_of_streams_has_no_other_methods() {
    let server = serve();
    for method in ["GetTask", "ListTasks", "CancelTask"] {
        let response = answer(request(&server, "/a2a/stream", method, &json!({}))).await.1;
        assert_eq!(response["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn a_stream_that_cannot_begin_is_an_error() {
    let server = serve();
    let wrong = answer(request(&server, "/a2a/stream", "SendMessage", &json!({ "message": {} }))).await.1;
    assert_eq!(wrong["error"]["code"], -32602);
    let unknown = answer(request(&server, "/a2a/stream", "Resubscribe", &json!({ "id": "none" }))).await.1;
    assert_eq!(unknown["error"]["code"], -32001);
    let failed = frames(&stream(&server, "SendMessage", message("fail on purpose")).await.all().await);
    let last = failed.last().unwrap();
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("failed"), &json!(true)));
}
