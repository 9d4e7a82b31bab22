//! Where a server is reached.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::bind::HttpOptions;
use crate::card::Ways;

/// Where a server is reached: in one way, or in several at once.
#[derive(Debug, Default)]
pub struct Listeners {
    /// A port for HTTP, and for everything that goes over it.
    pub http: Option<TcpListener>,
}

impl From<TcpListener> for Listeners {
    fn from(http: TcpListener) -> Self {
        Self { http: Some(http) }
    }
}

impl Listeners {
    /// Where HTTP arrives.
    pub(crate) fn http_address(&self) -> io::Result<Option<SocketAddr>> {
        self.http.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// What the card says about all of it.
    pub(crate) fn ways(&self, _http: &HttpOptions) -> io::Result<Ways> {
        Ok(Ways { http: self.http_address()?, others: Vec::new() })
    }
}
