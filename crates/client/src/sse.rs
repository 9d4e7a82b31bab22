//! Server-sent events from bytes, however they are cut.

use std::time::Duration;

use bytes::{Buf, BytesMut};

/// The largest event that is read by default, in bytes.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event that carries data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `id` of this very event; an id of an earlier one does not carry over.
    pub id: Option<String>,
    /// The `event` field; empty when not said.
    pub event: String,
    /// The `data` lines, joined by line feeds.
    pub data: String,
}

/// Why the bytes are not server-sent events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line is not text.
    #[error("a line of the event stream is not valid UTF-8")]
    NotUtf8,
    /// An event is larger than the limit.
    #[error("an event is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Takes bytes, gives events. After an error it gives the same error again.
#[derive(Debug)]
pub struct Parser {
    buffer: BytesMut,
    /// So much of the buffer holds no line end; a long line is not searched again with every chunk.
    searched: usize,
    /// The last line ended with CR: a LF right behind it belongs to that line end.
    after_cr: bool,
    first_line: bool,
    event: SseEvent,
    has_data: bool,
    retry: Option<Duration>,
    limit: usize,
    failed: Option<SseError>,
}

impl Default for Parser {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT)
    }
}

impl Parser {
    /// A parser that refuses events with more than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            after_cr: false,
            first_line: true,
            event: SseEvent::default(),
            has_data: false,
            retry: None,
            limit,
            failed: None,
        }
    }

    /// Adds bytes as they come from the network. Take all events before adding more.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event, or `None` until there are more bytes.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.advance().inspect_err(|&error| self.failed = Some(error))
    }

    /// How long the server asks to wait before a new connection.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn advance(&mut self) -> Result<Option<SseEvent>, SseError> {
        loop {
            if self.after_cr && !self.buffer.is_empty() {
                self.after_cr = false;
                if self.buffer[0] == b'\n' {
                    self.buffer.advance(1);
                }
            }
            let end = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n' || byte == b'\r');
            let length = end.map_or(self.buffer.len(), |end| self.searched + end);
            // Counted alike for whole and for unfinished lines: the verdict must not depend on the chunks.
            if length.saturating_add(self.event.data.len()) > self.limit {
                return Err(SseError::TooLarge { limit: self.limit });
            }
            if end.is_none() {
                self.searched = length;
                return Ok(None);
            }
            let mut line = self.buffer.split_to(length + 1);
            self.searched = 0;
            self.after_cr = line[length] == b'\r';
            line.truncate(length);
            if std::mem::take(&mut self.first_line) && line.starts_with(BOM) {
                line.advance(BOM.len());
            }
            let line = std::str::from_utf8(&line).map_err(|_| SseError::NotUtf8)?;
            if !line.is_empty() {
                self.field(line);
            } else if let Some(event) = self.dispatch() {
                return Ok(Some(event));
            }
        }
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "id" if !value.contains('\0') => {
                self.event.id = if value.is_empty() { None } else { Some(value.to_owned()) };
            }
            "event" => value.clone_into(&mut self.event.event),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry);
            }
            // A comment has an empty name; unknown fields are ignored.
            _ => {}
        }
    }

    /// An event without data is dropped, as browsers do.
    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}
