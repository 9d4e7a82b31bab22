//! A door in front of a server: it may have a card of its own, and remembers who knocked.

use std::sync::{Arc, Mutex};

use nuncio_tests::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What a door does with the head of a request.
pub(super) enum Reply {
    /// Answers it with this, and hangs up.
    With(String),
    /// Lets it through to this address.
    Through(String),
}

pub(super) struct Door {
    pub(super) url: String,
    heads: Arc<Mutex<Vec<String>>>,
    running: JoinHandle<()>,
}

impl Door {
    /// Opens one; `answer` gets the head of each connection's first request and the door's own address.
    pub(super) async fn open(answer: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (own, seen, answer) = (url.clone(), heads.clone(), Arc::new(answer));
        let running = tokio::spawn(async move {
            while let Ok((guest, _)) = listener.accept().await {
                let (own, seen, answer) = (own.clone(), seen.clone(), answer.clone());
                tokio::spawn(async move { receive(guest, &seen, |head| answer(head, &own)).await });
            }
        });
        Self { url, heads, running }
    }

    /// One that shows a card with this single interface and lets everything else through to a server.
    pub(super) async fn to(server: &str, binding: &'static str, version: &'static str, streaming: bool) -> Self {
        let server = server.trim_start_matches("http://").to_owned();
        let answer = move |head: &str, own: &str| match asks_for_card(head) {
            true => Reply::With(ok(&card(own, binding, version, streaming))),
            false => Reply::Through(server.clone()),
        };
        Self::open(answer).await
    }

    /// The heads of the first requests of all connections.
    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.running.abort();
    }
}

pub(super) fn asks_for_card(head: &str) -> bool {
    head.starts_with("GET /.well-known/agent-card.json ")
}

/// A card with one interface.
pub(super) fn card(url: &str, binding: &str, version: &str, streaming: bool) -> Value {
    json!({
        "name": "door", "description": "A door", "version": "1",
        "supportedInterfaces": [{ "url": url, "protocolBinding": binding, "protocolVersion": version }],
        "capabilities": { "streaming": streaming },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    })
}

pub(super) fn ok(body: &Value) -> String {
    response("200 OK", &body.to_string())
}

pub(super) fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

async fn receive(mut guest: TcpStream, seen: &Mutex<Vec<String>>, answer: impl Fn(&str) -> Reply) {
    let mut read = Vec::new();
    let end = loop {
        let mut more = [0; 4096];
        match guest.read(&mut more).await {
            Ok(n) if n > 0 && read.len() < 1 << 16 => read.extend_from_slice(&more[..n]),
            _ => return,
        }
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    seen.lock().expect("no panic").push(head.clone());
    match answer(&head) {
        Reply::With(text) => {
            let _ = guest.write_all(text.as_bytes()).await;
            let _ = guest.shutdown().await;
            // What the guest still sends is read, so that it reads the answer.
            let _ = tokio::io::copy(&mut guest, &mut tokio::io::sink()).await;
        }
        Reply::Through(address) => {
            let Ok(mut server) = TcpStream::connect(address).await else { return };
            if server.write_all(&read).await.is_ok() {
                let _ = tokio::io::copy_bidirectional(&mut guest, &mut server).await;
            }
        }
    }
}
