//! A server that answers as the test says, and remembers what it was asked.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use nuncio_client::{Client, Credential, Options, Retry};
use nuncio_protocol::{Message, Part, SendMessageRequest, Value, codec, json};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// A JSON-RPC answer with this result.
    pub(crate) fn result(&self, result: &Value) -> Answer {
        Answer::json(&json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}))
    }

    /// A JSON-RPC error.
    pub(crate) fn error(&self, code: i64, message: &str) -> Answer {
        Answer::json(
            &json!({"jsonrpc": "2.0", "id": self.body["id"], "error": {"code": code, "message": message, "data": []}}),
        )
    }

    /// One server-sent event with a StreamResponse.
    pub(crate) fn event(&self, seq: Option<u64>, response: &Value) -> Step {
        let id = seq.map(|seq| format!("id: {seq}\n")).unwrap_or_default();
        let body = json!({"jsonrpc": "2.0", "id": self.body["id"], "result": response});
        Step::Bytes(format!("{id}data: {body}\n\n").into_bytes())
    }
}

/// A piece of a body, or what happens in its place.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// The connection breaks.
    Break,
}

#[derive(Debug)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<Step>,
}

impl Answer {
    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), body: vec![Step::Bytes(body.into())] }
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::status(200, &body.to_string()).with("content-type", "application/json")
    }

    pub(crate) fn events(steps: Vec<Step>) -> Self {
        Self { body: steps, ..Self::status(200, "") }.with("content-type", "text/event-stream; charset=utf-8")
    }

    pub(crate) fn steps(mut self, steps: Vec<Step>) -> Self {
        self.body = steps;
        self
    }

    pub(crate) fn code(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn into_response(self) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
        let frames = stream::iter(self.body).then(async |step| match step {
            Step::Bytes(bytes) => {
                tokio::task::yield_now().await;
                Ok(Frame::data(Bytes::from(bytes)))
            }
            Step::Pause(time) => {
                tokio::time::sleep(time).await;
                Ok(Frame::data(Bytes::new()))
            }
            Step::Break => {
                // What was written before must be on its way.
                tokio::time::sleep(Duration::from_millis(30)).await;
                Err(io::Error::other("broken on purpose"))
            }
        });
        let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap();
        for (name, value) in self.headers {
            response.headers_mut().append(HeaderName::from_static(name), HeaderValue::try_from(value).unwrap());
        }
        response
    }
}

/// A listening server; ends with the test.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    accept: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

impl Server {
    /// Answers every request with `script(request, n)`, where n counts from 0.
    pub(crate) async fn start(script: impl Fn(&Seen, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, all) = (Arc::new(script), seen.clone());
        let accept = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (script, all) = (script.clone(), all.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let (script, all) = (script.clone(), all.clone());
                        async move { Ok::<_, Infallible>(answer(request, &*script, &all).await) }
                    });
                    // A broken connection is what some tests want.
                    let _ =
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service).await;
                });
            }
        });
        Self { url, seen, accept }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    /// The methods that were called, and with which `Last-Event-ID`.
    pub(crate) fn calls(&self) -> Vec<String> {
        let line = |seen: &Seen| match seen.header("last-event-id") {
            Some(last) => format!("{} after {last}", seen.rpc()),
            None => seen.rpc().to_owned(),
        };
        self.seen.lock().iter().map(line).collect()
    }

    pub(crate) fn client(&self) -> Client {
        Client::direct(&self.url, quick()).unwrap()
    }
}

async fn answer(
    request: Request<Incoming>,
    script: &(impl Fn(&Seen, usize) -> Answer + ?Sized),
    all: &Mutex<Vec<Seen>>,
) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let body = codec::decode(&body).unwrap_or_default();
    let path = head.uri.path_and_query().unwrap().to_string();
    let seen = Seen { path, headers: head.headers, body };
    let n = {
        let mut all = all.lock();
        all.push(seen.clone());
        all.len() - 1
    };
    script(&seen, n).into_response()
}

/// Options for tests that do not want to wait.
pub(crate) fn quick() -> Options {
    let retry = Retry { tries: 3, first: Duration::from_millis(5), most: Duration::from_millis(50) };
    Options { timeout: Duration::from_secs(5), retry, poll: Duration::from_millis(5), ..Options::default() }
}

/// The same with a bearer token.
pub(crate) fn secretive() -> Options {
    Options { credentials: vec![Credential::Bearer("very-secret".into())], ..quick() }
}

pub(crate) fn hello() -> SendMessageRequest {
    SendMessageRequest { message: Some(Message::from_user(vec![Part::text("hello")])), ..Default::default() }
}

pub(crate) fn task(state: &str) -> Value {
    json!({"id": "T1", "contextId": "C1", "status": {"state": format!("TASK_STATE_{state}")}})
}

pub(crate) fn status(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "T1", "contextId": "C1", "status": {"state": format!("TASK_STATE_{state}")}}})
}

pub(crate) fn chunk(text: &str) -> Value {
    json!({"artifactUpdate": {"taskId": "T1", "contextId": "C1", "append": true,
        "artifact": {"artifactId": "A1", "parts": [{"text": text}]}}})
}

pub(crate) fn card(interfaces: &Value) -> Answer {
    Answer::json(&json!({"name": "n", "description": "d", "version": "1", "supportedInterfaces": interfaces,
        "capabilities": {"streaming": true}, "defaultInputModes": [], "defaultOutputModes": [], "skills": []}))
}
