//! A server: an agent, a store, and the sockets that the caller hands over.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::Agent;
use crate::audit::Audit;
use crate::auth::{AuthOptions, Gate};
use crate::bind::browser::Browser;
use crate::bind::frames::lines;
use crate::bind::frames::session::Peer;
use crate::bind::grpc::Watches;
use crate::bind::limit::{Pace, StreamShares};
use crate::bind::mcp::Forgotten;
use crate::bind::pulse::Pulse;
use crate::bind::{App, HttpOptions, ResponseBody, http as binding, listen, redis, stdio, unix, ws};
use crate::call::Way;
use crate::card::{CardOptions, Desk};
use crate::engine::roster::Roster;
use crate::engine::{Engine, EngineOptions};
use crate::listeners::Listeners;
use crate::metrics::Metrics;
use crate::profile::Profile;
use crate::store::Store;
use crate::tls::Tls;

mod refresh;

pub use refresh::Reloader;

/// How long connections may take to end once everything is done.
const LAST_CALL: Duration = Duration::from_secs(2);
/// How long to wait before a store that is away is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// How a connection came of which nothing else is known.
const WEB_SOCKET: Way = Way { binding: Some("websocket"), local: None, peer: None, client: None };

/// Everything about a server that is not its agent or its store.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Limits and deadlines of turns.
    pub engine: EngineOptions,
    /// Limits of connections and requests.
    pub http: HttpOptions,
    /// How the card is published.
    pub card: CardOptions,
    /// Whom the server behaves like. The engine has its manners by itself.
    pub profile: Profile,
    /// Who may call.
    pub auth: AuthOptions,
    /// The certificate of the server; without it, HTTP is plain.
    pub tls: Option<Arc<Tls>>,
    /// Where it is put on record who did what.
    pub audit: Option<Arc<Audit>>,
    /// How long running turns may go on after the signal to stop.
    pub drain_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            engine: EngineOptions::default(),
            http: HttpOptions::default(),
            card: CardOptions::default(),
            profile: Profile::default(),
            auth: AuthOptions::default(),
            tls: None,
            audit: None,
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
            cards: Desk::new(
                roster.clone(),
                &options.engine,
                options.card,
                options.profile,
                gate.security(),
                options.http.ws_path.clone(),
            ),
            engine: Engine::new(roster, store, options.engine, metrics.clone()),
            metrics,
            gate,
            browser,
            tls: options.tls,
            signer,
            pace: options.http.rate.map(Pace::new),
            shares: options.http.max_streams_per_caller.map(StreamShares::new),
            audit: options.audit,
            mcp: Forgotten::default(),
            watches: Watches::default(),
            pulse: Pulse::default(),
            http: options.http,
            profile: options.profile,
            closing: CancellationToken::new(),
            streams: Arc::default(),
            sessions: TaskTracker::new(),
            grpc_alone: OnceLock::new(),
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
        B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
        B::Error: std::fmt::Display,
    {
        self.app.engine.options.artifacts.listening_at(local, self.app.tls.is_some());
        binding::handle(&self.app, local, remote, request).await.map(ResponseBody)
    }

    /// Serves lines, a JSON-RPC request each, until `reader` is at its end and everything is answered: to stand on
    /// streams of another kind than [`Listeners`] knows.
    pub async fn converse<R, W>(&self, reader: R, writer: W)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        lines::converse(self.app.clone(), Peer::default(), reader, writer).await;
    }

    /// Serves WebSocket on a connection that has been opened already, until it ends: to stand behind another HTTP
    /// server. Where callers must authenticate, the first frame says who it is.
    pub async fn converse_frames<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let known = !self.app.gate.is_closed();
        ws::converse(&self.app, stream, lines::no_parts(), WEB_SOCKET, known).await;
    }

    /// Takes up what a crash left behind, then serves until `shutdown` resolves and the work that runs
    /// has had its time to end.
    pub async fn run(self, listeners: impl Into<Listeners>, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let Self { app, drain_timeout, reloader } = self;
        let listeners = listeners.into();
        app.cards.serving(listeners.ways(&app.http, app.tls.is_some())?);
        if let Some(address) = listeners.http_address()? {
            app.engine.options.artifacts.listening_at(address, app.tls.is_some());
        }
        tokio::pin!(shutdown);
        tokio::select! {
            begun = begin(&app.engine) => begun?,
            () = &mut shutdown => return Ok(()),
        }
        let stop = CancellationToken::new();
        let tending = tokio::spawn(app.engine.clone().tend(stop.clone()));
        let delivering = app.engine.push.clone().map(|desk| tokio::spawn(desk.run(stop.clone())));
        let refreshing = tokio::spawn(refresh::run(app.clone(), reloader, stop.clone()));
        let accepting = CancellationToken::new();
        let stdin_ends = listeners.ends_with_stdin();
        if let Some(address) = listeners.grpc_address()? {
            let _ = app.grpc_alone.set(address);
        }
        let Listeners { http, grpc, unix, stdio, redis, .. } = listeners;
        let open = |port| tokio::spawn(listen::run(app.clone(), port, accepting.clone()));
        let listening: Vec<_> = [http, grpc].into_iter().flatten().map(open).collect();
        let listening_unix = unix.map(|unix| tokio::spawn(unix::run(app.clone(), unix, accepting.clone())));
        let taking = redis.map(|redis| tokio::spawn(redis::run(app.clone(), redis, accepting.clone())));
        let stdin_over = CancellationToken::new();
        if let Some(stdio) = stdio {
            app.sessions.spawn(stdio::run(app.clone(), stdio, drain_timeout, stdin_over.clone()));
        }
        let mut drain_timeout = drain_timeout;
        tokio::select! {
            () = &mut shutdown => {}
            // What was asked for has had its time.
            () = stdin_over.cancelled(), if stdin_ends => drain_timeout = Duration::ZERO,
        }
        tracing::info!("shutting down: no new work is taken");
        app.engine.drain(drain_timeout).await;
        accepting.cancel();
        app.closing.cancel();
        app.sessions.close();
        let ended = async {
            for listening in listening {
                let connections = listening.await.map_err(io::Error::other)?;
                connections.wait().await;
            }
            app.sessions.wait().await;
            io::Result::Ok(())
        };
        if let Ok(Err(error)) = tokio::time::timeout(LAST_CALL, ended).await {
            return Err(error);
        }
        if let Some(listening) = listening_unix {
            let _ = listening.await;
        }
        if let Some(taking) = taking {
            let _ = taking.await;
        }
        stop.cancel();
        let _ = tending.await;
        let _ = refreshing.await;
        if let Some(delivering) = delivering {
            let _ = delivering.await;
        }
        // What a store that is away was not given by then, nobody was told of: it is as after a crash.
        let most = drain_timeout.max(LAST_CALL);
        if tokio::time::timeout(most, app.engine.store().close()).await.is_err() {
            tracing::warn!("the store did not take everything in time; the next start takes up what is unfinished");
        }
        if let Some(audit) = &app.audit {
            audit.flush().await;
        }
        Ok(())
    }
}

/// Takes up what was left behind. A store that others share may be away at any moment, also now: it is asked again.
async fn begin(engine: &Arc<Engine>) -> io::Result<()> {
    loop {
        match engine.recover().await {
            Ok(0) => return Ok(()),
            Ok(taken) => {
                tracing::info!(tasks = taken, "tasks that were left behind were taken up");
                return Ok(());
            }
            Err(error) if engine.store().shared().is_some() => {
                tracing::warn!(%error, "the store does not answer; it is asked again");
                tokio::time::sleep(ASK_AGAIN).await;
            }
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

/// Serves `agent` in memory at `address` until the process ends: all that a first try needs.
pub async fn serve(agent: impl Agent, address: &str) -> io::Result<()> {
    let store = Arc::new(crate::store::MemoryStore::new());
    let listener = TcpListener::bind(address).await?;
    Server::new(Arc::new(agent), store, ServerOptions::default()).run(listener, std::future::pending()).await
}
