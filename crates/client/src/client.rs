//! One agent, and every operation on it.

use std::fmt;
use std::sync::Arc;

use nuncio_protocol::{
    AgentCard, CancelTaskRequest, ErrorKind, GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest,
    ListTasksResponse, SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest, Task, TaskId,
};
use reqwest::Url;

use crate::discover::discover;
use crate::error::ClientError;
use crate::http::{Http, parse_url, shown};
use crate::options::{Options, Retry, SendOptions};
use crate::stream::{EventStream, Origin};
use crate::wire::{Binding, Feed, JsonRpc, Wire};

/// A client of one agent. Clones are cheap and share connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    wire: Wire,
    binding: Binding,
    url: String,
    tenant: String,
    card: Option<AgentCard>,
    retry: Retry,
}

impl Client {
    /// Finds an agent by its card: at the address itself if that ends in `.json`, else at the well-known place
    /// below it, else at the well-known place of its origin.
    ///
    /// Of the interfaces in the card the first one that this client speaks is used. Credentials go only to the
    /// origin of `url`; a card that leads elsewhere is an error unless [`Options::allow_cross_origin`] is set.
    pub async fn discover(url: &str, options: Options) -> Result<Self, ClientError> {
        let home = parse_url(url)?;
        let http = Http::new(home.clone(), options)?;
        let found = discover(&http, &home).await?;
        Self::new(http, found.url, found.binding, found.interface.tenant, Some(found.card))
    }

    /// An agent whose JSON-RPC 1.0 interface is known to be at `url`; no card is read.
    pub fn direct(url: &str, options: Options) -> Result<Self, ClientError> {
        let url = parse_url(url)?;
        let http = Http::new(url.clone(), options)?;
        Self::new(http, url, Binding::JsonRpc10, String::new(), None)
    }

    fn new(
        http: Http,
        url: Url,
        binding: Binding,
        tenant: String,
        card: Option<AgentCard>,
    ) -> Result<Self, ClientError> {
        let (shown, retry) = (shown(&url), http.options.retry);
        let wire = match binding {
            Binding::JsonRpc10 => Wire::JsonRpc(JsonRpc::new(Arc::new(http), url)?),
        };
        Ok(Self { inner: Arc::new(Inner { wire, binding, url: shown, tenant, card, retry }) })
    }

    /// The card, if the agent was found by it.
    pub fn card(&self) -> Option<&AgentCard> {
        self.inner.card.as_ref()
    }

    /// The address of the interface in use.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// The binding in use, as cards call it.
    pub fn binding(&self) -> &'static str {
        self.inner.binding.name()
    }

    /// The version of A2A in use.
    pub fn version(&self) -> &'static str {
        self.inner.binding.version()
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
        let mut failures = 0;
        loop {
            let error = match self.inner.wire.send(&request, how).await {
                Err(error) if self.may_repeat(how, &error, failures) => error,
                other => return other,
            };
            tokio::time::sleep(self.inner.retry.pause(failures, error.retry_after())).await;
            failures += 1;
        }
    }

    /// Sends a message and follows what it starts.
    pub async fn stream(&self, request: SendMessageRequest) -> Result<EventStream, ClientError> {
        self.stream_with(request, &SendOptions::default()).await
    }

    /// Sends a message and follows what it starts. With an idempotency key it is sent again when the network or
    /// the server fails before the agent has named the task.
    pub async fn stream_with(
        &self,
        mut request: SendMessageRequest,
        how: &SendOptions,
    ) -> Result<EventStream, ClientError> {
        self.fill(&mut request.tenant);
        let mut failures = 0;
        loop {
            let error = match self.inner.wire.stream(&request, how).await {
                Ok(feed) => {
                    let again = how.idempotency_key.is_some().then(|| Box::new((request, how.clone())));
                    return Ok(EventStream::new(self.clone(), feed, Origin::Send { again }, None));
                }
                Err(error) if self.may_repeat(how, &error, failures) => error,
                Err(error) => return Err(error),
            };
            tokio::time::sleep(self.inner.retry.pause(failures, error.retry_after())).await;
            failures += 1;
        }
    }

    /// Asks for one task.
    pub async fn get(&self, mut request: GetTaskRequest) -> Result<Task, ClientError> {
        self.fill(&mut request.tenant);
        self.inner.wire.get(&request).await
    }

    /// Asks for a page of tasks.
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
        match self.open(&id, after).await {
            Ok(feed) => Ok(EventStream::new(self.clone(), feed, Origin::Subscribe { task: id }, after)),
            Err(error) if after.is_some() && error.kind() == Some(ErrorKind::UnsupportedOperation) => {
                let task = self.get(GetTaskRequest { id, ..Default::default() }).await?;
                Ok(EventStream::ending(task))
            }
            Err(error) => Err(error),
        }
    }

    /// Asks for the card that only known callers see.
    pub async fn extended_card(&self) -> Result<AgentCard, ClientError> {
        let request = GetExtendedAgentCardRequest { tenant: self.inner.tenant.clone() };
        self.inner.wire.extended_card(&request).await
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

    pub(crate) fn retry(&self) -> Retry {
        self.inner.retry
    }

    fn may_repeat(&self, how: &SendOptions, error: &ClientError, failures: u32) -> bool {
        how.idempotency_key.is_some() && error.is_transient() && failures < self.inner.retry.tries
    }

    fn fill(&self, tenant: &mut String) {
        if tenant.is_empty() {
            tenant.clone_from(&self.inner.tenant);
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url()).field("tenant", &self.tenant()).finish_non_exhaustive()
    }
}
