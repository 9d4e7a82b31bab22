//! What A2A says: the 1.0 model, its JSON form, and the 0.3 dialects. No I/O, no async.
//!
//! The major components are:
//!
//! * the model of A2A 1.0, one file per kind of object: [`Task`], [`Message`], [`Part`], the events of a
//!   stream, the [`AgentCard`], the requests of every operation;
//! * [`codec`]: how the model is read and written as JSON;
//! * [`Error`]: the one table of errors and their codes in every binding;
//! * [`jsonrpc`]: the envelopes of one binding;
//! * [`sign`]: signatures of cards, over the canonical JSON of [`jcs`];
//! * [`lint`](mod@lint): mistakes in cards;
//! * [`proto`]: the protobuf forms of both versions, for gRPC;
//! * [`v03`]: A2A 0.3, converted to and from the model;
//! * [`draft`]: an early draft of 1.0, the same way.

pub mod codec;
pub mod draft;
pub mod jcs;
pub mod jsonrpc;
pub mod lint;
pub mod proto;
pub mod sign;
pub mod v03;

mod card;
mod error;
mod event;
mod id;
mod message;
mod part;
mod push;
mod request;
mod security;
mod task;

pub use card::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
};
pub use codec::{Metadata, Object, Timestamp, Value, json};
pub use error::{DOMAIN, Error, ErrorKind, JsonRpcError, RestError, Violation};
pub use event::{SendMessageResponse, StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
pub use id::{ArtifactId, ContextId, MessageId, PushId, TaskId};
pub use message::{Message, Role};
pub use part::{Content, Part};
pub use push::{AuthenticationInfo, TaskPushNotificationConfig};
pub use request::{
    CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, SendMessageConfiguration,
    SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfigRequest,
};
pub use security::{
    ApiKeySecurityScheme, AuthorizationCodeFlow, ClientCredentialsFlow, DeviceCodeFlow, HttpAuthSecurityScheme,
    ImplicitFlow, MutualTlsSecurityScheme, OAuthFlows, Oauth2SecurityScheme, OpenIdConnectSecurityScheme, PasswordFlow,
    Scopes, SecurityRequirement, SecurityScheme, SecuritySchemes, StringList,
};
pub use task::{Artifact, Task, TaskState, TaskStatus};
