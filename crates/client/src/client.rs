//! One agent, and every operation on it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::sign::Verdict;
use nuncio_protocol::{
    AgentCard, CancelTaskRequest, ErrorKind, GetExtendedAgentCardRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, ListTasksRequest,
    ListTasksResponse, PushId, SendMessageRequest, SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task,
    TaskId, TaskPushNotificationConfig, TaskPushNotificationConfigRequest,
};

use crate::discover::{FoundCard, discover, fetch, find};
use crate::error::ClientError;
use crate::http::{Http, invalid, parse_url, shown};
use crate::options::{Options, SendOptions};
use crate::stream::{Event, EventStream, Origin};
use crate::wire::{Binding, Feed, Version, Wire, grpc};

/// A client of one agent. Clones are cheap and share connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    wire: Wire,
    http: Arc<Http>,
    binding: Binding,
    version: Version,
    url: String,
    tenant: String,
    card: Option<FoundCard>,
}

impl Client {
    /// Finds an agent by its card: at the address itself if that ends in `.json`, else at the well-known place
    /// below it, else at the well-known place of its origin.
    ///
    /// Of the interfaces in the card the first one is used that this client speaks and that
    /// [`Options::version`] and [`Options::binding`] do not exclude. Credentials go only to the origin of `url`;
    /// a card that leads elsewhere is an error unless [`Options::origins`] or [`Options::allow_cross_origin`]
    /// say otherwise.
    ///
    /// An address that is none of HTTP is used as it is, as [`Client::direct`] does. Over WebSocket, a Unix socket,
    /// stdio and JSON-RPC inside of gRPC the agent is asked for its card; gRPC and streams in Redis have none.
    pub async fn discover(url: &str, options: Options) -> Result<Self, ClientError> {
        match grpc::typed(url) {
            Some((Binding::GrpcJsonRpc, _)) => return Self::direct(url, options)?.introduced().await,
            Some(_) => return Self::direct(url, options),
            None => {}
        }
        let home = parse_url(url)?;
        match Binding::of_scheme(&home) {
            None => {}
            Some(Binding::RedisStreams) => {
                // There is no card to read, and so none to trust.
                if options.require_signature {
                    let text = "A signed card is required, and this address has none: use that of the card.";
                    return Err(invalid(text.into()));
                }
                return Self::direct(url, options);
            }
            Some(_) => return Self::direct(url, options)?.introduced().await,
        }
        let http = Arc::new(Http::new(home.clone(), options)?);
        let found = discover(&http, &home).await?;
        let tenant = http.options.tenant.clone().unwrap_or(found.tenant);
        let extensions = &http.options.extensions;
        let wire = Wire::new(http.clone(), found.url.clone(), found.binding, found.version, extensions)?;
        let (binding, version) = (found.binding, found.version);
        let card = Some(found.card);
        Ok(Self { inner: Arc::new(Inner { wire, http, binding, version, url: shown(&found.url), tenant, card }) })
    }

    /// Reads a card as [`Client::discover`] does, but uses and refuses nothing: whoever asks may look at it, and
    /// at what its signatures are worth.
    pub async fn read_card(url: &str, options: Options) -> Result<FoundCard, ClientError> {
        let is_enveloped = matches!(grpc::typed(url), Some((Binding::GrpcJsonRpc, _)));
        if is_enveloped || Binding::of_scheme(&parse_url(url)?).is_some() {
            let request = GetExtendedAgentCardRequest { tenant: options.tenant.clone().unwrap_or_default() };
            return Self::direct(url, options)?.inner.wire.card(&request).await;
        }
        let home = parse_url(url)?;
        find(&Http::new(home.clone(), options)?, &home).await
    }

    /// The card byte for byte, read or not: for whoever wants to know what is wrong with it.
    pub async fn fetch_card(url: &str, options: Options) -> Result<Bytes, ClientError> {
        let home = parse_url(url)?;
        fetch(&Http::new(home.clone(), options)?, &home).await.map(|(_, json)| json)
    }

    /// An agent whose interface is known to be at `url`; no card is read. It is JSON-RPC and 1.0 unless the
    /// options say otherwise.
    pub fn direct(url: &str, options: Options) -> Result<Self, ClientError> {
        let grpc = grpc::typed(url);
        if matches!(grpc, Some((Binding::Grpc, _))) && options.require_signature {
            return Err(invalid("There is no card to verify at a gRPC address: use the address of the card.".into()));
        }
        let url = parse_url(grpc.as_ref().map_or(url, |(_, web)| web))?;
        let known = grpc.map(|(binding, _)| binding).or_else(|| Binding::of_scheme(&url));
        let binding = known.or(options.binding).unwrap_or(Binding::JsonRpc);
        let version = options.version.unwrap_or(Version::V1_0);
        let tenant = options.tenant.clone().unwrap_or_default();
        let http = Arc::new(Http::new(url.clone(), options)?);
        let wire = Wire::new(http.clone(), url.clone(), binding, version, &http.options.extensions)?;
        Ok(Self { inner: Arc::new(Inner { wire, http, binding, version, url: shown(&url), tenant, card: None }) })
    }

    /// The same agent, with the card that it shows over this connection.
    async fn introduced(self) -> Result<Self, ClientError> {
        let request = GetExtendedAgentCardRequest { tenant: self.inner.tenant.clone() };
        let card = match self.inner.wire.card(&request).await {
            Ok(card) => card,
            // Agents need not have one here.
            Err(ClientError::Agent(_)) if !self.options().require_signature => return Ok(self),
            Err(error) => return Err(error),
        };
        card.accept(self.options())?;
        let Some(inner) = Arc::into_inner(self.inner) else {
            return Err(invalid("The client is in use already.".into()));
        };
        Ok(Self { inner: Arc::new(Inner { card: Some(card), ..inner }) })
    }

    /// The same agent and the same connections, with these extensions activated instead of those in the options.
    pub fn activating(&self, extensions: &[String]) -> Result<Self, ClientError> {
        let known = &*self.inner;
        let inner = Inner {
            wire: known.wire.activating(known.binding, known.version, extensions)?,
            http: known.http.clone(),
            binding: known.binding,
            version: known.version,
            url: known.url.clone(),
            tenant: known.tenant.clone(),
            card: known.card.clone(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The card, if the agent was found by it.
    pub fn card(&self) -> Option<&AgentCard> {
        self.inner.card.as_ref().map(|found| &found.card)
    }

    /// The card byte for byte, as signatures cover it.
    pub fn card_json(&self) -> Option<&Bytes> {
        self.inner.card.as_ref().map(|found| &found.json)
    }

    /// What the signatures of the card are worth, if the agent was found by it.
    pub fn signature(&self) -> Option<&Verdict> {
        self.inner.card.as_ref().map(|found| &found.signature)
    }

    /// The address of the interface in use.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// The binding in use.
    pub fn binding(&self) -> Binding {
        self.inner.binding
    }

    /// The version of A2A in use.
    pub fn version(&self) -> Version {
        self.inner.version
    }

    /// The tenant of the interface; empty for none. It goes along with every request that names no other.
    pub fn tenant(&self) -> &str {
        &self.inner.tenant
    }

    /// Sends a message and waits for the answer.
    pub async fn send(&self, request: SendMessageRequest) -> Result<SendMessageResponse, ClientError> {
        self.send_with(request, &SendOptions::default()).await
    }

    /// Sends a message. With an idempotency key it is sent again when the network or the server fails.
    pub async fn send_with(
        &self,
        mut request: SendMessageRequest,
        how: &SendOptions,
    ) -> Result<SendMessageResponse, ClientError> {
        self.fill(&mut request.tenant);
        if self.version() == Version::V0_3 {
            // There the default is not the same everywhere, so what is wanted is said.
            request.configuration.get_or_insert_default();
        }
        let mut failures = 0;
        loop {
            match self.inner.wire.send(&request, how).await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.pause(how, &mut failures, error).await?,
            }
        }
    }

    /// Sends a message and follows what it starts.
    pub async fn stream(&self, request: SendMessageRequest) -> Result<EventStream, ClientError> {
        self.stream_with(request, &SendOptions::default()).await
    }

    /// Sends a message and follows what it starts. With an idempotency key it is sent again when the network or
    /// the server fails before the agent has named the task.
    ///
    /// The task of an agent whose card announces no streams is asked for again and again instead.
    pub async fn stream_with(
        &self,
        mut request: SendMessageRequest,
        how: &SendOptions,
    ) -> Result<EventStream, ClientError> {
        if !self.may_stream() {
            request.configuration.get_or_insert_default().return_immediately = true;
            let response = match self.send_with(request, how).await? {
                SendMessageResponse::Message(message) => StreamResponse::Message(message),
                SendMessageResponse::Task(task) => StreamResponse::Task(task),
            };
            let first = Event { seq: None, response };
            return Ok(EventStream::polling(self.clone(), Origin::Send { again: None }, Some(first)));
        }
        self.fill(&mut request.tenant);
        let mut failures = 0;
        let feed = loop {
            match self.inner.wire.stream(&request, how).await {
                Ok(feed) => break feed,
                Err(error) => self.pause(how, &mut failures, error).await?,
            }
        };
        let again = how.idempotency_key.is_some().then(|| Box::new((request, how.clone())));
        Ok(EventStream::new(self.clone(), feed, Origin::Send { again }, None))
    }

    /// Asks for one task.
    pub async fn get(&self, mut request: GetTaskRequest) -> Result<Task, ClientError> {
        self.fill(&mut request.tenant);
        self.inner.wire.get(&request).await
    }

    /// Asks for a page of tasks. 0.3 has this over REST at most, and few agents do.
    pub async fn list(&self, mut request: ListTasksRequest) -> Result<ListTasksResponse, ClientError> {
        self.fill(&mut request.tenant);
        self.inner.wire.list(&request).await
    }

    /// Asks to end a task.
    pub async fn cancel(&self, mut request: CancelTaskRequest) -> Result<Task, ClientError> {
        self.fill(&mut request.tenant);
        self.inner.wire.cancel(&request).await
    }

    /// Follows a task: from now on, beginning with the whole task; or, after the event with the given number,
    /// exactly from there where the agent numbers its events.
    ///
    /// A task that is over cannot be followed. Whoever continues after an event gets such a task as the only
    /// event; otherwise that is an error of the agent.
    pub async fn subscribe(&self, id: TaskId, after: Option<u64>) -> Result<EventStream, ClientError> {
        let origin = Origin::Subscribe { task: id.clone() };
        if !self.may_stream() {
            return Ok(EventStream::polling(self.clone(), origin, None));
        }
        match self.open(&id, after).await {
            Ok(feed) => Ok(EventStream::new(self.clone(), feed, origin, after)),
            Err(error) if after.is_some() && error.kind() == Some(ErrorKind::UnsupportedOperation) => {
                Ok(EventStream::polling(self.clone(), origin, None))
            }
            Err(error) => Err(error),
        }
    }

    /// Follows a task by asking for it every [`Options::poll`]: the whole task first, then what is new.
    /// For agents that let nobody follow it, and for tasks that may be over.
    pub fn watch(&self, id: TaskId) -> EventStream {
        EventStream::polling(self.clone(), Origin::Subscribe { task: id }, None)
    }

    /// Registers a webhook for a task.
    pub async fn create_push(
        &self,
        mut config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        self.fill(&mut config.tenant);
        self.inner.wire.push_create(&config).await
    }

    /// Asks for one webhook of a task.
    pub async fn get_push(&self, task: TaskId, id: PushId) -> Result<TaskPushNotificationConfig, ClientError> {
        self.inner.wire.push_get(&self.push_request(task, id)).await
    }

    /// Asks for the webhooks of a task.
    pub async fn list_push(
        &self,
        mut request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, ClientError> {
        self.fill(&mut request.tenant);
        self.inner.wire.push_list(&request).await
    }

    /// Removes a webhook of a task.
    pub async fn delete_push(&self, task: TaskId, id: PushId) -> Result<(), ClientError> {
        self.inner.wire.push_delete(&self.push_request(task, id)).await
    }

    /// Asks for the card that only known callers see. Its signatures must be what those of the first card must.
    pub async fn extended_card(&self) -> Result<AgentCard, ClientError> {
        let found = self.read_extended_card().await?;
        found.accept(self.options())?;
        Ok(found.card)
    }

    /// The same, but whatever its signatures are worth.
    pub async fn read_extended_card(&self) -> Result<FoundCard, ClientError> {
        let request = GetExtendedAgentCardRequest { tenant: self.inner.tenant.clone() };
        self.inner.wire.extended_card(&request).await
    }

    /// Fetches a file that the agent names, such as a large artifact. Only from the origins of the agent: whatever else
    /// a foreign text names is not asked for.
    pub async fn download(&self, url: &str) -> Result<Bytes, ClientError> {
        self.inner.http.download(url, &self.inner.url).await
    }

    /// One connection that carries the events of a task.
    pub(crate) async fn open(&self, id: &TaskId, after: Option<u64>) -> Result<Feed, ClientError> {
        let request = SubscribeToTaskRequest { tenant: self.inner.tenant.clone(), id: id.clone() };
        self.inner.wire.subscribe(&request, after).await
    }

    /// One connection that carries the answer to a message that was sent before under the same key.
    pub(crate) async fn send_again(
        &self,
        request: &SendMessageRequest,
        how: &SendOptions,
    ) -> Result<Feed, ClientError> {
        self.inner.wire.stream(request, how).await
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.http.options
    }

    /// Without a card nobody says that the agent does not stream.
    fn may_stream(&self) -> bool {
        self.card().is_none_or(|card| card.capabilities.streaming == Some(true))
    }

    /// Waits before a message is sent again: only after failures that may pass, and with a key that makes it safe.
    async fn pause(&self, how: &SendOptions, failures: &mut u32, error: ClientError) -> Result<(), ClientError> {
        let retry = self.options().retry;
        if !how.may_repeat() || !error.is_transient() || *failures >= retry.tries {
            return Err(error);
        }
        tokio::time::sleep(retry.pause(*failures, error.retry_after())).await;
        if !how.may_repeat() {
            return Err(error);
        }
        *failures += 1;
        Ok(())
    }

    fn push_request(&self, task_id: TaskId, id: PushId) -> TaskPushNotificationConfigRequest {
        TaskPushNotificationConfigRequest { tenant: self.inner.tenant.clone(), task_id, id }
    }

    fn fill(&self, tenant: &mut String) {
        if tenant.is_empty() {
            tenant.clone_from(&self.inner.tenant);
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Client");
        out.field("url", &self.url()).field("binding", &self.binding()).field("version", &self.version());
        out.field("tenant", &self.tenant()).finish_non_exhaustive()
    }
}
