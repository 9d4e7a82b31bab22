//! A gRPC client that sends whatever it is told to.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http_body_util::BodyExt;
use nuncio_protocol::proto::{Status, v1};
use nuncio_tests::{PATIENCE, Value};
use prost::Message as _;
use reqwest::header::HeaderMap;

/// A connection to a server.
pub(crate) struct Raw {
    client: reqwest::Client,
    url: String,
}

/// What came back: the messages, and the status behind them.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) http: u16,
    pub(crate) head: HeaderMap,
    pub(crate) messages: Vec<Bytes>,
    pub(crate) trailers: HeaderMap,
}

impl Raw {
    pub(crate) fn new(url: &str) -> Self {
        let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build().unwrap();
        Self { client, url: url.to_owned() }
    }

    /// Posts this body, and waits for the head of the answer.
    pub(crate) async fn begin(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> http::Response<reqwest::Body> {
        let mut request = self.client.post(format!("{}{path}", self.url)).body(body.into()).header("te", "trailers");
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/grpc");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        tokio::time::timeout(PATIENCE, request.send()).await.expect("an answer in time").unwrap().into()
    }

    /// Posts this body, and waits for all of the answer.
    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        let whole = async {
            let (head, body) = self.begin(path, headers, body).await.into_parts();
            let body = body.collect().await.unwrap();
            let trailers = body.trailers().cloned().unwrap_or_default();
            let http = head.status.as_u16();
            let messages = if http == 200 { split(body.to_bytes()) } else { Vec::new() };
            Answer { http, head: head.headers, messages, trailers }
        };
        tokio::time::timeout(PATIENCE, whole).await.expect("an answer in time")
    }

    /// Calls a method of A2A 1.0 with one message.
    pub(crate) async fn call(&self, method: &str, message: &impl prost::Message) -> Answer {
        self.call_with(method, &[], message).await
    }

    pub(crate) async fn call_with(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        message: &impl prost::Message,
    ) -> Answer {
        self.post(&format!("/lf.a2a.v1.A2AService/{method}"), headers, framed(&message.encode_to_vec())).await
    }
}

impl Answer {
    /// The number of the status, wherever it stands.
    pub(crate) fn code(&self) -> i32 {
        let text = self.trailers.get("grpc-status").or_else(|| self.head.get("grpc-status"));
        text.unwrap_or_else(|| panic!("no status: {self:?}")).to_str().unwrap().parse().unwrap()
    }

    /// The details of the status, as JSON.
    pub(crate) fn details(&self) -> Value {
        let name = "grpc-status-details-bin";
        let text = self.trailers.get(name).or_else(|| self.head.get(name)).expect("details");
        Status::decode(&*STANDARD_NO_PAD.decode(text.as_bytes()).unwrap()).unwrap().details_json()
    }

    /// The only message.
    pub(crate) fn only<M: prost::Message + Default>(&self) -> M {
        assert_eq!((self.code(), self.messages.len()), (0, 1), "{self:?}");
        M::decode(self.messages[0].clone()).unwrap()
    }
}

/// A message with what stands before it.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    out.extend_from_slice(message);
    out
}

fn split(mut body: Bytes) -> Vec<Bytes> {
    let mut all = Vec::new();
    while let Some(&[flags, a, b, c, d]) = body.first_chunk() {
        assert_eq!(flags, 0);
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        all.push(body.slice(5..5 + length));
        body = body.slice(5 + length..);
    }
    assert!(body.is_empty(), "a message is cut off");
    all
}

/// A message of the user with this text.
pub(crate) fn say(text: &str) -> v1::SendMessageRequest {
    let part = v1::Part { content: Some(v1::part::Content::Text(text.into())), ..Default::default() };
    let message = v1::Message { message_id: "m".into(), role: 1, parts: vec![part], ..Default::default() };
    v1::SendMessageRequest { message: Some(message), ..Default::default() }
}

/// The same, answered as soon as the task is stored.
pub(crate) fn say_at_once(text: &str) -> v1::SendMessageRequest {
    let configuration = v1::SendMessageConfiguration { return_immediately: true, ..Default::default() };
    v1::SendMessageRequest { configuration: Some(configuration), ..say(text) }
}

/// The task in the answer to a send.
pub(crate) fn task(answer: &Answer) -> v1::Task {
    match answer.only::<v1::SendMessageResponse>().payload {
        Some(v1::send_message_response::Payload::Task(task)) => task,
        other => panic!("no task: {other:?}"),
    }
}

/// A moment for things to settle that cannot be asked for.
pub(crate) const MOMENT: Duration = Duration::from_millis(20);
