//! What clients ask for, and what the lists that answer them look like.

use serde::{Deserialize, Serialize};

use crate::codec::{Metadata, Timestamp, Value, int32, int32_or_zero, is_false, is_zero, or_default};
use crate::error::Violation;
use crate::message::{Message, Role};
use crate::part::Content;
use crate::push::TaskPushNotificationConfig;
use crate::task::{Task, TaskState};
use crate::{ContextId, PushId, TaskId};

/// Asks the agent to do something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendMessageRequest {
    /// Routing value of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// How to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<SendMessageConfiguration>,
    /// Data of the client.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// How to answer a send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendMessageConfiguration {
    /// Media types that the client can show.
    #[serde(alias = "accepted_output_modes", deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    /// A webhook to register with the task.
    #[serde(alias = "task_push_notification_config", skip_serializing_if = "Option::is_none")]
    pub task_push_notification_config: Option<TaskPushNotificationConfig>,
    /// At most so many messages of history in the answer.
    #[serde(alias = "history_length", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    /// Whether to answer before the work is done.
    #[serde(alias = "return_immediately", deserialize_with = "or_default", skip_serializing_if = "is_false")]
    pub return_immediately: bool,
}

/// Asks for one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetTaskRequest {
    /// Routing value of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The task.
    pub id: TaskId,
    /// At most so many messages of history.
    #[serde(alias = "history_length", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
}

/// Asks for a page of tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTasksRequest {
    /// Routing value of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Only of this conversation.
    #[serde(alias = "context_id", skip_serializing_if = "ContextId::is_empty")]
    pub context_id: ContextId,
    /// Only in this state.
    #[serde(skip_serializing_if = "is_unspecified")]
    pub status: TaskState,
    /// At most so many, 1 to 100.
    #[serde(alias = "page_size", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i32>,
    /// From the page before.
    #[serde(alias = "page_token", deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub page_token: String,
    /// At most so many messages of history in each.
    #[serde(alias = "history_length", deserialize_with = "int32", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    /// Only tasks whose status is of this moment or later.
    #[serde(alias = "status_timestamp_after", skip_serializing_if = "Option::is_none")]
    pub status_timestamp_after: Option<Timestamp>,
    /// Whether artifacts are wanted.
    #[serde(alias = "include_artifacts", skip_serializing_if = "Option::is_none")]
    pub include_artifacts: Option<bool>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it with a reference
fn is_unspecified(state: &TaskState) -> bool {
    *state == TaskState::Unspecified
}

/// A page of tasks. All members are always written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTasksResponse {
    /// The tasks.
    #[serde(deserialize_with = "or_default")]
    pub tasks: Vec<Task>,
    /// For the page after; empty on the last.
    #[serde(alias = "next_page_token", deserialize_with = "or_default")]
    pub next_page_token: String,
    /// The page size that was used.
    #[serde(alias = "page_size", deserialize_with = "int32_or_zero")]
    pub page_size: i32,
    /// How many tasks match on all pages together.
    #[serde(alias = "total_size", deserialize_with = "int32_or_zero")]
    pub total_size: i32,
}

/// Asks to end a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CancelTaskRequest {
    /// Routing value of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The task.
    pub id: TaskId,
    /// Data of the client.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// Asks for the events of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscribeToTaskRequest {
    /// Routing value of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The task.
    pub id: TaskId,
}

/// Asks for the card that only known callers see.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetExtendedAgentCardRequest {
    /// Routing value of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
}

/// Names one webhook: to read or to delete it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskPushNotificationConfigRequest {
    /// Routing value of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The task.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// The webhook.
    pub id: PushId,
}

/// Asks for the webhooks of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTaskPushNotificationConfigsRequest {
    /// Routing value of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The task.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// At most so many; zero for the server's choice.
    #[serde(alias = "page_size", deserialize_with = "int32_or_zero", skip_serializing_if = "is_zero")]
    pub page_size: i32,
    /// From the page before.
    #[serde(alias = "page_token", deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub page_token: String,
}

/// The webhooks of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTaskPushNotificationConfigsResponse {
    /// The webhooks.
    #[serde(deserialize_with = "or_default")]
    pub configs: Vec<TaskPushNotificationConfig>,
    /// For the page after.
    #[serde(alias = "next_page_token", deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub next_page_token: String,
}

impl SendMessageRequest {
    /// So many tasks may a message refer to: each of them is looked up.
    pub const MOST_REFERENCES: usize = 100;

    /// Everything that is wrong with it, by field.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut wrong = |field: &str, what: &str| found.push(Violation::new(field, what));
        match &self.message {
            None => wrong("message", "is required"),
            Some(message) => {
                if message.message_id.is_empty() {
                    wrong("message.messageId", "is required");
                }
                match message.role {
                    Role::User => {}
                    Role::Unspecified => wrong("message.role", "is required"),
                    Role::Agent => wrong("message.role", "must be ROLE_USER in a message to an agent"),
                }
                if message.parts.is_empty() {
                    wrong("message.parts", "must not be empty");
                }
                if message.reference_task_ids.len() > Self::MOST_REFERENCES {
                    wrong("message.referenceTaskIds", "names more than 100 tasks");
                }
                if let Some(field) = too_deep(message) {
                    wrong(field, "nests deeper than 100 levels");
                }
            }
        }
        if let Some(configuration) = &self.configuration {
            if configuration.history_length.is_some_and(|n| n < 0) {
                wrong("configuration.historyLength", "must not be negative");
            }
            let push = configuration.task_push_notification_config.as_ref();
            if push.is_some_and(|push| push.url.is_empty()) {
                wrong("configuration.taskPushNotificationConfig.url", "is required");
            }
        }
        found
    }
}

impl GetTaskRequest {
    /// Everything that is wrong with it, by field.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = required("id", self.id.as_str());
        if self.history_length.is_some_and(|n| n < 0) {
            found.push(Violation::new("historyLength", "must not be negative"));
        }
        found
    }
}

impl ListTasksRequest {
    /// The size of a page when the client does not say.
    pub const DEFAULT_PAGE: i32 = 50;
    /// The largest page.
    pub const LARGEST_PAGE: i32 = 100;

    /// Everything that is wrong with it, by field.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        if self.page_size.is_some_and(|n| !(1..=Self::LARGEST_PAGE).contains(&n)) {
            found.push(Violation::new("pageSize", "must be from 1 to 100"));
        }
        if self.history_length.is_some_and(|n| n < 0) {
            found.push(Violation::new("historyLength", "must not be negative"));
        }
        found
    }
}

impl CancelTaskRequest {
    /// Everything that is wrong with it, by field.
    pub fn violations(&self) -> Vec<Violation> {
        required("id", self.id.as_str())
    }
}

impl SubscribeToTaskRequest {
    /// Everything that is wrong with it, by field.
    pub fn violations(&self) -> Vec<Violation> {
        required("id", self.id.as_str())
    }
}

/// How deep free-form JSON may nest. A message is kept inside larger objects, and readers of JSON
/// commonly stop at 128 levels.
const DEEPEST: usize = 100;

fn too_deep(message: &Message) -> Option<&'static str> {
    let parts = message.parts.iter();
    let deep = |map: &Metadata| map.values().any(|value| !is_within(value, DEEPEST - 1));
    if parts.clone().any(|part| matches!(&part.content, Content::Data(value) if !is_within(value, DEEPEST))) {
        return Some("message.parts.data");
    }
    if parts.clone().any(|part| deep(&part.metadata)) {
        return Some("message.parts.metadata");
    }
    deep(&message.metadata).then_some("message.metadata")
}

/// Whether a value has at most so many levels of arrays and objects.
fn is_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(all) => levels > 0 && all.iter().all(|value| is_within(value, levels - 1)),
        Value::Object(map) => levels > 0 && map.values().all(|value| is_within(value, levels - 1)),
        _ => true,
    }
}

fn required(field: &str, value: &str) -> Vec<Violation> {
    if value.is_empty() { vec![Violation::new(field, "is required")] } else { Vec::new() }
}
