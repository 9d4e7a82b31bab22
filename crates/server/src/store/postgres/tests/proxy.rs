//! A way to the database that breaks at chosen moments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards connections, and breaks one whenever a count that was set has come down to zero.
pub(super) struct Proxy {
    pub(super) port: u16,
    /// Pieces from client to server until the next break; zero for none.
    left: Arc<AtomicU64>,
    breaks: Arc<AtomicU64>,
}

/// Where a connection breaks.
#[derive(Clone, Copy)]
enum How {
    /// The server does not get what the client has sent.
    Before,
    /// The server gets a part of it.
    Within,
    /// The server gets all of it, and its answer is lost.
    After,
}

impl Proxy {
    pub(super) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (left, breaks) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (count, broken) = (left.clone(), breaks.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
                tokio::spawn(forward(client, server, count.clone(), broken.clone()));
            }
        });
        Self { port, left, breaks }
    }

    /// Breaks a connection when so many more pieces have passed.
    pub(super) fn break_after(&self, pieces: u64) {
        self.left.store(pieces, Ordering::Relaxed);
    }

    pub(super) fn breaks(&self) -> u64 {
        self.breaks.load(Ordering::Relaxed)
    }
}

async fn forward(client: TcpStream, server: TcpStream, left: Arc<AtomicU64>, breaks: Arc<AtomicU64>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    });
    let mut piece = vec![0; 64 << 10];
    while let Ok(n @ 1..) = from_client.read(&mut piece).await {
        let due = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) == Ok(1);
        if !due {
            if to_server.write_all(&piece[..n]).await.is_err() {
                break;
            }
            continue;
        }
        let how = [How::Before, How::Within, How::After]
            [usize::try_from(breaks.fetch_add(1, Ordering::Relaxed) % 3).unwrap()];
        match how {
            How::Before => back.abort(),
            How::Within => {
                back.abort();
                let _ = to_server.write_all(&piece[..n / 2]).await;
            }
            How::After => {
                // Nothing comes back, but the server is left to finish.
                back.abort();
                let _ = to_server.write_all(&piece[..n]).await;
                let _ = to_server.flush().await;
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
        return;
    }
    back.abort();
}
