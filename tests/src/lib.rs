//! What the end-to-end tests share: the real binary on a free port, and a plain HTTP client.

#![allow(clippy::panic, reason = "a test without its server is over")]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
pub use serde_json::{Value, json};

pub mod raw;

mod balancer;
mod cluster;
mod machine;
mod postgres;
mod random;
mod redis;
mod sse;
mod stage;

pub use balancer::Balancer;
pub use cluster::{Bus, Cluster};
pub use machine::cpu_seconds;
pub use postgres::Postgres;
pub use random::Random;
pub use redis::Redis;
pub use reqwest::RequestBuilder;
pub use sse::{NoStream, Sse, SseEvent};
pub use stage::{Stage, fake, installed};

/// The longest that anything in a test may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

static BINARY: OnceLock<PathBuf> = OnceLock::new();

/// Takes another binary than [`binary`] would. Has to come before anything is started.
pub fn use_binary(path: PathBuf) {
    BINARY.set(path).expect("nothing was started yet");
}

/// The binary under test: `NUNCIO_BIN`, or what cargo builds now.
pub fn binary() -> &'static Path {
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
    environment: Vec<(String, String)>,
    data: tempfile::TempDir,
    port: u16,
    said: Log,
}

/// The last lines of a log.
type Log = Arc<Mutex<VecDeque<String>>>;

/// How many lines of a log are kept.
const LINES: usize = 100;

impl Server {
    /// Starts `nuncio serve` with these arguments on a free port, its data in a folder of its own.
    pub fn start(args: &[&str]) -> Self {
        Self::start_in(args, &[])
    }

    /// The same, with more variables in its environment.
    pub fn start_in(args: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_at(tempfile::tempdir().expect("a temporary folder"), args, environment)
    }

    /// The same, with what this folder holds already.
    pub fn start_at(data: tempfile::TempDir, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let environment: Vec<(String, String)> =
            environment.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let said = Log::default();
        let (child, port) = launch(&args, &environment, data.path(), 0, &said);
        Self { child, url: format!("http://127.0.0.1:{port}"), args, environment, data, port, said }
    }

    /// Starts it with a configuration file.
    pub fn configured(yaml: &str) -> Self {
        Self::configured_in(yaml, &[])
    }

    /// The same, with more variables in its environment.
    pub fn configured_in(yaml: &str, environment: &[(&str, &str)]) -> Self {
        let file = tempfile::Builder::new().suffix(".yml").tempfile().expect("a temporary file");
        std::fs::write(file.path(), yaml).expect("the file can be written");
        let path = file.into_temp_path().keep().expect("the file stays");
        Self::start_in(&["--config", path.to_str().expect("a plain path")], environment)
    }

    /// Kills it with SIGKILL and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Sends SIGTERM and waits for the end. Returns the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.ended()
    }

    /// Waits until it has ended by itself. Returns the exit code.
    pub fn ended(&mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server does not end:\n{}", self.last_words());
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// The end of its log.
    pub fn last_words(&self) -> String {
        let said = self.said.lock();
        said.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(done.expect("kill can be started").success(), "the signal arrives");
    }

    /// Kills it and all that it has started, as a lost machine does.
    pub fn lose(&mut self) {
        machine::kill(self.pid());
        self.child.wait().expect("it ends");
    }

    /// Stops the clock for it and all that it has started, as a machine that hangs does.
    pub fn pause(&self) {
        machine::pause(self.pid());
    }

    /// Lets it go on after a pause.
    pub fn go_on(&self) {
        machine::go_on(self.pid());
    }

    /// Starts it again on the same port and data.
    pub fn restart(&mut self) {
        (self.child, self.port) = launch(&self.args, &self.environment, self.data.path(), self.port, &self.said);
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
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
        let [value] = self.metrics([name]).await;
        value
    }

    /// Several metrics of the same moment.
    pub async fn metrics<const N: usize>(&self, names: [&str; N]) -> [f64; N] {
        let text = client().get(format!("{}/metrics", self.url)).send().await.expect("metrics");
        let text = text.text().await.expect("text");
        names.map(|name| {
            let is_it = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
            text.lines().filter(is_it).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
        })
    }

    /// A POST of A2A 1.0.
    pub fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        client().post(format!("{}{path}", self.url)).header("A2A-Version", "1.0").json(body)
    }

    /// A GET of A2A 1.0.
    pub fn get(&self, path: &str) -> RequestBuilder {
        client().get(format!("{}{path}", self.url)).header("A2A-Version", "1.0")
    }

    /// A JSON-RPC request; the method says which version.
    pub fn rpc_request(&self, method: &str, params: &Value) -> RequestBuilder {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = client().post(&self.url).json(&body);
        if method.contains('/') { request } else { request.header("A2A-Version", "1.0") }
    }

    /// A JSON-RPC call. Returns the whole response.
    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        answer(self.rpc_request(method, &params)).await.1
    }

    /// Sends a text and returns the task that answers it.
    pub async fn send(&self, text: &str) -> Value {
        self.send_params(message(text)).await
    }

    /// Sends a text without waiting and returns the task.
    pub async fn send_async(&self, text: &str) -> Value {
        self.send_params(at_once(message(text))).await
    }

    /// Sends these parameters and returns the task.
    pub async fn send_params(&self, params: Value) -> Value {
        let answer = self.rpc("SendMessage", params).await;
        assert!(answer["result"]["task"].is_object(), "a task: {answer}");
        answer["result"]["task"].clone()
    }

    /// The task with this id.
    pub async fn task(&self, id: &str) -> Value {
        let answer = self.rpc("GetTask", json!({ "id": id })).await;
        assert!(answer["result"].is_object(), "a task: {answer}");
        answer["result"].clone()
    }

    /// The task with this id as soon as it is in this state (its name without `TASK_STATE_`).
    pub async fn until(&self, id: &str, wanted: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let task = self.task(id).await;
            if state(&task) == wanted {
                return task;
            }
            assert!(Instant::now() < until, "{wanted} is not reached: {task}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Cancels a task and returns it.
    pub async fn cancel(&self, id: &str) -> Value {
        let answer = self.rpc("CancelTask", json!({ "id": id })).await;
        assert!(answer["result"].is_object(), "a task: {answer}");
        answer["result"].clone()
    }

    /// All events of a task that is over.
    pub async fn log(&self, id: &str) -> Vec<SseEvent> {
        self.subscribe(id, Some(0)).await.all().await
    }

    /// How many tasks are in this state.
    pub async fn count(&self, state: &str) -> u64 {
        let answer = self.rpc("ListTasks", json!({ "status": format!("TASK_STATE_{state}") })).await;
        answer["result"]["totalSize"].as_u64().expect("a number")
    }

    /// Streams the answer to a text over REST.
    pub async fn stream(&self, text: &str) -> Sse {
        Sse::open(self.post("/message:stream", &message(text))).await
    }

    /// Follows a task over REST, after an event if one is given.
    pub async fn subscribe(&self, task: &str, after: Option<u64>) -> Sse {
        Sse::open(Wire::Rest.subscribe(self, task, after)).await
    }
}

/// The four ways to say the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// JSON-RPC of 1.0.
    Rpc,
    /// REST of 1.0.
    Rest,
    /// JSON-RPC of 0.3.
    OldRpc,
    /// REST of 0.3.
    OldRest,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rpc, Self::Rest, Self::OldRpc, Self::OldRest];

    /// Whether it is 1.0.
    pub fn is_new(self) -> bool {
        matches!(self, Self::Rpc | Self::Rest)
    }

    /// A request to stream the answer to a text.
    pub fn stream(self, server: &Server, text: &str) -> RequestBuilder {
        let parts = json!([{ "kind": "text", "text": text }]);
        match self {
            Self::Rpc => server.rpc_request("SendStreamingMessage", &message(text)),
            Self::Rest => server.post("/message:stream", &message(text)),
            Self::OldRpc => {
                let message = json!({ "kind": "message", "messageId": "m-1", "role": "user", "parts": parts });
                server.rpc_request("message/stream", &json!({ "message": message }))
            }
            Self::OldRest => {
                let message = json!({ "message_id": "m-1", "role": "ROLE_USER", "content": [{ "text": text }] });
                client().post(format!("{}/v1/message:stream", server.url)).json(&json!({ "request": message }))
            }
        }
    }

    /// A request to follow a task, after an event if one is given.
    pub fn subscribe(self, server: &Server, task: &str, after: Option<u64>) -> RequestBuilder {
        let id = json!({ "id": task });
        let request = match self {
            Self::Rpc => server.rpc_request("SubscribeToTask", &id),
            Self::Rest => server.post(&format!("/tasks/{task}:subscribe"), &json!({})),
            Self::OldRpc => server.rpc_request("tasks/resubscribe", &id),
            Self::OldRest => client().post(format!("{}/v1/tasks/{task}:subscribe", server.url)),
        };
        match after {
            Some(after) => request.header("Last-Event-ID", after.to_string()),
            None => request,
        }
    }
}

/// Runs a command of the binary to its end.
pub fn nuncio(args: &[&str]) -> std::process::Output {
    Command::new(binary()).args(args).stdin(Stdio::null()).output().expect("the binary can be started")
}

/// Sends a request and reads a JSON answer and its HTTP status.
pub async fn answer(request: RequestBuilder) -> (u16, Value) {
    let all = async {
        let response = request.send().await.expect("an answer");
        (response.status().as_u16(), response.json().await.expect("JSON"))
    };
    tokio::time::timeout(PATIENCE, all).await.expect("an answer within the time")
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the binary and reads from its log where it listens.
fn launch(args: &[String], environment: &[(String, String)], data: &Path, port: u16, said: &Log) -> (Child, u16) {
    let mut child = Command::new(binary())
        .arg("serve")
        .args(["--data-dir".as_ref(), data.as_os_str()])
        .args(["--port", &port.to_string()])
        .args(args)
        .env("NUNCIO_LOG", "json")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let log = BufReader::new(child.stderr.take().expect("a pipe"));
    match read_port(log, said) {
        Ok(port) => (child, port),
        Err(seen) => {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the server did not start:\n{seen}");
        }
    }
}

/// Where the server listens; without that, all that it said. The rest of its log is kept, and shown on request.
fn read_port(mut log: BufReader<ChildStderr>, said: &Log) -> Result<u16, String> {
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        if log.read_line(&mut line).expect("the log can be read") == 0 {
            return Err(seen);
        }
        if let Some(port) = port_in(&line) {
            let echo = std::env::var_os("NUNCIO_TEST_LOG").is_some();
            let said = said.clone();
            std::thread::spawn(move || {
                for line in log.lines().map_while(Result::ok) {
                    if echo {
                        eprintln!("{line}");
                    }
                    let mut said = said.lock();
                    if said.len() == LINES {
                        said.pop_front();
                    }
                    said.push_back(line);
                }
            });
            return Ok(port);
        }
        seen.push_str(&line);
    }
}

fn port_in(line: &str) -> Option<u16> {
    let entry: Value = serde_json::from_str(line).ok()?;
    // The card may tell an address of somebody in front.
    entry.get("card")?;
    entry.get("address")?.as_str()?.rsplit(':').next()?.parse().ok()
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

/// The same, for a task that exists.
pub fn follow_up(task: &Value, text: &str) -> Value {
    let mut params = message(text);
    params["message"]["messageId"] = json!("m-2");
    params["message"]["taskId"] = task["id"].clone();
    params
}

/// The same, for a conversation that exists.
pub fn in_context(context: &Value, text: &str) -> Value {
    let mut params = message(text);
    params["message"]["contextId"] = context.clone();
    params
}

/// The same, to be answered without waiting.
pub fn at_once(mut params: Value) -> Value {
    params["configuration"] = json!({ "returnImmediately": true });
    params
}

/// The id of a task.
pub fn id(task: &Value) -> &str {
    task["id"].as_str().expect("an id")
}

/// The state of a task, without `TASK_STATE_`.
pub fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().and_then(|state| state.strip_prefix("TASK_STATE_")).unwrap_or_default()
}

/// Whether a task of 1.0 is over.
pub fn is_over(task: &Value) -> bool {
    matches!(state(task), "COMPLETED" | "FAILED" | "CANCELED" | "REJECTED")
}

/// What the agent says in the status of a task.
pub fn words(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

/// The texts of all artifacts, the chunks of each put together.
pub fn texts(task: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
    list(&task["artifacts"]).iter().map(|artifact| list(&artifact["parts"]).iter().map(text).collect()).collect()
}
