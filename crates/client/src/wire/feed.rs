//! One connection that carries events.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::StreamResponse;
use reqwest::{Response, Url};

use super::jsonrpc;
use crate::error::ClientError;
use crate::http::{Http, protocol, shown, within};
use crate::sse::{Parser, SseError, SseEvent};
use crate::stream::Event;

/// The events of one connection, until it ends for whatever reason.
#[derive(Debug)]
pub(crate) struct Feed {
    http: Arc<Http>,
    url: Url,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Events { id: u64, response: Box<Response>, parser: Box<Parser> },
    Single(Option<Box<StreamResponse>>),
}

impl Feed {
    /// JSON-RPC responses to one request, as server-sent events.
    pub(super) fn new(http: Arc<Http>, url: Url, id: u64, response: Response) -> Self {
        let source = Source::Events { id, response: Box::new(response), parser: Box::default() };
        Self { http, url, source }
    }

    /// An answer that was complete at once.
    pub(super) fn single(http: Arc<Http>, url: Url, only: StreamResponse) -> Self {
        Self { http, url, source: Source::Single(Some(Box::new(only))) }
    }

    /// The next event; `None` when the server has closed the stream in good order.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        let (id, response, parser) = match &mut self.source {
            Source::Single(only) => return Ok(only.take().map(|only| Event { seq: None, response: *only })),
            Source::Events { id, response, parser } => (*id, response, parser),
        };
        loop {
            while let Some(event) = parser.next_event().map_err(|error| unreadable(&self.url, error))? {
                // Some servers keep a connection alive with empty events.
                if !event.data.is_empty() {
                    return decode(&self.http, &self.url, id, &event).map(Some);
                }
            }
            let chunk = self.http.chunk(response);
            let chunk = match self.http.options.silence {
                Some(limit) => within(limit, shown(&self.url), chunk).await?,
                None => chunk.await?,
            };
            match chunk {
                Some(chunk) => parser.push(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// How long the server asks to wait before a new connection.
    pub(crate) fn retry(&self) -> Option<Duration> {
        match &self.source {
            Source::Events { parser, .. } => parser.retry(),
            Source::Single(_) => None,
        }
    }
}

fn decode(http: &Http, url: &Url, id: u64, event: &SseEvent) -> Result<Event, ClientError> {
    let response = jsonrpc::decode(http, url, id, event.data.as_bytes())?;
    Ok(Event { seq: event.id.as_deref().and_then(|id| id.parse().ok()), response })
}

fn unreadable(url: &Url, error: SseError) -> ClientError {
    match error {
        SseError::TooLarge { limit } => ClientError::TooLarge { url: shown(url), limit },
        SseError::NotUtf8 => protocol(url, error.to_string()),
    }
}
