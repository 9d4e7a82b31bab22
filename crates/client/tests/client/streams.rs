//! Streams that nothing happens to.

use std::time::Duration;

use futures_util::StreamExt;
use nuncio_client::{Client, ClientError, Event, Options};
use nuncio_protocol::{ErrorKind, StreamResponse, json};

use crate::server::{Answer, Seen, Server, Step, chunk, hello, quick, status, task};

/// What a test wants to know of an event: its number and its essence.
pub(crate) fn essence(event: &Event) -> String {
    let text = match &event.response {
        StreamResponse::Task(task) => format!("task {:?}", task.status.state),
        StreamResponse::Message(message) => format!("message {}", message.text()),
        StreamResponse::StatusUpdate(update) => format!("{:?}", update.status.state),
        StreamResponse::ArtifactUpdate(update) => {
            format!("chunk {}", update.artifact.parts[0].as_text().unwrap_or_default())
        }
    };
    event.seq.map(|seq| format!("{seq} {text}")).unwrap_or(text)
}

/// All events of an exchange, and the error at its end.
pub(crate) async fn follow(client: &Client) -> (Vec<String>, Option<ClientError>) {
    collect(client.stream(hello()).await.unwrap()).await
}

pub(crate) async fn collect(mut events: nuncio_client::EventStream) -> (Vec<String>, Option<ClientError>) {
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => all.push(essence(&event)),
            Err(error) => {
                assert!(events.next().await.is_none(), "an error is the last item");
                return (all, Some(error));
            }
        }
    }
    (all, None)
}

/// Like [`follow`], for a stream that must end well.
pub(crate) async fn follow_well(client: &Client) -> Vec<String> {
    let (events, error) = follow(client).await;
    assert!(error.is_none(), "{events:?} {error:?}");
    events
}

#[tokio::test]
async fn ends_with_the_task() {
    let server = Server::start(|seen, _| {
        Answer::events(vec![
            Step::Bytes(b"\xef\xbb\xbf: hello\nretry: 1\n\n".to_vec()),
            seen.event(Some(1), &json!({"task": task("SUBMITTED")})),
            seen.event(Some(2), &chunk("a")),
            Step::Bytes(b": keep-alive\n\ndata:\n\n".to_vec()),
            seen.event(Some(3), &status("COMPLETED")),
        ])
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["1 task Submitted", "2 chunk a", "3 Completed"]);
    assert_eq!(server.calls(), ["SendStreamingMessage"]);
    assert!(server.seen()[0].header("accept").unwrap().starts_with("text/event-stream"));
}

#[tokio::test]
async fn ends_after_a_message() {
    let server = Server::start(|seen, _| {
        let message = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}});
        Answer::events(vec![seen.event(None, &message)])
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["message hi"]);
}

#[tokio::test]
async fn ends_when_the_agent_waits_and_closes() {
    let server = Server::start(|seen, _| {
        Answer::events(vec![
            seen.event(None, &json!({"task": task("WORKING")})),
            seen.event(None, &status("INPUT_REQUIRED")),
        ])
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["task Working", "InputRequired"]);
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn goes_on_when_the_agent_waits_and_stays() {
    let server = Server::start(|seen, _| {
        Answer::events(vec![
            seen.event(None, &json!({"task": task("AUTH_REQUIRED")})),
            Step::Pause(Duration::from_millis(30)),
            seen.event(None, &status("WORKING")),
            seen.event(None, &status("COMPLETED")),
            seen.event(None, &json!({"task": task("COMPLETED")})),
        ])
    })
    .await;
    assert_eq!(follow_well(&server.client()).await, ["task AuthRequired", "Working", "Completed", "task Completed"]);
}

#[tokio::test]
async fn what_happens_behind_the_last_event_does_not_matter() {
    let server = Server::start(|seen, n| {
        let end = [Step::Break, Step::Bytes(b"data: \xff\n\n".to_vec()), Step::Pause(Duration::from_secs(60))];
        Answer::events(vec![seen.event(None, &json!({"task": task("COMPLETED")})), end[n].clone()])
    })
    .await;
    let client = server.client();
    for _ in 0..3 {
        assert_eq!(follow_well(&client).await, ["task Completed"]);
    }
    assert_eq!(server.calls().len(), 3);
}

#[tokio::test]
async fn a_refusal_is_an_error_of_the_call() {
    let server = Server::start(|seen, n| match n {
        0 => seen.error(-32004, "no streams here"),
        1 => Answer::status(401, ""),
        _ => Answer::events(vec![Step::Bytes(
            format!(
                "event: error\ndata: {}\n\n",
                json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": {"code": -32603, "message": "crashed"}})
            )
            .into_bytes(),
        )]),
    })
    .await;
    let client = server.client();
    assert_eq!(client.stream(hello()).await.unwrap_err().kind(), Some(ErrorKind::UnsupportedOperation));
    assert!(matches!(client.stream(hello()).await.unwrap_err(), ClientError::Unauthorized { .. }));
    let (events, error) = follow(&client).await;
    assert_eq!((events.len(), error.unwrap().kind()), (0, Some(ErrorKind::Internal)));
}

#[tokio::test]
async fn a_plain_answer_is_a_short_stream() {
    let server = Server::start(|seen, _| seen.result(&json!({"task": task("COMPLETED")}))).await;
    assert_eq!(follow_well(&server.client()).await, ["task Completed"]);
}

/// The error of a stream that carries these bytes.
async fn error_of(steps: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> ClientError {
    let server = Server::start(move |seen, _| Answer::events(steps(seen))).await;
    follow(&server.client()).await.1.unwrap()
}

#[tokio::test]
async fn events_that_cannot_be_read_end_the_stream() {
    let error = error_of(|_| vec![Step::Bytes(b"data: {\"a\":\"\xff\"}\n\n".to_vec())]).await;
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    let error = error_of(|_| vec![Step::Bytes(b"data: nonsense\n\n".to_vec())]).await;
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    let error = error_of(|_| {
        let foreign = json!({"jsonrpc": "2.0", "id": 4711, "result": {"task": task("WORKING")}});
        vec![Step::Bytes(format!("data: {foreign}\n\n").into_bytes())]
    })
    .await;
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    let error = error_of(|_| vec![Step::Bytes(vec![b'x'; 1024 * 1024]); 17]).await;
    assert!(matches!(error, ClientError::TooLarge { limit: 16_777_216, .. }), "{error:?}");
}

#[tokio::test]
async fn a_stream_may_take_longer_than_an_answer() {
    let server = Server::start(|seen, _| {
        Answer::events(vec![
            seen.event(None, &json!({"task": task("WORKING")})),
            Step::Pause(Duration::from_millis(1300)),
            seen.event(None, &status("COMPLETED")),
        ])
    })
    .await;
    let client = Client::direct(&server.url, Options { timeout: Duration::from_secs(1), ..quick() }).unwrap();
    assert_eq!(follow_well(&client).await, ["task Working", "Completed"]);
    assert_eq!(server.calls().len(), 1);
}
