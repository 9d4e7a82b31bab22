//! Servers and resolvers that do as a test says.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::{Guard, Openings, Resolver};

pub(super) const SOON: Duration = Duration::from_secs(20);

/// Answers from a list, the last one for ever.
pub(super) struct Script {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub(super) asked: AtomicUsize,
}

impl Script {
    pub(super) fn new<const N: usize>(answers: [&[&str]; N]) -> Arc<Self> {
        let read = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self { answers: Mutex::new(answers.iter().map(read).collect()), asked: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Resolver for Script {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock();
        match answers.len() {
            0 => Err(io::ErrorKind::NotFound.into()),
            1 => Ok(answers[0].clone()),
            _ => Ok(answers.pop_front().unwrap_or_default()),
        }
    }
}

pub(super) fn openings(hosts: &[&str], cidrs: &[&str]) -> Openings {
    Openings {
        hosts: hosts.iter().map(ToString::to_string).collect(),
        cidrs: cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect(),
        ..Openings::default()
    }
}

/// A guard that opens one address of this machine, and knows one answer to every name.
pub(super) fn open_at(address: &str) -> Guard {
    Guard::with_resolver(openings(&[], &[&format!("{address}/32")]), Script::new([&[address]])).unwrap()
}

/// A server that sends one answer to each request and remembers what it got.
pub(super) struct Receiver {
    pub(super) at: SocketAddr,
    pub(super) connections: Arc<AtomicUsize>,
    pub(super) requests: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    /// `answer` is sent as it is; `hold` says whether the connection then stays open without a word.
    pub(super) async fn start(address: impl tokio::net::ToSocketAddrs, answer: impl Into<Vec<u8>>, hold: bool) -> Self {
        Self::serve(TcpListener::bind(address).await.unwrap(), answer, hold)
    }

    /// Two on the same port: one at 127.0.0.2, which answers so, and one at 127.0.0.1. A port that is free at the one
    /// address may be in use at the other.
    pub(super) async fn two(answer: &str) -> (Self, Self) {
        for _ in 0..100 {
            let open = TcpListener::bind("127.0.0.2:0").await.unwrap();
            if let Ok(closed) = TcpListener::bind(("127.0.0.1", open.local_addr().unwrap().port())).await {
                return (Self::serve(open, answer, false), Self::serve(closed, answer, false));
            }
        }
        panic!("no port is free at both addresses");
    }

    fn serve(listener: TcpListener, answer: impl Into<Vec<u8>>, hold: bool) -> Self {
        let at = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, kept, answer) = (connections.clone(), requests.clone(), Arc::new(answer.into()));
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (kept, answer): (_, Arc<Vec<u8>>) = (kept.clone(), answer.clone());
                tokio::spawn(async move {
                    while let Some(request) = read_request(&mut socket).await {
                        kept.lock().push(request);
                        if socket.write_all(&answer).await.is_err() {
                            return;
                        }
                        if hold {
                            // Until the other side goes away.
                            let _ = socket.read(&mut [0; 1]).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { at, connections, requests }
    }

    pub(super) fn seen(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// One request with its body; nothing at the end.
pub(super) async fn read_request(socket: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let (mut text, mut byte) = (Vec::new(), [0; 1]);
    while !text.ends_with(b"\r\n\r\n") {
        if socket.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        text.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    socket.read_exact(&mut body).await.ok()?;
    text.extend_from_slice(&body);
    Some(String::from_utf8_lossy(&text).into_owned())
}
