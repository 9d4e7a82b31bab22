//! What is said, apart from how it is carried: the JSON of 1.0, and the two forms of 0.3.

use bytes::Bytes;
use nuncio_protocol::codec::{self, DecodeError};
use nuncio_protocol::{
    AgentCard, CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
    TaskPushNotificationConfigRequest,
};
use nuncio_protocol::{proto, v03};

use super::{Binding, Version, grpc};

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

/// A form of what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// 1.0, the same in every binding.
    New,
    /// 0.3 with `kind`.
    OldJsonRpc,
    /// 0.3 as ProtoJSON.
    OldRest,
    /// 1.0 as protobuf.
    NewProto,
    /// 0.3 as protobuf.
    OldProto,
}

/// Reads with the function of the same name in whichever module the dialect has.
macro_rules! read {
    ($dialect:expr, $json:expr, $old:ident, $message:ident) => {
        match $dialect {
            Dialect::New => codec::decode($json),
            Dialect::OldJsonRpc => v03::json::$old($json),
            Dialect::OldRest => v03::rest::$old($json),
            Dialect::NewProto => grpc::read::<proto::v1::$message, _>($json),
            Dialect::OldProto => grpc::read::<proto::v03::$message, _>($json),
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
            // Written by `grpc` itself, with the name of the method.
            Dialect::NewProto | Dialect::OldProto => {}
        }
    };
}

impl Dialect {
    pub(super) fn new(binding: Binding, version: Version) -> Self {
        match (version, binding) {
            (version, Binding::Grpc) => grpc::dialect(version),
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
                Self::NewProto | Self::OldProto => {}
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
            // Protobuf has numbers for them, and those nobody knows say nothing.
            Err(error @ DecodeError::Shape { .. }) if !matches!(self, Self::NewProto | Self::OldProto) => {
                codec::mend(json).map_or(Err(error), |mended| read(self, &mended))
            }
            other => other,
        }
    }

    pub(super) fn read_sent(self, json: &[u8]) -> Result<SendMessageResponse, DecodeError> {
        read!(self, json, read_send_response, SendMessageResponse)
    }

    pub(super) fn read_event(self, json: &[u8]) -> Result<StreamResponse, DecodeError> {
        read!(self, json, read_event, StreamResponse)
    }

    pub(super) fn read_task(self, json: &[u8]) -> Result<Task, DecodeError> {
        read!(self, json, read_task, Task)
    }

    pub(super) fn read_tasks(self, json: &[u8]) -> Result<ListTasksResponse, DecodeError> {
        match self {
            Self::New => codec::decode(json),
            Self::OldJsonRpc => v03::json::read_tasks(json),
            Self::OldRest => v03::rest::read_tasks(json),
            // 0.3 has no such message, and no call asks for it.
            Self::NewProto | Self::OldProto => grpc::read::<proto::v1::ListTasksResponse, _>(json),
        }
    }

    /// The extended card, as the JSON of 1.0.
    pub(super) fn read_card(self, json: &[u8]) -> Result<Bytes, DecodeError> {
        let card: AgentCard = match self {
            Self::NewProto => grpc::read::<proto::v1::AgentCard, _>(json)?,
            Self::OldProto => grpc::read::<proto::v03::AgentCard, _>(json)?,
            Self::New | Self::OldJsonRpc | Self::OldRest => return Ok(Bytes::copy_from_slice(json)),
        };
        Ok(codec::encode(&card))
    }

    pub(super) fn read_push(self, json: &[u8]) -> Result<TaskPushNotificationConfig, DecodeError> {
        read!(self, json, read_push_config, TaskPushNotificationConfig)
    }

    pub(super) fn read_pushes(self, json: &[u8]) -> Result<ListTaskPushNotificationConfigsResponse, DecodeError> {
        let configs = match self {
            Self::New => return codec::decode(json),
            Self::OldJsonRpc => v03::json::read_push_configs(json),
            Self::OldRest => v03::rest::read_push_configs(json),
            Self::NewProto => return grpc::read::<proto::v1::ListTaskPushNotificationConfigsResponse, _>(json),
            Self::OldProto => return grpc::read::<proto::v03::ListTaskPushNotificationConfigResponse, _>(json),
        };
        Ok(ListTaskPushNotificationConfigsResponse { configs: configs?, ..Default::default() })
    }
}
