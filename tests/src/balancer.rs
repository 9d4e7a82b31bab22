//! One address for several servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// How long a server may take to accept a connection. One that stands still accepts too, by its kernel.
const CONNECT: Duration = Duration::from_secs(1);

/// Hands each connection to the next server that accepts it. It knows nothing of what goes over them.
pub struct Balancer {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    listening: AbortHandle,
}

impl Balancer {
    /// One in front of these ports of this machine.
    pub async fn start(ports: Vec<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (ports, next): (Arc<[u16]>, _) = (ports.into(), Arc::new(AtomicUsize::new(0)));
        let listening = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(carry(connection, ports.clone(), next.clone()));
            }
        });
        Self { url: format!("http://{address}"), listening: listening.abort_handle() }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn carry(mut from: TcpStream, ports: Arc<[u16]>, next: Arc<AtomicUsize>) {
    for _ in 0..ports.len() {
        let port = ports[next.fetch_add(1, Ordering::Relaxed) % ports.len()];
        let connect = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port)));
        if let Ok(Ok(mut to)) = tokio::time::timeout(CONNECT, connect).await {
            let _ = from.set_nodelay(true).and_then(|()| to.set_nodelay(true));
            let _ = copy_bidirectional(&mut from, &mut to).await;
            return;
        }
    }
}
