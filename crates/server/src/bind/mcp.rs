//! MCP over HTTP for the profile that has it: one POST, one answer in JSON, no session and no stream.
//!
//! The tools are other words for A2A: a job is a task of the same caller, under the same id. So jobs are as durable
//! as tasks, nobody sees those of others, and whoever prefers A2A follows them there.

mod forgotten;
mod tools;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use nuncio_protocol::jsonrpc::{self, Id};
use nuncio_protocol::{Error, ErrorKind, Value, codec, json};
use serde::Deserialize;

pub(crate) use self::forgotten::Forgotten;
use super::body::Body;
use super::http::{bytes_response, refusal_status, retry_after};
use super::{App, jsonrpc::is_json};
use crate::auth::Caller;

/// Where it is.
pub(crate) const PATH: &str = "/mcp";
/// The versions that are spoken, the best one first.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2025-03-26"];
/// The header that names the version once it is agreed on.
const VERSION: &str = "mcp-protocol-version";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialize {
    protocol_version: String,
}

#[derive(Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Option<Value>,
}

/// Answers one POST.
pub(crate) async fn handle(app: &App, parts: &Parts, caller: &Caller, body: Result<Bytes, Error>) -> Response<Body> {
    let body = match body.and_then(|body| check_headers(parts).map(|()| body)) {
        Ok(body) => body,
        Err(error) => return failure(app, Id::NULL, &error),
    };
    let request = match jsonrpc::Request::decode(&body) {
        Ok(request) => request,
        Err((error, id)) => return failure(app, Id::from(id.as_str()), &error),
    };
    // Without an id nobody waits for an answer, and nothing is told here that has a consequence.
    if request.id == Id::NULL {
        let mut response = Response::new(Body::Full(Bytes::new()));
        *response.status_mut() = StatusCode::ACCEPTED;
        return response;
    }
    match answer(app, parts, caller, &request).await {
        Ok(result) => bytes_response(StatusCode::OK, JSON, jsonrpc::result(request.id, &codec::encode(&result))),
        Err(error) => failure(app, request.id, &error),
    }
}

/// Refuses a request whatever it is, under its id.
pub(crate) fn refuse(app: &App, body: &[u8], error: &Error) -> Response<Body> {
    let request = jsonrpc::Request::decode(body);
    failure(app, request.as_ref().map_or(Id::NULL, |request| request.id), error)
}

fn check_headers(parts: &Parts) -> Result<(), Error> {
    if !is_json(parts) {
        return Err(Error::new(ErrorKind::InvalidRequest, "Send MCP as application/json"));
    }
    match parts.headers.get(VERSION) {
        Some(version) if !VERSIONS.iter().any(|known| version == known) => {
            let text = format!("This version of MCP is not spoken here: use one of {}", VERSIONS.join(", "));
            Err(Error::new(ErrorKind::InvalidRequest, text))
        }
        _ => Ok(()),
    }
}

async fn answer(app: &App, parts: &Parts, caller: &Caller, request: &jsonrpc::Request<'_>) -> Result<Value, Error> {
    match &*request.method {
        "initialize" => {
            let wanted = request.params::<Initialize>()?.protocol_version;
            let version = VERSIONS.into_iter().find(|known| *known == wanted).unwrap_or(VERSIONS[0]);
            let server = json!({ "name": "nuncio", "version": env!("CARGO_PKG_VERSION") });
            Ok(json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": server }))
        }
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": tools::list() })),
        "tools/call" => {
            let ToolCall { name, arguments } = request.params()?;
            let arguments = arguments.unwrap_or_else(|| json!({}));
            told(tools::call(app, parts, caller, &name, arguments).await)
        }
        other => Err(Error::new(ErrorKind::MethodNotFound, format!("There is no method {other:?}"))),
    }
}

/// What a tool says. An answer that the model behind the client can do something about is one of the tool, too.
fn told(said: Result<Value, tools::Failed>) -> Result<Value, Error> {
    let (text, is_error) = match said {
        Ok(value) => (value.to_string(), false),
        Err(tools::Failed::Told(text)) => (text, true),
        Err(tools::Failed::Call(error)) => return Err(error),
    };
    Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
}

/// Errors travel with 200, except those of the transport and of what is no request at all.
fn failure(app: &App, id: Id<'_>, error: &Error) -> Response<Body> {
    app.metrics.errors.inc();
    let status = match error.kind {
        ErrorKind::Parse | ErrorKind::InvalidRequest => StatusCode::BAD_REQUEST,
        kind => refusal_status(kind).unwrap_or(StatusCode::OK),
    };
    let error_body = json!({ "code": error.kind.code(), "message": error.message });
    let mut response = bytes_response(status, JSON, jsonrpc::failure(id, &error_body));
    retry_after(&mut response, error.kind);
    response
}
