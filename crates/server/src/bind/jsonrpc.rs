//! JSON-RPC over HTTP, both versions. The name of the method decides the dialect.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use nuncio_protocol::jsonrpc::{self, Id};
use nuncio_protocol::{Error, ErrorKind, TaskPushNotificationConfigRequest, v03};

use super::body::Body;
use super::dialect::Dialect;
use super::dispatch::{Outcome, Request, dispatch};
use super::http::{bytes_response, echo_extensions, refusal_status};
use super::{App, params, sse};
use crate::call::Version;
use crate::metrics::Operation;

/// Answers one JSON-RPC request.
pub(crate) async fn handle(app: &App, parts: &Parts, caller: Arc<str>, body: Result<Bytes, Error>) -> Response<Body> {
    let version = params::version(parts);
    let asked = Dialect::rpc(version.as_ref().ok().copied().flatten().unwrap_or(Version::V03));
    // Nothing is known of the request yet, so the header alone decides how to refuse it.
    let early = if version.is_err() { Dialect::rpc(Version::V1) } else { asked };
    if !is_json(parts) {
        let error = Error::new(ErrorKind::ContentTypeNotSupported, "Send JSON-RPC as application/json");
        return failure(early, Id::NULL, &error);
    }
    let body = match body {
        Ok(body) => body,
        Err(error) => return failure(early, Id::NULL, &error),
    };
    let request = match jsonrpc::Request::decode(&body) {
        Ok(request) => request,
        Err((error, id)) => return failure(early, Id::from(id.as_str()), &error),
    };
    let dialect = match method_version(&request.method) {
        Some(version) => Dialect::rpc(version),
        None => asked,
    };
    match carry_out(app, parts, caller, version, dialect, &request).await {
        Ok(response) => response,
        Err(error) => {
            app.metrics.errors.inc();
            // 0.3 clients that resubscribe take nothing but a stream.
            if request.method == "tasks/resubscribe" && refusal_status(error.kind).is_none() {
                return sse::failed(dialect, Some(request.id), &error);
            }
            failure(dialect, request.id, &error)
        }
    }
}

async fn carry_out(
    app: &App,
    parts: &Parts,
    caller: Arc<str>,
    version: Result<Option<Version>, Error>,
    dialect: Dialect,
    request: &jsonrpc::Request<'_>,
) -> Result<Response<Body>, Error> {
    let version = version?;
    match (dialect.version, version) {
        (Version::V1, version) if method_version(&request.method).is_some() => params::must_be_v1(app, version)?,
        (Version::V03, Some(Version::V1)) => {
            let text = "This is a method of A2A 0.3: leave the header A2A-Version out, or use the 1.0 name";
            return Err(Error::new(ErrorKind::VersionNotSupported, text));
        }
        _ => {}
    }
    let call = params::call(app, parts, caller, dialect.version, params::path_tenant(parts));
    let read = read(request, app.has_push());
    let operation = read.as_ref().map_or_else(|_| operation(&request.method), Request::operation);
    app.metrics.call(operation, dialect.binding, dialect.version);
    let extensions = call.extensions.clone();
    let outcome = dispatch(app, call, read?).await?;
    let mut response = match outcome {
        Outcome::Answer(answer) => {
            let result = dialect.answer(answer)?;
            bytes_response(StatusCode::OK, JSON, jsonrpc::result(request.id, &result))
        }
        Outcome::Stream(subscription, place) => sse::response(app, subscription, place, dialect, Some(request.id)),
        Outcome::StreamOfOne(message) => sse::one(dialect, Some(request.id), &dialect.message_event(message)),
    };
    echo_extensions(&mut response, dialect.version, &extensions);
    Ok(response)
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The version whose method this is.
fn method_version(method: &str) -> Option<Version> {
    if operation(method) == Operation::Unknown {
        return None;
    }
    Some(if method.contains('/') { Version::V03 } else { Version::V1 })
}

fn operation(method: &str) -> Operation {
    match method {
        "SendMessage" | "message/send" => Operation::Send,
        "SendStreamingMessage" | "message/stream" => Operation::Stream,
        "GetTask" | "tasks/get" => Operation::Get,
        "ListTasks" => Operation::List,
        "CancelTask" | "tasks/cancel" => Operation::Cancel,
        "SubscribeToTask" | "tasks/resubscribe" => Operation::Subscribe,
        "CreateTaskPushNotificationConfig" | "tasks/pushNotificationConfig/set" => Operation::PushCreate,
        "GetTaskPushNotificationConfig" | "tasks/pushNotificationConfig/get" => Operation::PushGet,
        "ListTaskPushNotificationConfigs" | "tasks/pushNotificationConfig/list" => Operation::PushList,
        "DeleteTaskPushNotificationConfig" | "tasks/pushNotificationConfig/delete" => Operation::PushDelete,
        "GetExtendedAgentCard" | "agent/getAuthenticatedExtendedCard" => Operation::ExtendedCard,
        _ => Operation::Unknown,
    }
}

/// Reads the parameters of a method.
fn read(request: &jsonrpc::Request<'_>, push: bool) -> Result<Request, Error> {
    let old = request.params;
    let operation = operation(&request.method);
    // Whatever the parameters are, there is nothing to do with them.
    if let Operation::PushCreate | Operation::PushGet | Operation::PushList | Operation::PushDelete = operation
        && !push
    {
        return Ok(Request::NoPush(operation));
    }
    Ok(match &*request.method {
        "SendMessage" => Request::Send(request.params()?),
        "SendStreamingMessage" => Request::Stream(request.params()?),
        "GetTask" => Request::Get(request.params()?),
        "ListTasks" => Request::List(request.params()?),
        "CancelTask" => Request::Cancel(request.params()?),
        "SubscribeToTask" => Request::Subscribe(request.params()?),
        "message/send" => Request::Send(v03::json::read_send_params(old)?),
        "message/stream" => Request::Stream(v03::json::read_send_params(old)?),
        "tasks/get" => Request::Get(v03::json::read_get_params(old)?),
        "tasks/cancel" => Request::Cancel(v03::json::read_cancel_params(old)?),
        "tasks/resubscribe" => Request::Subscribe(v03::json::read_subscribe_params(old)?),
        "CreateTaskPushNotificationConfig" => Request::PushCreate(request.params()?),
        "GetTaskPushNotificationConfig" => {
            let request: TaskPushNotificationConfigRequest = request.params()?;
            // In 0.3 the first one is meant; here it is a mistake.
            if request.id.is_empty() {
                return Err(Error::invalid("id", "is required"));
            }
            Request::PushGet(request)
        }
        "ListTaskPushNotificationConfigs" => Request::PushList(request.params()?),
        "DeleteTaskPushNotificationConfig" => Request::PushDelete(request.params()?),
        "tasks/pushNotificationConfig/set" => Request::PushCreate(v03::json::read_push_set_params(old)?),
        "tasks/pushNotificationConfig/get" => Request::PushGet(v03::json::read_push_get_params(old)?),
        "tasks/pushNotificationConfig/list" => Request::PushList(v03::json::read_push_list_params(old)?),
        "tasks/pushNotificationConfig/delete" => Request::PushDelete(v03::json::read_push_delete_params(old)?),
        _ if operation == Operation::ExtendedCard => Request::ExtendedCard,
        _ => return Err(Error::new(ErrorKind::MethodNotFound, "There is no such method in A2A 1.0 or 0.3")),
    })
}

fn is_json(parts: &Parts) -> bool {
    let Some(kind) = parts.headers.get(header::CONTENT_TYPE) else { return true };
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("application/a2a+json")
}

fn failure(dialect: Dialect, id: Id<'_>, error: &Error) -> Response<Body> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.get().as_bytes());
    out.extend_from_slice(b",\"error\":");
    out.extend_from_slice(&dialect.error(error));
    out.push(b'}');
    // JSON-RPC errors travel with 200, except those of the transport itself.
    let mut response = bytes_response(refusal_status(error.kind).unwrap_or(StatusCode::OK), JSON, out);
    super::http::retry_after(&mut response, error.kind);
    response
}
