//! How callers reach the engine. Every binding decodes its dialect into the 1.0 model, calls
//! [`dispatch`], and encodes what comes back.

pub(crate) mod artifact;
pub(crate) mod body;
pub(crate) mod browser;
pub(crate) mod dialect;
pub(crate) mod dispatch;
pub(crate) mod http;
pub(crate) mod jsonrpc;
pub(crate) mod listen;
pub(crate) mod params;
pub(crate) mod range;
pub(crate) mod rest;
pub(crate) mod rpc;
pub(crate) mod sse;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nuncio_protocol::{Error, ErrorKind};
use tokio_util::sync::CancellationToken;

pub use self::body::ResponseBody;

use self::browser::Browser;
use crate::auth::Gate;
use crate::card::{Card, Desk};
use crate::engine::Engine;
use crate::metrics::Metrics;
use crate::push::sign::Signer;
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
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_body: 10 << 20,
            max_header: 64 << 10,
            max_streams: 10_000,
            max_connections: 10_000,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            keep_alive: Duration::from_secs(15),
            lenient_version: false,
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
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
    /// Ends every stream when the server goes down.
    pub(crate) closing: CancellationToken,
    pub(crate) streams: Arc<AtomicUsize>,
}

/// A place among the open streams.
pub(crate) struct StreamPlace(Arc<AtomicUsize>, Arc<Metrics>);

impl App {
    /// Whether there are webhooks.
    pub(crate) fn has_push(&self) -> bool {
        self.engine.push.is_some()
    }

    /// Whether there are public keys to show.
    pub(crate) fn has_keys(&self) -> bool {
        self.signer.is_some() || self.cards.signing().is_some_and(|signing| signing.public_keys().next().is_some())
    }

    /// The card that a tenant is shown.
    pub(crate) fn card(&self, tenant: &str) -> Arc<Card> {
        self.cards.cards().of(tenant)
    }

    /// Takes a place for one more stream.
    pub(crate) fn stream_place(&self) -> Result<StreamPlace, Error> {
        if self.streams.fetch_add(1, Ordering::Relaxed) >= self.http.max_streams {
            self.streams.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::new(
                ErrorKind::Unavailable,
                "The server has all the streams it can hold: try again later, or poll the task",
            ));
        }
        self.metrics.subscribers.inc();
        Ok(StreamPlace(self.streams.clone(), self.metrics.clone()))
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        self.1.subscribers.dec();
    }
}
