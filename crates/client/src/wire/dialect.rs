//! What is said, apart from how it is carried: the JSON of 1.0, and the two forms of 0.3.

use nuncio_protocol::codec::{self, DecodeError};
use nuncio_protocol::v03;
use nuncio_protocol::{
    CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
    TaskPushNotificationConfigRequest,
};

use super::{Binding, Version};

/// One operation and what it is asked with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call<'a> {
    Send(&'a SendMessageRequest),
    Stream(&'a SendMessageRequest),
    Get(&'a GetTaskRequest),
    List(&'a ListTasksRequest),
    Cancel(&'a CancelTaskRequest),
    Subscribe(&'a SubscribeToTaskRequest),
    PushCreate(&'a TaskPushNotificationConfig),
    PushGet(&'a TaskPushNotificationConfigRequest),
    PushList(&'a ListTaskPushNotificationConfigsRequest),
    PushDelete(&'a TaskPushNotificationConfigRequest),
    ExtendedCard(&'a GetExtendedAgentCardRequest),
    /// The card itself, where there is no well-known address.
    Card(&'a GetExtendedAgentCardRequest),
}

/// A form of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// 1.0, the same in every binding.
    New,
    /// 0.3 with `kind`.
    OldJsonRpc,
    /// 0.3 as ProtoJSON.
    OldRest,
}

/// Reads with the function of the same name in whichever module the dialect has.
macro_rules! read {
    ($dialect:expr, $json:expr, $old:ident) => {
        match $dialect {
            Dialect::New => codec::decode($json),
            Dialect::OldJsonRpc => v03::json::$old($json),
            Dialect::OldRest => v03::rest::$old($json),
        }
    };
}

/// Writes with the function of the same name in whichever module the dialect has.
macro_rules! write {
    ($dialect:expr, $value:expr, $out:expr, $old:ident) => {
        match $dialect {
            Dialect::New => codec::encode_into($value, $out),
            Dialect::OldJsonRpc => v03::json::$old($value, $out),
            Dialect::OldRest => v03::rest::$old($value, $out),
        }
    };
}

impl Dialect {
    pub(super) fn new(binding: Binding, version: Version) -> Self {
        match (version, binding) {
            (Version::V1_0, _) => Self::New,
            (Version::V0_3, Binding::Rest) => Self::OldRest,
            (Version::V0_3, _) => Self::OldJsonRpc,
        }
    }

    /// What a call is asked with, as JSON.
    pub(super) fn write(self, call: &Call<'_>, out: &mut Vec<u8>) {
        match *call {
            Call::Send(request) | Call::Stream(request) => write!(self, request, out, write_send_params),
            Call::Get(request) => write!(self, request, out, write_get_params),
            Call::Cancel(request) => write!(self, request, out, write_cancel_params),
            Call::Subscribe(request) => write!(self, request, out, write_subscribe_params),
            Call::PushCreate(config) => write!(self, config, out, write_push_set_params),
            Call::PushGet(request) => write!(self, request, out, write_push_get_params),
            Call::PushList(request) => write!(self, request, out, write_push_list_params),
            Call::PushDelete(request) => write!(self, request, out, write_push_delete_params),
            // 0.3 has no shape for it; over REST, where some agents answer it, only the query of 1.0.
            Call::List(request) => codec::encode_into(request, out),
            Call::Card(request) => codec::encode_into(request, out),
            Call::ExtendedCard(request) => match self {
                Self::New => codec::encode_into(request, out),
                Self::OldJsonRpc | Self::OldRest => out.extend_from_slice(b"{}"),
            },
        }
    }

    /// Reads an answer; states and roles that nobody knows do not stand in the way of the rest of it.
    pub(super) fn tolerant<T>(
        self,
        json: &[u8],
        read: fn(Self, &[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        match read(self, json) {
            Err(error @ DecodeError::Shape { .. }) => {
                codec::mend(json).map_or(Err(error), |mended| read(self, &mended))
            }
            other => other,
        }
    }

    pub(super) fn read_sent(self, json: &[u8]) -> Result<SendMessageResponse, DecodeError> {
        read!(self, json, read_send_response)
    }

    pub(super) fn read_event(self, json: &[u8]) -> Result<StreamResponse, DecodeError> {
        read!(self, json, read_event)
    }

    pub(super) fn read_task(self, json: &[u8]) -> Result<Task, DecodeError> {
        read!(self, json, read_task)
    }

    pub(super) fn read_tasks(self, json: &[u8]) -> Result<ListTasksResponse, DecodeError> {
        read!(self, json, read_tasks)
    }

    pub(super) fn read_push(self, json: &[u8]) -> Result<TaskPushNotificationConfig, DecodeError> {
        read!(self, json, read_push_config)
    }

    pub(super) fn read_pushes(self, json: &[u8]) -> Result<ListTaskPushNotificationConfigsResponse, DecodeError> {
        let configs = match self {
            Self::New => return codec::decode(json),
            Self::OldJsonRpc => v03::json::read_push_configs(json),
            Self::OldRest => v03::rest::read_push_configs(json),
        };
        Ok(ListTaskPushNotificationConfigsResponse { configs: configs?, ..Default::default() })
    }
}
