//! Lines 41 to 48 and 51 to 52: streams, and how they are taken up again.

use nuncio_tests::{Server, SseEvent, Value, json};

use super::{message, serve, stream};

async fn frames(server: &Server, text: &str) -> Vec<Value> {
    let events = stream(server, "message/stream", message(text)).await.all().await;
    events.iter().map(SseEvent::body).cloned().collect()
}

fn text_of(frame: &Value) -> String {
    frame["artifact"]["parts"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn every_frame_has_its_kind_and_its_place() {
    let frames = frames(&serve(), "stream 5").await;
    let kinds: Vec<&str> = frames.iter().map(|frame| frame["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["task", "status-update"]);
    assert_eq!(frames[0]["status"]["state"], "submitted");
    assert_eq!((&frames[1]["status"]["state"], &frames[1]["final"]), (&json!("working"), &json!(false)));
    let pieces: Vec<&Value> = frames.iter().filter(|frame| frame["append"] == true).collect();
    assert_eq!(pieces.len(), 5);
    let whole = &frames[frames.len() - 2];
    assert_eq!((&whole["append"], &whole["lastChunk"]), (&json!(false), &json!(true)));
    assert_eq!(text_of(whole), pieces.iter().map(|frame| text_of(frame)).collect::<String>());
    let last = &frames[frames.len() - 1];
    assert_eq!((&last["kind"], &last["status"]["state"]), (&json!("status-update"), &json!("completed")));
    assert_eq!(last["final"], true);
    assert_eq!(frames.iter().filter(|frame| frame["final"] == true).count(), 1);
}

#[tokio::test]
async fn the_whole_answer_comes_with_its_bill() {
    let frames = frames(&serve(), "usage").await;
    let whole = &frames[frames.len() - 2];
    assert_eq!(whole["artifact"]["parts"][1]["metadata"]["mimeType"], "application/vnd.protolabs.cost-v1+json");
    assert_eq!(whole["artifact"]["parts"][1]["data"]["usage"]["input_tokens"], 12);
}

#[tokio::test]
async fn tools_are_told_when_they_start_and_when_they_end() {
    let server = serve();
    let told: Vec<String> = frames(&server, "tool search")
        .await
        .iter()
        .filter_map(|frame| Some(frame["status"]["message"]["parts"][0]["text"].as_str()?.to_owned()))
        .collect();
    assert_eq!(told.last().unwrap(), "✅ search → one two three");
    assert!(told[0].starts_with("🔧 search"), "{told:?}");
    assert!(told.iter().any(|words| words.contains("what the demo always asks")), "{told:?}");
    // Clients of 1.0 see the same as metadata of a message without parts.
    let events = server.stream("tool search").await.all().await;
    let uri = "https://proto-labs.ai/a2a/ext/tool-call-v1";
    let messages = events.iter().map(|event| &event.body()["statusUpdate"]["status"]["message"]);
    let calls: Vec<&Value> = messages.filter(|message| message["metadata"][uri].is_object()).collect();
    assert_eq!(calls.last().unwrap()["metadata"][uri]["phase"], "completed");
    assert!(calls.iter().all(|message| message["parts"].as_array().is_none_or(Vec::is_empty)), "{calls:?}");
}

#[tokio::test]
async fn a_failure_is_one_status() {
    let frames = frames(&serve(), "fail on purpose").await;
    let last = frames.last().unwrap();
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("failed"), &json!(true)));
    assert_eq!(last["status"]["message"]["parts"][0]["text"], "on purpose");
    assert!(frames.iter().all(|frame| frame["kind"] != "artifact-update"));
}

#[tokio::test]
async fn a_stream_is_taken_up_again_without_a_loss() {
    let server = serve();
    let mut first = stream(&server, "message/stream", message("stream 30 20")).await;
    let task = first.next().await.unwrap().body()["id"].clone();
    while first.next().await.is_some_and(|event| event.chunk().is_none()) {}
    drop(first);
    let rest = stream(&server, "tasks/resubscribe", json!({ "id": task })).await.all().await;
    let (snapshot, rest) = rest.split_first().unwrap();
    assert_eq!(snapshot.body()["kind"], "task");
    let parts = snapshot.body()["artifacts"][0]["parts"].as_array().cloned().unwrap_or_default();
    let mut said: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    said.extend(rest.iter().map(SseEvent::body).filter(|frame| frame["append"] == true).map(text_of));
    assert_eq!(said, (0..30).map(|n| format!("chunk {n}")).collect::<String>());
    assert_eq!(text_of(rest[rest.len() - 2].body()), said, "the whole comes at the end");
    assert_eq!(rest.last().unwrap().state(), "completed");
}
