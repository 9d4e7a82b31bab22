//! REST: A2A 1.0 at the root and below `/{tenant}`, A2A 0.3 below `/v1`.

use std::borrow::Cow;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};
use nuncio_protocol::{
    CancelTaskRequest, Error, ErrorKind, GetTaskRequest, ListTaskPushNotificationConfigsRequest, ListTasksRequest,
    SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig, TaskPushNotificationConfigRequest,
    TaskState, Timestamp, codec, v03,
};

use super::body::Body;
use super::dialect::Dialect;
use super::dispatch::{Outcome, Request, dispatch};
use super::http::{bytes_response, echo_extensions};
use super::rpc::Envelope;
use super::{App, params, sse};
use crate::auth::Caller;
use crate::call::Version;
use crate::metrics::{Binding, Operation};

/// An operation as its path and method name it.
struct Route<'a> {
    tenant: Cow<'a, str>,
    verb: Verb<'a>,
}

enum Verb<'a> {
    Send,
    Stream,
    Get(Cow<'a, str>),
    List,
    Cancel(Cow<'a, str>),
    Subscribe(Cow<'a, str>),
    PushCreate(Cow<'a, str>),
    PushList(Cow<'a, str>),
    PushGet(Cow<'a, str>, Cow<'a, str>),
    PushDelete(Cow<'a, str>, Cow<'a, str>),
    ExtendedCard,
}

/// Whether a path belongs to this binding, and with which version.
enum Found<'a> {
    Route(Route<'a>, Version),
    /// A path of earlier agents, whose answers look like the results of JSON-RPC.
    Alias(Verb<'a>),
    WrongMethod(&'static str, Version),
    Nothing(Version),
}

/// Whether a request needs its body read.
pub(crate) fn takes_body(method: &Method) -> bool {
    method == Method::POST
}

/// Answers one REST request.
pub(crate) async fn handle(app: &App, parts: &Parts, caller: &Caller, body: Result<Bytes, Error>) -> Response<Body> {
    let asked = params::version(parts);
    let hint = asked.as_ref().ok().copied().flatten();
    let (route, dialect, alias) = match find(parts, hint) {
        Found::Route(route, version) => (route, Dialect::rest(version), false),
        Found::Alias(verb) => (Route { tenant: "".into(), verb }, Dialect::rest(Version::V03), true),
        Found::WrongMethod(allow, version) => return wrong_method(parts, version, allow),
        Found::Nothing(version) => {
            let error = Error::new(ErrorKind::MethodNotFound, "There is nothing at this path");
            return failure(parts, Dialect::rest(version), &error, StatusCode::NOT_FOUND);
        }
    };
    match carry_out(app, parts, caller, asked, (dialect, alias), route, body).await {
        Ok(response) => response,
        Err(error) => {
            app.metrics.errors.inc();
            let status = status(error.kind, parts);
            failure(parts, dialect, &error, status)
        }
    }
}

/// Refuses a request whatever it is.
pub(crate) fn refuse(app: &App, parts: &Parts, error: &Error) -> Response<Body> {
    app.metrics.errors.inc();
    let hint = params::version(parts).ok().flatten();
    let version = match find(parts, hint) {
        Found::Route(_, version) | Found::WrongMethod(_, version) | Found::Nothing(version) => version,
        Found::Alias(_) => Version::V03,
    };
    failure(parts, Dialect::rest(version), error, status(error.kind, parts))
}

async fn carry_out(
    app: &App,
    parts: &Parts,
    caller: &Caller,
    asked: Result<Option<Version>, Error>,
    (dialect, alias): (Dialect, bool),
    route: Route<'_>,
    body: Result<Bytes, Error>,
) -> Result<Response<Body>, Error> {
    let asked = asked?;
    if dialect.version == Version::V1 {
        params::must_be_v1(app, asked)?;
    }
    check_content_type(parts)?;
    let body = body?;
    // The path names the tenant, else the query, else the body.
    let tenant = match &route.tenant {
        tenant if tenant.is_empty() => params::tenant(parts),
        tenant => tenant.clone(),
    };
    let read = match operation(&route.verb) {
        operation if is_push(operation) && !app.has_push() => Ok(Request::NoPush(operation)),
        Operation::ExtendedCard => Ok(params::extended_card(app, parts, caller, &tenant)),
        _ => read(parts, dialect.version, &route.verb, &body, alias),
    };
    let operation = read.as_ref().map_or_else(|_| operation(&route.verb), Request::operation);
    app.metrics.call(operation, Binding::Rest, dialect.version);
    let read = read?;
    let call = params::call(app, parts, caller, dialect.version, &tenant, Some(&read));
    let extensions = call.extensions.clone();
    let mut response = match dispatch(app, call, read).await? {
        Outcome::Answer(answer) => {
            let accent = app.profile.accent("", "tasks/", dialect.version);
            let form = if alias { Dialect::rpc(dialect.version).with(accent) } else { dialect };
            bytes_response(StatusCode::OK, media_type(parts, dialect.version), form.answer(answer)?)
        }
        Outcome::Stream(subscription, place) => {
            subscription.prefer(dialect.form());
            sse::response(app, subscription, place, Envelope::new(dialect, None))
        }
        Outcome::StreamOfOne(message) => sse::one(&Envelope::new(dialect, None), &dialect.message_event(message)),
    };
    if operation == Operation::ExtendedCard {
        // It is for this caller alone.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    }
    echo_extensions(&mut response, dialect.version, &extensions);
    Ok(response)
}

/// Finds what a path means. `/v1` is 0.3, unless the caller says that it speaks 1.0: then it is a tenant.
fn find<'a>(parts: &'a Parts, version: Option<Version>) -> Found<'a> {
    let path = parts.uri.path();
    let mut segments: Vec<&'a str> = path.split('/').skip(1).collect();
    if segments.len() > 1 && segments.last() == Some(&"") {
        segments.pop();
    }
    if segments.first() == Some(&"v1") && version != Some(Version::V1) {
        return match verb(&parts.method, &segments[1..], Version::V03) {
            Ok(Some(verb)) => Found::Route(Route { tenant: "".into(), verb }, Version::V03),
            Ok(None) => Found::Nothing(Version::V03),
            Err(allow) => Found::WrongMethod(allow, Version::V03),
        };
    }
    // Here too, `/a2a` is a tenant for whoever speaks 1.0.
    if segments.first() == Some(&"a2a") && version != Some(Version::V1) {
        match alias(&parts.method, &segments[1..]) {
            Ok(Some(verb)) => return Found::Alias(verb),
            Ok(None) => {}
            Err(allow) => return Found::WrongMethod(allow, Version::V03),
        }
    }
    let nothing = Found::Nothing(version.unwrap_or(Version::V1));
    match verb(&parts.method, &segments, Version::V1) {
        Ok(Some(verb)) => return Found::Route(Route { tenant: "".into(), verb }, Version::V1),
        Err(allow) => return Found::WrongMethod(allow, Version::V1),
        Ok(None) => {}
    }
    let Some((first, rest)) = segments.split_first() else { return nothing };
    let Some(tenant) = params::segment(first).filter(|tenant| !tenant.is_empty()) else { return nothing };
    match verb(&parts.method, rest, Version::V1) {
        Ok(Some(verb)) => Found::Route(Route { tenant, verb }, Version::V1),
        Ok(None) => nothing,
        Err(allow) => Found::WrongMethod(allow, Version::V1),
    }
}

/// The operation at these segments; an error names the methods that would do.
fn verb<'a>(method: &Method, segments: &[&'a str], version: Version) -> Result<Option<Verb<'a>>, &'static str> {
    let get = method == Method::GET || method == Method::HEAD;
    let post = method == Method::POST;
    let need = |ok: bool, allow: &'static str, verb: Verb<'a>| if ok { Ok(Some(verb)) } else { Err(allow) };
    match segments {
        ["message:send"] => need(post, "POST", Verb::Send),
        ["message:stream"] => need(post, "POST", Verb::Stream),
        ["tasks"] => need(get, "GET", Verb::List),
        ["extendedAgentCard"] if version == Version::V1 => need(get, "GET", Verb::ExtendedCard),
        ["card"] if version == Version::V03 => need(get, "GET", Verb::ExtendedCard),
        ["tasks", last] => {
            let Some((id, action)) = task_segment(last) else { return Ok(None) };
            match action {
                None => need(get, "GET", Verb::Get(id)),
                Some("cancel") => need(post, "POST", Verb::Cancel(id)),
                Some(_) => need(post || get, "GET, POST", Verb::Subscribe(id)),
            }
        }
        ["tasks", task, "pushNotificationConfigs"] => webhooks(method, task),
        ["tasks", task, "pushNotificationConfigs", id] => {
            let (Some(task), Some(id)) = (params::segment(task), params::segment(id)) else { return Ok(None) };
            match *method {
                Method::GET => Ok(Some(Verb::PushGet(task, id))),
                Method::DELETE => Ok(Some(Verb::PushDelete(task, id))),
                _ => Err("GET, DELETE"),
            }
        }
        _ => Ok(None),
    }
}

/// The paths below `/a2a` that earlier agents have.
fn alias<'a>(method: &Method, segments: &[&'a str]) -> Result<Option<Verb<'a>>, &'static str> {
    match segments {
        ["tasks", task, "pushNotificationConfig"] => webhooks(method, task),
        ["tasks", task] if !task.ends_with(":cancel") && !task.ends_with(":subscribe") => {
            let Some(task) = params::segment(task).filter(|task| !task.is_empty()) else { return Ok(None) };
            if method == Method::GET { Ok(Some(Verb::Get(task))) } else { Err("GET") }
        }
        _ => Ok(None),
    }
}

fn webhooks<'a>(method: &Method, task: &'a str) -> Result<Option<Verb<'a>>, &'static str> {
    let Some(task) = params::segment(task) else { return Ok(None) };
    match *method {
        Method::POST => Ok(Some(Verb::PushCreate(task))),
        Method::GET => Ok(Some(Verb::PushList(task))),
        _ => Err("GET, POST"),
    }
}

fn is_push(operation: Operation) -> bool {
    matches!(operation, Operation::PushCreate | Operation::PushGet | Operation::PushList | Operation::PushDelete)
}

/// `{id}`, `{id}:cancel` or `{id}:subscribe`; an id may hold colons itself.
fn task_segment(text: &str) -> Option<(Cow<'_, str>, Option<&str>)> {
    let (id, action) = match text.rsplit_once(':') {
        Some((id, action @ ("cancel" | "subscribe"))) if !id.is_empty() => (id, Some(action)),
        _ => (text, None),
    };
    let id = params::segment(id).filter(|id| !id.is_empty())?;
    Some((id, action))
}

fn operation(verb: &Verb<'_>) -> Operation {
    match verb {
        Verb::Send => Operation::Send,
        Verb::Stream => Operation::Stream,
        Verb::Get(_) => Operation::Get,
        Verb::List => Operation::List,
        Verb::Cancel(_) => Operation::Cancel,
        Verb::Subscribe(_) => Operation::Subscribe,
        Verb::PushCreate(_) => Operation::PushCreate,
        Verb::PushList(_) => Operation::PushList,
        Verb::PushGet(..) => Operation::PushGet,
        Verb::PushDelete(..) => Operation::PushDelete,
        Verb::ExtendedCard => Operation::ExtendedCard,
    }
}

/// Reads path, query and body; what the path says wins.
fn read(parts: &Parts, version: Version, verb: &Verb<'_>, body: &[u8], alias: bool) -> Result<Request, Error> {
    Ok(match (verb, version) {
        (Verb::Send, Version::V1) => Request::Send(Box::new(send_body(body)?)),
        (Verb::Stream, Version::V1) => Request::Stream(Box::new(send_body(body)?)),
        (Verb::Send, Version::V03) => Request::Send(Box::new(v03::rest::read_send_params(body)?)),
        (Verb::Stream, Version::V03) => Request::Stream(Box::new(v03::rest::read_send_params(body)?)),
        (Verb::Get(id), version) => {
            let mut request = GetTaskRequest { id: (&**id).into(), ..GetTaskRequest::default() };
            for (name, value) in query(parts) {
                match &*name {
                    "historyLength" | "history_length" => {
                        request.history_length = Some(number("historyLength", &value)?);
                    }
                    _ => {}
                }
            }
            // Zero means "all" in the 0.3 dialect, whose numbers have no presence.
            request.history_length = request.history_length.filter(|n| *n != 0 || version == Version::V1);
            Request::Get(request)
        }
        (Verb::List, _) => Request::List(list(parts)?),
        (Verb::Cancel(id), Version::V1) => {
            let request: CancelTaskRequest = optional_body(body)?;
            Request::Cancel(CancelTaskRequest { id: (&**id).into(), ..request })
        }
        (Verb::Cancel(id), Version::V03) => {
            Request::Cancel(CancelTaskRequest { id: (&**id).into(), ..CancelTaskRequest::default() })
        }
        (Verb::Subscribe(id), Version::V1) => {
            let request: SubscribeToTaskRequest = optional_body(body)?;
            Request::Subscribe(SubscribeToTaskRequest { id: (&**id).into(), ..request })
        }
        (Verb::Subscribe(id), Version::V03) => {
            Request::Subscribe(SubscribeToTaskRequest { id: (&**id).into(), ..SubscribeToTaskRequest::default() })
        }
        (Verb::PushCreate(task), version) => {
            let config = match version {
                Version::V1 => codec::decode(body)?,
                Version::V03 => v03::rest::read_push_set_params(body)?,
            };
            let config = Box::new(TaskPushNotificationConfig { task_id: (&**task).into(), ..config });
            if alias { Request::PushCreateBearer(config) } else { Request::PushCreate(config) }
        }
        (Verb::PushList(task), _) => Request::PushList(ListTaskPushNotificationConfigsRequest {
            task_id: (&**task).into(),
            ..ListTaskPushNotificationConfigsRequest::default()
        }),
        (Verb::PushGet(task, id), _) => Request::PushGet(webhook(task, id)),
        (Verb::PushDelete(task, id), _) => Request::PushDelete(webhook(task, id)),
        // Read where the caller's way is known.
        (Verb::ExtendedCard, _) => return Err(Error::internal()),
    })
}

fn webhook(task: &str, id: &str) -> TaskPushNotificationConfigRequest {
    TaskPushNotificationConfigRequest { task_id: task.into(), id: id.into(), ..Default::default() }
}

fn send_body(body: &[u8]) -> Result<SendMessageRequest, Error> {
    Ok(codec::decode(body)?)
}

/// A body that may be missing, empty or `null`.
fn optional_body<T: Default + serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(T::default());
    }
    Ok(codec::decode::<Option<T>>(body)?.unwrap_or_default())
}

fn query(parts: &Parts) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    params::pairs(parts.uri.query().unwrap_or_default())
}

fn list(parts: &Parts) -> Result<ListTasksRequest, Error> {
    let mut request = ListTasksRequest::default();
    for (name, value) in query(parts) {
        match &*name {
            "contextId" | "context_id" => request.context_id = (&*value).into(),
            "status" => request.status = state(&value)?,
            "pageSize" | "page_size" => request.page_size = Some(number("pageSize", &value)?),
            "pageToken" | "page_token" => request.page_token = value.into(),
            "historyLength" | "history_length" => request.history_length = Some(number("historyLength", &value)?),
            "statusTimestampAfter" | "status_timestamp_after" => {
                let time = Timestamp::parse(&value);
                let wrong = || Error::invalid("statusTimestampAfter", "must be a time like 2026-01-02T03:04:05Z");
                request.status_timestamp_after = Some(time.ok_or_else(wrong)?);
            }
            "includeArtifacts" | "include_artifacts" => request.include_artifacts = Some(truth(&value)?),
            _ => {}
        }
    }
    Ok(request)
}

fn number(field: &str, text: &str) -> Result<i32, Error> {
    text.parse().map_err(|_| Error::invalid(field, "must be a whole number"))
}

fn truth(text: &str) -> Result<bool, Error> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::invalid("includeArtifacts", "must be true or false")),
    }
}

fn state(text: &str) -> Result<TaskState, Error> {
    let found = TaskState::from_name(text).or_else(|| text.parse().ok().and_then(TaskState::from_number));
    found.ok_or_else(|| Error::invalid("status", "must be the name of a task state, such as TASK_STATE_WORKING"))
}

fn check_content_type(parts: &Parts) -> Result<(), Error> {
    let Some(kind) = parts.headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    if parts.method != Method::POST || is_media(kind, "application/json") || is_media(kind, A2A_JSON) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::ContentTypeNotSupported, "Send the body as application/json or application/a2a+json"))
}

const A2A_JSON: &str = "application/a2a+json";

fn is_media(value: &HeaderValue, name: &str) -> bool {
    let text = value.to_str().unwrap_or_default();
    text.split(',').any(|part| part.split(';').next().is_some_and(|part| part.trim().eq_ignore_ascii_case(name)))
}

/// `application/a2a+json` for whoever names it, `application/json` for everyone else.
fn media_type(parts: &Parts, version: Version) -> HeaderValue {
    let named = [header::ACCEPT, header::CONTENT_TYPE]
        .iter()
        .any(|name| parts.headers.get_all(name).iter().any(|value| is_media(value, A2A_JSON)));
    HeaderValue::from_static(if named && version == Version::V1 { A2A_JSON } else { "application/json" })
}

/// A wrong content type is 415 for HTTP, whatever A2A makes of it; all else is as the table says.
fn status(kind: ErrorKind, parts: &Parts) -> StatusCode {
    if kind == ErrorKind::ContentTypeNotSupported && check_content_type(parts).is_err() {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE;
    }
    StatusCode::from_u16(kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn failure(parts: &Parts, dialect: Dialect, error: &Error, status: StatusCode) -> Response<Body> {
    let mut response =
        bytes_response(status, media_type(parts, dialect.version), dialect.error_as(error, status.as_u16()));
    super::http::retry_after(&mut response, error.kind);
    response
}

fn wrong_method(parts: &Parts, version: Version, allow: &'static str) -> Response<Body> {
    let error = Error::new(ErrorKind::MethodNotFound, format!("This path takes {allow}"));
    let mut response = failure(parts, Dialect::rest(version), &error, StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}
