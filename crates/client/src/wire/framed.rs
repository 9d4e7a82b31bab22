//! A2A in frames of JSON-RPC: over WebSocket, a Unix socket, or the streams of a program that is started for it.
//!
//! One connection carries all calls at once. It is opened by the first call, and again by the first one after it
//! was lost.

mod desk;
mod stdio;
mod unix;
mod ws;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use nuncio_protocol::codec;
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Mutex, Notify};

use super::Binding;
use super::redis::Reply;
use crate::error::{ClientError, plain};
use crate::http::{Ask, Http, shown};
use desk::{Arrival, Desk, Place};

pub(crate) use stdio::command_of;
pub(crate) use unix::address_of;
pub(crate) use ws::web;

/// Frames that may wait to be written.
const OUTBOX: usize = 16;
/// So much of a reason is shown: some are the agent's own words.
const CAUSE_SHOWN: usize = 200;

/// The binding that an address is of by its scheme, if it is one of these.
pub(crate) fn binding_of(url: &Url) -> Option<Binding> {
    match url.scheme() {
        "ws" | "wss" => Some(Binding::WebSocket),
        "unix" => Some(Binding::Unix),
        "stdio" => Some(Binding::Stdio),
        _ => None,
    }
}

/// One agent, and the connection to it as long as there is one.
pub(super) struct Framed {
    url: Url,
    line: Mutex<Option<Arc<Line>>>,
}

/// A connection. It ends with the last call and the last client that use it.
struct Line {
    out: Sender<Vec<u8>>,
    desk: Arc<Desk>,
    /// Ends the connection.
    hang_up: Arc<Notify>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.hang_up.notify_one();
    }
}

impl Framed {
    /// Nothing is opened yet.
    pub(super) fn new(url: &Url) -> Self {
        Self { url: url.clone(), line: Mutex::new(None) }
    }

    /// Sends a request, and listens for what comes back.
    pub(super) async fn ask(&self, http: &Http, ask: &Ask, id: u64, streams: bool) -> Result<Replies, ClientError> {
        let line = self.line(http).await?;
        let place = line.desk.expect(id, streams);
        let frame = framed(
            ask,
            http.known_headers(&self.url).filter(|_| self.url.scheme() != "ws" && self.url.scheme() != "wss"),
        );
        if line.out.send(frame).await.is_err() {
            return Err(gone(&self.url, "the connection is closed"));
        }
        Ok(Replies { url: self.url.clone(), place, line, ready: None, over: false, counts: false })
    }

    /// The connection there is, or a new one.
    async fn line(&self, http: &Http) -> Result<Arc<Line>, ClientError> {
        let mut line = self.line.lock().await;
        if let Some(line) = line.as_ref().filter(|line| !line.desk.is_closed()) {
            return Ok(line.clone());
        }
        let (out, outbox) = channel(OUTBOX);
        let (desk, hang_up) = (Arc::new(Desk::default()), Arc::new(Notify::new()));
        let end = End { desk: desk.clone(), hang_up: hang_up.clone(), outbox, limit: limit(http) };
        match self.url.scheme() {
            "unix" => unix::open(&self.url, http, end).await?,
            "stdio" => stdio::open(&self.url, end)?,
            _ => ws::open(&self.url, http, end).await?,
        }
        let opened = Arc::new(Line { out, desk, hang_up });
        *line = Some(opened.clone());
        Ok(opened)
    }
}

impl fmt::Debug for Framed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framed").field("at", &shown(&self.url)).finish_non_exhaustive()
    }
}

/// The largest frame.
fn limit(http: &Http) -> usize {
    http.options.max_answer.max(http.options.max_event)
}

fn gone(url: &Url, cause: &str) -> ClientError {
    ClientError::Unreachable { url: shown(url), cause: plain(cause, CAUSE_SHOWN) }
}

/// The request with what HTTP would have in its headers.
fn framed(ask: &Ask, credentials: Option<&HeaderMap>) -> Vec<u8> {
    let mut headers = BTreeMap::new();
    for (name, value) in ask.headers.iter().chain(credentials.into_iter().flatten()) {
        // What only HTTP needs says nothing here.
        if !matches!(name.as_str(), "accept" | "content-type")
            && let Ok(value) = value.to_str()
        {
            headers.insert(name.as_str(), value);
        }
    }
    let mut frame = ask.body.strip_suffix(b"}").unwrap_or(&ask.body).to_vec();
    frame.extend_from_slice(b",\"headers\":");
    codec::encode_into(&headers, &mut frame);
    frame.push(b'}');
    frame
}

/// The end of a connection that moves frames.
struct End {
    desk: Arc<Desk>,
    hang_up: Arc<Notify>,
    outbox: Receiver<Vec<u8>>,
    limit: usize,
}

impl End {
    /// Moves lines both ways until the connection ends.
    async fn lines<R, W>(mut self, reader: R, mut writer: W)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut reader = BufReader::new(reader);
        let most = u64::try_from(self.limit).unwrap_or(u64::MAX);
        let desk = self.desk.clone();
        let reading = async {
            let mut line = Vec::new();
            loop {
                line.clear();
                match (&mut reader).take(most).read_until(b'\n', &mut line).await {
                    Ok(0) => return "the agent has closed the connection".to_owned(),
                    Ok(_) if line.last() != Some(&b'\n') && line.len() as u64 >= most => {
                        return format!("an answer is larger than {most} bytes");
                    }
                    Ok(_) => desk.line(&line),
                    Err(error) => return error.to_string(),
                }
            }
        };
        let writing = async {
            while let Some(mut frame) = self.outbox.recv().await {
                frame.push(b'\n');
                let written = async {
                    writer.write_all(&frame).await?;
                    writer.flush().await
                };
                if let Err(error) = written.await {
                    return error.to_string();
                }
            }
            std::future::pending().await
        };
        let why = tokio::select! {
            why = reading => why,
            why = writing => why,
            () = self.hang_up.notified() => "the connection was given up".to_owned(),
        };
        self.desk.close(&why);
    }
}

/// The replies to one request, in order.
pub(super) struct Replies {
    url: Url,
    place: Place,
    line: Arc<Line>,
    /// A reply that was looked at before its time.
    ready: Option<Reply>,
    over: bool,
    /// Whether the agent numbers its events: then it also knows how to end a stream.
    counts: bool,
}

impl Replies {
    /// Waits until a stream has begun: its first event is there, or an error instead.
    pub(super) async fn begun(&mut self) -> Result<(), ClientError> {
        self.ready = self.next().await?;
        Ok(())
    }

    /// Whether a reply is there that can be had at once.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// The next reply, however long it takes; nothing after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<Reply>, ClientError> {
        if let Some(ready) = self.ready.take() {
            return Ok(Some(ready));
        }
        if self.over {
            return Ok(None);
        }
        let reply = match self.place.next().await {
            Some(Arrival::Reply(reply)) => reply,
            Some(Arrival::Lost(why)) => return Err(gone(&self.url, &why)),
            None => return Err(gone(&self.url, "more events came than were read")),
        };
        self.over = reply.is_final;
        self.counts |= reply.event.is_some();
        Ok(Some(reply))
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        if self.over || self.line.desk.is_closed() {
            return;
        }
        if self.counts
            && let Ok(runtime) = Handle::try_current()
        {
            let frame = format!(r#"{{"jsonrpc":"2.0","id":{},"final":true}}"#, self.place.id).into_bytes();
            let line = self.line.clone();
            runtime.spawn(async move { line.out.send(frame).await });
            return;
        }
        // Other agents are told by hanging up, if nobody else is on the line. A program would end with that.
        if self.url.scheme() != "stdio" && self.line.desk.is_last(self.place.id) {
            self.line.desk.close("the connection was given up");
            self.line.hang_up.notify_one();
        }
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replies").field("id", &self.place.id).finish_non_exhaustive()
    }
}
