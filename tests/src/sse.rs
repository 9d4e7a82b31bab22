//! Server-sent events, read plainly.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use tokio::time::error::Elapsed;

use crate::PATIENCE;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct SseEvent {
    /// Its number, if it has one.
    pub id: Option<u64>,
    /// Its name; empty for the usual kind.
    pub event: String,
    /// What it holds.
    pub data: Value,
}

impl SseEvent {
    /// What it holds, without the envelope of JSON-RPC.
    pub fn body(&self) -> &Value {
        self.data.get("result").unwrap_or(&self.data)
    }

    /// The state of the task that it tells, in any dialect; empty if it tells none.
    pub fn state(&self) -> &str {
        let body = self.body();
        let body = ["task", "statusUpdate"].iter().find_map(|name| body.get(name)).unwrap_or(body);
        body["status"]["state"].as_str().unwrap_or_default()
    }

    /// The text of the chunk that it brings, in any dialect.
    pub fn chunk(&self) -> Option<&str> {
        let body = self.body();
        body.get("artifactUpdate").unwrap_or(body).get("artifact")?["parts"][0]["text"].as_str()
    }
}

/// What came instead of a stream.
#[derive(Debug)]
pub enum NoStream {
    /// Another answer: its status and what it says.
    Answer(u16, String),
    /// No whole answer.
    Nothing,
}

/// A stream that is being read.
pub struct Sse {
    response: reqwest::Response,
    buffer: Vec<u8>,
    /// Up to where the buffer holds no end of an event.
    looked: usize,
    ready: VecDeque<SseEvent>,
}

impl Sse {
    /// Sends a request and expects a stream.
    pub async fn open(request: reqwest::RequestBuilder) -> Self {
        match Self::try_open(request, PATIENCE).await {
            Ok(stream) => stream,
            Err(NoStream::Answer(status, text)) => panic!("no stream but {status}: {text}"),
            Err(NoStream::Nothing) => panic!("no answer"),
        }
    }

    /// Sends a request that may meet a server that is gone, stands still or refuses.
    pub async fn try_open(request: reqwest::RequestBuilder, patience: Duration) -> Result<Self, NoStream> {
        let sent = tokio::time::timeout(patience, request.header("Accept", "text/event-stream").send()).await;
        let Ok(Ok(response)) = sent else { return Err(NoStream::Nothing) };
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        if kind == Some("text/event-stream") {
            return Ok(Self { response, buffer: Vec::new(), looked: 0, ready: VecDeque::new() });
        }
        let status = response.status().as_u16();
        match tokio::time::timeout(patience, response.text()).await {
            Ok(Ok(text)) => Err(NoStream::Answer(status, text)),
            _ => Err(NoStream::Nothing),
        }
    }

    /// The headers of the answer.
    pub fn headers(&self) -> &reqwest::header::HeaderMap {
        self.response.headers()
    }

    /// The next event; `None` at the end, and also when the connection breaks.
    pub async fn next(&mut self) -> Option<SseEvent> {
        self.next_within(PATIENCE).await.expect("something within the time")
    }

    /// The same, unless nothing at all comes for so long.
    pub async fn next_within(&mut self, patience: Duration) -> Result<Option<SseEvent>, Elapsed> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match tokio::time::timeout(patience, self.response.chunk()).await? {
                Ok(Some(chunk)) => self.take(&chunk),
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }

    /// Reads on to the first event with this state.
    pub async fn until(&mut self, state: &str) -> SseEvent {
        let mut last = None;
        while let Some(event) = self.next().await {
            if event.state() == state {
                return event;
            }
            last = Some(event);
        }
        assert_eq!(Some(state), None, "the stream ended without it, after {last:?}");
        unreachable!()
    }

    /// All events to the end.
    pub async fn all(mut self) -> Vec<SseEvent> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    fn take(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
        let mut start = 0;
        while let Some(end) = self.buffer[self.looked..].windows(2).position(|pair| pair == b"\n\n") {
            let end = self.looked + end + 2;
            let block = std::str::from_utf8(&self.buffer[start..end]).expect("UTF-8");
            self.ready.extend(parse(block));
            (start, self.looked) = (end, end);
        }
        self.buffer.drain(..start);
        self.looked = self.buffer.len().saturating_sub(1);
    }
}

fn parse(block: &str) -> Option<SseEvent> {
    let (mut id, mut event, mut data) = (None, String::new(), None);
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("id", value)) => id = value.parse().ok(),
            Some(("event", value)) => value.clone_into(&mut event),
            Some(("data", value)) => data = Some(serde_json::from_str(value).expect("JSON")),
            _ => {}
        }
    }
    data.map(|data| SseEvent { id, event, data })
}
