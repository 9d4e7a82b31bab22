//! Server-sent events, read plainly.

use serde_json::Value;

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

/// A stream that is being read.
pub struct Sse {
    response: reqwest::Response,
    buffer: Vec<u8>,
}

impl Sse {
    /// Sends a request and expects a stream.
    pub async fn open(request: reqwest::RequestBuilder) -> Self {
        let response = request.header("Accept", "text/event-stream").send().await.expect("an answer");
        let kind = response.headers().get("content-type").map(|v| v.to_str().expect("text").to_owned());
        if kind.as_deref() != Some("text/event-stream") {
            let status = response.status();
            let text = response.text().await.unwrap_or_default();
            assert_eq!(kind.as_deref(), Some("text/event-stream"), "no stream but {status}: {text}");
            unreachable!()
        }
        Self { response, buffer: Vec::new() }
    }

    /// The headers of the answer.
    pub fn headers(&self) -> &reqwest::header::HeaderMap {
        self.response.headers()
    }

    /// The next event; `None` at the end, and also when the connection breaks.
    pub async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                if let Some(event) = parse(&String::from_utf8(block).expect("UTF-8")) {
                    return Some(event);
                }
                continue;
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("something within the time");
            match chunk {
                Ok(Some(chunk)) => self.buffer.extend_from_slice(&chunk),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// All events to the end.
    pub async fn all(mut self) -> Vec<SseEvent> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
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
