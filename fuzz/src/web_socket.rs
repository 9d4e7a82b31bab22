//! Sends bytes to a server in memory as WebSocket, and checks that what comes back is WebSocket too: envelopes of JSON-RPC,
//! signs of life and an end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nuncio_protocol::AgentCard;
use nuncio_protocol::codec::{Value, decode};
use nuncio_server::store::MemoryStore;
use nuncio_server::{Agent, AgentError, HttpOptions, Server, ServerOptions, Turn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Short, so that frames of the fuzzer are longer now and then.
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

/// Sends the bytes: as they are, or, if the first one is odd, each line of the rest as a frame of text.
///
/// # Panics
///
/// When an answer is not WebSocket or not JSON-RPC, or the connection does not end.
pub fn run(bytes: &[u8]) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
    });
    let Some((first, rest)) = bytes.split_first() else { return };
    let sent = match first % 2 {
        0 => rest.to_vec(),
        _ => rest.split(|byte| *byte == b'\n').flat_map(text).collect(),
    };
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, exchange(sent)).await.expect("the connection ends");
    });
}

/// A whole frame of text, masked with nothing.
fn text(line: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u16::try_from(line.len()) {
        Ok(length @ 0..126) => frame.push(0x80 | length as u8),
        Ok(length) => {
            frame.push(0x80 | 126);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend((line.len() as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend_from_slice(line);
    frame
}

async fn exchange(sent: Vec<u8>) {
    let http = HttpOptions { max_body: LONGEST, ..HttpOptions::default() };
    let options = ServerOptions { http, ..ServerOptions::default() };
    let server = Server::new(Arc::new(Echo), Arc::new(MemoryStore::new()), options);
    let (ours, theirs) = tokio::io::duplex(LONGEST);
    let (mut reader, mut writer) = tokio::io::split(ours);
    let writing = async move {
        // It may hang up before everything is sent.
        let _ = writer.write_all(&sent).await;
        let _ = writer.shutdown().await;
    };
    let mut got = Vec::new();
    let reading = async {
        // What was not read when the server hung up is lost, and that is fine.
        let _ = reader.read_to_end(&mut got).await;
    };
    tokio::join!(server.converse_frames(theirs), writing, reading);
    check(&got);
}

/// Checks everything that the server sent.
fn check(mut got: &[u8]) {
    while let [kind, length, rest @ ..] = got {
        assert_eq!(length & 0x80, 0, "servers do not mask");
        let (length, rest) = match (length & 0x7f, rest) {
            (126, [a, b, rest @ ..]) => (usize::from(u16::from_be_bytes([*a, *b])), rest),
            (127, a) if a.len() >= 8 => {
                let (length, rest) = a.split_at(8);
                (u64::from_be_bytes(length.try_into().expect("eight bytes")) as usize, rest)
            }
            (short, rest) => (usize::from(short), rest),
        };
        assert!(rest.len() >= length, "half a frame");
        let (content, after) = rest.split_at(length);
        match kind {
            0x81 => envelope(content),
            // A close, a ping, a pong.
            0x88..=0x8a => {}
            other => panic!("a frame of an unknown kind: {other:#x}"),
        }
        got = after;
    }
    assert!(got.is_empty(), "the rest of a frame is missing");
}

fn envelope(content: &[u8]) {
    let text = String::from_utf8_lossy(content);
    let Ok(Value::Object(frame)) = decode::<Value>(content) else { panic!("not an object: {text}") };
    assert!(frame.get("final").is_some_and(Value::is_boolean), "{text}");
    let Some(payload) = frame.get("payload") else { panic!("no payload: {text}") };
    assert_eq!(payload.get("jsonrpc"), Some(&Value::from("2.0")), "{text}");
    assert_eq!(frame.get("id"), payload.get("id"), "{text}");
    if let Some(code) = payload.get("error").map(|error| error.get("code").and_then(Value::as_i64)) {
        assert!(code.is_some_and(|code| code != -32603), "the server is at fault: {text}");
    }
}
