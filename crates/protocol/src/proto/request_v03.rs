//! What clients of 0.3 ask for: things have names, such as `tasks/{id}`, and numbers have no presence.

use super::{Down, Up, at, v03};
use crate::codec::DecodeError;
use crate::v03::{config_ids, config_name, task_name};
use crate::{
    AuthenticationInfo, CancelTaskRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, PushId, SendMessageConfiguration, SendMessageRequest,
    SubscribeToTaskRequest, TaskId, TaskPushNotificationConfig, TaskPushNotificationConfigRequest,
};

fn name_of(task: &TaskId) -> String {
    format!("tasks/{task}")
}

impl Down<SendMessageRequest> for v03::SendMessageRequest {
    fn down(model: SendMessageRequest) -> Self {
        Self {
            request: Down::down(model.message),
            configuration: Down::down(model.configuration),
            metadata: Down::down(model.metadata),
        }
    }
}

impl Up<v03::SendMessageRequest> for SendMessageRequest {
    fn up(wire: v03::SendMessageRequest) -> Result<Self, DecodeError> {
        Ok(Self {
            tenant: String::new(),
            message: at("message", Up::up(wire.request))?,
            configuration: at("configuration", Up::up(wire.configuration))?,
            metadata: at("metadata", Up::up(wire.metadata))?,
        })
    }
}

impl Down<SendMessageConfiguration> for v03::SendMessageConfiguration {
    fn down(model: SendMessageConfiguration) -> Self {
        Self {
            accepted_output_modes: model.accepted_output_modes,
            push_notification: Down::down(model.task_push_notification_config),
            history_length: model.history_length.unwrap_or_default(),
            blocking: !model.return_immediately,
        }
    }
}

impl Up<v03::SendMessageConfiguration> for SendMessageConfiguration {
    fn up(wire: v03::SendMessageConfiguration) -> Result<Self, DecodeError> {
        Ok(Self {
            accepted_output_modes: wire.accepted_output_modes,
            task_push_notification_config: Up::up(wire.push_notification)?,
            history_length: Some(wire.history_length).filter(|&length| length != 0),
            return_immediately: !wire.blocking,
        })
    }
}

impl Down<GetTaskRequest> for v03::GetTaskRequest {
    fn down(model: GetTaskRequest) -> Self {
        Self { name: name_of(&model.id), history_length: model.history_length.unwrap_or_default() }
    }
}

impl Up<v03::GetTaskRequest> for GetTaskRequest {
    fn up(wire: v03::GetTaskRequest) -> Result<Self, DecodeError> {
        let history_length = Some(wire.history_length).filter(|&length| length != 0);
        Ok(Self { tenant: String::new(), id: task_name(&wire.name).into(), history_length })
    }
}

impl Down<CancelTaskRequest> for v03::CancelTaskRequest {
    fn down(model: CancelTaskRequest) -> Self {
        Self { name: name_of(&model.id) }
    }
}

impl Up<v03::CancelTaskRequest> for CancelTaskRequest {
    fn up(wire: v03::CancelTaskRequest) -> Result<Self, DecodeError> {
        Ok(Self { id: task_name(&wire.name).into(), ..Self::default() })
    }
}

impl Down<SubscribeToTaskRequest> for v03::TaskSubscriptionRequest {
    fn down(model: SubscribeToTaskRequest) -> Self {
        Self { name: name_of(&model.id) }
    }
}

impl Up<v03::TaskSubscriptionRequest> for SubscribeToTaskRequest {
    fn up(wire: v03::TaskSubscriptionRequest) -> Result<Self, DecodeError> {
        Ok(Self { tenant: String::new(), id: task_name(&wire.name).into() })
    }
}

impl Down<AuthenticationInfo> for v03::AuthenticationInfo {
    fn down(model: AuthenticationInfo) -> Self {
        Self { schemes: vec![model.scheme], credentials: model.credentials }
    }
}

impl Up<v03::AuthenticationInfo> for AuthenticationInfo {
    fn up(wire: v03::AuthenticationInfo) -> Result<Self, DecodeError> {
        Ok(Self { scheme: wire.schemes.into_iter().next().unwrap_or_default(), credentials: wire.credentials })
    }
}

/// A webhook without its task.
impl Down<TaskPushNotificationConfig> for v03::PushNotificationConfig {
    fn down(model: TaskPushNotificationConfig) -> Self {
        Self {
            id: Down::down(model.id),
            url: model.url,
            token: model.token,
            authentication: Down::down(model.authentication),
        }
    }
}

impl Up<v03::PushNotificationConfig> for TaskPushNotificationConfig {
    fn up(wire: v03::PushNotificationConfig) -> Result<Self, DecodeError> {
        Ok(Self {
            id: wire.id.into(),
            url: wire.url,
            token: wire.token,
            authentication: Up::up(wire.authentication)?,
            ..Self::default()
        })
    }
}

impl Down<TaskPushNotificationConfig> for v03::TaskPushNotificationConfig {
    fn down(model: TaskPushNotificationConfig) -> Self {
        let name = config_name(&model.task_id, &model.id);
        Self { name, push_notification_config: Some(Down::down(model)) }
    }
}

impl Up<v03::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn up(wire: v03::TaskPushNotificationConfig) -> Result<Self, DecodeError> {
        let mut config = Self::up(wire.push_notification_config.unwrap_or_default())?;
        let (task, id) = config_ids(&wire.name, config.id.as_str());
        config.task_id = task.into();
        if config.id.is_empty() {
            config.id = id.into();
        }
        Ok(config)
    }
}

impl Down<TaskPushNotificationConfig> for v03::CreateTaskPushNotificationConfigRequest {
    fn down(model: TaskPushNotificationConfig) -> Self {
        let (parent, config_id) = (name_of(&model.task_id), Down::down(model.id.clone()));
        Self { parent, config_id, config: Some(Down::down(model)) }
    }
}

impl Up<v03::CreateTaskPushNotificationConfigRequest> for TaskPushNotificationConfig {
    fn up(wire: v03::CreateTaskPushNotificationConfigRequest) -> Result<Self, DecodeError> {
        let mut config = Self::up(wire.config.unwrap_or_default())?;
        if !wire.parent.is_empty() {
            config.task_id = task_name(&wire.parent).into();
        }
        if config.id.is_empty() {
            config.id = wire.config_id.into();
        }
        Ok(config)
    }
}

macro_rules! named {
    ($($wire:ident),*) => {$(
        impl Down<TaskPushNotificationConfigRequest> for v03::$wire {
            fn down(model: TaskPushNotificationConfigRequest) -> Self {
                Self { name: config_name(&model.task_id, &model.id) }
            }
        }

        impl Up<v03::$wire> for TaskPushNotificationConfigRequest {
            fn up(wire: v03::$wire) -> Result<Self, DecodeError> {
                let (task, id) = config_ids(&wire.name, "");
                Ok(Self { tenant: String::new(), task_id: task.into(), id: PushId::from(id) })
            }
        }
    )*};
}
named!(GetTaskPushNotificationConfigRequest, DeleteTaskPushNotificationConfigRequest);

impl Down<ListTaskPushNotificationConfigsRequest> for v03::ListTaskPushNotificationConfigRequest {
    fn down(model: ListTaskPushNotificationConfigsRequest) -> Self {
        Self { parent: name_of(&model.task_id), page_size: model.page_size, page_token: model.page_token }
    }
}

impl Up<v03::ListTaskPushNotificationConfigRequest> for ListTaskPushNotificationConfigsRequest {
    fn up(wire: v03::ListTaskPushNotificationConfigRequest) -> Result<Self, DecodeError> {
        Ok(Self {
            tenant: String::new(),
            task_id: task_name(&wire.parent).into(),
            page_size: wire.page_size,
            page_token: wire.page_token,
        })
    }
}

impl Down<ListTaskPushNotificationConfigsResponse> for v03::ListTaskPushNotificationConfigResponse {
    fn down(model: ListTaskPushNotificationConfigsResponse) -> Self {
        Self { configs: Down::down(model.configs), next_page_token: model.next_page_token }
    }
}

impl Up<v03::ListTaskPushNotificationConfigResponse> for ListTaskPushNotificationConfigsResponse {
    fn up(wire: v03::ListTaskPushNotificationConfigResponse) -> Result<Self, DecodeError> {
        Ok(Self { configs: at("configs", Up::up(wire.configs))?, next_page_token: wire.next_page_token })
    }
}
