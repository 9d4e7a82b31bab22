//! One connection that carries events.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::StreamResponse;
use nuncio_protocol::codec::DecodeError;
use reqwest::{Response, Url};

use super::arriving::Arriving;
use super::dialect::Dialect;
use super::grpc::{self, Messages};
use super::{agent, jsonrpc, rest, small_enough, unreadable};
use crate::error::ClientError;
use crate::http::{Http, protocol, shown, within};
use crate::sse::{Parser, SseError, SseEvent};
use crate::stream::Event;

/// What is around an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Framing {
    /// The envelope that answers the request with this id.
    JsonRpc { id: u64 },
    /// Nothing.
    Rest,
}

impl Framing {
    /// Reads what is inside of an answer.
    pub(super) fn open<T>(
        self,
        http: &Http,
        url: &Url,
        body: &[u8],
        read: impl Fn(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, ClientError> {
        match self {
            Self::JsonRpc { id } => jsonrpc::open(http, url, id, body, read),
            Self::Rest => read(body).map_err(|error| unreadable(http, url, &error)),
        }
    }
}

/// The events of one connection, until it ends for whatever reason.
#[derive(Debug)]
pub(crate) struct Feed {
    http: Arc<Http>,
    url: Url,
    framing: Framing,
    dialect: Dialect,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Events { response: Box<Response>, parser: Box<Parser> },
    Single(Option<Box<StreamResponse>>),
    Messages { messages: Box<Messages>, ahead: Option<Box<Event>> },
    Replies(Box<Arriving>, Option<Box<Event>>),
}

impl Feed {
    /// Answers to one request, as server-sent events.
    pub(super) fn new(http: Arc<Http>, url: Url, framing: Framing, dialect: Dialect, response: Response) -> Self {
        let parser = Box::new(Parser::with_limit(http.options.max_event));
        Self { http, url, framing, dialect, source: Source::Events { response: Box::new(response), parser } }
    }

    /// An answer that was complete at once.
    pub(super) fn single(http: Arc<Http>, url: Url, framing: Framing, dialect: Dialect, only: StreamResponse) -> Self {
        Self { http, url, framing, dialect, source: Source::Single(Some(Box::new(only))) }
    }

    /// Answers to one request, as messages of gRPC.
    pub(super) fn messages(http: Arc<Http>, url: Url, framing: Framing, dialect: Dialect, messages: Messages) -> Self {
        let source = Source::Messages { messages: Box::new(messages), ahead: None };
        Self { http, url, framing, dialect, source }
    }

    /// Waits for the first event without taking it.
    pub(super) async fn look_ahead(&mut self) -> Result<(), ClientError> {
        let first = self.next().await?;
        if let Source::Messages { ahead, .. } = &mut self.source {
            *ahead = first.map(Box::new);
        }
        Ok(())
    }

    /// Replies that come one by one.
    pub(super) fn replies(http: Arc<Http>, url: Url, framing: Framing, dialect: Dialect, replies: Arriving) -> Self {
        Self { http, url, framing, dialect, source: Source::Replies(Box::new(replies), None) }
    }

    /// The next event; `None` when the server has closed the stream in good order.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        let (response, parser) = match &mut self.source {
            Source::Single(only) => return Ok(only.take().map(|only| Event { seq: None, response: *only })),
            Source::Events { response, parser } => (response, parser),
            Source::Messages { ahead: ahead @ Some(_), .. } => return Ok(ahead.take().map(|first| *first)),
            Source::Messages { messages, .. } => {
                let next = messages.next(&self.http, &self.url, self.http.options.max_event);
                let next = match self.http.options.silence {
                    Some(limit) => within(limit, shown(&self.url), next).await?,
                    None => next.await?,
                };
                let Some(message) = next else { return Ok(None) };
                let response = match self.framing {
                    Framing::Rest => {
                        self.dialect.read_event(&message).map_err(|error| unreadable(&self.http, &self.url, &error))?
                    }
                    Framing::JsonRpc { .. } => {
                        let (json, is_final) = grpc::unwrapped(&self.url, message)?;
                        if is_final && jsonrpc::is_end(&json) {
                            return Ok(None);
                        }
                        let read = |json: &[u8]| self.dialect.tolerant(json, Dialect::read_event);
                        self.framing.open(&self.http, &self.url, &json, read)?
                    }
                };
                return Ok(Some(Event { seq: messages.count(), response }));
            }
            Source::Replies(..) => return self.next_reply().await,
        };
        loop {
            while let Some(event) = parser.next_event().map_err(|error| broken(&self.url, error))? {
                // Some servers keep a connection alive with empty events.
                if !event.data.is_empty() {
                    return decode(&self.http, &self.url, self.framing, self.dialect, &event).map(Some);
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

    /// Looks at the first reply if it is there: an error then is one of the call.
    pub(super) async fn check_first(&mut self) -> Result<(), ClientError> {
        if !matches!(&self.source, Source::Replies(replies, _) if replies.is_ready()) {
            return Ok(());
        }
        let event = self.next_reply().await?;
        if let Source::Replies(_, first) = &mut self.source {
            *first = event.map(Box::new);
        }
        Ok(())
    }

    async fn next_reply(&mut self) -> Result<Option<Event>, ClientError> {
        let Source::Replies(replies, first) = &mut self.source else { return Ok(None) };
        if let Some(first) = first.take() {
            return Ok(Some(*first));
        }
        let reply = match self.http.options.silence {
            Some(limit) => within(limit, shown(&self.url), replies.next_of_stream()).await?,
            None => replies.next_of_stream().await?,
        };
        let Some(reply) = reply.filter(|reply| !(reply.is_final && jsonrpc::is_end(&reply.payload))) else {
            return Ok(None);
        };
        small_enough(&self.url, &reply.payload, self.http.options.max_event)?;
        let read = |json: &[u8]| self.dialect.tolerant(json, Dialect::read_event);
        let response = self.framing.open(&self.http, &self.url, &reply.payload, read)?;
        Ok(Some(Event { seq: reply.event, response }))
    }

    /// How long the server asks to wait before a new connection.
    pub(crate) fn retry(&self) -> Option<Duration> {
        match &self.source {
            Source::Events { parser, .. } => parser.retry(),
            Source::Single(_) | Source::Messages { .. } | Source::Replies(..) => None,
        }
    }
}

fn decode(http: &Http, url: &Url, framing: Framing, dialect: Dialect, event: &SseEvent) -> Result<Event, ClientError> {
    let data = event.data.as_bytes();
    let read = |json: &[u8]| dialect.tolerant(json, Dialect::read_event);
    let response = match (framing, framing.open(http, url, data, read)) {
        // Without an envelope an error is told by its name, or by being nothing else.
        (Framing::Rest, answer) if event.event == "error" || answer.is_err() => {
            match (rest::error(500, data, dialect), answer) {
                (Some(error), _) => return Err(agent(http, url, error)),
                (None, answer) => answer?,
            }
        }
        (_, answer) => answer?,
    };
    Ok(Event { seq: event.id.as_deref().and_then(|id| id.parse().ok()), response })
}

fn broken(url: &Url, error: SseError) -> ClientError {
    match error {
        SseError::TooLarge { limit } => ClientError::TooLarge { url: shown(url), limit },
        SseError::NotUtf8 => protocol(url, error.to_string()),
    }
}
