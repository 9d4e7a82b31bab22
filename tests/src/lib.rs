//! What the end-to-end tests share: the real binary on a free port, and a plain HTTP client.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

pub use serde_json::{Value, json};

pub mod raw;
mod sse;

pub use sse::{Sse, SseEvent};

/// The longest that anything in a test may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The binary under test: `NUNCIO_BIN`, or what cargo builds now.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("NUNCIO_BIN") {
            return path.into();
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .current_dir(&root)
            .args(["build", "--quiet", "--package", "nuncio"])
            .status()
            .expect("cargo can be started");
        assert!(built.success(), "the binary does not build");
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        target.join("debug/nuncio")
    })
}

/// A running server and the folder that holds its data.
pub struct Server {
    child: Child,
    /// `http://127.0.0.1:PORT`
    pub url: String,
    args: Vec<String>,
    data: tempfile::TempDir,
    port: u16,
}

impl Server {
    /// Starts `nuncio serve` with these arguments on a free port, its data in a folder of its own.
    pub fn start(args: &[&str]) -> Self {
        let data = tempfile::tempdir().expect("a temporary folder");
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let (child, port) = launch(&args, data.path(), 0);
        Self { child, url: format!("http://127.0.0.1:{port}"), args, data, port }
    }

    /// Starts it with a configuration file.
    pub fn configured(yaml: &str) -> Self {
        let file = tempfile::Builder::new().suffix(".yml").tempfile().expect("a temporary file");
        std::fs::write(file.path(), yaml).expect("the file can be written");
        let path = file.into_temp_path().keep().expect("the file stays");
        Self::start(&["--config", path.to_str().expect("a plain path")])
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Sends SIGTERM and waits for the end. Returns the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().expect("it ends").code()
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(done.expect("kill can be started").success(), "the signal arrives");
    }

    /// Starts it again on the same port and data.
    pub fn restart(&mut self) {
        (self.child, self.port) = launch(&self.args, self.data.path(), self.port);
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder with its data.
    pub fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// Its memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line with its memory");
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
    }

    /// One value of `/metrics`, summed over its labels.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = client().get(format!("{}/metrics", self.url)).send().await.expect("metrics");
        let text = text.text().await.expect("text");
        let is_it = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        text.lines().filter(is_it).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// A JSON-RPC call of A2A 1.0. Returns the whole response.
    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = client().post(&self.url).json(&body);
        if !method.contains('/') {
            request = request.header("A2A-Version", "1.0");
        }
        request.send().await.expect("an answer").json().await.expect("JSON")
    }

    /// Sends a text and returns the task that answers it.
    pub async fn send(&self, text: &str) -> Value {
        let answer = self.rpc("SendMessage", message(text)).await;
        answer["result"]["task"].clone()
    }

    /// Sends a text without waiting and returns the task.
    pub async fn send_async(&self, text: &str) -> Value {
        let mut params = message(text);
        params["configuration"] = json!({ "returnImmediately": true });
        self.rpc("SendMessage", params).await["result"]["task"].clone()
    }

    /// Streams the answer to a text over REST.
    pub async fn stream(&self, text: &str) -> Sse {
        let request = client().post(format!("{}/message:stream", self.url)).json(&message(text));
        Sse::open(request.header("A2A-Version", "1.0")).await
    }

    /// Follows a task over REST, after an event if one is given.
    pub async fn subscribe(&self, task: &str, after: Option<u64>) -> Sse {
        let mut request = client().post(format!("{}/tasks/{task}:subscribe", self.url)).header("A2A-Version", "1.0");
        if let Some(after) = after {
            request = request.header("Last-Event-ID", after.to_string());
        }
        Sse::open(request).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the binary and reads from its log where it listens.
fn launch(args: &[String], data: &Path, port: u16) -> (Child, u16) {
    let mut child = Command::new(binary())
        .arg("serve")
        .args(["--data-dir".as_ref(), data.as_os_str()])
        .args(["--port", &port.to_string()])
        .args(args)
        .env("NUNCIO_LOG", "json")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        let n = log.read_line(&mut line).expect("the log can be read");
        assert!(n > 0, "the server did not start:\n{seen}");
        if let Some(port) = port_in(&line) {
            let echo = std::env::var_os("NUNCIO_TEST_LOG").is_some();
            std::thread::spawn(move || {
                for line in log.lines().map_while(Result::ok) {
                    if echo {
                        eprintln!("{line}");
                    }
                }
            });
            return (child, port);
        }
        seen.push_str(&line);
    }
}

fn port_in(line: &str) -> Option<u16> {
    let entry: Value = serde_json::from_str(line).ok()?;
    let card = entry.get("card")?.as_str()?;
    card.strip_prefix("http://")?.split('/').next()?.rsplit(':').next()?.parse().ok()
}

/// An HTTP client that keeps no cookies, follows no redirects and knows no proxy.
pub fn client() -> reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    let build = || reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
    CLIENT.get_or_init(build).clone()
}

/// Parameters of a send with one text part.
pub fn message(text: &str) -> Value {
    json!({ "message": { "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": text }] } })
}
