//! What a stream carries.

use serde::{Deserialize, Serialize};

use crate::codec::{Metadata, is_false, one_of, or_default};
use crate::message::Message;
use crate::task::{Artifact, Task, TaskStatus};
use crate::{ContextId, TaskId};

one_of! {
    /// One event of a stream.
    StreamResponse {
        /// The whole task.
        Task(Task) = "task",
        /// A direct answer.
        Message(Message) = "message",
        /// The task's state changed, or the agent said something about it.
        StatusUpdate(TaskStatusUpdateEvent) = "statusUpdate" | "status_update",
        /// An artifact was made or grew.
        ArtifactUpdate(TaskArtifactUpdateEvent) = "artifactUpdate" | "artifact_update",
    }
}

one_of! {
    /// What a send answers with.
    SendMessageResponse {
        /// The task that the message started or continued.
        Task(Task) = "task",
        /// A direct answer.
        Message(Message) = "message",
    }
}

/// The state of a task changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskStatusUpdateEvent {
    /// The task.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// Its conversation.
    #[serde(alias = "context_id")]
    pub context_id: ContextId,
    /// The new status.
    #[serde(deserialize_with = "or_default")]
    pub status: TaskStatus,
    /// Data of whoever wrote it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// An artifact was made or grew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskArtifactUpdateEvent {
    /// The task.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// Its conversation.
    #[serde(alias = "context_id")]
    pub context_id: ContextId,
    /// The artifact, or the piece to append to it.
    #[serde(deserialize_with = "or_default")]
    pub artifact: Artifact,
    /// Whether the parts are added to the artifact with this id instead of replacing it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_false")]
    pub append: bool,
    /// Whether the artifact is complete with this.
    #[serde(alias = "last_chunk", deserialize_with = "or_default", skip_serializing_if = "is_false")]
    pub last_chunk: bool,
    /// Data of whoever wrote it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}
