//! What clients of 1.0 ask for.

use super::{Down, Up, at, same, v1, wrong};
use crate::codec::DecodeError;
use crate::{
    AuthenticationInfo, CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, ListTasksRequest,
    ListTasksResponse, SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig, TaskPushNotificationConfigRequest, TaskState,
};

same! {
    SendMessageRequest = v1::SendMessageRequest { tenant, message, configuration, metadata }
    SendMessageConfiguration = v1::SendMessageConfiguration {
        accepted_output_modes, task_push_notification_config, history_length, return_immediately,
    }
    GetTaskRequest = v1::GetTaskRequest { tenant, id, history_length }
    ListTasksResponse = v1::ListTasksResponse { tasks, next_page_token, page_size, total_size }
    CancelTaskRequest = v1::CancelTaskRequest { tenant, id, metadata }
    SubscribeToTaskRequest = v1::SubscribeToTaskRequest { tenant, id }
    GetExtendedAgentCardRequest = v1::GetExtendedAgentCardRequest { tenant }
    TaskPushNotificationConfig = v1::TaskPushNotificationConfig { tenant, id, task_id, url, token, authentication }
    AuthenticationInfo = v1::AuthenticationInfo { scheme, credentials }
    TaskPushNotificationConfigRequest =
        v1::GetTaskPushNotificationConfigRequest, v1::DeleteTaskPushNotificationConfigRequest { tenant, task_id, id }
    ListTaskPushNotificationConfigsRequest = v1::ListTaskPushNotificationConfigsRequest {
        task_id, page_size, page_token, tenant,
    }
    ListTaskPushNotificationConfigsResponse = v1::ListTaskPushNotificationConfigsResponse { configs, next_page_token }
}

impl Down<ListTasksRequest> for v1::ListTasksRequest {
    fn down(model: ListTasksRequest) -> Self {
        Self {
            tenant: model.tenant,
            context_id: Down::down(model.context_id),
            status: i32::down(model.status),
            page_size: model.page_size,
            page_token: model.page_token,
            history_length: model.history_length,
            status_timestamp_after: Down::down(model.status_timestamp_after),
            include_artifacts: model.include_artifacts,
        }
    }
}

impl Up<v1::ListTasksRequest> for ListTasksRequest {
    fn up(wire: v1::ListTasksRequest) -> Result<Self, DecodeError> {
        // Whoever asks for a state that nobody knows must not get tasks in all states.
        let status = TaskState::from_number(wire.status.into()).ok_or_else(|| wrong("is not a task state"));
        Ok(Self {
            tenant: wire.tenant,
            context_id: wire.context_id.into(),
            status: at("status", status)?,
            page_size: wire.page_size,
            page_token: wire.page_token,
            history_length: wire.history_length,
            status_timestamp_after: at("status_timestamp_after", Up::up(wire.status_timestamp_after))?,
            include_artifacts: wire.include_artifacts,
        })
    }
}
