//! JSON-RPC in frames: what WebSocket, stdio and Unix sockets have in common.
//!
//! A connection carries many requests at once, each with its own answer or stream. Beside `jsonrpc` a request may
//! have `headers`, an object with what HTTP would have in its headers. A frame with `headers` and no `method` sets
//! them for the rest of the connection. One with `"final":true` and no `method` ends the stream that has its `id`.

pub(crate) mod form;
pub(crate) mod lines;
pub(crate) mod session;

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use nuncio_protocol::codec::{self, DecodeError, Raw};
use nuncio_protocol::{Error, ErrorKind};
use serde::Deserialize;

/// The most headers that a connection has. HTTP takes as many, and no map of them holds any number.
pub(crate) const MOST_HEADERS: usize = 100;

/// What stands beside a request.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// The headers that it brings.
    pub(crate) headers: HeaderMap,
    /// Whether that is all: the frame is no request.
    pub(crate) alone: bool,
    /// The id of a request, as JSON, of which no more is wanted: the frame is no request either.
    pub(crate) ends: Option<String>,
}

#[derive(Deserialize)]
struct Members {
    headers: Option<BTreeMap<String, String>>,
    method: Option<codec::Value>,
    id: Option<Raw>,
    #[serde(rename = "final", default)]
    last: codec::Value,
}

/// Reads what stands beside a request. What is no JSON object at all is left to whoever reads the request.
pub(crate) fn beside(frame: &[u8]) -> Result<Beside, Error> {
    // Most frames have nothing there, and are not read twice.
    let has = |name: &[u8]| memchr::memmem::find(frame, name).is_some();
    if !has(b"\"headers\"") && !has(b"\"final\"") {
        return Ok(Beside::default());
    }
    let members: Members = match codec::decode(frame) {
        Ok(members) => members,
        Err(DecodeError::Shape { path, .. }) if path.starts_with("headers") => {
            return Err(bad("`headers` must be an object of texts"));
        }
        Err(_) => return Ok(Beside::default()),
    };
    if members.headers.as_ref().is_some_and(|headers| headers.len() > MOST_HEADERS) {
        return Err(too_many());
    }
    let mut headers = HeaderMap::new();
    for (name, value) in members.headers.iter().flatten() {
        let name = HeaderName::try_from(name.as_str()).map_err(|_| bad("a name in `headers` is none of a header"))?;
        let value = HeaderValue::try_from(value.as_str()).map_err(|_| bad("a value in `headers` has line breaks"))?;
        if is_own(&name) {
            headers.insert(name, value);
        }
    }
    let ends = members.id.filter(|_| members.last == true && members.method.is_none());
    let alone = members.headers.is_some() && members.method.is_none() && ends.is_none();
    Ok(Beside { headers, alone, ends: ends.map(|id| id.get().to_owned()) })
}

/// Whether a header is for the caller to say. Where a connection comes from, others know better.
fn is_own(name: &HeaderName) -> bool {
    let name = name.as_str();
    !(matches!(name, "host" | "origin" | "forwarded" | "x-real-ip") || name.starts_with("x-forwarded-"))
}

/// There are more headers than a connection has.
pub(crate) fn too_many() -> Error {
    bad("`headers` are too many, a connection has at most 100 of them")
}

fn bad(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidRequest, format!("Not a frame of A2A: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_what_others_know_better_is_left_out() {
        let frame = br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{},
            "headers":{"A2A-Version":"1.0","X-Forwarded-For":"1.2.3.4","Host":"a"}}"#;
        let beside = beside(frame).unwrap();
        assert_eq!(beside.headers.len(), 1);
        assert_eq!(beside.headers["a2a-version"], "1.0");
        assert!(!beside.alone);
    }

    #[test]
    fn a_frame_of_headers_alone_is_no_request() {
        assert!(beside(br#"{"headers":{"authorization":"Bearer x"}}"#).unwrap().alone);
        assert!(!beside(br#"{"jsonrpc":"2.0","id":1,"method":"x"}"#).unwrap().alone);
        assert!(!beside(br#"{"text":"\"headers\""}"#).unwrap().alone);
    }

    #[test]
    fn a_final_frame_ends_a_stream_and_is_no_request() {
        let ends = |frame: &str| beside(frame.as_bytes()).unwrap().ends;
        assert_eq!(ends(r#"{"jsonrpc":"2.0","id":7,"final":true}"#).as_deref(), Some("7"));
        assert_eq!(ends(r#"{"id":"a b","final":true,"headers":{"a":"b"}}"#).as_deref(), Some("\"a b\""));
        for other in [
            r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","final":true}"#,
            r#"{"id":7,"final":false}"#,
            r#"{"id":7,"final":"true"}"#,
            r#"{"final":true}"#,
            r#"{"id":7,"payload":{"final":true}}"#,
        ] {
            assert_eq!(ends(other), None, "{other}");
        }
    }

    #[test]
    fn more_headers_than_a_connection_has_are_refused() {
        let frame = |count: usize| {
            let headers: BTreeMap<_, _> = (0..count).map(|n| (format!("h{n}"), "x")).collect();
            codec::encode(&codec::json!({ "headers": headers }))
        };
        assert_eq!(beside(&frame(MOST_HEADERS)).unwrap().headers.len(), MOST_HEADERS);
        for count in [MOST_HEADERS + 1, 33_000] {
            assert_eq!(beside(&frame(count)).unwrap_err().kind, ErrorKind::InvalidRequest, "{count}");
        }
    }

    #[test]
    fn wrong_headers_are_refused_and_other_mistakes_are_left_to_others() {
        for frame in [r#"{"headers":[]}"#, r#"{"headers":{"a":1}}"#, r#"{"headers":{"a b":"c"}}"#] {
            assert_eq!(beside(frame.as_bytes()).unwrap_err().kind, ErrorKind::InvalidRequest, "{frame}");
        }
        for frame in [r#"{"headers""#, r#"["headers"]"#, r#""headers""#, r#"{"headers":null}"#] {
            assert!(beside(frame.as_bytes()).is_ok_and(|beside| !beside.alone), "{frame}");
        }
    }
}
