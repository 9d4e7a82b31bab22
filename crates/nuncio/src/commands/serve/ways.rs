//! The ways in: opened as the configuration asks, and told to whoever started the server.

use std::io::IsTerminal;
use std::net::SocketAddr;

use nuncio_server::Listeners;
use tokio::net::TcpListener;

use super::{agents, door};
use crate::config::{self, Config, Transport};
use crate::failure::Failure;

/// Opens all that the configuration asks for.
pub(super) async fn open(config: &Config) -> Result<Listeners, Failure> {
    let mut listeners = Listeners::default();
    if config.has_http_port() {
        listeners.http = Some(port(&config.host, config.port).await?);
    }
    let missing = [
        ("stdio", config.serves(Transport::Stdio)),
        ("unix", config.serves(Transport::Unix)),
        ("grpc", config.has_grpc_port()),
        ("redis-streams", config.serves(Transport::RedisStreams)),
    ];
    if let Some((name, _)) = missing.iter().find(|(_, asked)| *asked) {
        return Err(Failure::usage(vec![format!("`{name}` is not served yet")]));
    }
    Ok(listeners)
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
    let store = match config.store {
        config::Store::Memory => "in memory; gone when the server stops".to_owned(),
        config::Store::Sqlite => config.data_dir.join("nuncio.db").display().to_string(),
    };
    let access = door::describe(config);
    let card = http.as_ref().map(|url| format!("{url}/.well-known/agent-card.json"));
    if !std::io::stderr().is_terminal() && config.log != config::LogFormat::Text {
        let address = address.map(tracing::field::display);
        tracing::info!(address, card, socket, store, access, "listening");
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
    eprintln!("{}", lines.join("\n"));
}
