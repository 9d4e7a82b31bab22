//! A receiver of webhooks that does as it is told.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_tests::{PATIENCE, Value, json};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// One post.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
    /// The body, byte for byte.
    pub(crate) raw: Vec<u8>,
    /// When it arrived.
    pub(crate) at: Instant,
}

impl Post {
    /// The task and the number of the event.
    pub(crate) fn event(&self) -> (String, u64) {
        let (task, seq) = self.headers["a2a-event-id"].rsplit_once('/').expect("task and number");
        (task.to_owned(), seq.parse().expect("a number"))
    }

    /// The state that a body of 1.0 says, without `TASK_STATE_`.
    pub(crate) fn state(&self) -> &str {
        let status = if self.body["task"].is_object() { &self.body["task"] } else { &self.body["statusUpdate"] };
        status["status"]["state"].as_str().and_then(|state| state.strip_prefix("TASK_STATE_")).unwrap_or_default()
    }
}

/// What the receiver does with a post.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    Status(u16),
    /// With `Retry-After`, in seconds.
    After(u16, u64),
    /// No answer at all.
    Hang,
    /// The connection breaks.
    Reset,
}

type Rule = Arc<dyn Fn(&Post, usize) -> Reply + Send + Sync>;

/// A server that keeps all that is posted.
pub(crate) struct Receiver {
    address: SocketAddr,
    rule: Rule,
    posts: Arc<Mutex<Vec<Post>>>,
    listening: AbortHandle,
}

impl Receiver {
    /// One that takes everything.
    pub(crate) async fn start() -> Self {
        Self::with(|_, _| Reply::Status(200)).await
    }

    /// One that decides by the post and by how many came before it.
    pub(crate) async fn with(rule: impl Fn(&Post, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (posts, rule): (_, Rule) = (Arc::default(), Arc::new(rule));
        let listening = listen(listener, &rule, &posts);
        Self { address, rule, posts, listening }
    }

    /// Its address, with a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Nobody listens any more.
    pub(crate) fn down(&self) {
        self.listening.abort();
    }

    /// It listens again.
    pub(crate) async fn up(&mut self) {
        let until = Instant::now() + PATIENCE;
        loop {
            match TcpListener::bind(self.address).await {
                Ok(listener) => {
                    self.listening = listen(listener, &self.rule, &self.posts);
                    return;
                }
                Err(error) => assert!(Instant::now() < until, "the port stays taken: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Everything so far.
    pub(crate) fn posts(&self) -> Vec<Post> {
        self.posts.lock().clone()
    }

    /// How many so far.
    pub(crate) fn count(&self) -> usize {
        self.posts.lock().len()
    }

    /// Everything, as soon as it is enough.
    pub(crate) async fn until(&self, what: &str, enough: impl Fn(&[Post]) -> bool) -> Vec<Post> {
        let until = Instant::now() + PATIENCE;
        loop {
            let posts = self.posts();
            if enough(&posts) {
                return posts;
            }
            assert!(Instant::now() < until, "waited in vain for {what}: {posts:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Everything, as soon as a task is over.
    pub(crate) async fn until_over(&self) -> Vec<Post> {
        self.until("the end of the task", |posts| posts.iter().any(is_over)).await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Whether a post tells of the end of a task, in either version.
pub(crate) fn is_over(post: &Post) -> bool {
    let old = post.body["status"]["state"].as_str().unwrap_or_default();
    matches!(post.state(), "COMPLETED" | "FAILED" | "CANCELED" | "REJECTED") || matches!(old, "completed" | "failed")
}

fn listen(listener: TcpListener, rule: &Rule, posts: &Arc<Mutex<Vec<Post>>>) -> AbortHandle {
    let (rule, posts) = (rule.clone(), posts.clone());
    let listening = tokio::spawn(async move {
        // Connections end with the listener.
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve(stream, rule.clone(), posts.clone()));
        }
    });
    listening.abort_handle()
}

async fn serve(stream: TcpStream, rule: Rule, posts: Arc<Mutex<Vec<Post>>>) {
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    while let Some(post) = read(&mut stream).await {
        let reply = {
            let mut posts = posts.lock();
            let reply = rule(&post, posts.len());
            posts.push(post);
            reply
        };
        let text = match reply {
            Reply::Status(status) => format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n"),
            Reply::After(status, secs) => {
                format!("HTTP/1.1 {status} x\r\nRetry-After: {secs}\r\nContent-Length: 0\r\n\r\n")
            }
            Reply::Hang => return std::future::pending().await,
            Reply::Reset => return,
        };
        if stream.get_mut().write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Post> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let path = line.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut raw = vec![0; headers.get("content-length")?.parse().ok()?];
    stream.read_exact(&mut raw).await.ok()?;
    let body = serde_json::from_slice(&raw).unwrap_or_else(|_| json!({ "unreadable": true }));
    Some(Post { path, headers, body, raw, at: Instant::now() })
}
