//! Posts bytes to a server in memory, and checks that the answer is JSON-RPC, whatever the bytes were.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use nuncio_protocol::codec::{Value, decode};
use nuncio_protocol::{AgentCard, jsonrpc};
use nuncio_server::store::MemoryStore;
use nuncio_server::{Agent, AgentError, Server, ServerOptions, Turn};
use tokio::runtime::Runtime;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Says what it was told, at once.
struct Echo;

#[async_trait::async_trait]
impl Agent for Echo {
    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        turn.last_text(turn.text_in()).await
    }

    fn card(&self) -> AgentCard {
        AgentCard { name: "echo".into(), description: "Echoes".into(), version: "1".into(), ..AgentCard::default() }
    }
}

/// Posts the bytes as a request of 1.0, of 0.3, and of neither.
///
/// # Panics
///
/// When an answer is not JSON-RPC, blames the server, or does not come.
pub fn run(bytes: &[u8]) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
    });
    runtime.block_on(async {
        for version in [Some("1.0"), None, Some("7.0")] {
            tokio::time::timeout(PATIENCE, answer(bytes, version)).await.expect("an answer comes");
        }
    });
}

async fn answer(bytes: &[u8], version: Option<&str>) {
    // A server of its own, so that what is found once is found again.
    let server = Server::new(Arc::new(Echo), Arc::new(MemoryStore::new()), ServerOptions::default());
    let mut request = Request::post("/").header(header::CONTENT_TYPE, "application/json");
    if let Some(version) = version {
        request = request.header("A2A-Version", version);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(bytes))).expect("a request");
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let response = server.answer(here, here, request).await;
    let kind = response.headers().get(header::CONTENT_TYPE).cloned().expect("a content type");
    let status = response.status();
    let Ok(body) = response.into_body().collect().await;
    let text = String::from_utf8(body.to_bytes().to_vec()).expect("UTF-8");
    assert!(status.is_success() || status == 413, "{status}: {text}");
    let id = jsonrpc::Request::decode(bytes).ok().map(|request| request.id.get().to_owned());
    if kind == "text/event-stream" {
        let events: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert!(!events.is_empty(), "an empty stream: {text}");
        events.iter().for_each(|event| check(event, id.as_deref()));
    } else {
        assert_eq!(kind, "application/json");
        check(&text, id.as_deref());
    }
}

/// A JSON-RPC response with the id of its request, and with either a result or an error of the caller.
fn check(text: &str, id: Option<&str>) {
    let id = id.unwrap_or("null");
    // Where the envelope could not be read, its id may still have been found.
    assert!(
        id == "null" || text.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},")),
        "not under the id {id}: {text}"
    );
    let Ok(Value::Object(response)) = decode::<Value>(text.as_bytes()) else { panic!("not an object: {text}") };
    assert_eq!(response.get("jsonrpc"), Some(&Value::from("2.0")), "{text}");
    assert!(response.get("id").is_some_and(|id| id.is_null() || id.is_string() || id.is_number()), "{text}");
    assert_eq!(response.len(), 3, "{text}");
    let Some(error) = response.get("error") else {
        assert!(response.contains_key("result"), "{text}");
        return;
    };
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_else(|| panic!("no code: {text}"));
    assert_ne!(code, -32603, "the server is at fault: {text}");
    assert!(error.get("message").is_some_and(Value::is_string), "{text}");
    assert!(error.get("data").is_some(), "{text}");
}
