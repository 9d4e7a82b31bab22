//! gRPC over one HTTP/2 connection, one call at a time.

use std::io;
use std::net::SocketAddr;

use bytes::{Buf, Bytes, BytesMut};
use h2::client::SendRequest;
use h2::{RecvStream, client};
use tokio::net::TcpStream;

use crate::http::bad;
use crate::wire::Request;

pub struct Grpc {
    addr: SocketAddr,
    sender: Option<SendRequest<Bytes>>,
    answer: Option<RecvStream>,
    pending: BytesMut,
    /// What the last call ended with; 0 is well.
    pub status: u16,
}

fn failed(error: h2::Error) -> io::Error {
    io::Error::other(error)
}

impl Grpc {
    pub fn new(addr: SocketAddr) -> Self {
        Self { addr, sender: None, answer: None, pending: BytesMut::new(), status: 0 }
    }

    async fn sender(&mut self) -> io::Result<SendRequest<Bytes>> {
        if self.sender.is_none() {
            let stream = TcpStream::connect(self.addr).await?;
            stream.set_nodelay(true)?;
            let mut builder = client::Builder::new();
            builder.initial_window_size(4 << 20).initial_connection_window_size(16 << 20);
            let (sender, connection) = builder.handshake(stream).await.map_err(failed)?;
            tokio::task::spawn_local(async move {
                let _ = connection.await;
            });
            self.sender = Some(sender);
        }
        let sender = self.sender.take().ok_or_else(|| bad("not connected"))?;
        sender.ready().await.map_err(failed)
    }

    /// Sends a request and waits for the head of its answer.
    pub async fn open(&mut self, request: &Request) -> io::Result<()> {
        let mut sender = self.sender().await?;
        let head = http::Request::post(format!("http://{}{}", self.addr, request.path))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("a2a-version", "1.0")
            .body(())
            .map_err(io::Error::other)?;
        let (answer, mut body) = sender.send_request(head, false).map_err(failed)?;
        body.send_data(Bytes::copy_from_slice(&request.bytes), true).map_err(failed)?;
        let answer = answer.await.map_err(failed)?;
        self.sender = Some(sender);
        self.pending.clear();
        self.note(answer.headers());
        self.answer = Some(answer.into_body());
        Ok(())
    }

    fn note(&mut self, headers: &http::HeaderMap) {
        if let Some(status) = headers.get("grpc-status") {
            self.status = status.to_str().ok().and_then(|s| s.parse().ok()).unwrap_or(2);
        }
    }

    /// The next message of the answer, or `None` at its end; then `status` says how it ended.
    pub async fn message(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if self.pending.len() >= 5 {
                let size = u32::from_be_bytes([self.pending[1], self.pending[2], self.pending[3], self.pending[4]]);
                if self.pending.len() >= 5 + size as usize {
                    self.pending.advance(5);
                    return Ok(Some(self.pending.split_to(size as usize).freeze()));
                }
            }
            let answer = self.answer.as_mut().ok_or_else(|| bad("no answer is open"))?;
            match answer.data().await {
                Some(data) => {
                    let data = data.map_err(failed)?;
                    answer.flow_control().release_capacity(data.len()).map_err(failed)?;
                    self.pending.extend_from_slice(&data);
                }
                None => {
                    if let Some(trailers) = answer.trailers().await.map_err(failed)? {
                        self.note(&trailers);
                    }
                    self.answer = None;
                    return Ok(None);
                }
            }
        }
    }
}
