//! Lines 199 to 210: what becomes of what an agent reports.

use nuncio_tests::json;

use super::{printing, script, six_lines, stream, told};

#[tokio::test]
async fn every_event_of_an_agent_is_told() {
    let long = "x".repeat(201);
    let stage = printing(&six_lines(&long), "exit 0");
    let all: Vec<String> = stream(&stage.server, "go").await.all().await.iter().map(told).collect();
    let stats = json!({ "summary": "hi", "stats": { "inputTokens": 1200, "outputTokens": 300 } });
    assert_eq!(
        all,
        [
            "submitted".to_owned(),
            "working".to_owned(),
            format!("agent-metadata: {}", json!({ "model": "m-1", "sessionId": "s-1" })),
            "assistant-response: ".to_owned(),
            "assistant-response: hi".to_owned(),
            "working Using tool: read_file".to_owned(),
            format!("working Tool result: {}…", "x".repeat(200)),
            format!("result: {stats}"),
            "completed".to_owned(),
        ]
    );
}

#[tokio::test]
async fn chunks_of_text_build_up_one_response() {
    let said =
        |text: &str| json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": text }] } });
    let stage = printing(&[said("one ")], &format!("sleep 0.5; echo '{}'", said("two")));
    let events = stream(&stage.server, "go").await.all().await;
    let chunks: Vec<_> = events.iter().filter(|event| event.chunk().is_some_and(|text| !text.is_empty())).collect();
    assert_eq!(chunks.iter().filter_map(|event| event.chunk()).collect::<String>(), "one two");
    for chunk in &chunks {
        assert_eq!(chunk.body()["append"], true);
        assert_eq!(chunk.body()["artifact"]["artifactId"], chunks[0].body()["artifact"]["artifactId"]);
    }
}

#[tokio::test]
async fn an_init_without_names_makes_no_artifact() {
    let stage = printing(&[json!({ "type": "system/init" }), json!({ "type": "result" })], "exit 0");
    let all: Vec<String> = stream(&stage.server, "go").await.all().await.iter().map(told).collect();
    assert_eq!(all, ["submitted", "working", "completed"]);
}

#[tokio::test]
async fn an_error_event_fails_the_task_with_its_text() {
    let stage = printing(&[json!({ "type": "error", "error": { "message": "boom" } })], "exit 0");
    let events = stream(&stage.server, "go").await.all().await;
    let last = events.last().unwrap();
    assert_eq!((told(last), &last.body()["final"]), ("failed boom".to_owned(), &json!(true)));
}

#[tokio::test]
async fn a_question_is_not_final_and_the_stream_stays_open() {
    let stage = script("echo 'Proceed? [y/N]'; read a; echo got $a", "auto-approve-permissions: false");
    let mut stream = stream(&stage.server, "go").await;
    let asked = stream.until("input-required").await;
    assert_eq!(asked.body()["final"], false);
    assert_eq!(told(&asked), "input-required Approve: Proceed? [y/N]?");
    let mut answer = super::message("y");
    answer["message"]["taskId"] = asked.body()["taskId"].clone();
    let done = super::call(&stage.server, "message/send", answer).await;
    assert_eq!(done["result"]["status"]["state"], "completed", "{done}");
    let rest: Vec<String> = stream.all().await.iter().map(told).collect();
    assert_eq!(rest.last().unwrap(), "completed", "the same stream goes on: {rest:?}");
    assert!(rest.contains(&"assistant-response: got y\n".to_owned()), "{rest:?}");
}
