//! HTTP as bytes: what exactly goes over the wire, right or wrong, and what exactly comes back.

#![allow(clippy::panic)] // that is how tests fail

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{PATIENCE, binary};

/// A server whose whole log can be read, driven by raw bytes.
pub struct Wire {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its stdin, and the lines on its stdout.
    streams: Mutex<(ChildStdin, Receiver<String>)>,
    folder: tempfile::TempDir,
}

impl Wire {
    /// Starts `nuncio serve` in memory with this configuration, in which `store` and `port` are set already.
    pub fn start(yaml: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = folder.path().join("nuncio.yml");
        let store = if yaml.lines().any(|line| line.starts_with("store:")) { "" } else { "store: memory\n" };
        std::fs::write(&config, format!("port: 0\n{store}{yaml}")).expect("the file can be written");
        let log = std::fs::File::create(folder.path().join("log")).expect("the file can be made");
        let mut child = Command::new(binary())
            .arg("serve")
            .arg("--config")
            .arg(&config)
            .arg("--data-dir")
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary can be started");
        let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let streams = Mutex::new((stdin, lines_of(stdout)));
        let until = Instant::now() + PATIENCE;
        loop {
            let log = std::fs::read_to_string(folder.path().join("log")).expect("the log can be read");
            if let Some(address) = log.lines().find_map(address_in) {
                return Self { child, address, streams, folder };
            }
            let ended = child.try_wait().expect("it can be asked");
            assert!(ended.is_none() && Instant::now() < until, "the server did not start:\n{log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Writes a line to its stdin, and reads lines from its stdout up to the one that is the last.
    pub fn say(&self, line: &str, is_last: impl Fn(&Value) -> bool) -> Vec<String> {
        let mut streams = self.streams.lock();
        let (stdin, lines) = &mut *streams;
        stdin.write_all(format!("{line}\n").as_bytes()).expect("it reads its stdin");
        let mut all = Vec::new();
        loop {
            let line = lines.recv_timeout(PATIENCE).expect("an answer in time");
            let frame: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no frame: {line}"));
            all.push(line);
            if is_last(&frame) {
                return all;
            }
        }
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything that it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).expect("the log can be read")
    }

    /// Fails when anything in the server panicked or was found broken, or when it is gone.
    pub fn assert_sound(&self) {
        let log = self.log();
        let bad: Vec<&str> = log.lines().filter(|line| line.contains("\"level\":\"ERROR\"")).collect();
        assert!(bad.is_empty(), "the log tells of errors: {bad:#?}");
        let health = self.get("/health", "");
        assert_eq!((health.status, health.json()["status"].as_str()), (200, Some("healthy")));
    }

    /// Its memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line with its memory");
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(done.expect("kill can be started").success(), "the signal arrives");
    }

    /// Waits for its end. Returns the exit code.
    pub fn ended(&mut self) -> Option<i32> {
        let mut code = None;
        until("the server ends", || {
            code = self.child.try_wait().expect("it can be asked");
            code.is_some()
        });
        code.and_then(|code| code.code())
    }

    /// A connection.
    pub fn connect(&self) -> Connection {
        Connection::to(self.address)
    }

    /// Sends a whole request on a connection of its own and reads the answer.
    pub fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut connection = self.connect();
        connection.send(request);
        connection.answer()
    }

    /// `GET` with more header lines, each ending in `\r\n`.
    pub fn get(&self, path: &str, headers: &str) -> Answer {
        self.ask(request("GET", path, headers, ""))
    }

    /// `POST` of JSON with more header lines.
    pub fn post(&self, path: &str, headers: &str, body: &str) -> Answer {
        let headers = match headers.to_ascii_lowercase().contains("content-type:") {
            true => headers.to_owned(),
            false => format!("Content-Type: application/json\r\n{headers}"),
        };
        self.ask(request("POST", path, &headers, body))
    }

    /// A JSON-RPC call of A2A 1.0. Returns the whole response.
    pub fn rpc(&self, method: &str, params: &Value) -> Value {
        let body = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.post("/", V1, &body.to_string()).json()
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> i64 {
        let page = self.rpc("ListTasks", &serde_json::json!({ "pageSize": 1 }));
        page["result"]["totalSize"].as_i64().unwrap_or_else(|| panic!("no number of tasks in {page}"))
    }

    /// One value of `/metrics`, summed over its labels.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics", "").text();
        let is_it = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        let lines: Vec<&str> = text.lines().filter(is_it).collect();
        assert!(!lines.is_empty(), "no {name} in\n{text}");
        lines.iter().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a stream, as they come.
fn lines_of(stdout: ChildStdout) -> Receiver<String> {
    let (to, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The header line of A2A 1.0.
pub const V1: &str = "A2A-Version: 1.0\r\n";

fn address_in(line: &str) -> Option<SocketAddr> {
    let entry: Value = serde_json::from_str(line).ok()?;
    entry.get("address")?.as_str()?.parse().ok()
}

/// A request on a connection that is closed after it.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = match (method, body) {
        ("GET" | "HEAD" | "DELETE", "") => String::new(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}{length}\r\n{body}")
}

/// Waits until something is so, as long as [`PATIENCE`] lasts.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A connection on which anything can be sent.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time limit");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, buffer: Vec::new() }
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the bytes can be sent");
    }

    /// Sends bytes to a peer that may have closed already.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Says that nothing more comes.
    pub fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Reads the answer to one request, its body to the end.
    pub fn answer(&mut self) -> Answer {
        self.try_answer().unwrap_or_else(|what| panic!("no whole answer: {what}"))
    }

    /// The same, where it may be that no answer comes.
    pub fn try_answer(&mut self) -> Result<Answer, String> {
        let mut answer = self.try_head()?;
        answer.body = match answer.header("transfer-encoding") {
            _ if matches!(answer.status, 204 | 304) => Vec::new(),
            Some("chunked") => self.chunks()?,
            _ => match answer.header("content-length").map(|n| n.parse::<usize>().map_err(|e| e.to_string())) {
                Some(length) => self.exactly(length?)?,
                None => self.rest(),
            },
        };
        Ok(answer)
    }

    /// Reads the head of an answer, its body left for later.
    pub fn head(&mut self) -> Answer {
        self.try_head().unwrap_or_else(|what| panic!("no head of an answer: {what}"))
    }

    fn try_head(&mut self) -> Result<Answer, String> {
        let end = self.find(b"\r\n\r\n")?;
        let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
        let head = String::from_utf8(head).map_err(|error| error.to_string())?;
        let mut lines = head.trim_end().split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let status = status_line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| format!("no status line but {status_line:?}"))?;
        let header = |line: &str| line.split_once(": ").map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned()));
        let headers = lines.map(|line| header(line).ok_or_else(|| format!("no header: {line:?}")));
        Ok(Answer { status, headers: headers.collect::<Result<_, _>>()?, body: Vec::new() })
    }

    /// The next bytes of a chunked body; empty at its end.
    pub fn chunk(&mut self) -> Result<Vec<u8>, String> {
        let end = self.find(b"\r\n")?;
        let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
        let size = std::str::from_utf8(&line).ok().and_then(|line| usize::from_str_radix(line.trim(), 16).ok());
        let size = size.ok_or_else(|| format!("no size of a chunk: {line:?}"))?;
        let mut chunk = self.exactly(size + 2)?;
        chunk.truncate(size);
        Ok(chunk)
    }

    /// Reads a chunked stream until it holds this text, and returns all of it.
    pub fn chunks_until(&mut self, text: &str) -> String {
        let mut all = String::new();
        while !all.contains(text) {
            let chunk = self.chunk().unwrap_or_else(|what| panic!("{what}, and no {text:?} in {all:?}"));
            assert!(!chunk.is_empty(), "the stream ended, and no {text:?} in {all:?}");
            all.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
        }
        all
    }

    fn chunks(&mut self) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(all);
            }
            all.extend(chunk);
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, String> {
        while self.buffer.len() < length {
            self.more()?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// Everything until the peer closes.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.more().is_ok() {}
        std::mem::take(&mut self.buffer)
    }

    /// Waits until the peer closes, and fails when that takes too long.
    pub fn closed(&mut self) {
        let mut byte = [0; 4096];
        loop {
            match self.stream.read(&mut byte) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if is_timeout(&error) => panic!("the connection is still open"),
                Err(_) => return,
            }
        }
    }

    /// Whether the peer neither closes nor says anything for so long.
    pub fn is_silent_for(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).expect("a time limit");
        let silent = matches!(self.stream.peek(&mut [0]), Err(error) if is_timeout(&error));
        self.stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        silent && self.buffer.is_empty()
    }

    /// Everything up to and with this text.
    pub fn through(&mut self, text: &str) -> Vec<u8> {
        let end = self.find(text.as_bytes()).unwrap_or_else(|what| panic!("no {text:?}: {what}"));
        self.buffer.drain(..end + text.len()).collect()
    }

    fn find(&mut self, what: &[u8]) -> Result<usize, String> {
        loop {
            if let Some(at) = self.buffer.windows(what.len()).position(|window| window == what) {
                return Ok(at);
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> Result<(), String> {
        let mut bytes = [0; 64 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(format!("closed after {:?}", String::from_utf8_lossy(&self.buffer))),
            Ok(n) => {
                self.buffer.extend_from_slice(&bytes[..n]);
                Ok(())
            }
            Err(error) => {
                assert!(!is_timeout(&error), "no answer in time, only {:?}", String::from_utf8_lossy(&self.buffer));
                Err(error.to_string())
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers, in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, chunks joined.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    /// The data of every event of a stream.
    pub fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"), "no stream: {}", self.text());
        let data = |line: &str| line.strip_prefix("data: ").map(|json| serde_json::from_str(json).expect("JSON"));
        self.text().lines().filter_map(data).collect()
    }

    /// The code of a JSON-RPC error.
    pub fn code(&self) -> i64 {
        let body = self.json();
        body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error in {body}"))
    }

    /// The reason of an error in any of the four shapes.
    pub fn reason(&self) -> String {
        let body = self.json();
        let error = &body["error"];
        let reason = [&error["data"][0]["reason"], &error["data"]["reason"], &error["details"][0]["reason"]];
        let reason = reason.into_iter().find_map(Value::as_str);
        reason.unwrap_or_else(|| panic!("no reason in {body}")).to_owned()
    }
}
