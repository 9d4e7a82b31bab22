//! Messages, tasks and artifacts.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Dialect, Members, Out, Seq, Up, Word, part};
use crate::codec::{DecodeError, Metadata, Timestamp, int32_or_zero, or_default};
use crate::{self as model, ArtifactId, ContextId, MessageId, Role, TaskId, TaskState};

/// Reads an enum by the names of either dialect, or by number.
macro_rules! either {
    ($($(#[$doc:meta])* $name:ident($inner:ident) $parse:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default)]
        pub(super) struct $name(pub(super) $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Names;
                impl Visitor<'_> for Names {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("the name or number of a ", stringify!($inner)))
                    }
                    fn visit_str<E: Error>(self, name: &str) -> Result<$name, E> {
                        $parse(name).map($name).ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
                    }
                    fn visit_u64<E: Error>(self, n: u64) -> Result<$name, E> {
                        i64::try_from(n).ok().and_then($inner::from_number).map($name)
                            .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(n), &self))
                    }
                    fn visit_unit<E: Error>(self) -> Result<$name, E> {
                        Ok($name::default())
                    }
                }
                from.deserialize_any(Names)
            }
        }
    )*};
}

either! {
    /// The state of a task.
    State(TaskState) state;
    /// Who wrote a message.
    Author(Role) role;
}

fn state(name: &str) -> Option<TaskState> {
    Some(match name {
        "submitted" => TaskState::Submitted,
        "working" => TaskState::Working,
        "completed" => TaskState::Completed,
        "failed" => TaskState::Failed,
        "canceled" | "TASK_STATE_CANCELLED" => TaskState::Canceled,
        "input-required" => TaskState::InputRequired,
        "rejected" => TaskState::Rejected,
        "auth-required" => TaskState::AuthRequired,
        "unknown" => TaskState::Unspecified,
        name => return TaskState::from_name(name),
    })
}

fn role(name: &str) -> Option<Role> {
    match name {
        "user" => Some(Role::User),
        "agent" => Some(Role::Agent),
        name => Role::from_name(name),
    }
}

/// Whether either version knows a state by this name.
pub(crate) fn is_state(name: &str) -> bool {
    state(name).is_some()
}

/// Whether either version knows a role by this name.
pub(crate) fn is_role(name: &str) -> bool {
    role(name).is_some()
}

fn state_name(state: TaskState, dialect: Dialect) -> &'static str {
    match (dialect, state) {
        (Dialect::Rest, TaskState::Canceled) => "TASK_STATE_CANCELLED",
        (Dialect::Rest, state) => state.name(),
        (Dialect::Json, TaskState::Unspecified) => "unknown",
        (Dialect::Json, TaskState::Submitted) => "submitted",
        (Dialect::Json, TaskState::Working) => "working",
        (Dialect::Json, TaskState::Completed) => "completed",
        (Dialect::Json, TaskState::Failed) => "failed",
        (Dialect::Json, TaskState::Canceled) => "canceled",
        (Dialect::Json, TaskState::InputRequired) => "input-required",
        (Dialect::Json, TaskState::Rejected) => "rejected",
        (Dialect::Json, TaskState::AuthRequired) => "auth-required",
    }
}

fn role_name(role: Role, dialect: Dialect) -> &'static str {
    match (dialect, role) {
        (Dialect::Rest, role) => role.name(),
        (Dialect::Json, Role::Agent) => "agent",
        (Dialect::Json, Role::User | Role::Unspecified) => "user",
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Message {
    #[serde(alias = "message_id")]
    pub(super) message_id: MessageId,
    #[serde(alias = "context_id")]
    pub(super) context_id: ContextId,
    #[serde(alias = "task_id")]
    pub(super) task_id: TaskId,
    pub(super) role: Author,
    #[serde(alias = "content", deserialize_with = "or_default")]
    pub(super) parts: Vec<part::Part>,
    #[serde(deserialize_with = "or_default")]
    pub(super) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(super) extensions: Vec<String>,
    #[serde(alias = "reference_task_ids", deserialize_with = "or_default")]
    pub(super) reference_task_ids: Vec<TaskId>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Task {
    pub(super) id: TaskId,
    #[serde(alias = "context_id")]
    pub(super) context_id: ContextId,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: Status,
    #[serde(deserialize_with = "or_default")]
    pub(super) artifacts: Vec<Artifact>,
    #[serde(deserialize_with = "or_default")]
    pub(super) history: Vec<Message>,
    #[serde(deserialize_with = "or_default")]
    pub(super) metadata: Metadata,
}

/// Some of the tasks that were asked for.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Page {
    #[serde(deserialize_with = "or_default")]
    tasks: Vec<Task>,
    #[serde(alias = "next_page_token", deserialize_with = "or_default")]
    next_page_token: String,
    #[serde(alias = "page_size", deserialize_with = "int32_or_zero")]
    page_size: i32,
    #[serde(alias = "total_size", deserialize_with = "int32_or_zero")]
    total_size: i32,
}

impl Up<model::ListTasksResponse> for Page {
    fn up(self, dialect: Dialect) -> Result<model::ListTasksResponse, DecodeError> {
        Ok(model::ListTasksResponse {
            tasks: self.tasks.into_iter().map(|task| task.model(dialect)).collect(),
            next_page_token: self.next_page_token,
            page_size: self.page_size,
            total_size: self.total_size,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    state: State,
    #[serde(alias = "update")]
    message: Option<Message>,
    timestamp: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Artifact {
    #[serde(alias = "artifact_id")]
    artifact_id: ArtifactId,
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    description: String,
    #[serde(deserialize_with = "or_default")]
    parts: Vec<part::Part>,
    #[serde(deserialize_with = "or_default")]
    metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    extensions: Vec<String>,
}

impl Message {
    pub(super) fn model(self, dialect: Dialect) -> model::Message {
        model::Message {
            message_id: self.message_id,
            context_id: self.context_id,
            task_id: self.task_id,
            role: self.role.0,
            parts: part::up(self.parts, dialect),
            metadata: self.metadata,
            extensions: self.extensions,
            reference_task_ids: self.reference_task_ids,
        }
    }
}

impl Task {
    pub(super) fn model(self, dialect: Dialect) -> model::Task {
        model::Task {
            id: self.id,
            context_id: self.context_id,
            status: self.status.model(dialect),
            artifacts: self.artifacts.into_iter().map(|artifact| artifact.model(dialect)).collect(),
            history: self.history.into_iter().map(|message| message.model(dialect)).collect(),
            metadata: self.metadata,
        }
    }
}

impl Status {
    pub(super) fn model(self, dialect: Dialect) -> model::TaskStatus {
        let message = self.message.map(|message| message.model(dialect));
        model::TaskStatus { state: self.state.0, message, timestamp: self.timestamp }
    }
}

impl Artifact {
    pub(super) fn model(self, dialect: Dialect) -> model::Artifact {
        model::Artifact {
            artifact_id: self.artifact_id,
            name: self.name,
            description: self.description,
            parts: part::up(self.parts, dialect),
            metadata: self.metadata,
            extensions: self.extensions,
        }
    }
}

impl Up<model::Message> for Message {
    fn up(self, dialect: Dialect) -> Result<model::Message, DecodeError> {
        Ok(self.model(dialect))
    }
}

impl Up<model::Task> for Task {
    fn up(self, dialect: Dialect) -> Result<model::Task, DecodeError> {
        Ok(self.model(dialect))
    }
}

impl Serialize for Out<'_, model::Message> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(message, dialect) = self;
        let parts = Seq(&message.parts, dialect);
        let mut map = to.serialize_struct("", 1)?;
        if dialect == Dialect::Json {
            map.serialize_field("kind", &Word("message"))?;
        }
        map.serialize_field("messageId", &message.message_id)?;
        map.text("contextId", message.context_id.as_str())?;
        map.text("taskId", message.task_id.as_str())?;
        map.serialize_field("role", &Word(role_name(message.role, dialect)))?;
        map.serialize_field(if dialect == Dialect::Json { "parts" } else { "content" }, &parts)?;
        map.object("metadata", &message.metadata)?;
        map.list("extensions", &message.extensions)?;
        if dialect == Dialect::Json {
            map.list("referenceTaskIds", &message.reference_task_ids)?;
        }
        map.end()
    }
}

impl Serialize for Out<'_, model::Task> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(task, dialect) = self;
        let mut map = to.serialize_struct("", 1)?;
        if dialect == Dialect::Json {
            map.serialize_field("kind", &Word("task"))?;
        }
        map.serialize_field("id", &task.id)?;
        map.serialize_field("contextId", &task.context_id)?;
        map.serialize_field("status", &Out(&task.status, dialect))?;
        if !task.artifacts.is_empty() {
            map.serialize_field("artifacts", &Seq(&task.artifacts, dialect))?;
        }
        if !task.history.is_empty() {
            map.serialize_field("history", &Seq(&task.history, dialect))?;
        }
        map.object("metadata", &task.metadata)?;
        map.end()
    }
}

impl Serialize for Out<'_, model::TaskStatus> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(status, dialect) = self;
        let mut map = to.serialize_struct("", 1)?;
        map.serialize_field("state", &Word(state_name(status.state, dialect)))?;
        map.some("message", status.message.as_ref().map(|message| Out(message, dialect)).as_ref())?;
        map.some("timestamp", status.timestamp.as_ref())?;
        map.end()
    }
}

impl Serialize for Out<'_, model::Artifact> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(artifact, dialect) = self;
        let mut map = to.serialize_struct("", 1)?;
        map.serialize_field("artifactId", &artifact.artifact_id)?;
        map.text("name", &artifact.name)?;
        map.text("description", &artifact.description)?;
        map.serialize_field("parts", &Seq(&artifact.parts, dialect))?;
        map.object("metadata", &artifact.metadata)?;
        map.list("extensions", &artifact.extensions)?;
        map.end()
    }
}
