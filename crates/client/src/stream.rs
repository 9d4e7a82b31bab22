//! The events of a task, which survive lost connections.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{self, Stream};
use nuncio_protocol::{SendMessageRequest, StreamResponse, TaskId};

use crate::client::Client;
use crate::error::ClientError;
use crate::options::SendOptions;
use crate::wire::Feed;

mod follow;
mod known;

use follow::Follow;
pub use known::Known;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number in the task, where the agent numbers its events: what to continue after.
    pub seq: Option<u64>,
    /// What happened.
    pub response: StreamResponse,
}

/// The events of a task, or the message that answers instead of one.
///
/// A connection that is lost before the task is over is replaced by a new one, a limited number of times in a
/// row. Where the agent numbers its events they simply go on after the last one. Where it does not, the whole task
/// as it is then is compared with what was seen, and what is new comes as updates; the same for an agent that
/// lets nobody follow the task again, which is asked for the task every [`Options::poll`]. Either way nothing is
/// repeated: whoever puts the updates together has the same artifacts as without the loss.
///
/// It ends after a message, after a terminal state, and where the agent ends it because it waits for the client.
/// An error is the last item.
///
/// [`Options::poll`]: crate::Options::poll
pub struct EventStream {
    inner: Pin<Box<dyn Stream<Item = Result<Event, ClientError>> + Send>>,
}

impl EventStream {
    /// Goes on from a connection that is open, and from an event that is known.
    pub(crate) fn new(client: Client, feed: Feed, origin: Origin, last: Option<u64>) -> Self {
        Self::from(Follow::new(client, Some(feed), origin, last))
    }

    /// Asks for the task again and again; `first` is known of it already.
    pub(crate) fn polling(client: Client, origin: Origin, first: Option<Event>) -> Self {
        Self::from(Follow::polling(client, origin, first))
    }

    fn from(follow: Follow) -> Self {
        Self { inner: Box::pin(stream::unfold(follow, Follow::next)) }
    }
}

impl Stream for EventStream {
    type Item = Result<Event, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

/// How a stream began.
pub(crate) enum Origin {
    /// With a message, which may be sent again only under its key.
    Send { again: Option<Box<(SendMessageRequest, SendOptions)>> },
    /// With the wish to follow a task.
    Subscribe { task: TaskId },
}
