//! What an entry of the request stream says. Whoever may write to Redis may write anything.

use std::collections::HashMap;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use nuncio_protocol::{Error, ErrorKind, codec, jsonrpc};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The longest correlation id, in bytes.
const LONGEST_CORRELATION: usize = 512;
/// The longest name of a reply stream, in bytes.
const LONGEST_STREAM: usize = 256;
/// The most headers.
const MOST_HEADERS: usize = 64;

/// Where an answer goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// The stream.
    pub stream: String,
    /// What the caller knows the answer by.
    pub correlation: String,
}

/// What may be done with an entry.
#[derive(Debug)]
pub enum Entry {
    /// A request, and what stands beside it.
    Request(ReplyTo, Box<Parts>, Vec<u8>),
    /// Nothing that could be carried out, but somebody waits for an answer.
    Refused(ReplyTo, Error),
    /// Nobody can be told what is wrong with it.
    Hopeless(&'static str),
}

/// What entries are measured by.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The stream that requests come by.
    pub requests: &'a str,
    /// The stream for whoever names none. Names that callers choose begin with it and a colon.
    pub responses: &'a str,
    /// The largest payload, in bytes.
    pub max_body: usize,
    /// The most that headers may hold, in bytes.
    pub max_header: usize,
}

/// The fields of an entry.
type Fields = HashMap<String, Vec<u8>>;

impl Entry {
    /// Reads the fields of an entry.
    pub fn read(mut fields: Fields, rules: Rules<'_>) -> Self {
        let Ok(correlation) = text(&mut fields, "correlation_id") else {
            return Self::Hopeless("correlation_id is not UTF-8");
        };
        let Ok(named) = text(&mut fields, "reply_stream") else {
            return Self::Hopeless("reply_stream is not UTF-8");
        };
        let named = named.filter(|name| !name.is_empty());
        if correlation.as_ref().is_some_and(|id| id.len() > LONGEST_CORRELATION) {
            return Self::Hopeless("correlation_id is too long");
        }
        // In a stream that all share, an answer without an id is nobody's.
        let known = correlation.as_ref().is_some_and(|id| !id.is_empty());
        if !known && named.as_deref().is_none_or(|name| name == rules.responses) {
            return Self::Hopeless("correlation_id is missing");
        }
        let stream = named.unwrap_or_else(|| rules.responses.to_owned());
        if !may_be_replied_to(&stream, rules) {
            return Self::Hopeless("reply_stream is not a stream for replies");
        }
        let to = ReplyTo { stream, correlation: correlation.unwrap_or_default() };
        if !known {
            return Self::Refused(to, Error::new(ErrorKind::InvalidRequest, "The field correlation_id is required"));
        }
        let Some(payload) = fields.remove("payload") else {
            return Self::Refused(to, Error::new(ErrorKind::InvalidRequest, "The field payload is required"));
        };
        if payload.len() > rules.max_body {
            let text = format!("The payload is larger than {} bytes", rules.max_body);
            return Self::Refused(to, Error::new(ErrorKind::TooLarge, text));
        }
        match headers(fields.remove("headers"), rules.max_header) {
            Ok(headers) => {
                let parts = beside(headers, &payload);
                Self::Request(to, Box::new(parts), payload)
            }
            Err(what) => Self::Refused(to, Error::new(ErrorKind::InvalidRequest, what)),
        }
    }
}

/// A field as text.
fn text(fields: &mut Fields, name: &str) -> Result<Option<String>, std::string::FromUtf8Error> {
    fields.remove(name).map(String::from_utf8).transpose()
}

/// Only names below the stream for replies are written to, so that nobody can have other keys written.
fn may_be_replied_to(name: &str, rules: Rules<'_>) -> bool {
    let own = name.strip_prefix(rules.responses).and_then(|rest| rest.strip_prefix(':'));
    name != rules.requests
        && name.len() <= LONGEST_STREAM
        && (name == rules.responses || own.is_some_and(|rest| !rest.is_empty()))
        && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The service parameters and credentials, spelled as HTTP headers in one JSON object.
fn headers(field: Option<Vec<u8>>, most: usize) -> Result<HeaderMap, &'static str> {
    let mut headers = HeaderMap::new();
    let Some(field) = field.filter(|field| !field.is_empty()) else { return Ok(headers) };
    if field.len() > most {
        return Err("The field headers is too large");
    }
    let wrong = "The field headers must be a JSON object with texts, such as {\"A2A-Version\":\"1.0\"}";
    let all: HashMap<String, String> = codec::decode(&field).map_err(|_| wrong)?;
    if all.len() > MOST_HEADERS {
        return Err("The field headers holds too many of them");
    }
    for (name, value) in &all {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            return Err("The field headers holds one that HTTP does not know");
        };
        headers.insert(name, value);
    }
    Ok(headers)
}

/// What stands beside a request. Where it does not say so, the name of the method tells the version, and the id of
/// a message is what makes it recognisable when it comes again.
fn beside(headers: HeaderMap, payload: &[u8]) -> Parts {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.headers = headers;
    let Ok(request) = jsonrpc::Request::decode(payload) else { return parts };
    if !request.method.contains('/') && !parts.headers.contains_key("a2a-version") {
        parts.headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    }
    let sends = matches!(&*request.method, "SendMessage" | "SendStreamingMessage" | "message/send" | "message/stream");
    if sends
        && !parts.headers.contains_key("idempotency-key")
        && let Ok(Params { message }) = request.params()
        && let Ok(key) = HeaderValue::try_from(message.key())
    {
        parts.headers.insert("idempotency-key", key);
    }
    parts
}

#[derive(Deserialize)]
struct Params {
    message: Named,
}

#[derive(Deserialize)]
struct Named {
    #[serde(alias = "messageId")]
    message_id: String,
    #[serde(alias = "taskId", default)]
    task_id: Option<String>,
}

impl Named {
    /// The id of a message as a key: of a length and of characters that any header can have.
    fn key(&self) -> String {
        let mut hash = Sha256::new_with_prefix(self.message_id.as_bytes());
        hash.update([0]);
        hash.update(self.task_id.as_deref().unwrap_or_default());
        format!("message-id:{}", hex(&hash.finalize()))
    }
}

/// Bytes as lower-case digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
