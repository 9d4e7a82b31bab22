//! The ways in: opened as the configuration asks, and told to whoever started the server.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;

use nuncio_server::store::{PostgresStore, Store};
use nuncio_server::{Listeners, RedisStreams, Stdio, Streams, UnixOptions, UnixSocket, user_id};
use tokio::net::TcpListener;

use super::{agents, door};
use crate::config::{self, Config, Transport};
use crate::failure::Failure;
use crate::output::tell;

/// Opens all that the configuration asks for.
pub(super) async fn open(config: &Config, store: &dyn Store) -> Result<Listeners, Failure> {
    let mut listeners = Listeners::default();
    if config.has_http_port() {
        listeners.http = Some(port(&config.host, config.port).await?);
    }
    if let Some(path) = config.socket_path.as_ref().filter(|_| config.serves(Transport::Unix)) {
        let options = UnixOptions { users: users(config)?, trusted: config.trust_local };
        let socket = UnixSocket::open(path, options).await;
        listeners.unix = Some(socket.map_err(|error| Failure::failed(error.to_string()))?);
    }
    if config.serves(Transport::Stdio) {
        if std::io::stdin().is_terminal() {
            tell("stdin is a terminal: type one JSON-RPC request per line, and Ctrl-D to end\n");
        }
        listeners.stdio = Some(Stdio { trusted: config.trust_local });
    }
    if config.has_grpc_port() {
        let host = config.grpc_host.as_ref().unwrap_or(&config.host);
        listeners.grpc = Some(port(host, config.grpc_port.unwrap_or(config.port)).await?);
    }
    listeners.grpc_jsonrpc = config.serves(Transport::GrpcJsonRpc);
    if config.serves(Transport::RedisStreams) {
        listeners.redis = redis(config, store)?.map(Arc::new);
    }
    Ok(listeners)
}

/// The numbers of the users who may use the socket.
fn users(config: &Config) -> Result<Vec<u32>, Failure> {
    let number = |name: &String| {
        user_id(name).ok_or_else(|| Failure::usage(vec![format!("socket-users: there is no user `{name}` here")]))
    };
    config.socket_users.iter().map(number).collect()
}

/// The streams that requests come by.
fn redis(config: &Config, store: &dyn Store) -> Result<Option<Streams>, Failure> {
    let Some(url) = &config.redis_url else { return Ok(None) };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let place = config.data_dir.canonicalize().unwrap_or_else(|_| config.data_dir.clone());
    let own = format!("{}/{}", host.trim(), place.display());
    // Where it is kept says which log it is; this server is alone with it, or shares it by its name.
    let log = match (&config.store, store.shared()) {
        (_, Some(shared)) => Some(shared.name().to_owned()),
        (config::Store::Memory, None) => None,
        (_, None) => Some(own.clone()),
    };
    let mut usual = RedisStreams::new(url.expose().to_owned(), log.as_deref());
    if store.shared().is_some() {
        usual.consumer = RedisStreams::new(String::new(), Some(&format!("{own}/{}", config.port))).consumer;
    }
    let options = RedisStreams {
        requests: config.request_stream.clone(),
        responses: config.response_stream.clone(),
        group: config.consumer_group.clone(),
        lease: config.lease_ttl,
        concurrent: usize::try_from(config.max_streams).unwrap_or(usize::MAX),
        ..usual
    };
    Streams::new(options).map(Some).map_err(|_| no_redis_url())
}

/// What is wrong with the URL is not told: that may quote it, with its password.
pub(super) fn no_redis_url() -> Failure {
    Failure::usage(vec!["redis-url: not the URL of a Redis server".to_owned()])
}

async fn port(host: &str, port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind((host, port)).await.map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => ": another process listens there; stop it, or choose another --port",
            std::io::ErrorKind::AddrNotAvailable => ": this machine does not have that address; choose another --host",
            _ => "",
        };
        Failure::failed(format!("cannot listen on {host}:{port}: {error}{hint}"))
    })
}

/// Tells a person where the server is and what to try. Machines read the log instead.
pub(super) fn announce(config: &Config, address: Option<SocketAddr>) {
    let http = config.public_url.clone().or_else(|| Some(format!("{}://{}", door::scheme(config), address?)));
    let socket = config.socket_path.as_ref().filter(|_| config.serves(Transport::Unix));
    let socket = socket.map(|path| path.display().to_string());
    let store = match &config.store {
        config::Store::Memory => "in memory; gone when the server stops".to_owned(),
        config::Store::Sqlite => config.data_dir.join("nuncio.db").display().to_string(),
        config::Store::Postgres(url) => PostgresStore::shown_url(url.expose()),
    };
    let access = door::describe(config);
    let card = http.as_ref().map(|url| format!("{url}/.well-known/agent-card.json"));
    if !std::io::stderr().is_terminal() && config.log != config::LogFormat::Text {
        let address = address.map(tracing::field::display);
        let agent = agents::describe(config);
        tracing::info!(address, card, socket, agent, store, access, "listening");
        return;
    }
    let mut lines = vec![format!("nuncio {} is listening\n", env!("CARGO_PKG_VERSION"))];
    let mut line = |name: &str, value: &str| lines.push(format!("  {name:6}  {value}"));
    if let Some(card) = &card {
        line("card", card);
    }
    if let Some(socket) = &socket {
        line("socket", socket);
    }
    if config.serves(Transport::Stdio) {
        line("stdio", "one JSON-RPC request per line on stdin, answers on stdout");
    }
    line("agent", &agents::describe(config));
    line("store", &store);
    line("access", &access);
    if let Some(url) = http.map(|url| format!("{url}/")).or_else(|| Some(format!("unix://{}", socket?))) {
        let token = if config.callers.is_empty() { "" } else { " --token <TOKEN>" };
        lines.push(format!("\nTry it:\n\n  nuncio client call --url {url}{token} --prompt \"hello\" --stream\n"));
    }
    tell(&format!("{}\n", lines.join("\n")));
}
