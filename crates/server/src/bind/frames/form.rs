//! What answers look like: bare on lines, in an envelope over WebSocket.
//!
//! ```text
//! lines      {"jsonrpc":"2.0","id":7,"result":{…},"eventId":3}      then {"jsonrpc":"2.0","id":7,"final":true}
//! WebSocket  {"id":7,"payload":{…},"final":false,"eventId":3}       then {"id":7,"payload":{…},"final":true}
//! ```

use std::sync::Arc;

use nuncio_protocol::codec;

use crate::store::Seq;

/// A form of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The JSON-RPC response itself, ended by a line break.
    Line,
    /// The response as `payload` of an object that says whether it is the last one.
    Envelope,
}

/// What is said about a response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About<'a> {
    /// Whether the request was for a stream.
    pub(crate) streams: bool,
    /// Whether nothing follows.
    pub(crate) last: bool,
    /// The number of the event.
    pub(crate) event: Option<Seq>,
    /// The extensions that are in force.
    pub(crate) extensions: &'a [Arc<str>],
}

impl Form {
    /// A response in its frame. `id` is the request's, as JSON.
    pub(crate) fn frame(self, id: &str, response: &[u8], about: About<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(response.len() + id.len() + 64);
        match self {
            Self::Line => {
                // JSON has line breaks only where they mean nothing.
                let body = response.strip_suffix(b"}").unwrap_or(response);
                out.extend(body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
                // Whoever asked for one answer knows that it is the last.
                if about.streams && about.last {
                    out.extend_from_slice(b",\"final\":true");
                }
            }
            Self::Envelope => {
                out.extend_from_slice(b"{\"id\":");
                out.extend_from_slice(id.as_bytes());
                out.extend_from_slice(b",\"payload\":");
                out.extend_from_slice(response);
                out.extend_from_slice(if about.last { b",\"final\":true" } else { b",\"final\":false" });
            }
        }
        if let Some(seq) = about.event {
            out.extend_from_slice(b",\"eventId\":");
            out.extend_from_slice(itoa::Buffer::new().format(seq).as_bytes());
        }
        if !about.extensions.is_empty() {
            out.extend_from_slice(b",\"headers\":{\"a2a-extensions\":");
            codec::encode_into(&about.extensions.join(", "), &mut out);
            out.push(b'}');
        }
        out.extend_from_slice(if self == Self::Line { b"}\n" } else { b"}" });
        out
    }

    /// The end of a stream.
    pub(crate) fn end(self, id: &str) -> Vec<u8> {
        let response = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}}}");
        self.frame(id, response.as_bytes(), About { streams: true, last: true, ..About::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(frame: Vec<u8>) -> String {
        String::from_utf8(frame).unwrap()
    }

    #[test]
    fn each_form_says_what_is_last_and_numbers_events() {
        let response = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
        let event = About { streams: true, event: Some(3), ..About::default() };
        let only = About { last: true, ..About::default() };
        let line = |about| text(Form::Line.frame("7", response, about));
        let envelope = |about| text(Form::Envelope.frame("7", response, about));
        assert_eq!(line(only), "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
        assert_eq!(line(event), "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{},\"eventId\":3}\n");
        assert_eq!(text(Form::Line.end("7")), "{\"jsonrpc\":\"2.0\",\"id\":7,\"final\":true}\n");
        let whole = "{\"id\":7,\"payload\":{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
        assert_eq!(envelope(only), format!("{whole},\"final\":true}}"));
        assert_eq!(envelope(event), format!("{whole},\"final\":false,\"eventId\":3}}"));
        let end = "{\"id\":\"a\",\"payload\":{\"jsonrpc\":\"2.0\",\"id\":\"a\"},\"final\":true}";
        assert_eq!(text(Form::Envelope.end("\"a\"")), end);
    }

    #[test]
    fn a_line_is_one_line_and_extensions_stand_beside_it() {
        let extensions = [Arc::from("urn:a"), Arc::from("urn:b")];
        let about = About { last: true, extensions: &extensions, ..About::default() };
        let frame = text(Form::Line.frame("1", b"{\n\"id\": 1\r\n}", about));
        assert_eq!(frame, "{ \"id\": 1  ,\"headers\":{\"a2a-extensions\":\"urn:a, urn:b\"}}\n");
    }
}
