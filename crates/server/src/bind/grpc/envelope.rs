//! JSON-RPC in gRPC: each message holds one JSON-RPC object, and says whether it is the last one.
//!
//! Errors of A2A are answers here, as everywhere in JSON-RPC; only what is wrong with the call itself has a status.

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response};
use nuncio_protocol::Error;
use nuncio_protocol::jsonrpc;
use nuncio_protocol::proto::decode;
use nuncio_protocol::proto::envelope::JsonRpcEnvelope;
use prost::Message as _;
use tokio::time::Instant;

use super::frame::frame_into;
use super::stream::{self, Form};
use super::{framed, no_method, reply};
use crate::auth::Caller;
use crate::bind::App;
use crate::bind::body::Body;
use crate::bind::frames::session::{CARD, card};
use crate::bind::http::echo_extensions;
use crate::bind::rpc::{self, Envelope, Reply, ReplyBody};
use crate::call::Version;
use crate::engine::Event;

pub(super) async fn answer(
    app: &App,
    method: &str,
    parts: &Parts,
    caller: &Caller,
    body: Bytes,
    deadline: Option<Instant>,
) -> Result<Response<Body>, Error> {
    let streams = match method {
        "Send" => false,
        "Stream" => true,
        _ => return Err(no_method()),
    };
    let payload = decode::<JsonRpcEnvelope>(body)?.payload;
    let request = jsonrpc::Request::decode(&payload);
    let parts = with_version(parts, request.as_ref().ok());
    let Reply { version, extensions, body } = match &request {
        Ok(request) if request.method == CARD => card(app, &parts, request),
        Ok(request) => rpc::carry(app, &parts, caller, request).await,
        Err(_) => rpc::answer(app, &parts, caller, &payload).await,
    };
    let mut response = match body {
        ReplyBody::Result(json) | ReplyBody::Error(json, _) => whole(json),
        ReplyBody::StreamOfOne(event, envelope) => several(&[result(&envelope, &event), last_of(&envelope)]),
        ReplyBody::FailedStream(error, envelope) => whole(failure(&envelope, &error)),
        ReplyBody::Stream(subscription, place, envelope) if streams => {
            stream::response(app, subscription, place, Wrapped(envelope), deadline)
        }
        ReplyBody::Stream(..) => {
            return Err(Error::invalid("method", "answers with a stream: call `Stream` instead of `Send`"));
        }
    };
    echo_extensions(&mut response, version, &extensions);
    Ok(response)
}

/// Clients of this service name no version: that of the method is meant.
fn with_version(parts: &Parts, request: Option<&jsonrpc::Request<'_>>) -> Parts {
    let mut parts = parts.clone();
    let is_v1 = request.is_some_and(|request| !request.method.contains('/'));
    if is_v1 && !parts.headers.contains_key("a2a-version") {
        parts.headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    }
    parts
}

/// The only answer, which is also the last.
fn whole(json: Vec<u8>) -> Response<Body> {
    reply::message(&wrap(json, true))
}

fn several(messages: &[Vec<u8>]) -> Response<Body> {
    let mut out = BytesMut::new();
    for (i, json) in messages.iter().enumerate() {
        frame_into(&wrap(json.clone(), i + 1 == messages.len()), &mut out);
    }
    stream::known(out.freeze())
}

fn wrap(json: Vec<u8>, last: bool) -> Vec<u8> {
    JsonRpcEnvelope { payload: json.into(), r#final: last }.encode_to_vec()
}

/// Events in the envelopes of one request.
struct Wrapped(Envelope);

impl Form for Wrapped {
    fn event(&self, event: &Event) -> Bytes {
        framed(&wrap(result(&self.0, &self.0.form(event)), false))
    }

    fn last(&self) -> Option<Bytes> {
        Some(framed(&wrap(last_of(&self.0), true)))
    }

    fn error(&self, error: &Error) -> (Option<Bytes>, HeaderMap) {
        (Some(framed(&wrap(failure(&self.0, error), true))), reply::ok())
    }

    fn closing(&self) -> HeaderMap {
        reply::closing(Version::V1)
    }
}

fn result(envelope: &Envelope, json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + 64);
    envelope.result(json, &mut out);
    out
}

fn failure(envelope: &Envelope, error: &Error) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    envelope.error(error, &mut out);
    out
}

/// What ends a stream: a response that holds nothing.
fn last_of(envelope: &Envelope) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{}}}"#, envelope.id()).into_bytes()
}
