//! How callers reach the engine. Every binding decodes its dialect into the 1.0 model, calls
//! [`dispatch`], and encodes what comes back.

pub(crate) mod artifact;
pub(crate) mod body;
pub(crate) mod browser;
pub(crate) mod dialect;
pub(crate) mod dispatch;
pub(crate) mod draft;
pub(crate) mod form;
pub(crate) mod forwarded;
pub(crate) mod frames;
pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod jsonrpc;
pub(crate) mod limit;
pub(crate) mod listen;
pub(crate) mod mcp;
pub(crate) mod params;
pub(crate) mod pulse;
pub(crate) mod range;
pub(crate) mod redis;
pub(crate) mod rest;
pub(crate) mod rpc;
pub(crate) mod sse;
pub(crate) mod stdio;
pub(crate) mod unix;
mod wire;
pub(crate) mod ws;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::request::Parts;
use nuncio_protocol::{Error, ErrorKind};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::body::ResponseBody;
pub use self::limit::Rate;
use self::limit::{Pace, StreamShare, StreamShares};

use self::browser::Browser;
use crate::audit::Audit;
use crate::auth::{Caller, Denied, Gate};
use crate::call::Way;
use crate::card::{Card, Desk};
use crate::engine::Engine;
use crate::metrics::Metrics;
use crate::profile::Profile;
use crate::push::sign::Signer;
use crate::store::StoreError;
use crate::tls::Tls;

/// Limits of the HTTP side.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The largest request body, in bytes.
    pub max_body: usize,
    /// The largest request head, in bytes.
    pub max_header: usize,
    /// Streams at the same time.
    pub max_streams: usize,
    /// Streams of one caller at the same time.
    pub max_streams_per_caller: Option<usize>,
    /// Requests of one caller.
    pub rate: Option<Rate>,
    /// Connections at the same time.
    pub max_connections: usize,
    /// The longest time that a request head may take.
    pub header_timeout: Duration,
    /// The longest time that a request body may take.
    pub body_timeout: Duration,
    /// The longest time that a connection may be idle.
    pub idle_timeout: Duration,
    /// How often a silent stream shows that it lives.
    pub keep_alive: Duration,
    /// Whether a 1.0 method without a version header is served instead of refused.
    pub lenient_version: bool,
    /// Names that the server is reached by, beside those that everybody knows it by.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use the server; `*` for all.
    pub cors_origins: Vec<String>,
    /// The path of WebSocket, if there is any.
    pub ws_path: Option<String>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_body: 10 << 20,
            max_header: 64 << 10,
            max_streams: 10_000,
            max_streams_per_caller: None,
            rate: None,
            max_connections: 10_000,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            keep_alive: Duration::from_secs(15),
            lenient_version: false,
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            ws_path: Some("/ws".into()),
        }
    }
}

/// What all bindings share.
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) cards: Desk,
    pub(crate) gate: Gate,
    pub(crate) browser: Browser,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) signer: Option<Arc<Signer>>,
    pub(crate) http: HttpOptions,
    pub(crate) profile: Profile,
    /// Ends every stream when the server goes down.
    pub(crate) closing: CancellationToken,
    pub(crate) streams: Arc<AtomicUsize>,
    /// Connections that carry frames.
    pub(crate) sessions: TaskTracker,
    /// The port that is for gRPC alone.
    pub(crate) grpc_alone: OnceLock<SocketAddr>,
    /// How often each caller may call.
    pub(crate) pace: Option<Pace>,
    /// How many streams each caller has.
    pub(crate) shares: Option<Arc<StreamShares>>,
    /// Who did what.
    pub(crate) audit: Option<Arc<Audit>>,
    /// The jobs that MCP knows no more.
    pub(crate) mcp: mcp::Forgotten,
    /// Who watches over gRPC whether the server lives.
    pub(crate) watches: grpc::Watches,
    /// Whether the store works.
    pub(crate) pulse: pulse::Pulse,
}

/// A place among the open streams.
pub(crate) struct StreamPlace {
    streams: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
    _share: Option<StreamShare>,
}

impl App {
    /// Whether there are webhooks.
    pub(crate) fn has_push(&self) -> bool {
        self.engine.push.is_some()
    }

    /// How a request over HTTP came in.
    pub(crate) fn way(&self, parts: &Parts, local: SocketAddr, peer: SocketAddr) -> Way {
        let binding = match parts.uri.path() {
            path if self.profile.is_rpc_path(path) => "jsonrpc",
            mcp::PATH if self.profile.has_mcp() => "mcp",
            _ => "rest",
        };
        let client = forwarded::client(&parts.headers, peer.ip(), self.cards.trusted_proxies());
        Way { binding: Some(binding), local: Some(local), peer: Some(peer), client: Some(client) }
    }

    /// Whether nothing but gRPC is answered where a request arrived.
    pub(crate) fn is_grpc_alone(&self, local: SocketAddr) -> bool {
        let same = |alone: &SocketAddr| {
            alone.port() == local.port()
                && (alone.ip().is_unspecified() || alone.ip().to_canonical() == local.ip().to_canonical())
        };
        self.grpc_alone.get().is_some_and(same)
    }

    /// Puts on record that somebody was turned away.
    pub(crate) fn audit_denied(&self, way: Way, denied: Denied) {
        if let Some(audit) = &self.audit {
            audit.denied(way, denied.outcome());
        }
    }

    /// Whether there are public keys to show.
    pub(crate) fn has_keys(&self) -> bool {
        self.signer.is_some() || self.cards.signing().is_some_and(|signing| signing.public_keys().next().is_some())
    }

    /// The card that a tenant is shown.
    pub(crate) fn card(&self, tenant: &str) -> Arc<Card> {
        self.cards.cards().of(tenant)
    }

    /// Whether the store works, as of the last second.
    pub(crate) async fn check_store(&self) -> Result<(), StoreError> {
        self.pulse.feel(async || self.engine.store().check().await).await
    }

    /// Counts a request of a caller, whatever it turns out to be, or refuses it. Everything that takes requests calls
    /// this once for each, as soon as it knows the caller.
    pub(crate) async fn keep_pace(&self, caller: &Caller) -> Result<(), Error> {
        let Some(pace) = &self.pace else { return Ok(()) };
        let kept = match &self.engine.cluster {
            None => pace.check(&caller.name, caller.way),
            Some(cluster) => Box::pin(pace.check_with(cluster, &caller.name, caller.way)).await,
        };
        if let (Err(_), Some(audit)) = (&kept, &self.audit) {
            audit.too_many(caller);
        }
        kept
    }

    /// Takes a place for one more stream.
    pub(crate) fn stream_place(&self, caller: &Arc<str>) -> Result<StreamPlace, Error> {
        let share = self.shares.as_ref().map(|shares| shares.take(caller)).transpose()?;
        if self.streams.fetch_add(1, Ordering::Relaxed) >= self.http.max_streams {
            self.streams.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::new(
                ErrorKind::Unavailable,
                "The server has all the streams it can hold: try again later, or poll the task",
            ));
        }
        self.metrics.subscribers.inc();
        Ok(StreamPlace { streams: self.streams.clone(), metrics: self.metrics.clone(), _share: share })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
        self.metrics.subscribers.dec();
    }
}
