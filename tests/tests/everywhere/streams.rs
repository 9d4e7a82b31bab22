//! Streams: from the first event to the last, and from the middle.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use nuncio_client::{Event, SendOptions};
use nuncio_protocol::{Message, SendMessageConfiguration, SendMessageRequest, StreamResponse, Task, TaskState};
use nuncio_tests::{Value, json};
use serde_json::to_value;

use crate::kit::{all, at_once, heard, last_state, refused, reply, said, shown, text};
use crate::scenarios;
use crate::ways::Way;

scenarios! {
    "five pieces": Nothing, five_pieces;
    "a stream of one message": Nothing, one_message;
    "two hundred pieces in a burst": Nothing, burst;
    "a stream that fails": Nothing, failing;
    "thinking on a stream": Nothing, thinking;
    "a tool on a stream": Nothing, tool;
    "a stream that asks": Nothing, asking;
    "a stream with a short history": Nothing, short_history;
    "a stream without a history": V1, no_history;
    "a task followed from the middle": Nothing, followed;
    "a task continued after a number": Nothing, continued;
    "two followers see the same": Nothing, two_followers;
    "canceled in the middle": Nothing, canceled;
    "a stream that nobody reads on": Nothing, abandoned;
    "twenty streams at once": Nothing, twenty;
    "calls beside a stream": Nothing, beside;
    "a stream under a key": Nothing, under_key;
    "a file on a stream": Nothing, file;
    "following what is over": V1, over;
    "following what is not there": Nothing, missing;
}

fn pieces(count: usize) -> String {
    (0..count).map(|n| format!("chunk {n}")).collect()
}

async fn five_pieces(way: Way) -> Value {
    let events = way.stream(text("stream 5")).await;
    assert_eq!((heard(&events), last_state(&events)), (pieces(5), TaskState::Completed));
    let numbers: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "in order: {numbers:?}");
    shown(&events)
}

async fn one_message(way: Way) -> Value {
    let events = way.stream(text("message hi")).await;
    let [event] = &*events else { panic!("one event: {events:?}") };
    let StreamResponse::Message(message) = &event.response else { panic!("a message: {event:?}") };
    assert_eq!(message.text(), "hi");
    to_value(message).unwrap()
}

async fn burst(way: Way) -> Value {
    let events = way.stream(text("burst 200")).await;
    assert_eq!((heard(&events), last_state(&events)), (pieces(200), TaskState::Completed));
    json!(heard(&events))
}

async fn failing(way: Way) -> Value {
    let events = way.stream(text("fail on purpose")).await;
    assert_eq!(last_state(&events), TaskState::Failed);
    shown(&events)
}

async fn thinking(way: Way) -> Value {
    let events = way.stream(text("think hard")).await;
    let shown = shown(&events);
    assert!(shown.to_string().contains("urn:nuncio:a2a:thinking:v1"), "{shown}");
    shown
}

async fn tool(way: Way) -> Value {
    let events = way.stream(text("tool search")).await;
    let shown = shown(&events);
    assert!(shown.to_string().contains("urn:nuncio:a2a:tool:v1"), "{shown}");
    json!(events.len())
}

/// The task that a stream begins with.
fn task_first(events: &[Event]) -> &Task {
    let StreamResponse::Task(task) = &events[0].response else { panic!("a task: {:?}", events[0]) };
    task
}

fn with_history(mut request: SendMessageRequest, most: i32) -> SendMessageRequest {
    let configuration = request.configuration.get_or_insert_with(SendMessageConfiguration::default);
    configuration.history_length = Some(most);
    request
}

async fn short_history(way: Way) -> Value {
    let asked = way.send(text("ask why?")).await;
    let events = way.stream(with_history(reply(&asked, "because"), 1)).await;
    let words: Vec<_> = task_first(&events).history.iter().map(Message::text).collect();
    assert_eq!(words.len(), 1, "{words:?}");
    assert_eq!((heard(&events).as_str(), last_state(&events)), ("because", TaskState::Completed));
    let all = way.task(&asked.id).await.history.len();
    assert!(all > 1, "the task itself has all {all}");
    json!(events.iter().map(|event| event.seq).next())
}

async fn no_history(way: Way) -> Value {
    let events = way.stream(with_history(text("stream 2"), 0)).await;
    assert!(task_first(&events).history.is_empty(), "{events:?}");
    assert_eq!((heard(&events), last_state(&events)), (pieces(2), TaskState::Completed));
    let whole = way.stream(with_history(text("stream 2"), 1)).await;
    assert_eq!(task_first(&whole).history.len(), 1);
    shown(&events)
}

async fn asking(way: Way) -> Value {
    let mut asked = way.client.stream(text("ask why?")).await.expect("a stream");
    let mut first = Vec::new();
    // 1.0 keeps the stream open over the question, 0.3 ends it.
    while let Some(event) = asked.next().await {
        first.push(event.expect("an event"));
        if last_state_of(&first) == Some(TaskState::InputRequired) {
            break;
        }
    }
    let id = task_of(&first);
    let task = way.until(&id, TaskState::InputRequired).await;
    let rest = way.stream(reply(&task, "because")).await;
    assert_eq!((heard(&rest).as_str(), last_state(&rest)), ("because", TaskState::Completed));
    // How much of the rest is in the task that comes first is a matter of time.
    shown(&first)
}

async fn followed(way: Way) -> Value {
    let task = way.send(at_once(text("stream 30 20"))).await;
    let events = all(way.client.subscribe(task.id, None).await.expect("a stream")).await;
    assert!(matches!(events[0].response, StreamResponse::Task(_)), "the whole task first: {:?}", events[0]);
    assert_eq!((heard(&events), last_state(&events)), (pieces(30), TaskState::Completed));
    json!(heard(&events))
}

async fn continued(way: Way) -> Value {
    let mut stream = way.client.stream(text("stream 20 20")).await.expect("a stream");
    let mut events = Vec::new();
    while events.len() < 6 {
        events.push(stream.next().await.expect("more").expect("an event"));
    }
    drop(stream);
    let id = task_of(&events);
    let last = events.iter().filter_map(|event| event.seq).max();
    assert!(last.is_some(), "events are numbered");
    events.extend(all(way.client.subscribe(id, last).await.expect("a stream")).await);
    assert_eq!((heard(&events), last_state(&events)), (pieces(20), TaskState::Completed), "nothing twice, no gap");
    let numbers: Vec<_> = events.iter().map(|event| event.seq).collect();
    json!(numbers)
}

async fn two_followers(way: Way) -> Value {
    let task = way.send(at_once(text("stream 20 20"))).await;
    let one = way.client.subscribe(task.id.clone(), None).await.expect("a stream");
    let two = way.client.subscribe(task.id, None).await.expect("a stream");
    let (one, two) = tokio::join!(all(one), all(two));
    assert_eq!((heard(&one), heard(&two)), (pieces(20), pieces(20)));
    json!(last_state(&one) as i32)
}

async fn canceled(way: Way) -> Value {
    let mut stream = way.client.stream(text("stream 1000 20")).await.expect("a stream");
    let mut events = Vec::new();
    while events.len() < 5 {
        events.push(stream.next().await.expect("more").expect("an event"));
    }
    let id = task_of(&events);
    let task = way.cancel(&id).await.expect("canceled");
    assert_eq!(task.status.state, TaskState::Canceled);
    events.extend(all(stream).await);
    assert_eq!(last_state(&events), TaskState::Canceled);
    assert!(events.len() < 900, "it was in the middle");
    json!(task.status.state as i32)
}

async fn abandoned(way: Way) -> Value {
    let mut stream = way.client.stream(text("stream 20 10")).await.expect("a stream");
    let first = stream.next().await.expect("more").expect("an event");
    drop(stream);
    let task = way.until(&task_of(&[first]), TaskState::Completed).await;
    assert_eq!(said(&task), pieces(20), "whoever goes away changes nothing");
    json!(said(&task))
}

async fn twenty(way: Way) -> Value {
    let streams = (0..20).map(|_| {
        let way = way.clone();
        async move { heard(&way.stream(text("stream 10 5")).await) }
    });
    let heard = join_all(streams).await;
    assert!(heard.iter().all(|text| *text == pieces(10)), "{heard:?}");
    json!(heard.len())
}

async fn beside(way: Way) -> Value {
    let mut stream = way.client.stream(text("stream 40 20")).await.expect("a stream");
    let first = stream.next().await.expect("more").expect("an event");
    let id = task_of(std::slice::from_ref(&first));
    for n in 0..5 {
        assert_eq!(said(&way.send(text(&format!("beside {n}"))).await), format!("beside {n}"));
        assert_eq!(way.task(&id).await.id, id);
    }
    let mut events = vec![first];
    events.extend(all(stream).await);
    assert_eq!(heard(&events), pieces(40));
    json!(last_state(&events) as i32)
}

async fn under_key(way: Way) -> Value {
    let request = text("stream 5");
    let how = SendOptions::key(format!("key-{}", request.message.as_ref().unwrap().message_id.as_str()));
    let first = all(way.client.stream_with(request.clone(), &how).await.expect("a stream")).await;
    let again = all(way.client.stream_with(request, &how).await.expect("a stream")).await;
    assert_eq!(task_of(&first), task_of(&again), "one task");
    assert_eq!((heard(&first), heard(&again)), (pieces(5), pieces(5)));
    json!(last_state(&again) as i32)
}

async fn file(way: Way) -> Value {
    shown(&way.stream(text("file a.bin 300")).await)
}

async fn over(way: Way) -> Value {
    let task = way.send(text("hello")).await;
    refused(way.client.subscribe(task.id, None).await)
}

async fn missing(way: Way) -> Value {
    match way.client.subscribe("no-such-task".into(), None).await {
        Err(error) => crate::kit::error_json(&error),
        // 0.3 says so inside the stream.
        Ok(mut stream) => {
            let next = tokio::time::timeout(Duration::from_secs(10), stream.next()).await.expect("in time");
            refused(next.expect("an error"))
        }
    }
}

fn task_of(events: &[nuncio_client::Event]) -> nuncio_protocol::TaskId {
    match &events[0].response {
        StreamResponse::Task(task) => task.id.clone(),
        StreamResponse::StatusUpdate(update) => update.task_id.clone(),
        StreamResponse::ArtifactUpdate(update) => update.task_id.clone(),
        other => panic!("no task: {other:?}"),
    }
}

fn last_state_of(events: &[nuncio_client::Event]) -> Option<TaskState> {
    match &events.last()?.response {
        StreamResponse::Task(task) => Some(task.status.state),
        StreamResponse::StatusUpdate(update) => Some(update.status.state),
        _ => None,
    }
}
