//! The services of A2A, both versions: messages into requests, answers into messages.

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use nuncio_protocol::proto::{self, Empty, read, v1, v03, write};
use nuncio_protocol::{
    AgentCard, Error, GetExtendedAgentCardRequest, ListTaskPushNotificationConfigsResponse, SendMessageResponse,
    StreamResponse, TaskPushNotificationConfigRequest,
};
use prost::Message as _;
use tokio::time::Instant;

use super::stream::{self, Events};
use super::{check_version, framed, no_method, reply};
use crate::auth::Caller;
use crate::bind::body::Body;
use crate::bind::dispatch::{Answer, Outcome, Request, dispatch};
use crate::bind::http::echo_extensions;
use crate::bind::{App, form, params};
use crate::call::Version;
use crate::metrics::{Binding, Operation};

pub(super) async fn answer(
    app: &App,
    version: Version,
    method: &str,
    parts: &Parts,
    caller: &Caller,
    body: Bytes,
    deadline: Option<Instant>,
) -> Result<Response<Body>, Error> {
    check_version(parts, version)?;
    let operation = operation(method, version);
    app.metrics.call(operation, Binding::Grpc, version);
    let request = match operation {
        Operation::Unknown => return Err(no_method()),
        Operation::PushCreate | Operation::PushGet | Operation::PushList | Operation::PushDelete if !app.has_push() => {
            Request::NoPush(operation)
        }
        Operation::ExtendedCard => {
            let asked: GetExtendedAgentCardRequest = match version {
                Version::V1 => read::<v1::GetExtendedAgentCardRequest, _>(body)?,
                Version::V03 => GetExtendedAgentCardRequest::default(),
            };
            let tenant = match params::path_tenant(parts) {
                "" => &asked.tenant,
                tenant => tenant,
            };
            params::extended_card(app, parts, caller, tenant)
        }
        operation => match version {
            Version::V1 => request(operation, body)?,
            Version::V03 => request_v03(operation, body)?,
        },
    };
    let call = params::call(app, parts, caller, version, params::path_tenant(parts), Some(&request));
    let extensions = call.extensions.clone();
    let mut response = match dispatch(app, call, request).await? {
        Outcome::Answer(answer) => reply::message(&encode(answer, version)?),
        Outcome::Stream(subscription, place) => {
            subscription.prefer(Some(form::proto(version)));
            stream::response(app, subscription, place, Events(version), deadline)
        }
        Outcome::StreamOfOne(message) => stream::known(framed(&event(StreamResponse::Message(message), version))),
    };
    echo_extensions(&mut response, version, &extensions);
    Ok(response)
}

fn operation(method: &str, version: Version) -> Operation {
    match (method, version) {
        ("SendMessage", _) => Operation::Send,
        ("SendStreamingMessage", _) => Operation::Stream,
        ("GetTask", _) => Operation::Get,
        ("CancelTask", _) => Operation::Cancel,
        ("ListTasks", Version::V1) => Operation::List,
        ("SubscribeToTask", Version::V1) | ("TaskSubscription", Version::V03) => Operation::Subscribe,
        ("CreateTaskPushNotificationConfig", _) => Operation::PushCreate,
        ("GetTaskPushNotificationConfig", _) => Operation::PushGet,
        ("ListTaskPushNotificationConfigs", Version::V1) | ("ListTaskPushNotificationConfig", Version::V03) => {
            Operation::PushList
        }
        ("DeleteTaskPushNotificationConfig", _) => Operation::PushDelete,
        ("GetExtendedAgentCard", Version::V1) | ("GetAgentCard", Version::V03) => Operation::ExtendedCard,
        _ => Operation::Unknown,
    }
}

fn request(operation: Operation, body: Bytes) -> Result<Request, Error> {
    Ok(match operation {
        Operation::Send => Request::Send(Box::new(read::<v1::SendMessageRequest, _>(body)?)),
        Operation::Stream => Request::Stream(Box::new(read::<v1::SendMessageRequest, _>(body)?)),
        Operation::Get => Request::Get(read::<v1::GetTaskRequest, _>(body)?),
        Operation::List => Request::List(read::<v1::ListTasksRequest, _>(body)?),
        Operation::Cancel => Request::Cancel(read::<v1::CancelTaskRequest, _>(body)?),
        Operation::Subscribe => Request::Subscribe(read::<v1::SubscribeToTaskRequest, _>(body)?),
        Operation::PushCreate => Request::PushCreate(Box::new(read::<v1::TaskPushNotificationConfig, _>(body)?)),
        Operation::PushGet => {
            let request: TaskPushNotificationConfigRequest = read::<v1::GetTaskPushNotificationConfigRequest, _>(body)?;
            // In 0.3 the first one is meant; here it is a mistake.
            if request.id.is_empty() {
                return Err(Error::invalid("id", "is required"));
            }
            Request::PushGet(request)
        }
        Operation::PushList => Request::PushList(read::<v1::ListTaskPushNotificationConfigsRequest, _>(body)?),
        Operation::PushDelete => Request::PushDelete(read::<v1::DeleteTaskPushNotificationConfigRequest, _>(body)?),
        Operation::ExtendedCard | Operation::Unknown => return Err(no_method()),
    })
}

fn request_v03(operation: Operation, body: Bytes) -> Result<Request, Error> {
    Ok(match operation {
        Operation::Send => Request::Send(Box::new(read::<v03::SendMessageRequest, _>(body)?)),
        Operation::Stream => Request::Stream(Box::new(read::<v03::SendMessageRequest, _>(body)?)),
        Operation::Get => Request::Get(read::<v03::GetTaskRequest, _>(body)?),
        Operation::Cancel => Request::Cancel(read::<v03::CancelTaskRequest, _>(body)?),
        Operation::Subscribe => Request::Subscribe(read::<v03::TaskSubscriptionRequest, _>(body)?),
        Operation::PushCreate => {
            Request::PushCreate(Box::new(read::<v03::CreateTaskPushNotificationConfigRequest, _>(body)?))
        }
        Operation::PushGet => Request::PushGet(read::<v03::GetTaskPushNotificationConfigRequest, _>(body)?),
        Operation::PushList => Request::PushList(read::<v03::ListTaskPushNotificationConfigRequest, _>(body)?),
        Operation::PushDelete => Request::PushDelete(read::<v03::DeleteTaskPushNotificationConfigRequest, _>(body)?),
        Operation::List | Operation::ExtendedCard | Operation::Unknown => return Err(no_method()),
    })
}

/// An answer as the message that its method has.
fn encode(answer: Answer, version: Version) -> Result<Vec<u8>, Error> {
    Ok(match (answer, version) {
        (Answer::Task(task), Version::V1) => write::<v1::Task, _>(task.task()?),
        (Answer::Task(task), Version::V03) => write::<v03::Task, _>(task.task()?),
        (Answer::Sent(task, handle), version) => sent(SendMessageResponse::Task(handle.tree(&task)?), version),
        (Answer::Message(message), version) => sent(SendMessageResponse::Message(message), version),
        (Answer::List(page, _), _) => write::<v1::ListTasksResponse, _>(page),
        (Answer::Push(config), Version::V1) => write::<v1::TaskPushNotificationConfig, _>(config),
        (Answer::Push(config), Version::V03) => write::<v03::TaskPushNotificationConfig, _>(config),
        (Answer::PushList(configs), version) => {
            let page = ListTaskPushNotificationConfigsResponse { configs, next_page_token: String::new() };
            match version {
                Version::V1 => write::<v1::ListTaskPushNotificationConfigsResponse, _>(page),
                Version::V03 => write::<v03::ListTaskPushNotificationConfigResponse, _>(page),
            }
        }
        (Answer::PushDeleted, _) => Empty {}.encode_to_vec(),
        (Answer::Card(card), Version::V1) => write::<v1::AgentCard, _>(AgentCard::clone(&card)),
        (Answer::Card(card), Version::V03) => write::<v03::AgentCard, _>(AgentCard::clone(&card)),
    })
}

fn sent(sent: SendMessageResponse, version: Version) -> Vec<u8> {
    match version {
        Version::V1 => write::<v1::SendMessageResponse, _>(sent),
        Version::V03 => write::<v03::SendMessageResponse, _>(sent),
    }
}

fn event(event: StreamResponse, version: Version) -> Vec<u8> {
    match version {
        Version::V1 => proto::write::<v1::StreamResponse, _>(event),
        Version::V03 => proto::write::<v03::StreamResponse, _>(event),
    }
}
