//! Floor: tonic, typed prost, nothing else. The messages have the fields that `shape` has.

#[path = "../../floor/src/shape.rs"]
#[allow(dead_code, clippy::disallowed_types, reason = "most of it is JSON, and it is as in peers/floor")]
mod shape;

use std::future::ready;

use axum::Router;
use axum::extract::Request;
use axum::http::{Response, header};
use axum::routing::{get, post};
use futures_util::stream;
use tokio::sync::mpsc;
use tonic::Status;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::transport::Server;
use tonic_prost::ProstCodec;
use tower::service_fn;

const WORKING: i32 = 2;
const COMPLETED: i32 = 3;
const ROLE_USER: i32 = 1;

#[derive(prost::Message)]
struct SendMessageRequest {
    #[prost(message, optional, tag = "2")]
    message: Option<Message>,
}

#[derive(prost::Message)]
struct GetTaskRequest {
    #[prost(string, tag = "2")]
    id: String,
}

#[derive(prost::Message)]
struct SendMessageResponse {
    #[prost(message, optional, tag = "1")]
    task: Option<Task>,
}

#[derive(prost::Message)]
struct StreamResponse {
    #[prost(message, optional, tag = "3")]
    status_update: Option<StatusUpdate>,
    #[prost(message, optional, tag = "4")]
    artifact_update: Option<ArtifactUpdate>,
}

#[derive(prost::Message)]
struct Message {
    #[prost(string, tag = "1")]
    message_id: String,
    #[prost(string, tag = "2")]
    context_id: String,
    #[prost(int32, tag = "4")]
    role: i32,
    #[prost(message, repeated, tag = "5")]
    parts: Vec<Part>,
}

#[derive(prost::Message)]
struct Part {
    #[prost(string, tag = "1")]
    text: String,
}

#[derive(prost::Message)]
struct Task {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    context_id: String,
    #[prost(message, optional, tag = "3")]
    status: Option<TaskStatus>,
    #[prost(message, repeated, tag = "4")]
    artifacts: Vec<Artifact>,
    #[prost(message, repeated, tag = "5")]
    history: Vec<Message>,
}

#[derive(prost::Message)]
struct TaskStatus {
    #[prost(int32, tag = "1")]
    state: i32,
    #[prost(message, optional, tag = "3")]
    timestamp: Option<Timestamp>,
}

#[derive(prost::Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

#[derive(prost::Message)]
struct Artifact {
    #[prost(string, tag = "1")]
    artifact_id: String,
    #[prost(message, repeated, tag = "4")]
    parts: Vec<Part>,
}

#[derive(prost::Message)]
struct StatusUpdate {
    #[prost(string, tag = "1")]
    task_id: String,
    #[prost(string, tag = "2")]
    context_id: String,
    #[prost(message, optional, tag = "3")]
    status: Option<TaskStatus>,
}

#[derive(prost::Message)]
struct ArtifactUpdate {
    #[prost(string, tag = "1")]
    task_id: String,
    #[prost(string, tag = "2")]
    context_id: String,
    #[prost(message, optional, tag = "3")]
    artifact: Option<Artifact>,
    #[prost(bool, tag = "4")]
    append: bool,
    #[prost(bool, tag = "5")]
    last_chunk: bool,
}

fn status(state: i32) -> Option<TaskStatus> {
    Some(TaskStatus { state, timestamp: Some(Timestamp { seconds: 1_767_225_600 }) })
}

fn artifact(text: String) -> Artifact {
    Artifact { artifact_id: "00000000-0000-4000-8000-00000000000a".into(), parts: vec![Part { text }] }
}

fn task(id: String, text: String, message: Message) -> Task {
    let (artifacts, history) = (vec![artifact(text)], vec![message]);
    Task { id, context_id: shape::fresh_id(), status: status(COMPLETED), artifacts, history }
}

fn asked(request: SendMessageRequest) -> Result<(Message, String), Status> {
    let message = request.message.ok_or_else(|| Status::invalid_argument("no message"))?;
    let text = message.parts.first().map_or(String::new(), |part| part.text.clone());
    Ok((message, text))
}

fn send_message(request: SendMessageRequest) -> Result<SendMessageResponse, Status> {
    let (message, text) = asked(request)?;
    Ok(SendMessageResponse { task: Some(task(shape::fresh_id(), text, message)) })
}

fn get_task(request: GetTaskRequest) -> Result<Task, Status> {
    let text = "lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsu";
    let parts = vec![Part { text: text.into() }];
    let message = Message { message_id: "m-000000000000".into(), context_id: String::new(), role: ROLE_USER, parts };
    Ok(task(request.id, text.into(), message))
}

fn state_event(task: &str, state: i32) -> StreamResponse {
    let update = StatusUpdate { task_id: task.into(), context_id: task.into(), status: status(state) };
    StreamResponse { status_update: Some(update), artifact_update: None }
}

fn chunk_event(task: &str, i: usize, last_chunk: bool) -> StreamResponse {
    let (task_id, context_id, artifact) = (task.into(), task.into(), Some(artifact(format!("chunk {i}"))));
    let update = ArtifactUpdate { task_id, context_id, artifact, append: i > 0, last_chunk };
    StreamResponse { status_update: None, artifact_update: Some(update) }
}

/// Starts one stream: working, the chunks one by one, completed.
fn start(request: SendMessageRequest) -> Result<mpsc::Receiver<StreamResponse>, Status> {
    let (_, text) = asked(request)?;
    let chunks = text.strip_prefix("stream ").and_then(|count| count.parse().ok());
    let chunks: usize = chunks.ok_or_else(|| Status::invalid_argument("no number of chunks"))?;
    let (tx, rx) = mpsc::channel(64);
    tokio::spawn(async move {
        let task = shape::fresh_id();
        let _ = tx.send(state_event(&task, WORKING)).await;
        for i in 0..chunks {
            let _ = tx.send(chunk_event(&task, i, i + 1 == chunks)).await;
            tokio::task::yield_now().await;
        }
        let _ = tx.send(state_event(&task, COMPLETED)).await;
    });
    Ok(rx)
}

async fn unary<Q, A>(request: Request, answer: fn(Q) -> Result<A, Status>) -> Response<Body>
where
    Q: prost::Message + Default + 'static,
    A: prost::Message + 'static,
{
    let service = service_fn(|q: tonic::Request<Q>| ready(answer(q.into_inner()).map(tonic::Response::new)));
    Grpc::new(ProstCodec::default()).unary(service, request).await
}

async fn streaming(request: Request) -> Response<Body> {
    let service = service_fn(|q: tonic::Request<SendMessageRequest>| {
        ready(start(q.into_inner()).map(|rx| {
            let events = stream::unfold(rx, |mut rx| async move { Some((Ok(rx.recv().await?), rx)) });
            tonic::Response::new(events)
        }))
    });
    Grpc::new(ProstCodec::default()).server_streaming(service, request).await
}

#[tokio::main]
async fn main() {
    let port = std::env::var("PORT").expect("PORT");
    let app = Router::new()
        .route("/lf.a2a.v1.A2AService/SendMessage", post(|request| unary(request, send_message)))
        .route("/lf.a2a.v1.A2AService/GetTask", post(|request| unary(request, get_task)))
        .route("/lf.a2a.v1.A2AService/SendStreamingMessage", post(streaming))
        .route(
            "/.well-known/agent-card.json",
            get(|| async { ([(header::CONTENT_TYPE, "application/json")], shape::CARD) }),
        );
    let address = format!("127.0.0.1:{port}").parse().expect("PORT is a number");
    // HTTP/1.1 is for the card only.
    let mut server = Server::builder().tcp_nodelay(true).accept_http1(true);
    server.add_routes(app.into()).serve(address).await.expect("serve");
}
