//! Sends bytes as lines to a server in memory, and checks that every line of the answer is JSON-RPC, that each
//! request is answered once, and that the connection ends.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nuncio_protocol::AgentCard;
use nuncio_protocol::codec::{Value, decode};
use nuncio_server::store::MemoryStore;
use nuncio_server::{Agent, AgentError, HttpOptions, Server, ServerOptions, Turn};
use tokio::runtime::Runtime;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Short, so that lines of the fuzzer are longer now and then.
const LONGEST: usize = 4096;

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

/// Sends the bytes.
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
        tokio::time::timeout(PATIENCE, answers(bytes)).await.expect("the connection ends");
    });
}

async fn answers(bytes: &[u8]) {
    let http = HttpOptions { max_body: LONGEST, ..HttpOptions::default() };
    let options = ServerOptions { http, ..ServerOptions::default() };
    let server = Server::new(Arc::new(Echo), Arc::new(MemoryStore::new()), options);
    let mut out = Vec::new();
    server.converse(bytes, &mut out).await;
    let mut last = 0;
    for line in out.split_inclusive(|byte| *byte == b'\n') {
        last += check(line);
    }
    let asked = bytes.split(|byte| *byte == b'\n').filter(|line| is_answered(line)).count();
    assert_eq!(last, asked, "{}", String::from_utf8_lossy(&out));
}

/// Whether a line gets an answer: all do that are not empty, not headers alone and not the end of a stream.
fn is_answered(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        // A long line is refused before anybody looks at it.
        return line.len() >= LONGEST;
    }
    line.len() > LONGEST || !decode::<Value>(line).is_ok_and(|value| is_no_request(&value))
}

/// Whether a frame asks for nothing.
pub(crate) fn is_no_request(frame: &Value) -> bool {
    let none = |name: &str| frame.get(name).is_none_or(Value::is_null);
    let ends = frame.get("final") == Some(&Value::Bool(true)) && !none("id");
    frame.is_object() && none("method") && settable(frame) && (ends || !none("headers"))
}

/// Whether the names and values are such that headers can have.
fn settable(frame: &Value) -> bool {
    let name = |name: &str| http::HeaderName::try_from(name).is_ok();
    let value = |value: &Value| value.as_str().is_some_and(|text| http::HeaderValue::try_from(text).is_ok());
    match frame.get("headers") {
        None | Some(Value::Null) => true,
        Some(headers) => headers.as_object().is_some_and(|all| all.iter().all(|(key, text)| name(key) && value(text))),
    }
}

/// Checks one line. Answers whether it is the last for its request.
fn check(line: &[u8]) -> usize {
    let text = String::from_utf8_lossy(line);
    assert!(line.ends_with(b"\n"), "half a line: {text}");
    let Ok(Value::Object(response)) = decode::<Value>(line) else { panic!("not an object: {text}") };
    assert_eq!(response.get("jsonrpc"), Some(&Value::from("2.0")), "{text}");
    assert!(response.get("id").is_some_and(|id| id.is_null() || id.is_string() || id.is_number()), "{text}");
    if let Some(error) = response.get("error") {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_else(|| panic!("no code: {text}"));
        assert_ne!(code, -32603, "the server is at fault: {text}");
        return 1;
    }
    // An event has a number or is the one message of its stream; the end of a stream has neither.
    let goes_on = response.contains_key("eventId");
    usize::from(!goes_on)
}
