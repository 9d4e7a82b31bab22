//! A2A over gRPC: messages of protobuf in frames, and the status behind them. Or the same with JSON-RPC in the messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use nuncio_protocol::codec::DecodeError;
use nuncio_protocol::proto::envelope::JsonRpcEnvelope;
use nuncio_protocol::proto::{self, Code, Down, Status, Up, v1, v03};
use percent_encoding::percent_decode;
use prost::Message;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use reqwest::{Body, Method, Response, Url};

use super::dialect::{Call, Dialect};
use super::{Binding, Version, agent};
use crate::error::{AgentError, ClientError};
use crate::http::{Ask, GRPC, Http, protocol, retry_after, shown};

/// The length of what stands before a message.
const PREFIX: usize = 5;
/// Tells the number of the first event of a stream; the others follow it without gaps.
const FIRST: &str = "first-event-id";

/// The binding and the address behind `grpc://host:port` and `grpc-jsonrpc://host:port`; with an `s` after `grpc`
/// over TLS.
pub(crate) fn typed(url: &str) -> Option<(Binding, String)> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let (binding, web) = match scheme {
        "grpc" => (Binding::Grpc, "http"),
        "grpcs" => (Binding::Grpc, "https"),
        "grpc-jsonrpc" => (Binding::GrpcJsonRpc, "http"),
        "grpcs-jsonrpc" => (Binding::GrpcJsonRpc, "https"),
        _ => return None,
    };
    Some((binding, format!("{web}://{rest}")))
}

/// The address that a card names: a URL, or a bare `host:port`, which is as safe as the card's own address.
pub(crate) fn named(url: &str, card: &Url) -> String {
    match typed(url) {
        Some((_, url)) => url,
        None if url.contains("://") => url.to_owned(),
        None if url.ends_with(":443") => format!("https://{url}"),
        None => format!("{}://{url}", card.scheme()),
    }
}

/// The request for a call.
pub(super) fn ask(url: &Url, headers: HeaderMap, dialect: Dialect, call: &Call<'_>) -> Result<Ask, ClientError> {
    let Some((method, message)) = write(call, dialect) else {
        return Err(ClientError::Unsupported {
            what: "A2A 0.3 has no list of tasks over gRPC. Use an interface of 1.0.".into(),
        });
    };
    let service = if dialect == Dialect::NewProto { "lf.a2a.v1.A2AService" } else { "a2a.v1.A2AService" };
    Ok(framed(url, headers, &format!("{service}/{method}"), &message))
}

/// A request of JSON-RPC as one of gRPC.
pub(super) fn wrapped(ask: Ask, streams: bool) -> Ask {
    let method = if streams { "Stream" } else { "Send" };
    let message = JsonRpcEnvelope { payload: ask.body, r#final: true }.encode_to_vec();
    let mut headers = ask.headers;
    headers.remove(ACCEPT);
    framed(&ask.url, headers, &format!("iac_code.a2a.transports.proto.A2AJsonRpc/{method}"), &message)
}

/// What is in the envelope of an answer, and whether it is the last one.
pub(super) fn unwrapped(url: &Url, message: Bytes) -> Result<(Bytes, bool), ClientError> {
    match JsonRpcEnvelope::decode(message) {
        Ok(envelope) => Ok((envelope.payload, envelope.r#final)),
        Err(_) => Err(protocol(url, "its answer is no envelope of JSON-RPC")),
    }
}

/// One message, posted to a method.
fn framed(url: &Url, mut headers: HeaderMap, method: &str, message: &[u8]) -> Ask {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    let mut url = url.clone();
    url.set_path(&format!("{}/{method}", url.path().trim_end_matches('/')));
    let mut body = BytesMut::with_capacity(PREFIX + message.len());
    body.extend_from_slice(&[0]);
    body.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    body.extend_from_slice(message);
    Ask { method: Method::POST, url, headers, body: body.freeze() }
}

/// The method of a call and its message.
fn write(call: &Call<'_>, dialect: Dialect) -> Option<(&'static str, Vec<u8>)> {
    fn message<M: Clone, New: Message + Down<M>, Old: Message + Down<M>>(model: &M, dialect: Dialect) -> Vec<u8> {
        match dialect {
            Dialect::OldProto => proto::write::<Old, M>(model.clone()),
            _ => proto::write::<New, M>(model.clone()),
        }
    }
    let old = dialect == Dialect::OldProto;
    Some(match *call {
        Call::Send(request) => {
            ("SendMessage", message::<_, v1::SendMessageRequest, v03::SendMessageRequest>(request, dialect))
        }
        Call::Stream(request) => {
            ("SendStreamingMessage", message::<_, v1::SendMessageRequest, v03::SendMessageRequest>(request, dialect))
        }
        Call::Get(request) => ("GetTask", message::<_, v1::GetTaskRequest, v03::GetTaskRequest>(request, dialect)),
        // Neither has a method for it.
        Call::Card(_) => return None,
        Call::List(_) if old => return None,
        Call::List(request) => ("ListTasks", proto::write::<v1::ListTasksRequest, _>(request.clone())),
        Call::Cancel(request) => {
            ("CancelTask", message::<_, v1::CancelTaskRequest, v03::CancelTaskRequest>(request, dialect))
        }
        Call::Subscribe(request) => {
            let name = if old { "TaskSubscription" } else { "SubscribeToTask" };
            (name, message::<_, v1::SubscribeToTaskRequest, v03::TaskSubscriptionRequest>(request, dialect))
        }
        Call::PushCreate(config) => {
            type Old = v03::CreateTaskPushNotificationConfigRequest;
            let message = message::<_, v1::TaskPushNotificationConfig, Old>(config, dialect);
            ("CreateTaskPushNotificationConfig", message)
        }
        Call::PushGet(request) => {
            type New = v1::GetTaskPushNotificationConfigRequest;
            type Old = v03::GetTaskPushNotificationConfigRequest;
            ("GetTaskPushNotificationConfig", message::<_, New, Old>(request, dialect))
        }
        Call::PushDelete(request) => {
            type New = v1::DeleteTaskPushNotificationConfigRequest;
            type Old = v03::DeleteTaskPushNotificationConfigRequest;
            ("DeleteTaskPushNotificationConfig", message::<_, New, Old>(request, dialect))
        }
        Call::PushList(request) => {
            type New = v1::ListTaskPushNotificationConfigsRequest;
            type Old = v03::ListTaskPushNotificationConfigRequest;
            let name = if old { "ListTaskPushNotificationConfig" } else { "ListTaskPushNotificationConfigs" };
            (name, message::<_, New, Old>(request, dialect))
        }
        Call::ExtendedCard(_) if old => ("GetAgentCard", Vec::new()),
        Call::ExtendedCard(request) => {
            ("GetExtendedAgentCard", proto::write::<v1::GetExtendedAgentCardRequest, _>(request.clone()))
        }
    })
}

/// Reads a message that an answer holds.
pub(super) fn read<W: Message + Default, M: Up<W>>(message: &[u8]) -> Result<M, DecodeError> {
    let wrong = |what: String| DecodeError::Shape { path: String::new(), what };
    M::up(W::decode(message).map_err(|error| wrong(error.to_string()))?)
}

/// The messages of an answer, and the status at its end.
#[derive(Debug)]
pub(super) struct Messages {
    body: Body,
    /// What came before the first message, where a status alone stands too.
    head: HeaderMap,
    buffer: BytesMut,
    over: bool,
    /// The number of the next event, if the server counts.
    next: Option<u64>,
}

impl Messages {
    /// The messages of an answer.
    pub(super) async fn of(http: &Http, mut response: Response) -> Result<Self, ClientError> {
        if !response.status().is_success() {
            let body = http.error_body(&mut response).await;
            return Err(http.refused(&response, &body));
        }
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if !kind.starts_with(GRPC.as_bytes()) {
            return Err(protocol(response.url(), "its answer is not gRPC"));
        }
        let head = response.headers().clone();
        let next = head.get(FIRST).and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Self { body: response.into(), head, buffer: BytesMut::new(), over: false, next })
    }

    /// The one message of an answer.
    pub(super) async fn only(mut self, http: &Http, url: &Url, limit: usize) -> Result<Bytes, ClientError> {
        let Some(message) = self.next(http, url, limit).await? else {
            return Err(protocol(url, "its answer holds no message"));
        };
        // The status comes behind it.
        match self.next(http, url, limit).await? {
            None => Ok(message),
            Some(_) => Err(protocol(url, "its answer holds more than one message")),
        }
    }

    /// The next message; nothing at an end that is well.
    pub(super) async fn next(&mut self, http: &Http, url: &Url, limit: usize) -> Result<Option<Bytes>, ClientError> {
        loop {
            if let Some(message) = self.take(url, limit)? {
                return Ok(Some(message));
            }
            if self.over {
                return Ok(None);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        self.end(http, url, &trailers)?;
                    }
                },
                Some(Err(error)) => return Err(http.network(url, error)),
                None => {
                    let head = std::mem::take(&mut self.head);
                    self.end(http, url, &head)?;
                }
            }
        }
    }

    /// The number of the event that was read last, if the server counts.
    pub(super) fn count(&mut self) -> Option<u64> {
        let number = self.next?;
        self.next = number.checked_add(1);
        Some(number)
    }

    fn take(&mut self, url: &Url, limit: usize) -> Result<Option<Bytes>, ClientError> {
        let Some(&[flags, a, b, c, d]) = self.buffer.first_chunk() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > limit {
            return Err(ClientError::TooLarge { url: shown(url), limit });
        }
        if flags != 0 {
            return Err(protocol(url, "it compresses its answer without being asked to"));
        }
        if self.buffer.len() < PREFIX + length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    fn end(&mut self, http: &Http, url: &Url, status: &HeaderMap) -> Result<(), ClientError> {
        self.over = true;
        let text = |name: &str| status.get(name).map(HeaderValue::as_bytes);
        let Some(code) = text("grpc-status").and_then(|code| std::str::from_utf8(code).ok()?.parse().ok()) else {
            let cause = "the connection broke before the status of the call came".into();
            return Err(ClientError::Unreachable { url: shown(url), cause });
        };
        let code = Code::from_number(code);
        if code == Code::Ok {
            if self.buffer.is_empty() {
                return Ok(());
            }
            return Err(protocol(url, "its last message is cut off"));
        }
        let said = percent_decode(text("grpc-message").unwrap_or_default()).decode_utf8_lossy();
        let details = text("grpc-status-details-bin").and_then(|text| {
            let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'=').collect();
            Status::decode(&*STANDARD_NO_PAD.decode(text).ok()?).ok()
        });
        let details = details.map(|status| status.details_json()).unwrap_or_default();
        let error = agent(http, url, AgentError::from_grpc(code, &said, details));
        Err(error.after(retry_after(status)))
    }
}

/// The dialect of a version.
pub(super) fn dialect(version: Version) -> Dialect {
    match version {
        Version::V1_0 => Dialect::NewProto,
        Version::V0_3 => Dialect::OldProto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_schemes_or_take_that_of_the_card() {
        let (plain, safe) = (Url::parse("http://a:1/").expect("a URL"), Url::parse("https://a/").expect("a URL"));
        assert_eq!(named("a:1", &plain), "http://a:1");
        assert_eq!(named("a:1", &safe), "https://a:1");
        assert_eq!(named("a:443", &plain), "https://a:443");
        assert_eq!(named("grpc://a:1", &safe), "http://a:1");
        assert_eq!(named("https://a:1", &plain), "https://a:1");
        assert_eq!(named("grpcs-jsonrpc://a:1", &plain), "https://a:1");
        assert_eq!(typed("grpcs://a:1"), Some((Binding::Grpc, "https://a:1".into())));
        assert_eq!(typed("grpc-jsonrpc://a:1"), Some((Binding::GrpcJsonRpc, "http://a:1".into())));
        assert_eq!(typed("http://a:1"), None);
    }
}
