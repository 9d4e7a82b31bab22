//! JSON-RPC over HTTP.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use nuncio_protocol::jsonrpc::{self, Id};
use nuncio_protocol::{Error, ErrorKind};

use super::body::Body;
use super::http::{bytes_response, echo_extensions, refusal_status, retry_after};
use super::rpc::{Reply, ReplyBody};
use super::{App, rpc, sse};
use crate::auth::Caller;
use crate::profile::Profile;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers one JSON-RPC request.
pub(crate) async fn handle(app: &App, parts: &Parts, caller: &Caller, body: Result<Bytes, Error>) -> Response<Body> {
    let refuse = |error: &Error| response(app, rpc::refusal(app, parts, Id::NULL, error));
    if !is_json(parts) {
        return refuse(&Error::new(ErrorKind::ContentTypeNotSupported, "Send JSON-RPC as application/json"));
    }
    match body {
        Ok(body) => response(app, rpc::answer(app, parts, caller, &body).await),
        Err(error) => refuse(&error),
    }
}

/// Refuses a request whatever it is, under its id.
pub(crate) fn refuse(app: &App, parts: &Parts, body: &[u8], error: &Error) -> Response<Body> {
    app.metrics.errors.inc();
    let request = jsonrpc::Request::decode(body);
    let id = request.as_ref().map_or(Id::NULL, |request| request.id);
    response(app, rpc::refusal(app, parts, id, error))
}

fn response(app: &App, reply: Reply) -> Response<Body> {
    let mut response = match reply.body {
        ReplyBody::Result(body) => bytes_response(StatusCode::OK, JSON, body),
        ReplyBody::Error(body, kind) => failure(body, kind),
        ReplyBody::Stream(subscription, place, envelope) => sse::response(app, subscription, place, envelope),
        ReplyBody::StreamOfOne(event, envelope) => sse::one(&envelope, &event),
        ReplyBody::FailedStream(error, envelope) => match refusal_status(error.kind) {
            None => sse::failed(&envelope, &error),
            Some(_) => {
                let mut body = Vec::new();
                envelope.error(&error, &mut body);
                failure(body, error.kind)
            }
        },
    };
    if app.profile == Profile::LiquidCrypto {
        let version = HeaderValue::from_static(reply.version.as_str());
        response.headers_mut().insert("a2a-protocol-version", version);
    }
    echo_extensions(&mut response, reply.version, &reply.extensions);
    response
}

/// JSON-RPC errors travel with 200, except those of the transport itself.
fn failure(body: Vec<u8>, kind: ErrorKind) -> Response<Body> {
    let mut response = bytes_response(refusal_status(kind).unwrap_or(StatusCode::OK), JSON, body);
    retry_after(&mut response, kind);
    response
}

/// Whether the body is said to be JSON.
pub(crate) fn is_json(parts: &Parts) -> bool {
    let Some(kind) = parts.headers.get(header::CONTENT_TYPE) else { return true };
    // As nearly everybody writes it.
    if kind.as_bytes() == b"application/json" {
        return true;
    }
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("application/a2a+json")
}
