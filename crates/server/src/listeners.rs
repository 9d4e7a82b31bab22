//! Where a server is reached.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::bind::HttpOptions;
use crate::bind::redis::Streams;
use crate::card::Ways;

/// Where a server is reached: in one way, or in several at once.
#[derive(Debug, Default)]
pub struct Listeners {
    /// A port for HTTP, and for everything that goes over it.
    pub http: Option<TcpListener>,
    /// A port for gRPC alone. Without it, gRPC is found at the port for HTTP.
    pub grpc: Option<TcpListener>,
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
    pub(crate) fn ways(&self, _http: &HttpOptions) -> io::Result<Ways> {
        Ok(Ways {
            http: self.http_address()?,
            grpc: self.grpc_address()?,
            others: self.redis.iter().map(|redis| (redis.address(), "redis-streams")).collect(),
        })
    }
}
