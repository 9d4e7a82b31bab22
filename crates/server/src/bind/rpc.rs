//! JSON-RPC whatever carries it, both versions. The name of the method decides the dialect.

use std::sync::Arc;

use nuncio_protocol::jsonrpc::{self, Id};
use nuncio_protocol::{Error, ErrorKind, GetExtendedAgentCardRequest, TaskPushNotificationConfigRequest, v03};

use http::request::Parts;

use super::dialect::{Accent, Dialect};
use super::dispatch::{Outcome, Request, dispatch};
use super::{App, StreamPlace, params};
use crate::auth::Caller;
use crate::call::Version;
use crate::engine::{Event, Subscription};
use crate::metrics::Operation;

/// What one request gets.
pub(crate) struct Reply {
    /// The version that the caller was taken to speak.
    pub(crate) version: Version,
    /// The extensions that are in force, to be named beside the answer.
    pub(crate) extensions: Vec<Arc<str>>,
    pub(crate) body: ReplyBody,
}

/// One response, or a stream of them.
pub(crate) enum ReplyBody {
    /// A response with a result.
    Result(Vec<u8>),
    /// A response with an error of this kind.
    Error(Vec<u8>, ErrorKind),
    /// The events of a task.
    Stream(Subscription, StreamPlace, Envelope),
    /// A stream whose only event is a direct answer.
    StreamOfOne(Vec<u8>, Envelope),
    /// A stream that holds nothing but an error.
    FailedStream(Error, Envelope),
}

impl Reply {
    /// A response with an error, made before anything is known of the request.
    pub(crate) fn failure(dialect: Dialect, id: Id<'_>, error: &Error) -> Self {
        let mut out = Vec::with_capacity(256);
        Envelope::new(dialect, Some(id)).error(error, &mut out);
        Self { version: dialect.version, extensions: Vec::new(), body: ReplyBody::Error(out, error.kind) }
    }
}

/// What stands around each event of a stream: a response with the id of the request, or nothing.
pub(crate) struct Envelope {
    dialect: Dialect,
    /// Everything up to the result, for JSON-RPC.
    open: Vec<u8>,
    id: String,
}

impl Envelope {
    pub(crate) fn new(dialect: Dialect, id: Option<Id<'_>>) -> Self {
        let mut open = Vec::new();
        if let Some(id) = id {
            jsonrpc::open_result(id, &mut open);
        }
        Self { dialect, open, id: id.map_or("null", Id::get).to_owned() }
    }

    /// The form of an event in the caller's dialect, still without what stands around it.
    pub(crate) fn form(&self, event: &Event) -> bytes::Bytes {
        match self.dialect.form() {
            Some(form) => event.form(form),
            None => event.body.clone(),
        }
    }

    /// The id of the request, as JSON text.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Writes a result that is JSON already.
    pub(crate) fn result(&self, result: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.open);
        out.extend_from_slice(result);
        if !self.open.is_empty() {
            out.push(b'}');
        }
    }

    /// Writes an error.
    pub(crate) fn error(&self, error: &Error, out: &mut Vec<u8>) {
        if self.open.is_empty() {
            out.extend_from_slice(&self.dialect.error(error));
        } else {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            out.extend_from_slice(self.id.as_bytes());
            out.extend_from_slice(b",\"error\":");
            out.extend_from_slice(&self.dialect.error(error));
            out.push(b'}');
        }
    }
}

/// Answers one request. `parts` holds what stands beside it: the service parameters, spelled as HTTP headers.
pub(crate) async fn answer(app: &App, parts: &Parts, caller: &Caller, body: &[u8]) -> Reply {
    let request = match jsonrpc::Request::decode(body) {
        Ok(request) => request,
        Err((error, id)) => return refusal(app, parts, Id::from(id.as_str()), &error),
    };
    carry(app, parts, caller, &request).await
}

/// The answer to something of which nothing is known but what stands beside it.
pub(crate) fn refusal(app: &App, parts: &Parts, id: Id<'_>, error: &Error) -> Reply {
    let dialect = early_dialect(&params::version(parts));
    let dialect = dialect.with(app.profile.accent(parts.uri.path(), "", dialect.version));
    Reply::failure(dialect, id, error)
}

/// Answers a request that is read already.
pub(crate) async fn carry(app: &App, parts: &Parts, caller: &Caller, request: &jsonrpc::Request<'_>) -> Reply {
    let version = params::version(parts);
    let asked = asked_dialect(&version);
    let dialect = match method_version(&request.method) {
        Some(version) => Dialect::rpc(version),
        None => asked,
    };
    let dialect = dialect.with(app.profile.accent(parts.uri.path(), &request.method, dialect.version));
    if dialect.accent == Accent::Draft {
        // Apart, so that all others do not carry its weight.
        return Box::pin(super::draft::answer(app, parts, caller, version, request)).await;
    }
    match carry_out(app, parts, caller, version, dialect, request).await {
        Ok(reply) => reply,
        Err(error) if dialect.accent.is_null(&error) => {
            let body = ReplyBody::Result(jsonrpc::result(request.id, b"null"));
            Reply { version: dialect.version, extensions: Vec::new(), body }
        }
        Err(error) => {
            app.metrics.errors.inc();
            // 0.3 clients that resubscribe take nothing but a stream.
            if request.method == "tasks/resubscribe" {
                let body = ReplyBody::FailedStream(error, Envelope::new(dialect, Some(request.id)));
                return Reply { version: dialect.version, extensions: Vec::new(), body };
            }
            Reply::failure(dialect, request.id, &error)
        }
    }
}

fn asked_dialect(version: &Result<Option<Version>, Error>) -> Dialect {
    Dialect::rpc(version.as_ref().ok().copied().flatten().unwrap_or(Version::V03))
}

/// How to refuse a request of which nothing is known but its headers.
pub(crate) fn early_dialect(version: &Result<Option<Version>, Error>) -> Dialect {
    if version.is_err() { Dialect::rpc(Version::V1) } else { asked_dialect(version) }
}

async fn carry_out(
    app: &App,
    parts: &Parts,
    caller: &Caller,
    version: Result<Option<Version>, Error>,
    dialect: Dialect,
    request: &jsonrpc::Request<'_>,
) -> Result<Reply, Error> {
    let version = version?;
    match (dialect.version, version) {
        (Version::V1, version) if method_version(&request.method).is_some() => params::must_be_v1(app, version)?,
        (Version::V03, Some(Version::V1)) => {
            let text = "This is a method of A2A 0.3: leave the header A2A-Version out, or use the 1.0 name";
            return Err(Error::new(ErrorKind::VersionNotSupported, text));
        }
        _ => {}
    }
    let read = match operation(&request.method) {
        Operation::ExtendedCard => extended_card(app, parts, caller, request),
        _ => read(request, app.has_push()),
    };
    let read = read.map(|mut read| {
        if dialect.version == Version::V03 {
            app.profile.mend(&mut read, request.params);
        }
        read
    });
    let operation = read.as_ref().map_or_else(|_| operation(&request.method), Request::operation);
    app.metrics.call(operation, dialect.binding, dialect.version);
    let read = read?;
    let call = params::call(app, parts, caller, dialect.version, params::path_tenant(parts), Some(&read));
    let extensions = call.extensions.clone();
    let body = match dispatch(app, call, read).await? {
        Outcome::Answer(answer) => {
            let mut out = Vec::with_capacity(jsonrpc::result_size(request.id, answer.size()));
            jsonrpc::open_result(request.id, &mut out);
            dialect.answer_into(answer, &mut out)?;
            out.push(b'}');
            ReplyBody::Result(out)
        }
        Outcome::Stream(subscription, place) => {
            subscription.prefer(dialect.form());
            ReplyBody::Stream(subscription, place, Envelope::new(dialect, Some(request.id)))
        }
        Outcome::StreamOfOne(message) => {
            ReplyBody::StreamOfOne(dialect.message_event(message), Envelope::new(dialect, Some(request.id)))
        }
    };
    Ok(Reply { version: dialect.version, extensions, body })
}

/// Whether a method is answered by a stream.
pub(crate) fn is_streaming(method: &str) -> bool {
    matches!(operation(method), Operation::Stream | Operation::Subscribe)
}

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

/// The extended card has no parameters but the tenant.
pub(super) fn extended_card(
    app: &App,
    parts: &Parts,
    caller: &Caller,
    request: &jsonrpc::Request<'_>,
) -> Result<Request, Error> {
    // 0.3 has no parameters here, and some clients send what they like.
    let named: GetExtendedAgentCardRequest = match request.params.starts_with('{') {
        true => request.params()?,
        false => Default::default(),
    };
    let tenant = if params::path_tenant(parts).is_empty() { &*named.tenant } else { params::path_tenant(parts) };
    Ok(params::extended_card(app, parts, caller, tenant))
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
        "SendMessage" => Request::Send(Box::new(request.params()?)),
        "SendStreamingMessage" => Request::Stream(Box::new(request.params()?)),
        "GetTask" => Request::Get(request.params()?),
        "ListTasks" => Request::List(request.params()?),
        "CancelTask" => Request::Cancel(request.params()?),
        "SubscribeToTask" => Request::Subscribe(request.params()?),
        "message/send" => Request::Send(Box::new(v03::json::read_send_params(old)?)),
        "message/stream" => Request::Stream(Box::new(v03::json::read_send_params(old)?)),
        "tasks/get" => Request::Get(v03::json::read_get_params(old)?),
        "tasks/cancel" => Request::Cancel(v03::json::read_cancel_params(old)?),
        "tasks/resubscribe" => Request::Subscribe(v03::json::read_subscribe_params(old)?),
        "CreateTaskPushNotificationConfig" => Request::PushCreate(Box::new(request.params()?)),
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
        "tasks/pushNotificationConfig/set" => Request::PushCreate(Box::new(v03::json::read_push_set_params(old)?)),
        "tasks/pushNotificationConfig/get" => Request::PushGet(v03::json::read_push_get_params(old)?),
        "tasks/pushNotificationConfig/list" => Request::PushList(v03::json::read_push_list_params(old)?),
        "tasks/pushNotificationConfig/delete" => Request::PushDelete(v03::json::read_push_delete_params(old)?),
        _ => return Err(Error::new(ErrorKind::MethodNotFound, "There is no such method in A2A 1.0 or 0.3")),
    })
}
