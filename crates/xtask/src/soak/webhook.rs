//! A receiver of webhooks that takes everything and counts it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub(super) struct Receiver {
    address: SocketAddr,
    told: Arc<AtomicU64>,
}

impl Receiver {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, told) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
        let count = told.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let count = count.clone();
                tokio::spawn(async move { take(stream, &count).await });
            }
        });
        Ok(Self { address, told })
    }

    pub(super) fn url(&self, store: &str) -> String {
        format!("http://{}/{store}", self.address)
    }

    pub(super) fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }
}

/// Answers one request after the other, until the connection ends.
async fn take(stream: TcpStream, count: &AtomicU64) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        count.fetch_add(1, Ordering::Relaxed);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await?;
    }
}
