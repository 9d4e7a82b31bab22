//! Replies that come one by one, whatever brings them.

use super::{framed, redis};
use crate::error::ClientError;

/// The replies to one request, in order.
#[derive(Debug)]
pub(super) enum Arriving {
    Redis(redis::Replies),
    Framed(framed::Replies),
}

impl Arriving {
    /// Waits until a stream has begun.
    pub(super) async fn begun(&mut self) -> Result<(), ClientError> {
        match self {
            Self::Redis(replies) => replies.begun().await,
            Self::Framed(replies) => replies.begun().await,
        }
    }

    /// Whether a reply is there that can be had at once.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Redis(replies) => replies.is_ready(),
            Self::Framed(replies) => replies.is_ready(),
        }
    }

    /// The next reply, however long it takes; nothing after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<redis::Reply>, ClientError> {
        match self {
            Self::Redis(replies) => replies.next().await,
            Self::Framed(replies) => replies.next().await,
        }
    }

    /// The next reply of a stream. An error when nobody works on it any more.
    pub(super) async fn next_of_stream(&mut self) -> Result<Option<redis::Reply>, ClientError> {
        match self {
            Self::Redis(replies) => replies.next_of_stream().await,
            Self::Framed(replies) => replies.next().await,
        }
    }
}
