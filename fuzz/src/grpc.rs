//! Bytes of a stranger as gRPC: the body of a call, to every service, and messages of both versions.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use nuncio_protocol::proto::{self, v1, v03};
use nuncio_protocol::{AgentCard, SendMessageRequest, StreamResponse};
use nuncio_server::store::MemoryStore;
use nuncio_server::{Agent, AgentError, Server, ServerOptions, Turn};
use tokio::runtime::Runtime;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

const METHODS: [&str; 9] = [
    "/lf.a2a.v1.A2AService/SendMessage",
    "/lf.a2a.v1.A2AService/ListTasks",
    "/lf.a2a.v1.A2AService/CreateTaskPushNotificationConfig",
    "/a2a.v1.A2AService/SendMessage",
    "/a2a.v1.A2AService/GetTask",
    "/iac_code.a2a.transports.proto.A2AJsonRpc/Send",
    "/iac_code.a2a.transports.proto.A2AJsonRpc/Stream",
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

/// Reads bytes as messages. What can be read can be written and read again.
///
/// # Panics
///
/// When something that was read and written cannot be read.
fn messages(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok(request) = proto::read::<v1::SendMessageRequest, SendMessageRequest>(bytes.clone()) {
        let again = proto::write::<v1::SendMessageRequest, _>(request);
        proto::read::<v1::SendMessageRequest, SendMessageRequest>(again.into()).expect("what was written");
    }
    let _ = proto::read::<v03::SendMessageRequest, SendMessageRequest>(bytes.clone());
    if let Ok(event) = proto::read::<v1::StreamResponse, StreamResponse>(bytes.clone()) {
        let again = proto::write::<v1::StreamResponse, _>(event);
        proto::read::<v1::StreamResponse, StreamResponse>(again.into()).expect("what was written");
    }
    let _ = proto::read::<v1::AgentCard, AgentCard>(bytes.clone());
    let _ = proto::read::<v03::AgentCard, AgentCard>(bytes);
}

/// Reads the bytes as messages, and calls a server in memory with them: the first byte says which method, the second
/// whether they are packed.
///
/// # Panics
///
/// When a call ends without a status, blames the server, or does not end.
pub fn run(bytes: &[u8]) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
    });
    messages(bytes);
    let [which, packed, body @ ..] = bytes else { return };
    // As it is, and with the right length before it.
    let mut framed = vec![packed % 2];
    framed.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    framed.extend_from_slice(body);
    let method = METHODS[usize::from(*which) % METHODS.len()];
    runtime.block_on(async {
        for body in [body, &framed] {
            tokio::time::timeout(PATIENCE, call(method, packed % 2 == 1, body)).await.expect("an answer comes");
        }
    });
}

async fn call(method: &str, packed: bool, body: &[u8]) {
    let server = Server::new(Arc::new(Quiet), Arc::new(MemoryStore::new()), ServerOptions::default());
    let mut request = Request::post(method).version(Version::HTTP_2).header("content-type", "application/grpc");
    if packed {
        request = request.header("grpc-encoding", "gzip");
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).expect("a request");
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let response = server.answer(here, here, request).await;
    let at_once = response.headers().get("grpc-status").cloned();
    let Ok(whole) = response.into_body().collect().await;
    let status = at_once.or_else(|| whole.trailers()?.get("grpc-status").cloned()).expect("a call ends with a status");
    assert_ne!(status, "13", "the server is at fault");
}

/// Says nothing, at once.
struct Quiet;

#[async_trait::async_trait]
impl Agent for Quiet {
    async fn run(&self, _turn: &mut Turn) -> Result<(), AgentError> {
        Ok(())
    }

    fn card(&self) -> AgentCard {
        AgentCard { name: "quiet".into(), description: "Quiet".into(), version: "1".into(), ..AgentCard::default() }
    }
}
