//! JSON-RPC 2.0 envelopes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::codec::{self, DecodeError, Value};
use crate::error::{Error, ErrorKind};

/// The longest id, as JSON text: it is sent back with every event of a stream.
const LONGEST_ID: usize = 512;

/// A request, its parameters not yet read.
#[derive(Debug)]
pub struct Request<'a> {
    /// The id exactly as it came, to be echoed.
    pub id: Id<'a>,
    /// What to call.
    pub method: Cow<'a, str>,
    /// The parameters as JSON text; an empty object when there are none.
    pub params: &'a str,
}

/// The id of a request as JSON text: a string, a number or `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id<'a>(&'a str);

impl<'a> Id<'a> {
    /// The id of an answer to something that had none.
    pub const NULL: Id<'static> = Id("null");

    /// The JSON text.
    pub fn get(self) -> &'a str {
        self.0
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    /// Reads an envelope. The error comes with the id to answer under, as far as there is one.
    pub fn decode(json: &'a [u8]) -> Result<Self, (Error, String)> {
        let envelope: Envelope<'a> = codec::decode(json).map_err(|error| refuse(json, error))?;
        let id = match envelope.id.map(RawValue::get) {
            None => Id::NULL,
            Some(id) if id.len() > LONGEST_ID => {
                return Err((bad("`id` is longer than 512 bytes"), "null".into()));
            }
            Some(id) if is_id(id) => Id(id),
            Some(_) => return Err((bad("`id` must be a string, a number or null"), "null".into())),
        };
        let wrong = |what: &'static str| Err((bad(what), id.get().to_owned()));
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return wrong("`jsonrpc` must be \"2.0\"");
        }
        let Some(method) = envelope.method.filter(|method| !method.is_empty()) else {
            return wrong("`method` is required");
        };
        let params = envelope.params.map_or("{}", RawValue::get);
        Ok(Self { id, method, params })
    }

    /// Reads the parameters.
    pub fn params<T: Deserialize<'a>>(&self) -> Result<T, Error> {
        if !self.params.starts_with('{') {
            return Err(Error::invalid("params", "must be an object"));
        }
        Ok(codec::decode(self.params.as_bytes())?)
    }
}

/// Whether some JSON text is a string or a number.
fn is_id(json: &str) -> bool {
    json.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
}

fn bad(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidRequest, format!("Not a JSON-RPC request: {what}"))
}

/// Tells bad JSON from JSON that is no request, and finds the id of the latter.
fn refuse(json: &[u8], error: DecodeError) -> (Error, String) {
    if let DecodeError::Syntax(_) = error {
        return (error.into(), "null".into());
    }
    let id = match codec::decode::<Value>(json) {
        Ok(Value::Object(map)) => map.get("id").filter(|id| id.is_string() || id.is_number()).map(Value::to_string),
        Ok(Value::Array(_)) => return (bad("batches are not part of A2A; send one object"), "null".into()),
        _ => None,
    };
    let id = id.filter(|id| id.len() <= LONGEST_ID).unwrap_or_else(|| "null".into());
    (bad("expected one object with `jsonrpc`, `id`, `method` and `params`"), id)
}

const OPEN: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
const RESULT: &[u8] = b",\"result\":";

/// Starts a response: everything up to the result.
pub fn open_result(id: Id<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(OPEN);
    out.extend_from_slice(id.get().as_bytes());
    out.extend_from_slice(RESULT);
}

/// The length of a whole response around a result of this length.
pub fn result_size(id: Id<'_>, result: usize) -> usize {
    OPEN.len() + id.get().len() + RESULT.len() + result + 1
}

/// A whole response with a result that is JSON already.
pub fn result(id: Id<'_>, result: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(result_size(id, result.len()));
    open_result(id, &mut out);
    out.extend_from_slice(result);
    out.push(b'}');
    out
}

/// A whole response with an error in any dialect.
pub fn failure<E: Serialize>(id: Id<'_>, error: &E) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.get().as_bytes());
    out.extend_from_slice(b",\"error\":");
    codec::encode_into(error, &mut out);
    out.push(b'}');
    out
}

impl<'a> From<&'a str> for Id<'a> {
    /// From JSON text that was checked before; anything else becomes `null`.
    fn from(json: &'a str) -> Self {
        if is_id(json) { Self(json) } else { Id::NULL }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_too_long_is_not_sent_back() {
        let id = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
        let request = |id: &str, method: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}}}"#);
        let longest = id(LONGEST_ID);
        let json = request(&longest, "\"GetTask\"");
        assert_eq!(Request::decode(json.as_bytes()).expect("a request").id.get(), longest);
        // The second is no request, whatever its id.
        for (method, length) in [("\"GetTask\"", LONGEST_ID + 1), ("7", LONGEST_ID + 1), ("\"GetTask\"", 1 << 20)] {
            let json = request(&id(length), method);
            let (error, answered) = Request::decode(json.as_bytes()).expect_err("it is too long");
            assert_eq!((error.kind, &*answered), (ErrorKind::InvalidRequest, "null"), "{method} {length}");
        }
        let number = request(&"1".repeat(LONGEST_ID + 1), "\"GetTask\"");
        assert_eq!(Request::decode(number.as_bytes()).expect_err("it is too long").1, "null");
    }
}
