//! Whether the ways in are free.

use nuncio_server::{UnixOptions, UnixSocket};
use tokio::net::TcpListener;

use super::Found;
use crate::config::{Config, Transport};

/// The HTTP port.
pub(super) async fn http(config: &Config) -> Found {
    if !config.has_http_port() {
        return Ok("not needed: HTTP is not served".into());
    }
    port(&config.host, config.port).await
}

/// The port of gRPC, where it has one of its own.
pub(super) async fn grpc(config: &Config) -> Found {
    port(config.grpc_host.as_ref().unwrap_or(&config.host), config.grpc_port.unwrap_or(config.port)).await
}

async fn port(host: &str, port: u16) -> Found {
    match TcpListener::bind((host, port)).await {
        Ok(_) if port == 0 => Ok(format!("{host}: any free port")),
        Ok(_) => Ok(format!("{host}:{port} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            let who = holder(port).unwrap_or_else(|| "another process".to_owned());
            Err(format!("{host}:{port} is taken by {who}: stop it, or choose another port").into())
        }
        Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => {
            Err(format!("this machine does not have the address {host}: choose another host").into())
        }
        Err(error) => Err(format!("{host}:{port} cannot be used: {error}; choose another host or port").into()),
    }
}

/// The process that listens on a port, as far as this user may know.
fn holder(port: u16) -> Option<String> {
    let listed = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let listens = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        // 0A: it listens.
        (*state == "0A" && local.ends_with(&format!(":{port:04X}"))).then(|| format!("socket:[{inode}]"))
    };
    let sockets: Vec<String> = listed.iter().flat_map(|text| text.lines()).filter_map(listens).collect();
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        let mut open = std::fs::read_dir(process.path().join("fd")).ok()?.flatten();
        open.find(|file| {
            let to = std::fs::read_link(file.path()).unwrap_or_default();
            sockets.iter().any(|socket| to.as_os_str() == socket.as_str())
        })?;
        let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
        Some(format!("`{}` (process {})", name.trim(), process.file_name().to_string_lossy()))
    })
}

/// Opens the socket as `serve` would, and closes it again.
pub(super) async fn socket(config: &Config) -> Found {
    let Some(path) = config.socket_path.as_ref().filter(|_| config.serves(Transport::Unix)) else {
        return Ok("not needed: no Unix socket is served".into());
    };
    let opened = UnixSocket::open(path, UnixOptions::default()).await;
    Ok(opened.map(|socket| format!("{} can be opened", socket.path().display())).map_err(|error| error.to_string())?)
}
