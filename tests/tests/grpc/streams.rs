//! What streams do: number their events, go on where they broke off, and end in good order.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use nuncio_client::{Binding, Client, Options};
use nuncio_protocol::proto::v1::{self, stream_response::Payload};
use nuncio_protocol::proto::v03;
use nuncio_protocol::{Message, Part, SendMessageRequest, StreamResponse};
use nuncio_tests::{PATIENCE, Server, json};
use prost::Message as _;

use crate::kit::{Answer, MOMENT, Raw, framed, say, say_at_once, task};

fn events(answer: &Answer) -> Vec<Payload> {
    let read = |bytes: &bytes::Bytes| v1::StreamResponse::decode(bytes.clone()).unwrap().payload.unwrap();
    answer.messages.iter().map(read).collect()
}

fn first(answer: &Answer) -> u64 {
    answer.head["first-event-id"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn events_are_counted_from_the_first_and_a_stream_goes_on_after_any_of_them() {
    let server = Server::start(&[]);
    let raw = Raw::new(&server.url);
    let whole = raw.call("SendStreamingMessage", &say("stream 5 1")).await;
    assert_eq!((whole.code(), first(&whole)), (0, 1));
    let all = events(&whole);
    let Payload::Task(made) = &all[0] else { panic!("first is no task") };
    assert!(matches!(all.last(), Some(Payload::StatusUpdate(e)) if e.status.as_ref().unwrap().state == 3));
    let again = v1::SubscribeToTaskRequest { id: made.id.clone(), ..Default::default() };
    for seen in [1, 3, all.len() as u64] {
        let rest = raw.call_with("SubscribeToTask", &[("last-event-id", &seen.to_string())], &again).await;
        assert_eq!((rest.code(), first(&rest)), (0, seen + 1));
        assert_eq!(events(&rest), all[usize::try_from(seen).unwrap()..], "after {seen}");
    }
    let over = raw.call("SubscribeToTask", &again).await;
    assert_eq!((over.code(), over.details()[0]["reason"].as_str()), (9, Some("UNSUPPORTED_OPERATION")));
}

#[tokio::test]
async fn a_deadline_ends_the_stream_and_not_the_task() {
    let server = Server::start(&[]);
    let raw = Raw::new(&server.url);
    let cut = raw.call_with("SendStreamingMessage", &[("grpc-timeout", "100m")], &say("hold")).await;
    assert_eq!(cut.code(), 4, "{cut:?}");
    let Payload::Task(held) = &events(&cut)[0] else { panic!("first is no task") };
    assert_eq!(server.task(&held.id).await["status"]["state"], "TASK_STATE_WORKING");
    let late = raw.call_with("SendMessage", &[("grpc-timeout", "100m")], &say("hold")).await;
    assert_eq!(late.code(), 4);
    assert_eq!(server.cancel(&held.id).await["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn a_client_that_goes_away_changes_nothing() {
    let server = Server::start(&[]);
    let raw = Raw::new(&server.url);
    let made = task(&raw.call("SendMessage", &say_at_once("stream 20 20")).await);
    let follow = v1::SubscribeToTaskRequest { id: made.id.clone(), ..Default::default() };
    let gone = tokio::time::timeout(Duration::from_millis(100), raw.call("SubscribeToTask", &follow)).await;
    assert!(gone.is_err(), "it was dropped in the middle");
    let done = server.until(&made.id, "COMPLETED").await;
    assert_eq!(done["artifacts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn streams_end_with_a_status_when_the_server_goes_down_and_the_client_goes_on() {
    let mut server = Server::configured("drain-timeout: 1s\n");
    let raw = Raw::new(&server.url);
    let held = task(&raw.call("SendMessage", &say_at_once("hold")).await);
    let follow = v1::SubscribeToTaskRequest { id: held.id, ..Default::default() };
    let (ended, _) = tokio::join!(raw.call("SubscribeToTask", &follow), async {
        tokio::time::sleep(10 * MOMENT).await;
        server.signal("TERM");
    });
    assert!(matches!(ended.code(), 0 | 14), "{ended:?}");
    assert!(matches!(events(&ended)[0], Payload::Task(_)));
    server.ended();
}

#[tokio::test]
async fn the_status_behind_events_has_its_details() {
    let mut server = Server::configured("drain-timeout: 0s\nmax-running-turns: 1\n");
    let raw = Raw::new(&server.url);
    task(&raw.call("SendMessage", &say_at_once("hold")).await);
    // Its turn has not come, so that nothing ends it before the server does.
    let waiting = task(&raw.call("SendMessage", &say_at_once("hold")).await).id;
    let follow = v1::SubscribeToTaskRequest { id: waiting.clone(), ..Default::default() };
    let old = v03::TaskSubscriptionRequest { name: format!("tasks/{waiting}") };
    let (new, old, _) = tokio::join!(
        raw.call("SubscribeToTask", &follow),
        raw.post("/a2a.v1.A2AService/TaskSubscription", &[], framed(&old.encode_to_vec())),
        async {
            while server.metric("nuncio_subscribers").await < 2.0 {
                tokio::time::sleep(MOMENT).await;
            }
            server.signal("TERM");
        }
    );
    for answer in [new, old] {
        assert_eq!((answer.code(), answer.messages.len()), (14, 1), "an event, then the status: {answer:?}");
        let info = &answer.details()[0];
        assert_eq!((info["domain"].as_str(), info["reason"].is_string()), (Some("a2a-protocol.org"), true), "{info}");
    }
    server.ended();
}

#[tokio::test]
async fn our_client_resumes_where_it_was_when_the_server_is_killed() {
    let mut server = Server::start(&["--store", "sqlite"]);
    let options = Options { binding: Some(Binding::Grpc), ..Options::default() };
    let client = Client::direct(&server.url.replace("http://", "grpc://"), options).unwrap();
    let message = Message::from_user(vec![Part::text("stream 50 20")]);
    let request = SendMessageRequest { message: Some(message), ..SendMessageRequest::default() };
    let mut stream = client.stream(request).await.unwrap();
    let mut numbers = Vec::new();
    for _ in 0..5 {
        let event = stream.next().await.unwrap().unwrap();
        numbers.push(event.seq.expect("events are counted"));
    }
    server.kill();
    server.restart();
    let mut last = None;
    let rest = async {
        while let Some(event) = stream.next().await {
            let event = event.unwrap();
            numbers.push(event.seq.expect("events are counted"));
            last = Some(event.response);
        }
    };
    tokio::time::timeout(PATIENCE, rest).await.expect("an end in time");
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "none is lost and none comes twice");
    assert!(matches!(last, Some(StreamResponse::StatusUpdate(event)) if event.status.state.is_terminal()));
}

#[tokio::test]
async fn many_followers_see_the_same_bytes() {
    let server = Server::start(&[]);
    let raw = Raw::new(&server.url);
    let made = task(&raw.call("SendMessage", &say_at_once("hold")).await);
    let follow = v1::SubscribeToTaskRequest { id: made.id.clone(), ..Default::default() };
    let all = join_all((0..50).map(|_| raw.call_with("SubscribeToTask", &[("last-event-id", "1")], &follow)));
    let (all, ()) = tokio::join!(all, async {
        while server.metric("nuncio_subscribers").await < 50.0 {
            tokio::time::sleep(MOMENT).await;
        }
        server.rpc("CancelTask", json!({ "id": made.id })).await;
    });
    for answer in &all {
        assert_eq!(answer.code(), 0);
        assert!(!answer.messages.is_empty());
        assert_eq!(answer.messages, all[0].messages);
    }
}
