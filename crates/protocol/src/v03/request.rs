//! What clients ask for.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use super::push::{Hook, Inner, ids, name, task_name};
use super::task::Message;
use super::{Dialect, Members, Out, Up};
use crate::codec::{DecodeError, Metadata, int32, int32_or_zero, or_default};
use crate::{
    CancelTaskRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest, PushId, SendMessageConfiguration,
    SendMessageRequest, SubscribeToTaskRequest, TaskId, TaskPushNotificationConfigRequest,
};

/// What a send asks for.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Send {
    #[serde(alias = "request")]
    message: Option<Message>,
    configuration: Option<Configuration>,
    #[serde(deserialize_with = "or_default")]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Configuration {
    #[serde(alias = "accepted_output_modes", deserialize_with = "or_default")]
    accepted_output_modes: Vec<String>,
    blocking: Option<bool>,
    #[serde(alias = "history_length", deserialize_with = "int32")]
    history_length: Option<i32>,
    #[serde(alias = "push_notification_config", alias = "pushNotification", alias = "push_notification")]
    push_notification_config: Option<Hook>,
}

impl Configuration {
    fn model(self, dialect: Dialect) -> SendMessageConfiguration {
        // ProtoJSON leaves out what is false, so there an absent `blocking` is a client that does not wait.
        let blocking = self.blocking.unwrap_or(dialect == Dialect::Json);
        SendMessageConfiguration {
            accepted_output_modes: self.accepted_output_modes,
            task_push_notification_config: self.push_notification_config.map(Hook::model),
            history_length: history_length(self.history_length, dialect),
            return_immediately: !blocking,
        }
    }
}

/// Zero cannot be told from absent in the REST dialect.
fn history_length(length: Option<i32>, dialect: Dialect) -> Option<i32> {
    length.filter(|&length| length != 0 || dialect == Dialect::Json)
}

impl Up<SendMessageRequest> for Send {
    fn up(self, dialect: Dialect) -> Result<SendMessageRequest, DecodeError> {
        Ok(SendMessageRequest {
            tenant: String::new(),
            message: self.message.map(|message| message.model(dialect)),
            configuration: self.configuration.map(|configuration| configuration.model(dialect)),
            metadata: self.metadata,
        })
    }
}

/// A request that only names something: by id in JSON-RPC, by a resource name in REST.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Named {
    #[serde(alias = "taskId", alias = "task_id")]
    id: TaskId,
    #[serde(alias = "parent", deserialize_with = "or_default")]
    name: String,
    #[serde(alias = "push_notification_config_id", alias = "configId", alias = "config_id")]
    push_notification_config_id: PushId,
    #[serde(alias = "history_length", deserialize_with = "int32")]
    history_length: Option<i32>,
    #[serde(alias = "page_size", deserialize_with = "int32_or_zero")]
    page_size: i32,
    #[serde(alias = "page_token", deserialize_with = "or_default")]
    page_token: String,
    #[serde(deserialize_with = "or_default")]
    metadata: Metadata,
}

impl Named {
    fn task(&self) -> TaskId {
        if self.id.is_empty() { task_name(&self.name).into() } else { self.id.clone() }
    }
}

impl Up<GetTaskRequest> for Named {
    fn up(self, dialect: Dialect) -> Result<GetTaskRequest, DecodeError> {
        let history_length = history_length(self.history_length, dialect);
        Ok(GetTaskRequest { tenant: String::new(), id: self.task(), history_length })
    }
}

impl Up<CancelTaskRequest> for Named {
    fn up(self, _: Dialect) -> Result<CancelTaskRequest, DecodeError> {
        Ok(CancelTaskRequest { tenant: String::new(), id: self.task(), metadata: self.metadata })
    }
}

impl Up<SubscribeToTaskRequest> for Named {
    fn up(self, _: Dialect) -> Result<SubscribeToTaskRequest, DecodeError> {
        Ok(SubscribeToTaskRequest { tenant: String::new(), id: self.task() })
    }
}

impl Up<TaskPushNotificationConfigRequest> for Named {
    fn up(self, _: Dialect) -> Result<TaskPushNotificationConfigRequest, DecodeError> {
        let (task_id, id) = ids(&self.name, self.push_notification_config_id.as_str());
        let mut request = TaskPushNotificationConfigRequest {
            tenant: String::new(),
            task_id: self.id,
            id: self.push_notification_config_id,
        };
        if request.task_id.is_empty() {
            request.task_id = task_id.into();
        }
        if request.id.is_empty() {
            request.id = id.into();
        }
        Ok(request)
    }
}

impl Up<ListTaskPushNotificationConfigsRequest> for Named {
    fn up(self, _: Dialect) -> Result<ListTaskPushNotificationConfigsRequest, DecodeError> {
        Ok(ListTaskPushNotificationConfigsRequest {
            tenant: String::new(),
            task_id: self.task(),
            page_size: self.page_size,
            page_token: self.page_token,
        })
    }
}

impl Serialize for Out<'_, SendMessageRequest> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(request, dialect) = self;
        let key = if dialect == Dialect::Json { "message" } else { "request" };
        let mut map = to.serialize_struct("", 1)?;
        map.some(key, request.message.as_ref().map(|message| Out(message, dialect)).as_ref())?;
        let configuration = request.configuration.as_ref().map(|configuration| Out(configuration, dialect));
        map.some("configuration", configuration.as_ref())?;
        map.object("metadata", &request.metadata)?;
        map.end()
    }
}

impl Serialize for Out<'_, SendMessageConfiguration> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(configuration, dialect) = self;
        let key = if dialect == Dialect::Json { "pushNotificationConfig" } else { "pushNotification" };
        let mut map = to.serialize_struct("", 1)?;
        map.list("acceptedOutputModes", &configuration.accepted_output_modes)?;
        map.serialize_field("blocking", &!configuration.return_immediately)?;
        map.some("historyLength", configuration.history_length.as_ref())?;
        map.some(key, configuration.task_push_notification_config.as_ref().map(Inner).as_ref())?;
        map.end()
    }
}

/// Starts a request with the task that it names.
fn task<M: SerializeStruct>(map: &mut M, id: &TaskId, dialect: Dialect) -> Result<(), M::Error> {
    match dialect {
        Dialect::Json => map.serialize_field("id", id),
        Dialect::Rest => map.serialize_field("name", &format!("tasks/{id}")),
    }
}

impl Serialize for Out<'_, GetTaskRequest> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        task(&mut map, &self.0.id, self.1)?;
        map.some("historyLength", self.0.history_length.as_ref())?;
        map.end()
    }
}

impl Serialize for Out<'_, CancelTaskRequest> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        task(&mut map, &self.0.id, self.1)?;
        if self.1 == Dialect::Json {
            map.object("metadata", &self.0.metadata)?;
        }
        map.end()
    }
}

impl Serialize for Out<'_, SubscribeToTaskRequest> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        task(&mut map, &self.0.id, self.1)?;
        map.end()
    }
}

impl Serialize for Out<'_, TaskPushNotificationConfigRequest> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(request, dialect) = self;
        let mut map = to.serialize_struct("", 1)?;
        match dialect {
            Dialect::Json => {
                map.serialize_field("id", &request.task_id)?;
                map.text("pushNotificationConfigId", request.id.as_str())?;
            }
            Dialect::Rest => map.serialize_field("name", &name(&request.task_id, &request.id))?,
        }
        map.end()
    }
}

impl Serialize for Out<'_, ListTaskPushNotificationConfigsRequest> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(request, dialect) = self;
        let mut map = to.serialize_struct("", 1)?;
        match dialect {
            Dialect::Json => map.serialize_field("id", &request.task_id)?,
            Dialect::Rest => {
                map.serialize_field("parent", &format!("tasks/{}", request.task_id))?;
                if request.page_size != 0 {
                    map.serialize_field("pageSize", &request.page_size)?;
                }
                map.text("pageToken", &request.page_token)?;
            }
        }
        map.end()
    }
}
