//! Messages: what client and agent say to each other.

use serde::{Deserialize, Serialize};

use crate::codec::{Metadata, few, or_default, proto_enum};
use crate::part::Part;
use crate::{ContextId, MessageId, TaskId};

proto_enum! {
    /// Who wrote a message.
    Role {
        /// Not said.
        #[default]
        Unspecified = 0 "ROLE_UNSPECIFIED",
        /// The client.
        User = 1 "ROLE_USER",
        /// The agent.
        Agent = 2 "ROLE_AGENT",
    }
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Message {
    /// Made by the writer.
    #[serde(alias = "message_id")]
    pub message_id: MessageId,
    /// The conversation it belongs to.
    #[serde(alias = "context_id", skip_serializing_if = "ContextId::is_empty")]
    pub context_id: ContextId,
    /// The task it belongs to.
    #[serde(alias = "task_id", skip_serializing_if = "TaskId::is_empty")]
    pub task_id: TaskId,
    /// Who wrote it.
    pub role: Role,
    /// What it says.
    #[serde(deserialize_with = "few")]
    pub parts: Vec<Part>,
    /// Data of whoever wrote it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Extensions that contributed to it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Other tasks that it speaks of.
    #[serde(alias = "reference_task_ids", deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub reference_task_ids: Vec<TaskId>,
}

impl Message {
    /// A message of the agent with a fresh id.
    pub fn from_agent(parts: Vec<Part>) -> Self {
        Self { message_id: MessageId::fresh(), role: Role::Agent, parts, ..Self::default() }
    }

    /// A message of the client with a fresh id.
    pub fn from_user(parts: Vec<Part>) -> Self {
        Self { message_id: MessageId::fresh(), role: Role::User, parts, ..Self::default() }
    }

    /// All of its text, parts joined by line breaks.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    }
}
