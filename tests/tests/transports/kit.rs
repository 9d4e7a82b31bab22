//! One way to talk over each of the three.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use nuncio_tests::{PATIENCE, Server, Value, binary, json, message};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// The ways to talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    WebSocket,
    Unix,
    Stdio,
}

pub(crate) const ALL: [By; 3] = [By::WebSocket, By::Unix, By::Stdio];

pub(crate) type Socket = WebSocketStream<TcpStream>;

/// A server with an HTTP port and a Unix socket.
pub(crate) struct House {
    pub(crate) server: Server,
    folder: tempfile::TempDir,
}

impl House {
    pub(crate) fn open(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.sock");
        let yaml = format!("transport: [http, unix]\nsocket-path: {}\n{more}\n", path.display());
        Self { server: Server::configured(&yaml), folder }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("a.sock")
    }

    /// `HOST:PORT`
    pub(crate) fn address(&self) -> &str {
        self.server.url.strip_prefix("http://").expect("http")
    }

    pub(crate) async fn unix(&self) -> UnixStream {
        UnixStream::connect(self.socket()).await.expect("a connection")
    }

    /// Opens a WebSocket with these headers, or says with which status it was refused.
    pub(crate) async fn upgrade(&self, path: &str, headers: &[(&'static str, &str)]) -> Result<Socket, u16> {
        let mut request = format!("ws://{}{path}", self.address()).into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a value"));
        }
        let stream = TcpStream::connect(self.address()).await.expect("a connection");
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(socket),
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("no answer: {error}"),
        }
    }

    pub(crate) async fn ws(&self) -> Socket {
        self.upgrade("/ws", &[]).await.expect("a WebSocket")
    }
}

/// A connection of any kind, frame by frame.
pub(crate) struct Talk {
    end: End,
    next_id: u64,
    /// What came for others than it was waited for.
    early: Vec<Frame>,
    _child: Option<Child>,
}

enum End {
    Web(Box<Socket>),
    Lines(Box<dyn AsyncWrite + Unpin + Send>, tokio::io::Lines<BufReader<Box<dyn AsyncRead + Unpin + Send>>>),
}

/// An answer, without its envelope.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) id: Value,
    pub(crate) body: Value,
    pub(crate) last: bool,
    pub(crate) event: Option<u64>,
}

impl Talk {
    /// Opens a connection to the house, or to a server of its own where there is nothing to connect to.
    pub(crate) async fn open(house: &House, by: By) -> Self {
        match by {
            By::WebSocket => Self::new(End::Web(Box::new(house.ws().await)), None),
            By::Unix => Self::on(house.unix().await),
            By::Stdio => Self::start(&["--store", "memory"]),
        }
    }

    pub(crate) fn on(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self::lines(Box::new(reader), Box::new(writer), None)
    }

    /// A server that speaks on its own streams.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["serve", "--transport", "stdio"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary can be started");
        let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Self::lines(Box::new(stdout), Box::new(stdin), Some(child))
    }

    pub(crate) fn web(socket: Socket) -> Self {
        Self::new(End::Web(Box::new(socket)), None)
    }

    fn lines(
        reader: Box<dyn AsyncRead + Unpin + Send>,
        writer: Box<dyn AsyncWrite + Unpin + Send>,
        child: Option<Child>,
    ) -> Self {
        Self::new(End::Lines(writer, BufReader::new(reader).lines()), child)
    }

    fn new(end: End, child: Option<Child>) -> Self {
        Self { end, next_id: 1, early: Vec::new(), _child: child }
    }

    /// Sends a text as one frame.
    pub(crate) async fn say(&mut self, text: &str) {
        match &mut self.end {
            End::Web(socket) => socket.send(Message::text(text)).await.expect("it can be sent"),
            End::Lines(writer, _) => {
                writer.write_all(text.as_bytes()).await.expect("it can be written");
                writer.write_all(b"\n").await.expect("it can be written");
                writer.flush().await.expect("it can be written");
            }
        }
    }

    /// Sends a request and returns its id.
    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.ask_with(method, params, &json!({})).await
    }

    /// The same, with headers.
    pub(crate) async fn ask_with(&mut self, method: &str, params: &Value, headers: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        if headers.as_object().is_some_and(|headers| !headers.is_empty()) {
            request["headers"] = headers.clone();
        }
        self.say(&request.to_string()).await;
        id
    }

    /// The next frame, whosever it is; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        tokio::time::timeout(PATIENCE, self.read()).await.expect("a frame within the time")
    }

    async fn read(&mut self) -> Option<Frame> {
        let number = |value: &Value| value.as_u64();
        match &mut self.end {
            End::Web(socket) => loop {
                match socket.next().await?.ok()? {
                    Message::Text(text) => {
                        let frame: Value = serde_json::from_str(&text).expect("JSON");
                        let last = frame["final"].as_bool().expect("every envelope says whether it is the last");
                        let event = number(&frame["eventId"]);
                        return Some(Frame { id: frame["id"].clone(), body: frame["payload"].clone(), last, event });
                    }
                    Message::Close(_) => return None,
                    _ => {}
                }
            },
            End::Lines(_, lines) => {
                let line = lines.next_line().await.ok()??;
                let body: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                let last = body["final"] == json!(true);
                Some(Frame { id: body["id"].clone(), last, event: number(&body["eventId"]), body })
            }
        }
    }

    /// The next frame for a request.
    pub(crate) async fn next_of(&mut self, id: u64) -> Frame {
        if let Some(at) = self.early.iter().position(|frame| frame.id == json!(id)) {
            return self.early.remove(at);
        }
        loop {
            let frame = self.next().await.expect("the connection is open");
            if frame.id == json!(id) {
                return frame;
            }
            self.early.push(frame);
        }
    }

    /// Asks for one answer.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, &params).await;
        self.next_of(id).await.body
    }

    /// All frames of a stream; the last one is without a result.
    pub(crate) async fn stream(&mut self, method: &str, params: Value, headers: &Value) -> Vec<Frame> {
        let id = self.ask_with(method, &params, headers).await;
        let mut frames = Vec::new();
        loop {
            let frame = self.next_of(id).await;
            if frame.last {
                assert!(frame.body.get("result").is_none() && frame.body.get("error").is_none(), "{frame:?}");
                return frames;
            }
            frames.push(frame);
        }
    }

    /// Sends a text and returns the task.
    pub(crate) async fn send(&mut self, text: &str) -> Value {
        let answer = self.call("SendMessage", message(text)).await;
        assert!(answer["result"]["task"].is_object(), "a task: {answer}");
        answer["result"]["task"].clone()
    }

    /// Reads on until the connection ends.
    pub(crate) async fn until_closed(&mut self) {
        while self.next().await.is_some() {}
    }

    /// The WebSocket itself.
    pub(crate) fn socket(&mut self) -> &mut Socket {
        match &mut self.end {
            End::Web(socket) => socket,
            End::Lines(..) => panic!("not a WebSocket"),
        }
    }

    /// Closes what is written to, and goes on reading.
    pub(crate) async fn finish(&mut self) {
        match &mut self.end {
            End::Web(socket) => SinkExt::close(&mut **socket).await.expect("it can be closed"),
            End::Lines(writer, _) => {
                writer.shutdown().await.expect("it can be closed");
                *writer = Box::new(tokio::io::sink());
            }
        }
    }

    /// How the process of a server of its own ended.
    pub(crate) async fn exit_code(&mut self) -> Option<i32> {
        let child = self._child.as_mut().expect("a process");
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await.expect("it ends");
        ended.expect("it can be waited for").code()
    }

    pub(crate) fn pid(&self) -> u32 {
        self._child.as_ref().and_then(Child::id).expect("a process")
    }
}

/// The code with which a WebSocket was closed.
pub(crate) async fn close_code(socket: &mut Socket) -> Option<u16> {
    let end = async {
        while let Some(message) = socket.next().await {
            if let Ok(Message::Close(frame)) = message {
                return frame.map(|frame| frame.code.into());
            }
        }
        None
    };
    tokio::time::timeout(PATIENCE, end).await.expect("an end within the time")
}

/// Waits until something is as it should be.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(std::time::Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
