//! Streams as server-sent events. The number of an event is its id.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, header};
use nuncio_protocol::Error;
use tokio::time::{Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::body::Body;
use super::rpc::Envelope;
use super::{App, StreamPlace};
use crate::engine::{Event, Subscription};

/// A stream of a task's events.
pub(crate) fn response(
    app: &App,
    subscription: Subscription,
    place: StreamPlace,
    envelope: Envelope,
) -> Response<Body> {
    let every = app.http.keep_alive;
    let mut beat = interval_at(tokio::time::Instant::now() + every, every);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let state = Streaming {
        subscription,
        envelope,
        beat,
        closing: Box::pin(app.closing.clone().cancelled_owned()),
        batch: Vec::new(),
        over: false,
        _place: place,
    };
    // Boxed, because it is handed back and forth with every piece.
    let body = stream::unfold(Box::new(state), async |mut state| state.next().await.map(|bytes| (bytes, state)));
    event_stream(Body::Stream(Box::pin(body)))
}

/// A stream that holds one event without a number.
pub(crate) fn one(envelope: &Envelope, event: &[u8]) -> Response<Body> {
    let mut out = Vec::with_capacity(event.len() + 64);
    write(envelope, None, event, &mut out);
    event_stream(Body::Full(out.into()))
}

/// A stream that holds one error.
pub(crate) fn failed(envelope: &Envelope, error: &Error) -> Response<Body> {
    let mut out = Vec::with_capacity(256);
    write_error(envelope, error, &mut out);
    event_stream(Body::Full(out.into()))
}

fn event_stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Streaming {
    subscription: Subscription,
    envelope: Envelope,
    beat: Interval,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    batch: Vec<Arc<Event>>,
    over: bool,
    _place: StreamPlace,
}

impl Streaming {
    /// The next bytes: everything that is ready in one piece, or a sign of life.
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let next = tokio::select! {
            biased;
            next = self.subscription.next(&mut self.batch) => next,
            _ = self.beat.tick() => return Some(Bytes::from_static(b": keep-alive\n")),
            () = self.closing.as_mut() => return None,
        };
        match next {
            Ok(false) => None,
            Ok(true) => {
                let size: usize = self.batch.iter().map(|event| event.body.len() + 96).sum();
                let mut out = Vec::with_capacity(size);
                for event in self.batch.drain(..) {
                    write(&self.envelope, Some(event.seq), &self.envelope.form(&event), &mut out);
                }
                Some(out.into())
            }
            Err(error) => {
                self.over = true;
                let mut out = Vec::new();
                write_error(&self.envelope, &error, &mut out);
                Some(out.into())
            }
        }
    }
}

/// One event, with its number if it has one.
fn write(envelope: &Envelope, seq: Option<u64>, event: &[u8], out: &mut Vec<u8>) {
    if let Some(seq) = seq {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(digits.format(seq).as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    envelope.result(event, out);
    out.extend_from_slice(b"\n\n");
}

fn write_error(envelope: &Envelope, error: &Error, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: error\ndata: ");
    envelope.error(error, out);
    out.extend_from_slice(b"\n\n");
}
