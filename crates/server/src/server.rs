//! A server: an agent, a store, and the sockets that the caller hands over.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::auth::{AuthOptions, Gate};
use crate::bind::browser::Browser;
use crate::bind::{App, HttpOptions, ResponseBody, http as binding, listen};
use crate::card::{CardOptions, Desk};
use crate::engine::roster::Roster;
use crate::engine::{Engine, EngineOptions};
use crate::listeners::Listeners;
use crate::metrics::Metrics;
use crate::store::Store;
use crate::tls::Tls;

mod refresh;

pub use refresh::Reloader;

/// How long connections may take to end once everything is done.
const LAST_CALL: Duration = Duration::from_secs(2);

/// Everything about a server that is not its agent or its store.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Limits and deadlines of turns.
    pub engine: EngineOptions,
    /// Limits of connections and requests.
    pub http: HttpOptions,
    /// How the card is published.
    pub card: CardOptions,
    /// Who may call.
    pub auth: AuthOptions,
    /// The certificate of the server; without it, HTTP is plain.
    pub tls: Option<Arc<Tls>>,
    /// How long running turns may go on after the signal to stop.
    pub drain_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            engine: EngineOptions::default(),
            http: HttpOptions::default(),
            card: CardOptions::default(),
            auth: AuthOptions::default(),
            tls: None,
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// A server that is ready to listen.
pub struct Server {
    app: Arc<App>,
    drain_timeout: Duration,
    reloader: Reloader,
}

impl Server {
    /// A server for `agent` on `store`.
    pub fn new(agent: Arc<dyn Agent>, store: Arc<dyn Store>, options: ServerOptions) -> Self {
        Self::with_metrics(agent, store, options, Metrics::new())
    }

    /// The same, with metrics that the store reports to as well.
    pub fn with_metrics(
        agent: Arc<dyn Agent>,
        store: Arc<dyn Store>,
        options: ServerOptions,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self::with_agents(Roster::one("agent", agent), store, options, metrics)
    }

    /// A server for several agents.
    pub fn with_agents(
        roster: Roster,
        store: Arc<dyn Store>,
        mut options: ServerOptions,
        metrics: Arc<Metrics>,
    ) -> Self {
        options.card.https = options.tls.is_some();
        if let Some(url) = &options.card.public_url {
            options.engine.artifacts.reached_at(url);
        }
        let gate = Gate::new(options.auth);
        let signer = options.engine.push.as_ref().and_then(|push| push.signer.clone());
        let http = &options.http;
        let browser = Browser::new(&http.allowed_hosts, &http.cors_origins, options.card.public_url.as_deref());
        let app = App {
            cards: Desk::new(roster.clone(), &options.engine, options.card, gate.security()),
            engine: Engine::new(roster, store, options.engine, metrics.clone()),
            metrics,
            gate,
            browser,
            tls: options.tls,
            signer,
            http: options.http,
            closing: CancellationToken::new(),
            streams: Arc::default(),
        };
        Self { app: Arc::new(app), drain_timeout: options.drain_timeout, reloader: Reloader::default() }
    }

    /// Lets somebody else say when to look for changed files.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Answers one request without a socket: for tests, and to stand behind another HTTP server.
    ///
    /// `local` is where the request arrived, which the card names where no public URL is set; `remote` is who
    /// sent it. Limits of bodies and streams hold; those of connections are up to whoever has the connection.
    /// What a crash left behind is taken up by [`Server::run`] alone.
    pub async fn answer<B>(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        request: http::Request<B>,
    ) -> http::Response<ResponseBody>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        self.app.engine.options.artifacts.listening_at(local, self.app.tls.is_some());
        binding::handle(&self.app, local, remote, request).await.map(ResponseBody)
    }

    /// Takes up what a crash left behind, then serves until `shutdown` resolves and the work that runs
    /// has had its time to end.
    pub async fn run(self, listeners: impl Into<Listeners>, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let Self { app, drain_timeout, reloader } = self;
        let listeners = listeners.into();
        app.cards.serving(listeners.ways(&app.http)?);
        if let Some(address) = listeners.http_address()? {
            app.engine.options.artifacts.listening_at(address, app.tls.is_some());
        }
        let taken = app.engine.recover().await.map_err(io::Error::other)?;
        if taken > 0 {
            tracing::info!(tasks = taken, "tasks that were left behind were taken up");
        }
        let stop = CancellationToken::new();
        let tending = tokio::spawn(app.engine.clone().tend(stop.clone()));
        let delivering = app.engine.push.clone().map(|desk| tokio::spawn(desk.run(stop.clone())));
        let refreshing = tokio::spawn(refresh::run(app.clone(), reloader, stop.clone()));
        let accepting = CancellationToken::new();
        let open = |http| tokio::spawn(listen::run(app.clone(), http, accepting.clone()));
        let listening = listeners.http.map(open);
        shutdown.await;
        tracing::info!("shutting down: no new work is taken");
        app.engine.drain(drain_timeout).await;
        accepting.cancel();
        app.closing.cancel();
        if let Some(listening) = listening {
            let connections = listening.await.map_err(io::Error::other)?;
            let _ = tokio::time::timeout(LAST_CALL, connections.wait()).await;
        }
        stop.cancel();
        let _ = tending.await;
        let _ = refreshing.await;
        if let Some(delivering) = delivering {
            let _ = delivering.await;
        }
        app.engine.store().close().await;
        Ok(())
    }
}

/// Serves `agent` in memory at `address` until the process ends: all that a first try needs.
pub async fn serve(agent: impl Agent, address: &str) -> io::Result<()> {
    let store = Arc::new(crate::store::MemoryStore::new());
    let listener = TcpListener::bind(address).await?;
    Server::new(Arc::new(agent), store, ServerOptions::default()).run(listener, std::future::pending()).await
}
