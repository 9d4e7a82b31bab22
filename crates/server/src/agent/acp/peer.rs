//! One end of a JSON-RPC conversation, line by line. No I/O, so that any line can be tried on it.
//!
//! It is tolerant where agents differ: what is no message is passed over, ids come back as they were sent
//! or as text, and the data of an error is kept, because the real cause is often only there.

use std::collections::BTreeSet;

use agent_client_protocol_schema::v1::{Error, ErrorCode};
use bytes::Bytes;
use nuncio_protocol::{Value, codec, json};
use serde::Serialize;

use crate::agent::spoken;

/// The most requests of ours that may be open at once.
const MOST_PENDING: usize = 64;
/// How much of an error is shown.
const LONGEST_WORDS: usize = 2000;

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// The agent wants something; `id` belongs into the answer.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// The answer to a request of ours.
    Answer {
        id: u64,
        result: Result<Value, Error>,
    },
}

/// Numbers our requests and recognises their answers.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    last: u64,
    pending: BTreeSet<u64>,
}

impl Peer {
    /// The line of a request, and the number of its answer.
    pub(crate) fn request<P: Serialize>(&mut self, method: &str, params: &P) -> (u64, Bytes) {
        self.last += 1;
        // Whoever does not answer the oldest will not any more.
        while self.pending.len() >= MOST_PENDING {
            self.pending.pop_first();
        }
        self.pending.insert(self.last);
        let params = codec::to_value(params);
        (self.last, line(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })))
    }

    /// Reads a line; `None` for one that says nothing to us.
    pub(crate) fn read(&mut self, line: &[u8]) -> Option<Incoming> {
        // Programs print banners and warnings between the messages.
        let Ok(Value::Object(mut message)) = spoken::decode(line) else { return None };
        let params = message.remove("params").unwrap_or(Value::Null);
        match (message.remove("method"), message.remove("id")) {
            (Some(Value::String(method)), Some(id)) => Some(Incoming::Request { id, method, params }),
            (Some(Value::String(method)), None) => Some(Incoming::Notification { method, params }),
            (None, Some(id)) => {
                let id = number(&id).filter(|id| self.pending.remove(id))?;
                let result = match message.remove("error") {
                    Some(error) if !error.is_null() => Err(read_error(error)),
                    _ => Ok(message.remove("result").unwrap_or(Value::Null)),
                };
                Some(Incoming::Answer { id, result })
            }
            _ => None,
        }
    }
}

/// The line of a notification.
pub(crate) fn notification<P: Serialize>(method: &str, params: &P) -> Bytes {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": codec::to_value(params) }))
}

/// The line that answers a request of the agent.
pub(crate) fn answer(id: &Value, result: Result<Value, Error>) -> Bytes {
    line(&match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": codec::to_value(&error) }),
    })
}

/// An error in words that its reader can use: the message, and the cause that its data holds.
pub(crate) fn words(error: &Error) -> String {
    let cause = match &error.data {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(data) => match ["details", "message", "error"].iter().find_map(|key| data.get(*key)?.as_str()) {
            Some(text) => text.to_owned(),
            None => String::from_utf8_lossy(&codec::encode(data)).into_owned(),
        },
    };
    let message = match error.message.trim() {
        "" => "the agent reported an error",
        message => message,
    };
    let said =
        if cause.is_empty() || message.contains(&cause) { message.to_owned() } else { format!("{message}: {cause}") };
    shorten(&said, LONGEST_WORDS)
}

/// Text of at most so many bytes.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

fn line(message: &Value) -> Bytes {
    let mut bytes = Vec::with_capacity(256);
    codec::encode_into(message, &mut bytes);
    bytes.push(b'\n');
    bytes.into()
}

fn number(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

/// An error as it should be, or what is there in its place.
fn read_error(error: Value) -> Error {
    codec::from_value(error.clone()).unwrap_or_else(|_| Error::from(ErrorCode::InternalError).data(error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(peer: &mut Peer, message: &Value) -> Option<Incoming> {
        peer.read(&codec::encode(message))
    }

    #[test]
    fn answers_find_their_requests_once() {
        let mut peer = Peer::default();
        let (first, line) = peer.request("initialize", &json!({ "protocolVersion": 1 }));
        let (second, _) = peer.request("session/new", &json!({}));
        assert_eq!(line.last(), Some(&b'\n'));
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let answer = json!({ "jsonrpc": "2.0", "id": second, "result": { "sessionId": "s" } });
        assert_eq!(
            read(&mut peer, &answer),
            Some(Incoming::Answer { id: second, result: Ok(json!({ "sessionId": "s" })) })
        );
        assert_eq!(read(&mut peer, &answer), None);
        let as_text = json!({ "id": first.to_string(), "error": { "code": -32000, "message": "no", "data": "why" } });
        let Some(Incoming::Answer { id, result: Err(error) }) = read(&mut peer, &as_text) else { panic!() };
        assert_eq!((id, words(&error).as_str()), (first, "no: why"));
    }

    #[test]
    fn a_line_break_in_a_string_does_not_break_the_line() {
        let line = notification("x", &json!({ "text": "a\nb" }));
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
    }

    #[test]
    fn what_is_no_message_is_passed_over() {
        let mut peer = Peer::default();
        for line in ["", "starting…", "[]", "{}", "null", "{\"id\":7,\"result\":1}", "{\"method\":3,\"id\":1}", "{\"a"]
        {
            assert_eq!(peer.read(line.as_bytes()), None, "{line}");
        }
        let strange = json!({ "method": "cursor/ask", "id": "x-1" });
        assert_eq!(
            read(&mut peer, &strange),
            Some(Incoming::Request { id: "x-1".into(), method: "cursor/ask".into(), params: Value::Null })
        );
    }

    #[test]
    fn the_cause_of_an_error_is_told() {
        let told = |error: Value| words(&read_error(error));
        assert_eq!(
            told(json!({ "code": -32603, "message": "Internal error", "data": { "details": "quota" } })),
            "Internal error: quota"
        );
        assert_eq!(told(json!({ "code": 1, "message": "odd", "data": { "a": 1 } })), "odd: {\"a\":1}");
        assert_eq!(told(json!("just text")), "Internal error: just text");
        assert!(told(json!({ "code": 1, "message": "x".repeat(10_000) })).len() < 2100);
    }

    #[test]
    fn requests_that_nobody_answers_do_not_pile_up() {
        let mut peer = Peer::default();
        for _ in 0..1000 {
            peer.request("session/prompt", &json!({}));
        }
        assert_eq!(peer.pending.len(), MOST_PENDING);
    }

    proptest! {
        #[test]
        fn no_line_breaks_the_peer(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..8)) {
            let mut peer = Peer::default();
            peer.request("initialize", &json!({}));
            for line in lines {
                let _ = peer.read(&line);
            }
        }
    }
}
