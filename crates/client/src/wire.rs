//! How an interface is spoken to: one file per binding, all behind one type.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::codec::DecodeError;
use nuncio_protocol::{
    AgentInterface, CancelTaskRequest, ErrorKind, GetExtendedAgentCardRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, ListTasksRequest,
    ListTasksResponse, SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest, Task, TaskId,
    TaskPushNotificationConfig, TaskPushNotificationConfigRequest,
};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};

use crate::discover::{self, FoundCard};
use crate::error::{AgentError, ClientError};
use crate::http::{Ask, Http, invalid, protocol, retry_after, shown, within};
use crate::options::SendOptions;

mod arriving;
mod dialect;
mod feed;
pub(crate) mod framed;
pub(crate) mod grpc;
mod jsonrpc;
mod redis;
mod rest;

use arriving::Arriving;
use dialect::{Call, Dialect};
pub(crate) use feed::Feed;
use feed::Framing;
use framed::Framed;
use grpc::Messages;
use jsonrpc::JsonRpc;
use redis::Redis;
pub(crate) use redis::is_redis;
use rest::Rest;

pub(crate) const VERSION_HEADER: &str = "a2a-version";
const EVENTS: &str = "text/event-stream";

/// A way to carry A2A that this client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Binding {
    /// JSON-RPC over HTTP.
    JsonRpc,
    /// Plain HTTP with JSON bodies.
    Rest,
    /// gRPC.
    Grpc,
    /// JSON-RPC inside of gRPC.
    GrpcJsonRpc,
    /// JSON-RPC by streams in Redis.
    RedisStreams,
    /// JSON-RPC over WebSocket.
    WebSocket,
    /// JSON-RPC over a socket of this machine.
    Unix,
    /// JSON-RPC with a program, on its stdin and stdout.
    Stdio,
}

impl Binding {
    /// The name in cards.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Rest => "HTTP+JSON",
            Self::Grpc => "GRPC",
            Self::GrpcJsonRpc => "grpc-jsonrpc",
            Self::RedisStreams => "redis-streams",
            Self::WebSocket => "websocket",
            Self::Unix => "unix",
            Self::Stdio => "stdio",
        }
    }

    /// The binding that an address is of by its scheme alone.
    pub(crate) fn of_scheme(url: &Url) -> Option<Self> {
        if is_redis(url) { Some(Self::RedisStreams) } else { framed::binding_of(url) }
    }

    /// The binding with this name in a card.
    pub fn from_name(name: &str) -> Option<Self> {
        let web = [Self::JsonRpc, Self::Rest, Self::Grpc, Self::GrpcJsonRpc, Self::WebSocket];
        let others = [Self::RedisStreams, Self::Unix, Self::Stdio];
        web.into_iter().chain(others).find(|binding| binding.name().eq_ignore_ascii_case(name.trim()))
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A version of A2A that this client speaks; older ones are smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// 0.3
    V0_3,
    /// 1.0
    V1_0,
}

impl Version {
    /// `Major.Minor`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// The version that a card or a person calls so. Patch numbers do not matter: 1.0.3 is 1.0.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut numbers = name.trim().split('.');
        match (numbers.next()?, numbers.next()?) {
            ("0", "3") => Some(Self::V0_3),
            ("1", "0") => Some(Self::V1_0),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How an interface is spoken to, if this client can.
pub(crate) fn spoken(interface: &AgentInterface) -> Option<(Binding, Version)> {
    Some((Binding::from_name(&interface.protocol_binding)?, Version::from_name(&interface.protocol_version)?))
}

/// One interface of one agent.
#[derive(Debug)]
pub(crate) struct Wire {
    http: Arc<Http>,
    url: Url,
    /// The same for every call: version and extensions.
    headers: HeaderMap,
    carrier: Carrier,
    dialect: Dialect,
}

/// What turns calls into requests.
#[derive(Debug)]
enum Carrier {
    JsonRpc(JsonRpc),
    Rest(Rest),
    Grpc,
    Enveloped(JsonRpc),
    Redis(JsonRpc, Arc<Redis>),
    Framed(JsonRpc, Arc<Framed>),
}

impl Wire {
    pub(crate) fn new(
        http: Arc<Http>,
        url: Url,
        binding: Binding,
        version: Version,
        extensions: &[String],
    ) -> Result<Self, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert(VERSION_HEADER, HeaderValue::from_static(version.name()));
        if !extensions.is_empty() {
            let value = value("The list of extensions", &extensions.join(", "))?;
            headers.insert("a2a-extensions", value.clone());
            // The name that 0.3 gave it.
            if version == Version::V0_3 {
                headers.insert("x-a2a-extensions", value);
            }
        }
        let carrier = match binding {
            Binding::JsonRpc => Carrier::JsonRpc(JsonRpc::default()),
            Binding::Rest => Carrier::Rest(Rest::new(version)),
            Binding::Grpc => Carrier::Grpc,
            Binding::GrpcJsonRpc => Carrier::Enveloped(JsonRpc::default()),
            Binding::RedisStreams => Carrier::Redis(JsonRpc::default(), Arc::new(Redis::new(&http, &url)?)),
            Binding::WebSocket | Binding::Unix | Binding::Stdio => {
                Carrier::Framed(JsonRpc::default(), Arc::new(Framed::new(&url)))
            }
        };
        Ok(Self { http, url, headers, carrier, dialect: Dialect::new(binding, version) })
    }

    /// The same interface, with these extensions activated instead.
    pub(crate) fn activating(
        &self,
        binding: Binding,
        version: Version,
        extensions: &[String],
    ) -> Result<Self, ClientError> {
        let mut wire = Self::new(self.http.clone(), self.url.clone(), binding, version, extensions)?;
        match &self.carrier {
            Carrier::Redis(_, redis) => wire.carrier = Carrier::Redis(JsonRpc::default(), redis.clone()),
            // On the same connection no two calls may have the same number.
            Carrier::Framed(calls, framed) => wire.carrier = Carrier::Framed(calls.clone(), framed.clone()),
            Carrier::JsonRpc(_) | Carrier::Rest(_) | Carrier::Grpc | Carrier::Enveloped(_) => {}
        }
        Ok(wire)
    }

    pub(crate) async fn send(
        &self,
        request: &SendMessageRequest,
        how: &SendOptions,
    ) -> Result<SendMessageResponse, ClientError> {
        let limit = how.timeout.unwrap_or(self.http.options.timeout);
        self.call_within(&Call::Send(request), Dialect::read_sent, send_headers(how)?, limit).await
    }

    pub(crate) async fn stream(&self, request: &SendMessageRequest, how: &SendOptions) -> Result<Feed, ClientError> {
        let limit = how.timeout.unwrap_or(self.http.options.timeout);
        self.open(&Call::Stream(request), send_headers(how)?, limit).await
    }

    pub(crate) async fn subscribe(
        &self,
        request: &SubscribeToTaskRequest,
        after: Option<u64>,
    ) -> Result<Feed, ClientError> {
        let (call, limit) = (Call::Subscribe(request), self.http.options.timeout);
        let last = || after.map(|seq| (HeaderName::from_static("last-event-id"), HeaderValue::from(seq)));
        match (&self.carrier, self.open(&call, last(), limit).await) {
            // The specification names both methods, and some agents have only one of them.
            (Carrier::Rest(rest), Err(ClientError::Http { status: 404 | 405 | 501, .. })) if rest.other_verb() => {
                self.open(&call, last(), limit).await
            }
            (_, answer) => answer,
        }
    }

    pub(crate) async fn get(&self, request: &GetTaskRequest) -> Result<Task, ClientError> {
        self.call(&Call::Get(request), Dialect::read_task).await
    }

    pub(crate) async fn list(&self, request: &ListTasksRequest) -> Result<ListTasksResponse, ClientError> {
        self.call(&Call::List(request), Dialect::read_tasks).await
    }

    pub(crate) async fn cancel(&self, request: &CancelTaskRequest) -> Result<Task, ClientError> {
        self.call(&Call::Cancel(request), Dialect::read_task).await
    }

    pub(crate) async fn push_create(
        &self,
        config: &TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        let created = self.call(&Call::PushCreate(config), Dialect::read_push).await?;
        Ok(Self::of_task(created, &config.task_id))
    }

    pub(crate) async fn push_get(
        &self,
        request: &TaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        let found = self.call(&Call::PushGet(request), Dialect::read_push).await?;
        Ok(Self::of_task(found, &request.task_id))
    }

    pub(crate) async fn push_list(
        &self,
        request: &ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, ClientError> {
        let mut page = self.call(&Call::PushList(request), Dialect::read_pushes).await?;
        page.configs = page.configs.into_iter().map(|config| Self::of_task(config, &request.task_id)).collect();
        Ok(page)
    }

    pub(crate) async fn push_delete(&self, request: &TaskPushNotificationConfigRequest) -> Result<(), ClientError> {
        self.call(&Call::PushDelete(request), |_, _| Ok(())).await
    }

    pub(crate) async fn extended_card(&self, request: &GetExtendedAgentCardRequest) -> Result<FoundCard, ClientError> {
        let json = self.call(&Call::ExtendedCard(request), Dialect::read_card).await?;
        // Agents of either version also answer with a card for both.
        discover::read(&self.http, &self.url, json).await
    }

    /// The card, from an agent that has no address of its own for it: as our servers answer, else the extended one.
    pub(crate) async fn card(&self, request: &GetExtendedAgentCardRequest) -> Result<FoundCard, ClientError> {
        match self.call(&Call::Card(request), |_, json| Ok(Bytes::copy_from_slice(json))).await {
            Ok(json) => discover::read(&self.http, &self.url, json).await,
            Err(ClientError::Agent(_)) => self.extended_card(request).await,
            Err(error) => Err(error),
        }
    }

    /// Not every agent repeats whose webhook it is.
    fn of_task(mut config: TaskPushNotificationConfig, task: &TaskId) -> TaskPushNotificationConfig {
        if config.task_id.is_empty() {
            config.task_id = task.clone();
        }
        config
    }

    async fn call<T>(&self, call: &Call<'_>, read: Read<T>) -> Result<T, ClientError> {
        self.call_within(call, read, None, self.http.options.timeout).await
    }

    async fn call_within<T>(
        &self,
        call: &Call<'_>,
        read: Read<T>,
        extra: Option<(HeaderName, HeaderValue)>,
        limit: Duration,
    ) -> Result<T, ClientError> {
        let (ask, framing) = self.ask(call, false, extra)?;
        if self.is_framed() {
            let work = async {
                let reply = self.arriving(&ask, framing, false).await?.next().await?;
                let body = reply.map(|reply| reply.payload).unwrap_or_default();
                small_enough(&self.url, &body, self.http.options.max_answer)?;
                framing.open(&self.http, &self.url, &body, |json| self.dialect.tolerant(json, read))
            };
            return within(limit, shown(&self.url), work).await;
        }
        let work = async {
            let mut response = self.http.ask(ask).await?;
            if self.is_grpc() {
                let messages = Messages::of(&self.http, response).await?;
                let message = messages.only(&self.http, &self.url, self.http.options.max_answer).await?;
                if matches!(self.carrier, Carrier::Grpc) {
                    return read(self.dialect, &message).map_err(|error| unreadable(&self.http, &self.url, &error));
                }
                let (json, _) = grpc::unwrapped(&self.url, message)?;
                return framing.open(&self.http, &self.url, &json, |json| self.dialect.tolerant(json, read));
            }
            self.accepted(framing, &mut response).await?;
            let body = self.http.body(&mut response, self.http.options.max_answer).await?;
            let answer = framing.open(&self.http, &self.url, &body, |json| self.dialect.tolerant(json, read));
            answer.map_err(|error| error.after(retry_after(response.headers())))
        };
        within(limit, shown(&self.url), work).await
    }

    /// Starts a stream. Errors before its first event are errors of this call.
    async fn open(
        &self,
        call: &Call<'_>,
        extra: Option<(HeaderName, HeaderValue)>,
        limit: Duration,
    ) -> Result<Feed, ClientError> {
        let (ask, framing) = self.ask(call, true, extra)?;
        if self.is_grpc() {
            return self.open_grpc(ask, framing, limit).await;
        }
        if self.is_framed() {
            let work = async {
                let mut replies = self.arriving(&ask, framing, true).await?;
                replies.begun().await?;
                let mut feed = Feed::replies(self.http.clone(), self.url.clone(), framing, self.dialect, replies);
                feed.check_first().await?;
                Ok(feed)
            };
            return within(limit, shown(&self.url), work).await;
        }
        let head = async {
            let mut response = self.http.ask(ask).await?;
            self.accepted(framing, &mut response).await?;
            Ok(response)
        };
        let mut response = within(limit, shown(&self.url), head).await?;
        if is_event_stream(&response) {
            return Ok(Feed::new(self.http.clone(), self.url.clone(), framing, self.dialect, response));
        }
        // A plain answer: usually an error, but an agent may also have said everything at once.
        let work = async {
            let body = self.http.body(&mut response, self.http.options.max_answer).await?;
            let read = |json: &[u8]| self.dialect.tolerant(json, Dialect::read_event);
            let answer = framing.open(&self.http, &self.url, &body, read);
            answer.map_err(|error| error.after(retry_after(response.headers())))
        };
        let only = within(limit, shown(&self.url), work).await?;
        Ok(Feed::single(self.http.clone(), self.url.clone(), framing, self.dialect, only))
    }

    /// Whether answers come in frames instead of as the body of a response.
    fn is_framed(&self) -> bool {
        matches!(self.carrier, Carrier::Redis(..) | Carrier::Framed(..))
    }

    /// Whether answers come as messages of gRPC.
    fn is_grpc(&self) -> bool {
        matches!(self.carrier, Carrier::Grpc | Carrier::Enveloped(_))
    }

    /// Asks, and listens for what comes back.
    async fn arriving(&self, ask: &Ask, framing: Framing, streams: bool) -> Result<Arriving, ClientError> {
        match (&self.carrier, framing) {
            (Carrier::Redis(_, redis), _) => redis.ask(&self.http, ask).await.map(Arriving::Redis),
            (Carrier::Framed(_, framed), Framing::JsonRpc { id }) => {
                framed.ask(&self.http, ask, id, streams).await.map(Arriving::Framed)
            }
            _ => Err(protocol(&self.url, "this binding has no frames")),
        }
    }

    /// The first event is waited for, because errors before it come in its place.
    async fn open_grpc(&self, ask: Ask, framing: Framing, limit: Duration) -> Result<Feed, ClientError> {
        let head = async {
            let response = self.http.ask(ask).await?;
            let mut feed = Feed::messages(
                self.http.clone(),
                self.url.clone(),
                framing,
                self.dialect,
                Messages::of(&self.http, response).await?,
            );
            feed.look_ahead().await?;
            Ok(feed)
        };
        within(limit, shown(&self.url), head).await
    }

    fn ask(
        &self,
        call: &Call<'_>,
        streams: bool,
        extra: Option<(HeaderName, HeaderValue)>,
    ) -> Result<(Ask, Framing), ClientError> {
        let mut headers = self.headers.clone();
        headers.extend(extra);
        match &self.carrier {
            Carrier::JsonRpc(carrier) | Carrier::Redis(carrier, _) | Carrier::Framed(carrier, _) => {
                carrier.ask(&self.url, headers, self.dialect, call, streams)
            }
            Carrier::Enveloped(carrier) => {
                let (ask, framing) = carrier.ask(&self.url, headers, self.dialect, call, streams)?;
                Ok((grpc::wrapped(ask, streams), framing))
            }
            Carrier::Rest(carrier) => Ok((carrier.ask(&self.url, headers, self.dialect, call, streams), Framing::Rest)),
            // What is around an answer is taken off before.
            Carrier::Grpc => Ok((grpc::ask(&self.url, headers, self.dialect, call)?, Framing::Rest)),
        }
    }

    /// Turns an answer with a bad status into an error: the agent's own words, if the body holds them.
    async fn accepted(&self, framing: Framing, response: &mut Response) -> Result<(), ClientError> {
        if response.status().is_success() {
            return Ok(());
        }
        let body = self.http.error_body(response).await;
        let error = match framing {
            Framing::JsonRpc { .. } => jsonrpc::error(&body),
            Framing::Rest => rest::error(response.status().as_u16(), &body, self.dialect),
        };
        let Some(error) = error else { return Err(self.http.refused(response, &body)) };
        Err(agent(&self.http, &self.url, error).after(retry_after(response.headers())))
    }
}

/// Reads one kind of answer.
type Read<T> = fn(Dialect, &[u8]) -> Result<T, DecodeError>;

/// The agent's error, or the caller's credentials where that is what it is about.
fn agent(http: &Http, url: &Url, mut error: AgentError) -> ClientError {
    error.message = http.redact(error.message);
    http.redact_all(&mut error.details);
    for violation in &mut error.violations {
        violation.field = http.redact(std::mem::take(&mut violation.field));
        violation.description = http.redact(std::mem::take(&mut violation.description));
    }
    let status = match error.kind {
        Some(ErrorKind::Unauthenticated) => 401,
        Some(ErrorKind::PermissionDenied) => 403,
        _ => return ClientError::Agent(Box::new(error)),
    };
    ClientError::Unauthorized { url: shown(url), status, sent: http.sends_credentials(url), said: error.message }
}

fn small_enough(url: &Url, body: &[u8], limit: usize) -> Result<(), ClientError> {
    if body.len() > limit { Err(ClientError::TooLarge { url: shown(url), limit }) } else { Ok(()) }
}

/// What cannot be read is quoted.
fn unreadable(http: &Http, url: &Url, error: &DecodeError) -> ClientError {
    protocol(url, http.redact(error.to_string()))
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
