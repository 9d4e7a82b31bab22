//! The events of a stream, and the answer to a send: told apart by `kind` or by a wrapper.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use super::task::{Artifact, Author, Message, Status, Task};
use super::{Dialect, Members, Out, Up, Word, part};
use crate::codec::{DecodeError, Metadata, or_default};
use crate::{
    ContextId, MessageId, SendMessageResponse, StreamResponse, TaskArtifactUpdateEvent, TaskId, TaskState,
    TaskStatusUpdateEvent,
};

/// Every member that any event can have, so that one pass suffices whatever comes first.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Event {
    kind: Option<String>,
    // Wrapped, as REST has it.
    task: Option<Task>,
    #[serde(alias = "msg")]
    message: Option<Message>,
    #[serde(alias = "status_update")]
    status_update: Option<StatusUpdate>,
    #[serde(alias = "artifact_update")]
    artifact_update: Option<ArtifactUpdate>,
    // Bare, as JSON-RPC has it.
    id: TaskId,
    #[serde(alias = "task_id")]
    task_id: TaskId,
    #[serde(alias = "context_id")]
    context_id: ContextId,
    #[serde(alias = "message_id")]
    message_id: Option<MessageId>,
    role: Author,
    #[serde(alias = "content", deserialize_with = "or_default")]
    parts: Vec<part::Part>,
    status: Option<Status>,
    artifact: Option<Artifact>,
    #[serde(deserialize_with = "or_default")]
    append: bool,
    #[serde(alias = "last_chunk", deserialize_with = "or_default")]
    last_chunk: bool,
    #[serde(deserialize_with = "or_default")]
    artifacts: Vec<Artifact>,
    #[serde(deserialize_with = "or_default")]
    history: Vec<Message>,
    #[serde(deserialize_with = "or_default")]
    metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    extensions: Vec<String>,
    #[serde(alias = "reference_task_ids", deserialize_with = "or_default")]
    reference_task_ids: Vec<TaskId>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StatusUpdate {
    #[serde(alias = "task_id")]
    task_id: TaskId,
    #[serde(alias = "context_id")]
    context_id: ContextId,
    #[serde(deserialize_with = "or_default")]
    status: Status,
    #[serde(deserialize_with = "or_default")]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ArtifactUpdate {
    #[serde(alias = "task_id")]
    task_id: TaskId,
    #[serde(alias = "context_id")]
    context_id: ContextId,
    #[serde(deserialize_with = "or_default")]
    artifact: Artifact,
    #[serde(deserialize_with = "or_default")]
    append: bool,
    #[serde(alias = "last_chunk", deserialize_with = "or_default")]
    last_chunk: bool,
    #[serde(deserialize_with = "or_default")]
    metadata: Metadata,
}

/// One event, its shape settled.
enum Payload {
    Task(Task),
    Message(Message),
    Status(StatusUpdate),
    Artifact(ArtifactUpdate),
}

impl Event {
    fn payload(mut self) -> Result<Payload, DecodeError> {
        let wrapped = [
            self.task.take().map(Payload::Task),
            self.message.take().map(Payload::Message),
            self.status_update.take().map(Payload::Status),
            self.artifact_update.take().map(Payload::Artifact),
        ];
        let mut wrapped = wrapped.into_iter().flatten();
        match (wrapped.next(), wrapped.next()) {
            (Some(payload), None) => Ok(payload),
            (Some(_), Some(_)) => {
                Err(wrong("", "more than one of `task`, `message`, `statusUpdate`, `artifactUpdate`"))
            }
            (None, _) => self.bare(),
        }
    }

    fn bare(self) -> Result<Payload, DecodeError> {
        match self.kind.as_deref() {
            Some("task") => Ok(Payload::Task(self.into_task())),
            Some("message") => Ok(Payload::Message(self.into_message())),
            Some("status-update") => Ok(Payload::Status(self.into_status())),
            Some("artifact-update") => Ok(Payload::Artifact(self.into_artifact())),
            Some(_) => Err(wrong("kind", "expected `task`, `message`, `status-update` or `artifact-update`")),
            None if self.message_id.is_some() => Ok(Payload::Message(self.into_message())),
            None if self.artifact.is_some() => Ok(Payload::Artifact(self.into_artifact())),
            None if self.status.is_some() && self.id.is_empty() => Ok(Payload::Status(self.into_status())),
            None if !self.id.is_empty() => Ok(Payload::Task(self.into_task())),
            None => Err(wrong("", "neither a task nor a message nor an update of one")),
        }
    }

    fn into_task(self) -> Task {
        Task {
            id: self.id,
            context_id: self.context_id,
            status: self.status.unwrap_or_default(),
            artifacts: self.artifacts,
            history: self.history,
            metadata: self.metadata,
        }
    }

    fn into_message(self) -> Message {
        Message {
            message_id: self.message_id.unwrap_or_default(),
            context_id: self.context_id,
            task_id: self.task_id,
            role: self.role,
            parts: self.parts,
            metadata: self.metadata,
            extensions: self.extensions,
            reference_task_ids: self.reference_task_ids,
        }
    }

    fn into_status(self) -> StatusUpdate {
        StatusUpdate {
            task_id: self.task_id,
            context_id: self.context_id,
            status: self.status.unwrap_or_default(),
            metadata: self.metadata,
        }
    }

    fn into_artifact(self) -> ArtifactUpdate {
        ArtifactUpdate {
            task_id: self.task_id,
            context_id: self.context_id,
            artifact: self.artifact.unwrap_or_default(),
            append: self.append,
            last_chunk: self.last_chunk,
            metadata: self.metadata,
        }
    }
}

fn wrong(path: &str, what: &str) -> DecodeError {
    DecodeError::Shape { path: path.into(), what: what.into() }
}

impl Up<StreamResponse> for Event {
    fn up(self, dialect: Dialect) -> Result<StreamResponse, DecodeError> {
        Ok(match self.payload()? {
            Payload::Task(task) => StreamResponse::Task(task.model(dialect)),
            Payload::Message(message) => StreamResponse::Message(message.model(dialect)),
            Payload::Status(event) => StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
                task_id: event.task_id,
                context_id: event.context_id,
                status: event.status.model(dialect),
                metadata: event.metadata,
            }),
            Payload::Artifact(event) => StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                task_id: event.task_id,
                context_id: event.context_id,
                artifact: event.artifact.model(dialect),
                append: event.append,
                last_chunk: event.last_chunk,
                metadata: event.metadata,
            }),
        })
    }
}

impl Up<SendMessageResponse> for Event {
    fn up(self, dialect: Dialect) -> Result<SendMessageResponse, DecodeError> {
        match self.payload()? {
            Payload::Task(task) => Ok(SendMessageResponse::Task(task.model(dialect))),
            Payload::Message(message) => Ok(SendMessageResponse::Message(message.model(dialect))),
            Payload::Status(_) | Payload::Artifact(_) => Err(wrong("kind", "expected `task` or `message`")),
        }
    }
}

/// Writes a payload bare or under its name, as the dialect has it.
fn payload<'a, T, S>(name: &'static str, value: &'a T, dialect: Dialect, to: S) -> Result<S::Ok, S::Error>
where
    Out<'a, T>: Serialize,
    S: Serializer,
{
    let value = Out(value, dialect);
    if dialect == Dialect::Json {
        return value.serialize(to);
    }
    let mut map = to.serialize_struct("", 1)?;
    map.serialize_field(name, &value)?;
    map.end()
}

impl Serialize for Out<'_, StreamResponse> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            StreamResponse::Task(task) => payload("task", task, self.1, to),
            StreamResponse::Message(message) => payload("message", message, self.1, to),
            StreamResponse::StatusUpdate(event) => payload("statusUpdate", event, self.1, to),
            StreamResponse::ArtifactUpdate(event) => payload("artifactUpdate", event, self.1, to),
        }
    }
}

impl Serialize for Out<'_, SendMessageResponse> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            SendMessageResponse::Task(task) => payload("task", task, self.1, to),
            SendMessageResponse::Message(message) => payload("message", message, self.1, to),
        }
    }
}

/// Streams of 0.3 end when the client has to speak, not only when the task is over.
pub(crate) fn is_final(state: TaskState) -> bool {
    state.is_terminal() || state == TaskState::InputRequired
}

impl Serialize for Out<'_, TaskStatusUpdateEvent> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(event, dialect) = self;
        let mut map = to.serialize_struct("", 1)?;
        if dialect == Dialect::Json {
            map.serialize_field("kind", &Word("status-update"))?;
        }
        map.serialize_field("taskId", &event.task_id)?;
        map.serialize_field("contextId", &event.context_id)?;
        map.serialize_field("status", &Out(&event.status, dialect))?;
        map.serialize_field("final", &is_final(event.status.state))?;
        map.object("metadata", &event.metadata)?;
        map.end()
    }
}

impl Serialize for Out<'_, TaskArtifactUpdateEvent> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(event, dialect) = self;
        let mut map = to.serialize_struct("", 1)?;
        if dialect == Dialect::Json {
            map.serialize_field("kind", &Word("artifact-update"))?;
        }
        map.serialize_field("taskId", &event.task_id)?;
        map.serialize_field("contextId", &event.context_id)?;
        map.serialize_field("artifact", &Out(&event.artifact, dialect))?;
        map.serialize_field("append", &event.append)?;
        map.serialize_field("lastChunk", &event.last_chunk)?;
        map.object("metadata", &event.metadata)?;
        map.end()
    }
}
