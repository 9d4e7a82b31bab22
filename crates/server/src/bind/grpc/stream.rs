//! Streams: the events of a task as messages, and the status at the end.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::Frame;
use nuncio_protocol::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::reply;
use crate::bind::body::Body;
use crate::bind::form;
use crate::bind::{App, StreamPlace};
use crate::call::Version;
use crate::engine::{Event, Subscription};

/// The number of the first event. Those behind it are consecutive, so that a client which counts can go on after
/// any of them with the metadata `last-event-id`.
const FIRST: HeaderName = HeaderName::from_static("first-event-id");

/// What one kind of stream makes of events.
pub(super) trait Form: Send + 'static {
    /// An event as a message, with what stands before it.
    fn event(&self, event: &Event) -> Bytes;

    /// The last message, if there is one more than events.
    fn last(&self) -> Option<Bytes> {
        None
    }

    /// An error in the middle of the stream: a last message, the status, or both.
    fn error(&self, error: &Error) -> (Option<Bytes>, HeaderMap);

    /// The status when the server goes down.
    fn closing(&self) -> HeaderMap;
}

/// The messages of either version.
pub(super) struct Events(pub(super) Version);

impl Form for Events {
    fn event(&self, event: &Event) -> Bytes {
        event.form(form::proto(self.0))
    }

    fn error(&self, error: &Error) -> (Option<Bytes>, HeaderMap) {
        (None, reply::trailers(self.0, error))
    }

    fn closing(&self) -> HeaderMap {
        reply::closing(self.0)
    }
}

/// A stream of a task's events.
pub(super) fn response<F: Form>(
    app: &App,
    subscription: Subscription,
    place: StreamPlace,
    form: F,
    deadline: Option<Instant>,
) -> Response<Body> {
    let first = HeaderValue::from(subscription.first_seq());
    let state = Streaming {
        subscription,
        form,
        closing: app.closing.clone(),
        deadline,
        batch: Vec::new(),
        trailers: None,
        over: false,
        _place: place,
    };
    let frames = stream::unfold(state, async |mut state| state.next().await.map(|frame| (frame, state)));
    let mut response = reply::stream(Body::Frames(Box::pin(frames)));
    response.headers_mut().insert(FIRST, first);
    response
}

/// A stream of messages that are known.
pub(super) fn known(messages: Bytes) -> Response<Body> {
    reply::stream(Body::Message { data: messages, trailers: Some(reply::ok()) })
}

struct Streaming<F> {
    subscription: Subscription,
    form: F,
    closing: CancellationToken,
    deadline: Option<Instant>,
    batch: Vec<Arc<Event>>,
    /// What ends the stream, when all messages are sent.
    trailers: Option<HeaderMap>,
    over: bool,
    _place: StreamPlace,
}

impl<F: Form> Streaming<F> {
    async fn next(&mut self) -> Option<Frame<Bytes>> {
        if let Some(trailers) = self.trailers.take() {
            self.over = true;
            return Some(Frame::trailers(trailers));
        }
        if self.over {
            return None;
        }
        let deadline = self.deadline;
        let late = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let next = tokio::select! {
            biased;
            next = self.subscription.next(&mut self.batch) => next,
            () = self.closing.cancelled() => return self.end(None, self.form.closing()),
            () = late => return self.end(None, reply::late()),
        };
        match next {
            Ok(true) => Some(Frame::data(self.messages())),
            Ok(false) => self.end(self.form.last(), reply::ok()),
            Err(error) => {
                let (last, trailers) = self.form.error(&error);
                self.end(last, trailers)
            }
        }
    }

    fn end(&mut self, last: Option<Bytes>, trailers: HeaderMap) -> Option<Frame<Bytes>> {
        match last {
            Some(last) => {
                self.trailers = Some(trailers);
                Some(Frame::data(last))
            }
            None => {
                self.over = true;
                Some(Frame::trailers(trailers))
            }
        }
    }

    /// Everything that is ready. A single event is the same bytes for all who read it.
    fn messages(&mut self) -> Bytes {
        if let [event] = &*self.batch {
            let bytes = self.form.event(event);
            self.batch.clear();
            return bytes;
        }
        let mut out = BytesMut::with_capacity(self.batch.iter().map(|event| event.body.len() + 16).sum());
        for event in self.batch.drain(..) {
            out.extend_from_slice(&self.form.event(&event));
        }
        out.freeze()
    }
}
