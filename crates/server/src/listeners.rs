//! Where a server is reached.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::bind::HttpOptions;
use crate::bind::redis::Streams;
use crate::bind::stdio::Stdio;
use crate::bind::unix::UnixSocket;
use crate::card::Ways;

/// Where a server is reached: in one way, or in several at once.
#[derive(Debug, Default)]
pub struct Listeners {
    /// A port for HTTP, and for everything that goes over it.
    pub http: Option<TcpListener>,
    /// A socket in the file system.
    pub unix: Option<UnixSocket>,
    /// The streams of this process. Where they are the only way in, the server ends with them.
    pub stdio: Option<Stdio>,
    /// A port for gRPC alone. Without it, gRPC is found at the port for HTTP.
    pub grpc: Option<TcpListener>,
    /// Whether the card lists JSON-RPC in gRPC, which is wherever gRPC is.
    pub grpc_jsonrpc: bool,
    /// Streams in Redis.
    pub redis: Option<Arc<Streams>>,
}

impl From<TcpListener> for Listeners {
    fn from(http: TcpListener) -> Self {
        Self { http: Some(http), ..Self::default() }
    }
}

impl Listeners {
    /// Where HTTP arrives.
    pub(crate) fn http_address(&self) -> io::Result<Option<SocketAddr>> {
        self.http.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// Where gRPC arrives, if not where HTTP does.
    pub(crate) fn grpc_address(&self) -> io::Result<Option<SocketAddr>> {
        self.grpc.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// What the card says about all of it.
    pub(crate) fn ways(&self, http: &HttpOptions, https: bool) -> io::Result<Ways> {
        let unix = self.unix.as_ref().map(|socket| (format!("unix://{}", socket.path().display()), "unix"));
        let stdio = self.stdio.map(|_| ("stdio://nuncio".to_owned(), "stdio"));
        let redis = self.redis.iter().map(|redis| (redis.address(), "redis-streams"));
        let others = unix.into_iter().chain(stdio).chain(redis).collect();
        let (ws_path, grpc) = (http.ws_path.clone(), self.grpc_address()?);
        Ok(Ways { http: self.http_address()?, ws_path, grpc, grpc_jsonrpc: self.grpc_jsonrpc, https, others })
    }

    /// Whether the end of stdin is the end of everything.
    pub(crate) fn ends_with_stdin(&self) -> bool {
        self.stdio.is_some()
            && self.http.is_none()
            && self.grpc.is_none()
            && self.unix.is_none()
            && self.redis.is_none()
    }
}
