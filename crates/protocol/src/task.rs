//! Tasks, their states and their artifacts.

use serde::{Deserialize, Serialize};

use crate::codec::{Metadata, Timestamp, few, or_default, proto_enum};
use crate::message::Message;
use crate::part::Part;
use crate::{ArtifactId, ContextId, TaskId};

proto_enum! {
    /// Where a task stands.
    TaskState {
        /// Not said, or not known to this version.
        #[default]
        Unspecified = 0 "TASK_STATE_UNSPECIFIED",
        /// Accepted, not begun.
        Submitted = 1 "TASK_STATE_SUBMITTED",
        /// Under way.
        Working = 2 "TASK_STATE_WORKING",
        /// Done.
        Completed = 3 "TASK_STATE_COMPLETED",
        /// Ended without success.
        Failed = 4 "TASK_STATE_FAILED",
        /// Ended because somebody asked for it.
        Canceled = 5 "TASK_STATE_CANCELED",
        /// Waits for an answer of the client.
        InputRequired = 6 "TASK_STATE_INPUT_REQUIRED",
        /// Refused by the agent.
        Rejected = 7 "TASK_STATE_REJECTED",
        /// Waits for credentials.
        AuthRequired = 8 "TASK_STATE_AUTH_REQUIRED",
    }
}

impl TaskState {
    /// No event follows.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Waits for the client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// A piece of work and all that is known of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Task {
    /// Made by the server.
    pub id: TaskId,
    /// The conversation it belongs to.
    #[serde(alias = "context_id", skip_serializing_if = "ContextId::is_empty")]
    pub context_id: ContextId,
    /// Where it stands.
    #[serde(deserialize_with = "or_default")]
    pub status: TaskStatus,
    /// What it has produced.
    #[serde(deserialize_with = "few", skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// What was said, oldest first.
    #[serde(deserialize_with = "few", skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// Data of whoever wrote it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// The state of a task at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskStatus {
    /// The state.
    pub state: TaskState,
    /// What the agent says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

/// A result of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Artifact {
    /// Unique inside its task.
    #[serde(alias = "artifact_id")]
    pub artifact_id: ArtifactId,
    /// A name for people.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it is.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What it holds.
    #[serde(deserialize_with = "few")]
    pub parts: Vec<Part>,
    /// Data of whoever wrote it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Extensions that contributed to it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}
