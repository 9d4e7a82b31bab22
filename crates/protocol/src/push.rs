//! Webhook configurations.

use serde::{Deserialize, Serialize};

use crate::codec::or_default;
use crate::{PushId, TaskId};

/// Where and how to tell a client about a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskPushNotificationConfig {
    /// Routing value of the interface.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// Its id inside the task.
    #[serde(skip_serializing_if = "PushId::is_empty")]
    pub id: PushId,
    /// The task.
    #[serde(alias = "task_id", skip_serializing_if = "TaskId::is_empty")]
    pub task_id: TaskId,
    /// Where to post.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// Sent along so that the receiver knows the sender.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// Credentials for the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationInfo>,
}

/// Credentials for a webhook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthenticationInfo {
    /// An HTTP authentication scheme.
    #[serde(deserialize_with = "or_default")]
    pub scheme: String,
    /// What follows the scheme in the header.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub credentials: String,
}
