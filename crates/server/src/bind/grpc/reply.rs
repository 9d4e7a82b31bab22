//! Answers: a message and the status behind it, or the status alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use nuncio_protocol::proto::{Code, Status};
use nuncio_protocol::{Error, ErrorKind};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use prost::Message as _;

use super::framed;
use crate::bind::body::Body;
use crate::bind::http::retry_after;
use crate::call::Version;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const TEXT: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// What clients may compress with, told with every error: one of them is that it was something else.
const ACCEPT: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Headers are short everywhere.
const LONGEST_TEXT: usize = 1024;
const LATE: &str = "The deadline of the call is over; what it started goes on";
const PLAIN: &AsciiSet = &CONTROLS.add(b'%');

/// One message, and that all is well.
pub(super) fn message(message: &[u8]) -> Response<Body> {
    response(Body::Message { data: framed(message), trailers: Some(ok()) })
}

/// A stream, whose frames end with the status.
pub(super) fn stream(body: Body) -> Response<Body> {
    response(body)
}

/// An error alone.
pub(super) fn failure(version: Version, error: &Error) -> Response<Body> {
    let mut response = response(Body::empty());
    response.headers_mut().extend(trailers(version, error));
    response.headers_mut().insert(ACCEPT, HeaderValue::from_static("identity,gzip"));
    retry_after(&mut response, error.kind);
    response
}

/// A status alone that is no error of A2A.
pub(super) fn status(code: Code, text: &str) -> Response<Body> {
    let mut response = response(Body::empty());
    response.headers_mut().extend(plain(code, text));
    response
}

/// The caller waited no longer.
pub(super) fn too_late() -> Response<Body> {
    status(Code::DeadlineExceeded, LATE)
}

fn response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, GRPC);
    response
}

/// The end of a call that went well.
pub(super) fn ok() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    trailers
}

/// The end of a call that took too long.
pub(super) fn late() -> HeaderMap {
    plain(Code::DeadlineExceeded, LATE)
}

/// The end of a stream that the server cannot go on with.
pub(super) fn closing(version: Version) -> HeaderMap {
    trailers(version, &Error::new(ErrorKind::Unavailable, "The server is shutting down: subscribe to the task again"))
}

fn plain(code: Code, text: &str) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(3);
    trailers.insert(STATUS, HeaderValue::from(code.number()));
    trailers.insert(TEXT, percent(text));
    trailers
}

/// The end of a call that failed. 0.3 clients find the name of the error in its text.
pub(super) fn trailers(version: Version, error: &Error) -> HeaderMap {
    let text = match version {
        Version::V1 => error.message.to_string(),
        Version::V03 => format!("{}: {}", error.kind.name(), error.message),
    };
    let mut trailers = plain(Code::of(error.kind), &text);
    let details = STANDARD_NO_PAD.encode(Status::from(error).encode_to_vec());
    if let Ok(details) = HeaderValue::from_maybe_shared(Bytes::from(details)) {
        trailers.insert(DETAILS, details);
    }
    trailers
}

/// Text as headers can carry it.
fn percent(text: &str) -> HeaderValue {
    let end = (0..=LONGEST_TEXT.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    let text = utf8_percent_encode(&text[..end], PLAIN).to_string();
    HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_travel_whole() {
        let error = Error::task_not_found("t-1");
        let trailers = trailers(Version::V03, &error);
        assert_eq!(trailers[&STATUS], "5");
        assert_eq!(trailers[&TEXT], "TaskNotFoundError: Task not found");
        let bytes = STANDARD_NO_PAD.decode(trailers[&DETAILS].as_bytes()).expect("base64");
        let status = Status::decode(&*bytes).expect("a status");
        assert_eq!(status.details_json()[0]["metadata"]["taskId"], "t-1");
    }

    #[test]
    fn text_is_escaped_and_short() {
        assert_eq!(percent("a%b\né"), "a%25b%0A%C3%A9");
        assert!(percent(&"é".repeat(5_000)).len() <= 3 * LONGEST_TEXT);
    }
}
