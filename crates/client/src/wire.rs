//! The binding in use. One file per binding; callers see only this type.

use nuncio_protocol::{
    AgentCard, AgentInterface, CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest,
    ListTasksResponse, SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest, Task,
};

use crate::error::ClientError;
use crate::options::SendOptions;

mod feed;
mod jsonrpc;

pub(crate) use feed::Feed;
pub(crate) use jsonrpc::JsonRpc;

pub(crate) const VERSION_HEADER: &str = "a2a-version";

/// A binding and a version that this client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// JSON-RPC of A2A 1.0.
    JsonRpc10,
}

impl Binding {
    /// How an interface is spoken to, if this client can.
    pub(crate) fn of(interface: &AgentInterface) -> Option<Self> {
        // Patch numbers do not matter: 1.0.3 is 1.0.
        let mut numbers = interface.protocol_version.trim().split('.');
        let version = (numbers.next()?, numbers.next()?);
        let jsonrpc = interface.protocol_binding.eq_ignore_ascii_case("JSONRPC");
        (jsonrpc && version == ("1", "0")).then_some(Self::JsonRpc10)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::JsonRpc10 => "JSONRPC",
        }
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::JsonRpc10 => "1.0",
        }
    }
}

/// One interface of one agent.
#[derive(Debug)]
pub(crate) enum Wire {
    JsonRpc(JsonRpc),
}

impl Wire {
    pub(crate) async fn send(
        &self,
        request: &SendMessageRequest,
        how: &SendOptions,
    ) -> Result<SendMessageResponse, ClientError> {
        match self {
            Self::JsonRpc(wire) => wire.send(request, how).await,
        }
    }

    pub(crate) async fn stream(&self, request: &SendMessageRequest, how: &SendOptions) -> Result<Feed, ClientError> {
        match self {
            Self::JsonRpc(wire) => wire.stream(request, how).await,
        }
    }

    pub(crate) async fn subscribe(
        &self,
        request: &SubscribeToTaskRequest,
        after: Option<u64>,
    ) -> Result<Feed, ClientError> {
        match self {
            Self::JsonRpc(wire) => wire.subscribe(request, after).await,
        }
    }

    pub(crate) async fn get(&self, request: &GetTaskRequest) -> Result<Task, ClientError> {
        match self {
            Self::JsonRpc(wire) => wire.call("GetTask", request).await,
        }
    }

    pub(crate) async fn list(&self, request: &ListTasksRequest) -> Result<ListTasksResponse, ClientError> {
        match self {
            Self::JsonRpc(wire) => wire.call("ListTasks", request).await,
        }
    }

    pub(crate) async fn cancel(&self, request: &CancelTaskRequest) -> Result<Task, ClientError> {
        match self {
            Self::JsonRpc(wire) => wire.call("CancelTask", request).await,
        }
    }

    pub(crate) async fn extended_card(&self, request: &GetExtendedAgentCardRequest) -> Result<AgentCard, ClientError> {
        match self {
            Self::JsonRpc(wire) => wire.call("GetExtendedAgentCard", request).await,
        }
    }
}
