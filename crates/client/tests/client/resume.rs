//! Streams whose connections break.

use std::time::Duration;

use futures_util::StreamExt;
use nuncio_client::{Client, ClientError, Options, SendOptions};
use nuncio_protocol::{ErrorKind, Value, json};

use crate::server::{Answer, Server, Step, chunk, hello, quick, status, task};
use crate::streams::{collect, follow, follow_well};

/// A task with one artifact.
fn with_text(state: &str, text: &str) -> Value {
    let mut task = task(state);
    task["artifacts"] = json!([{"artifactId": "A1", "parts": [{"text": text}]}]);
    task
}

/// The first half of an event.
fn torn(step: Step) -> Step {
    let Step::Bytes(mut bytes) = step else { panic!("bytes") };
    bytes.truncate(bytes.len() / 2);
    Step::Bytes(bytes)
}

#[tokio::test]
async fn continues_after_the_last_number_when_the_connection_breaks_inside_an_event() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![
            seen.event(Some(1), &json!({"task": task("WORKING")})),
            seen.event(Some(2), &chunk("a")),
            torn(seen.event(Some(3), &chunk("b"))),
            Step::Break,
        ]),
        _ => Answer::events(vec![seen.event(Some(3), &chunk("b")), seen.event(Some(4), &status("COMPLETED"))]),
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["1 task Working", "2 chunk a", "3 chunk b", "4 Completed"]);
    assert_eq!(server.calls(), ["SendStreamingMessage", "SubscribeToTask after 2"]);
    assert_eq!(server.seen()[1].body["params"], json!({"id": "T1"}));
}

#[tokio::test]
async fn continues_when_the_server_closes_too_early() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![seen.event(Some(1), &json!({"task": task("WORKING")}))]),
        1 => Answer::status(503, "starting"),
        2 => seen.error(-31503, "starting"),
        _ => Answer::events(vec![seen.event(Some(2), &status("FAILED"))]),
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["1 task Working", "2 Failed"]);
    assert_eq!(server.calls().len(), 4);
}

#[tokio::test]
async fn passes_known_numbers_on_only_once() {
    let server = Server::start(|seen, n| {
        let mut steps = vec![seen.event(Some(1), &json!({"task": task("WORKING")})), seen.event(Some(2), &chunk("a"))];
        if n == 0 {
            steps.push(Step::Break);
        } else {
            steps.extend([seen.event(Some(3), &chunk("b")), seen.event(Some(4), &status("COMPLETED"))]);
        }
        Answer::events(steps)
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["1 task Working", "2 chunk a", "3 chunk b", "4 Completed"]);
}

#[tokio::test]
async fn learns_of_the_end_also_from_a_server_that_counts_anew() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![
            seen.event(Some(1), &json!({"task": task("WORKING")})),
            seen.event(Some(2), &chunk("a")),
            Step::Break,
        ]),
        _ => Answer::events(vec![
            seen.event(Some(1), &json!({"task": task("WORKING")})),
            seen.event(Some(2), &status("COMPLETED")),
        ]),
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["1 task Working", "2 chunk a", "2 Completed"]);
}

#[tokio::test]
async fn passes_on_only_what_is_new_where_there_are_no_numbers() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![
            seen.event(None, &json!({"task": task("SUBMITTED")})),
            seen.event(None, &chunk("a")),
            Step::Break,
        ]),
        _ => Answer::events(vec![
            seen.event(None, &json!({"task": with_text("WORKING", "ab")})),
            seen.event(None, &chunk("c")),
            seen.event(None, &status("COMPLETED")),
        ]),
    })
    .await;
    let events = follow_well(&server.client()).await;
    assert_eq!(events, ["task Submitted", "chunk a", "chunk b", "Working", "chunk c", "Completed"]);
    assert_eq!(server.calls(), ["SendStreamingMessage", "SubscribeToTask"]);
}

#[tokio::test]
async fn ends_with_the_task_when_it_finished_meanwhile() {
    let server = Server::start(|seen, n| match (seen.rpc(), n) {
        ("SendStreamingMessage", _) => {
            Answer::events(vec![seen.event(Some(1), &json!({"task": task("WORKING")})), Step::Break])
        }
        ("SubscribeToTask", _) => seen.error(-32004, "the task is over"),
        // Even that may need a second attempt.
        (_, 2) => Answer::status(502, ""),
        _ => seen.result(&task("COMPLETED")),
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["1 task Working", "Completed"]);
    let calls = ["SendStreamingMessage", "SubscribeToTask after 1", "GetTask", "GetTask"];
    assert_eq!(server.calls(), calls);
}

#[tokio::test]
async fn asks_for_a_task_that_cannot_be_followed() {
    let server = Server::start(|seen, n| match seen.rpc() {
        "SendStreamingMessage" => {
            Answer::events(vec![seen.event(None, &json!({"task": task("WORKING")})), Step::Break])
        }
        "SubscribeToTask" => seen.error(-32601, "not supported"),
        _ => match n {
            2 | 3 => seen.result(&with_text("WORKING", "a")),
            4 => Answer::status(503, "busy"),
            5 => seen.result(&with_text("WORKING", "abc")),
            _ => seen.result(&with_text("COMPLETED", "abcd")),
        },
    })
    .await;
    let events = follow_well(&server.client()).await;
    assert_eq!(events, ["task Working", "chunk a", "chunk bc", "chunk d", "Completed"]);
    assert_eq!(server.calls().iter().filter(|call| *call == "GetTask").count(), 5);
}

#[tokio::test]
async fn a_refusal_may_also_come_inside_of_a_stream() {
    let server = Server::start(|seen, _| match seen.rpc() {
        "SendStreamingMessage" => {
            Answer::events(vec![seen.event(None, &json!({"task": task("WORKING")})), Step::Break])
        }
        "SubscribeToTask" => {
            let error = json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": {"code": -32001, "message": "gone"}});
            Answer::events(vec![Step::Bytes(format!("event: error\ndata: {error}\n\n").into_bytes())])
        }
        _ => seen.result(&task("COMPLETED")),
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["task Working", "Completed"]);
}

#[tokio::test]
async fn an_agent_that_does_not_stream_is_asked_instead() {
    let server = Server::start(|seen, n| match seen.rpc() {
        "SendMessage" => seen.result(&json!({"task": task("WORKING")})),
        "GetTask" if n < 5 => seen.result(&with_text("WORKING", "a")),
        "GetTask" => seen.result(&with_text("COMPLETED", "ab")),
        _ => {
            let url = format!("http://{}", seen.header("host").unwrap());
            Answer::json(&json!({"supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0"}], "capabilities": {"streaming": false}}))
        }
    })
    .await;
    let client = Client::discover(&server.url, quick()).await.unwrap();
    assert_eq!(follow_well(&client).await, ["task Working", "chunk a", "chunk b", "Completed"]);
    assert_eq!(server.seen()[1].body["params"]["configuration"], json!({"returnImmediately": true}));
    let stream = client.subscribe("T1".into(), None).await.unwrap();
    assert_eq!(collect(stream).await.0, ["task Completed"]);
}

#[tokio::test]
async fn ids_that_are_no_numbers_lose_nothing() {
    // Some agents take the time for an id, and then two events may have the same.
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![
            seen.event(Some(1_700_000_000_000), &json!({"task": task("WORKING")})),
            seen.event(Some(1_700_000_000_001), &chunk("a")),
            seen.event(Some(1_700_000_000_001), &chunk("b")),
            Step::Break,
        ]),
        _ => Answer::events(vec![
            seen.event(Some(1_700_000_000_009), &json!({"task": with_text("WORKING", "abc")})),
            seen.event(Some(1_700_000_000_009), &status("COMPLETED")),
        ]),
    })
    .await;
    let events = follow_well(&server.client()).await;
    let events: Vec<&str> =
        events.iter().map(|event| event.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ')).collect();
    assert_eq!(events, ["task Working", "chunk a", "chunk b", "chunk c", "Completed"]);
    assert_eq!(server.calls(), ["SendStreamingMessage", "SubscribeToTask"]);
}

#[tokio::test]
async fn a_server_that_counts_anew_loses_nothing() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![
            seen.event(Some(1), &json!({"task": task("WORKING")})),
            seen.event(Some(2), &chunk("a")),
            seen.event(Some(3), &chunk("b")),
            Step::Break,
        ]),
        _ => Answer::events(vec![
            seen.event(Some(1), &json!({"task": with_text("WORKING", "ab")})),
            seen.event(Some(2), &chunk("c")),
            seen.event(Some(3), &status("COMPLETED")),
        ]),
    })
    .await;
    let events = follow_well(&server.client()).await;
    assert_eq!(events, ["1 task Working", "2 chunk a", "3 chunk b", "chunk c", "Completed"]);
}

#[tokio::test]
async fn a_number_that_the_agent_does_not_know_is_not_sent_again() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![seen.event(Some(7), &json!({"task": task("WORKING")})), Step::Break]),
        1 => seen.error(-32602, "no such event"),
        _ => Answer::events(vec![seen.event(Some(2), &json!({"task": task("COMPLETED")}))]),
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["7 task Working", "Completed"]);
    assert_eq!(server.calls(), ["SendStreamingMessage", "SubscribeToTask after 7", "SubscribeToTask"]);
}

#[tokio::test]
async fn nothing_is_resumed_where_the_caller_does_not_want_it() {
    let server = Server::start(|seen, _| {
        Answer::events(vec![seen.event(Some(1), &json!({"task": task("WORKING")})), Step::Break])
    })
    .await;
    let client = Client::direct(&server.url, Options { resume: false, ..quick() }).unwrap();
    let (events, error) = follow(&client).await;
    assert_eq!(events, ["1 task Working"]);
    let error = error.unwrap();
    assert!(matches!(&error, ClientError::Cut { task: Some(_), cause: Some(_) }), "{error:?}");
    assert!(error.to_string().contains("Ask for task T1 later"), "{error}");
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn gives_up_after_some_attempts_without_progress() {
    // Snapshots without a number come with every connection and are no progress.
    let server =
        Server::start(|seen, _| Answer::events(vec![seen.event(None, &json!({"task": task("WORKING")}))])).await;
    let (events, error) = follow(&server.client()).await;
    assert_eq!((events.len(), server.calls().len()), (1, 5), "the last one asks for the task");
    assert!(matches!(error, Some(ClientError::Cut { cause: None, .. })), "{error:?}");

    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![seen.event(Some(1), &json!({"task": task("WORKING")})), Step::Break]),
        _ => Answer::status(503, "down"),
    })
    .await;
    let (_, error) = follow(&server.client()).await;
    assert_eq!(server.calls().len(), 5);
    let Some(ClientError::Cut { cause: Some(cause), .. }) = error else { panic!("{error:?}") };
    assert!(matches!(*cause, ClientError::Http { status: 503, .. }), "{cause:?}");
}

#[tokio::test]
async fn goes_on_as_long_as_there_is_progress() {
    let server = Server::start(|seen, n| {
        let seq = n as u64 + 1;
        let event = match n {
            0 => json!({"task": task("WORKING")}),
            9 => status("COMPLETED"),
            _ => chunk("x"),
        };
        Answer::events(vec![seen.event(Some(seq), &event), Step::Break])
    })
    .await;
    assert_eq!(follow_well(&server.client()).await.len(), 10);
}

#[tokio::test]
async fn other_errors_are_not_tried_again() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![seen.event(Some(1), &json!({"task": task("WORKING")})), Step::Break]),
        _ => seen.error(-32001, "Task not found"),
    })
    .await;
    let (_, error) = follow(&server.client()).await;
    assert_eq!(error.unwrap().kind(), Some(ErrorKind::TaskNotFound));
    assert_eq!(server.calls(), ["SendStreamingMessage", "SubscribeToTask after 1", "GetTask"]);
}

#[tokio::test]
async fn without_a_task_a_message_is_sent_again_only_under_a_key() {
    let server = Server::start(|seen, n| match n {
        0 | 1 => Answer::events(vec![Step::Bytes(b": hello\n\n".to_vec()), Step::Break]),
        _ => Answer::events(vec![seen.event(Some(1), &json!({"task": task("COMPLETED")}))]),
    })
    .await;
    let client = server.client();
    let (events, error) = follow(&client).await;
    assert!(events.is_empty() && matches!(error, Some(ClientError::Cut { task: None, .. })), "{error:?}");
    assert_eq!(server.calls().len(), 1);

    let stream = client.stream_with(hello(), &SendOptions::key("k-1")).await.unwrap();
    let (events, error) = collect(stream).await;
    assert_eq!(events, ["1 task Completed"], "{error:?}");
    let keys: Vec<_> =
        server.seen()[1..].iter().map(|seen| seen.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!(keys, [Some("k-1".to_owned()), Some("k-1".to_owned())]);
}

#[tokio::test]
async fn a_message_under_a_key_is_also_sent_again_when_nobody_answers() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::status(503, ""),
        _ => Answer::events(vec![seen.event(Some(1), &json!({"task": task("COMPLETED")}))]),
    })
    .await;
    let stream = server.client().stream_with(hello(), &SendOptions::key("k-1")).await.unwrap();
    assert_eq!(collect(stream).await.0, ["1 task Completed"]);
    assert!(server.client().stream(hello()).await.is_ok());
}

#[tokio::test]
async fn a_subscription_begins_after_the_number_it_names() {
    let server = Server::start(|seen, n| match n {
        0 => {
            Answer::events(vec![seen.event(Some(7), &chunk("known")), seen.event(Some(8), &chunk("new")), Step::Break])
        }
        _ => Answer::events(vec![seen.event(Some(9), &status("CANCELED"))]),
    })
    .await;
    let stream = server.client().subscribe("T1".into(), Some(7)).await.unwrap();
    assert_eq!(collect(stream).await.0, ["8 chunk new", "9 Canceled"]);
    assert_eq!(server.calls(), ["SubscribeToTask after 7", "SubscribeToTask after 8"]);
}

#[tokio::test]
async fn a_subscription_to_a_task_that_is_over() {
    let server = Server::start(|seen, _| match seen.rpc() {
        "GetTask" => seen.result(&task("COMPLETED")),
        _ => seen.error(-32004, "the task is over"),
    })
    .await;
    let client = server.client();
    let error = client.subscribe("T1".into(), None).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::UnsupportedOperation));
    let stream = client.subscribe("T1".into(), Some(3)).await.unwrap();
    let (events, error) = collect(stream).await;
    assert!(error.is_none());
    assert_eq!(events, ["task Completed"]);
}

#[tokio::test]
async fn a_subscription_behind_the_last_event_ends_at_once_and_repeats_nothing() {
    let server = Server::start(|seen, _| match seen.rpc() {
        "GetTask" => seen.result(&with_text("COMPLETED", "all of it")),
        _ => Answer::events(vec![]),
    })
    .await;
    let stream = server.client().subscribe("T1".into(), Some(7)).await.unwrap();
    let (events, error) = collect(stream).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(events, ["Completed"]);
    assert_eq!(server.calls(), ["SubscribeToTask after 7", "GetTask"]);
}

#[tokio::test]
async fn whoever_follows_a_task_that_waits_sees_it_go_on() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![seen.event(Some(1), &json!({"task": task("INPUT_REQUIRED")})), Step::Break]),
        1 => Answer::events(vec![seen.event(Some(2), &status("COMPLETED"))]),
        _ => Answer::events(vec![seen.event(Some(1), &status("INPUT_REQUIRED")), Step::Break]),
    })
    .await;
    let stream = server.client().subscribe("T1".into(), None).await.unwrap();
    assert_eq!(collect(stream).await.0, ["1 task InputRequired", "2 Completed"]);
    // The answer to a message is complete with the question, however the connection ends.
    assert_eq!(follow_well(&server.client()).await, ["1 InputRequired"]);
    assert_eq!(server.calls().len(), 3);
}

#[tokio::test]
async fn silence_is_a_lost_connection_where_the_caller_says_so() {
    let server = Server::start(|seen, n| match n {
        0 => Answer::events(vec![
            seen.event(Some(1), &json!({"task": task("WORKING")})),
            Step::Pause(Duration::from_millis(500)),
            Step::Bytes(b": alive\n\n".to_vec()),
            Step::Pause(Duration::from_millis(500)),
            seen.event(Some(2), &chunk("a")),
            Step::Pause(Duration::from_secs(60)),
        ]),
        _ => Answer::events(vec![seen.event(Some(3), &status("COMPLETED"))]),
    })
    .await;
    let options = Options { silence: Some(Duration::from_millis(800)), ..quick() };
    let client = Client::direct(&server.url, options).unwrap();
    assert_eq!(follow_well(&client).await, ["1 task Working", "2 chunk a", "3 Completed"]);
    assert_eq!(server.calls(), ["SendStreamingMessage", "SubscribeToTask after 2"]);
}

#[tokio::test]
async fn a_task_whose_end_nobody_tells_is_looked_for() {
    let server = Server::start(|seen, n| match (seen.rpc(), n) {
        ("GetTask", 1) => seen.result(&task("WORKING")),
        ("GetTask", _) => seen.result(&task("COMPLETED")),
        _ => Answer::events(vec![
            seen.event(None, &json!({"task": task("WORKING")})),
            Step::Pause(Duration::from_secs(30)),
        ]),
    })
    .await;
    let options = Options { look: Some(Duration::from_millis(20)), ..quick() };
    let events = Client::direct(&server.url, options).unwrap().stream(hello()).await.unwrap();
    let states: Vec<String> = events.map(|event| format!("{:?}", event.unwrap().response)).collect().await;
    assert_eq!(states.len(), 2, "{states:?}");
    assert!(states[1].contains("Completed"), "{states:?}");
    assert_eq!(server.calls(), ["SendStreamingMessage", "GetTask", "GetTask"]);
}
