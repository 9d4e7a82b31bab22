//! A2A 1.0 over JSON-RPC.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nuncio_protocol::{ErrorKind, SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest, Value, codec};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Feed, VERSION_HEADER};
use crate::error::{AgentError, ClientError};
use crate::http::{Ask, Http, invalid, protocol, retry_after, shown, within};
use crate::options::SendOptions;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: &str = "text/event-stream";

/// One JSON-RPC interface.
#[derive(Debug)]
pub(crate) struct JsonRpc {
    http: Arc<Http>,
    url: Url,
    /// The same for every call: version and extensions.
    headers: HeaderMap,
    ids: AtomicU64,
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

#[derive(Deserialize)]
struct Answer<T> {
    #[serde(default)]
    id: Value,
    result: Option<T>,
    #[serde(default)]
    error: Value,
}

impl JsonRpc {
    pub(crate) fn new(http: Arc<Http>, url: Url) -> Result<Self, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(VERSION_HEADER, HeaderValue::from_static("1.0"));
        if !http.options.extensions.is_empty() {
            let value = value("The list of extensions", &http.options.extensions.join(", "))?;
            headers.insert("a2a-extensions", value);
        }
        Ok(Self { http, url, headers, ids: AtomicU64::new(1) })
    }

    pub(crate) async fn send(
        &self,
        request: &SendMessageRequest,
        how: &SendOptions,
    ) -> Result<SendMessageResponse, ClientError> {
        let limit = how.timeout.unwrap_or(self.http.options.timeout);
        self.call_within("SendMessage", request, send_headers(how)?, limit).await
    }

    pub(crate) async fn stream(&self, request: &SendMessageRequest, how: &SendOptions) -> Result<Feed, ClientError> {
        let limit = how.timeout.unwrap_or(self.http.options.timeout);
        self.open("SendStreamingMessage", request, send_headers(how)?, limit).await
    }

    pub(crate) async fn subscribe(
        &self,
        request: &SubscribeToTaskRequest,
        after: Option<u64>,
    ) -> Result<Feed, ClientError> {
        let last = after.map(|seq| (HeaderName::from_static("last-event-id"), HeaderValue::from(seq)));
        self.open("SubscribeToTask", request, last, self.http.options.timeout).await
    }

    pub(crate) async fn call<P: Serialize, T: DeserializeOwned>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<T, ClientError> {
        self.call_within(method, params, None, self.http.options.timeout).await
    }

    async fn call_within<P: Serialize, T: DeserializeOwned>(
        &self,
        method: &str,
        params: &P,
        extra: Option<(HeaderName, HeaderValue)>,
        limit: Duration,
    ) -> Result<T, ClientError> {
        let (id, ask) = self.ask(method, params, JSON, extra);
        let work = async {
            let mut response = self.http.ask(ask).await?;
            self.accepted(&mut response).await?;
            let body = self.http.body(&mut response, self.http.options.max_answer).await?;
            self.decode(id, &body, &response)
        };
        within(limit, shown(&self.url), work).await
    }

    /// Starts a stream. Errors before its first event are errors of this call.
    async fn open<P: Serialize>(
        &self,
        method: &str,
        params: &P,
        extra: Option<(HeaderName, HeaderValue)>,
        limit: Duration,
    ) -> Result<Feed, ClientError> {
        let accept = HeaderValue::from_static("text/event-stream, application/json");
        let (id, ask) = self.ask(method, params, accept, extra);
        let head = async {
            let mut response = self.http.ask(ask).await?;
            self.accepted(&mut response).await?;
            Ok(response)
        };
        let mut response = within(limit, shown(&self.url), head).await?;
        if is_event_stream(&response) {
            return Ok(Feed::new(self.http.clone(), self.url.clone(), id, response));
        }
        // A plain answer: usually an error, but an agent may also have said everything at once.
        let work = async {
            let body = self.http.body(&mut response, self.http.options.max_answer).await?;
            self.decode(id, &body, &response)
        };
        let only = within(limit, shown(&self.url), work).await?;
        Ok(Feed::single(self.http.clone(), self.url.clone(), only))
    }

    fn ask<P: Serialize>(
        &self,
        method: &str,
        params: &P,
        accept: HeaderValue,
        extra: Option<(HeaderName, HeaderValue)>,
    ) -> (u64, Ask) {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, accept);
        headers.extend(extra);
        let body = codec::encode(&Request { jsonrpc: "2.0", id, method, params });
        (id, Ask { method: Method::POST, url: self.url.clone(), headers, body })
    }

    /// Turns an answer with a bad status into an error: the agent's own words, if the body holds them.
    async fn accepted(&self, response: &mut Response) -> Result<(), ClientError> {
        if response.status().is_success() {
            return Ok(());
        }
        let body = self.http.error_body(response).await;
        let error = codec::decode::<Value>(&body).ok();
        let error = error.as_ref().filter(|body| body.get("jsonrpc").is_some()).and_then(|body| body.get("error"));
        if let Some(mut error) = error.and_then(AgentError::from_jsonrpc) {
            error.retry_after = retry_after(response);
            return Err(agent(&self.http, &self.url, error));
        }
        Err(self.http.refused(response, &body))
    }

    fn decode<T: DeserializeOwned>(&self, id: u64, body: &[u8], response: &Response) -> Result<T, ClientError> {
        decode(&self.http, &self.url, id, body).map_err(|error| match error {
            ClientError::Agent(mut error) => {
                error.retry_after = retry_after(response);
                ClientError::Agent(error)
            }
            other => other,
        })
    }
}

/// Reads one JSON-RPC response: the result, if it answers this very request.
pub(super) fn decode<T: DeserializeOwned>(http: &Http, url: &Url, id: u64, body: &[u8]) -> Result<T, ClientError> {
    let answer: Answer<T> = codec::decode(body).map_err(|error| protocol(url, error.to_string()))?;
    if !answer.error.is_null() {
        // Whoever could not read the request could not know its id.
        if answer.id != id && !answer.id.is_null() {
            return Err(wrong_id(url));
        }
        let error = AgentError::from_jsonrpc(&answer.error);
        return Err(error.map_or_else(
            || protocol(url, "the `error` of its answer has neither code nor message"),
            |error| agent(http, url, error),
        ));
    }
    if answer.id != id {
        return Err(wrong_id(url));
    }
    answer.result.ok_or_else(|| protocol(url, "its answer has neither `result` nor `error`"))
}

fn wrong_id(url: &Url) -> ClientError {
    protocol(url, "its answer carries the id of another request")
}

/// The agent's error, or the caller's credentials where that is what it is about.
fn agent(http: &Http, url: &Url, mut error: AgentError) -> ClientError {
    error.message = http.redact(error.message);
    let status = match error.kind {
        Some(ErrorKind::Unauthenticated) => 401,
        Some(ErrorKind::PermissionDenied) => 403,
        _ => return ClientError::Agent(Box::new(error)),
    };
    ClientError::Unauthorized { url: shown(url), status, sent: http.sends_credentials(url), said: error.message }
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(EVENTS))
}

fn send_headers(how: &SendOptions) -> Result<Option<(HeaderName, HeaderValue)>, ClientError> {
    let Some(key) = &how.idempotency_key else { return Ok(None) };
    Ok(Some((HeaderName::from_static("idempotency-key"), value("The idempotency key", key)?)))
}

fn value(what: &str, text: &str) -> Result<HeaderValue, ClientError> {
    HeaderValue::from_str(text).map_err(|_| invalid(format!("{what} cannot be sent in a header: remove line breaks.")))
}
