//! What scenarios are made of.

use std::future::Future;
use std::pin::Pin;

use futures_util::StreamExt;
use nuncio_client::{ClientError, Event, EventStream};
use nuncio_protocol::{
    CancelTaskRequest, GetTaskRequest, Message, Part, SendMessageConfiguration, SendMessageRequest,
    SendMessageResponse, StreamResponse, Task, TaskId, TaskState,
};
use nuncio_tests::{Value, json};
use serde_json::to_value;

use crate::ways::Way;

/// Something that a caller does, and what it saw.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) play: fn(Way) -> Pin<Box<dyn Future<Output = Value> + Send>>,
}

/// What a way must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// The listing of tasks, and what else only 1.0 has.
    V1,
    /// Several callers.
    Callers,
}

impl Scenario {
    pub(crate) fn fits(&self, way: &Way) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::V1 => way.is_v1() && way.lists(),
            Needs::Callers => way.has_callers(),
        }
    }
}

/// A table of scenarios: `name: needs, |way| async { what it saw }`.
#[macro_export]
macro_rules! scenarios {
    ($($name:literal: $needs:ident, $play:path;)*) => {
        pub(crate) const SCENARIOS: &[$crate::kit::Scenario] = &[$(
            $crate::kit::Scenario {
                name: $name,
                needs: $crate::kit::Needs::$needs,
                play: |way| Box::pin($play(way)),
            },
        )*];
    };
}

/// A message with this text.
pub(crate) fn text(text: &str) -> SendMessageRequest {
    message(Message::from_user(vec![Part::text(text)]))
}

pub(crate) fn message(message: Message) -> SendMessageRequest {
    SendMessageRequest { message: Some(message), ..SendMessageRequest::default() }
}

/// A message with this text on a task.
pub(crate) fn reply(task: &Task, words: &str) -> SendMessageRequest {
    let mut message = Message::from_user(vec![Part::text(words)]);
    message.task_id = task.id.clone();
    message.context_id = task.context_id.clone();
    self::message(message)
}

/// Answered as soon as the task is stored.
pub(crate) fn at_once(mut request: SendMessageRequest) -> SendMessageRequest {
    let configuration = request.configuration.get_or_insert_with(SendMessageConfiguration::default);
    configuration.return_immediately = true;
    request
}

impl Way {
    /// Sends and gets a task.
    pub(crate) async fn send(&self, request: SendMessageRequest) -> Task {
        match self.client.send(request).await.expect("an answer") {
            SendMessageResponse::Task(task) => task,
            SendMessageResponse::Message(message) => panic!("a message: {message:?}"),
        }
    }

    /// A task that works until it is canceled.
    pub(crate) async fn held(&self) -> Task {
        self.send(at_once(text("hold"))).await
    }

    pub(crate) async fn task(&self, id: &TaskId) -> Task {
        self.client.get(GetTaskRequest { id: id.clone(), ..GetTaskRequest::default() }).await.expect("the task")
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<Task, ClientError> {
        self.client.cancel(CancelTaskRequest { id: id.clone(), ..CancelTaskRequest::default() }).await
    }

    /// The task as soon as it is in this state.
    pub(crate) async fn until(&self, id: &TaskId, state: TaskState) -> Task {
        loop {
            let task = self.task(id).await;
            if task.status.state == state {
                return task;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Streams to the end.
    pub(crate) async fn stream(&self, request: SendMessageRequest) -> Vec<Event> {
        all(self.client.stream(request).await.expect("a stream")).await
    }
}

/// All events up to the end.
pub(crate) async fn all(mut events: EventStream) -> Vec<Event> {
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event.expect("an event"));
    }
    all
}

/// Events with their numbers.
pub(crate) fn shown(events: &[Event]) -> Value {
    events.iter().map(|event| json!({ "seq": event.seq, "event": to_value(&event.response).unwrap() })).collect()
}

pub(crate) fn task_json(task: &Task) -> Value {
    to_value(task).unwrap()
}

/// The text of all artifacts.
pub(crate) fn said(task: &Task) -> String {
    task.artifacts.iter().flat_map(|artifact| &artifact.parts).filter_map(Part::as_text).collect()
}

/// The text that the updates of a stream add up to.
pub(crate) fn heard(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        match &event.response {
            StreamResponse::Task(task) => text = said(task),
            StreamResponse::ArtifactUpdate(update) => {
                text.extend(update.artifact.parts.iter().filter_map(Part::as_text));
            }
            _ => {}
        }
    }
    text
}

/// The state that a stream ends in.
pub(crate) fn last_state(events: &[Event]) -> TaskState {
    match &events.last().expect("an event").response {
        StreamResponse::Task(task) => task.status.state,
        StreamResponse::StatusUpdate(update) => update.status.state,
        other => panic!("neither task nor status: {other:?}"),
    }
}

/// What an error says.
pub(crate) fn error_json(error: &ClientError) -> Value {
    match error {
        ClientError::Agent(error) => {
            let violations: Vec<_> = error.violations.iter().map(|v| json!([v.field, v.description])).collect();
            json!({ "code": error.code, "message": error.message, "violations": violations })
        }
        ClientError::Unauthorized { status, .. } => json!({ "unauthorized": status }),
        other => panic!("an error of another kind: {other}"),
    }
}

/// The error of something that must fail.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Value {
    error_json(&result.expect_err("it is refused"))
}

/// The same value with ids by the order in which they appear and without times.
pub(crate) fn scrub(value: Value) -> Value {
    fn walk(value: &mut Value, seen: &mut Vec<String>) {
        match value {
            Value::String(text) if is_id(text) => {
                let at = seen.iter().position(|known| known == text).unwrap_or_else(|| {
                    seen.push(text.clone());
                    seen.len() - 1
                });
                *text = format!("id {at}");
            }
            Value::String(text) if is_time(text) => *text = "time".into(),
            Value::Array(list) => list.iter_mut().for_each(|value| walk(value, seen)),
            Value::Object(map) => map.values_mut().for_each(|value| walk(value, seen)),
            _ => {}
        }
    }
    let mut value = value;
    walk(&mut value, &mut Vec::new());
    value
}

fn is_id(text: &str) -> bool {
    let shape = |(i, c): (usize, char)| if matches!(i, 8 | 13 | 18 | 23) { c == '-' } else { c.is_ascii_hexdigit() };
    text.len() == 36 && text.chars().enumerate().all(shape)
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[4] == b'-' && text.as_bytes()[10] == b'T'
}
