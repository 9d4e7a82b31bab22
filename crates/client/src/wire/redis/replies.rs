//! What comes back for one request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Redis;
use super::desk::Place;
use crate::error::ClientError;

/// After so long without a word it is looked whether anybody still works on the request.
const LOOK: Duration = Duration::from_secs(10);
/// The same for a stream that has not begun.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// One reply.
#[derive(Debug)]
pub(in crate::wire) struct Reply {
    pub(in crate::wire) payload: Vec<u8>,
    /// The number of the event that it is.
    pub(in crate::wire) event: Option<u64>,
    /// Whether it is the last one.
    pub(in crate::wire) is_final: bool,
}

/// The replies to one request, in order.
pub(in crate::wire) struct Replies {
    redis: Arc<Redis>,
    place: Place,
    /// The request, by its id in Redis.
    pub(super) entry: String,
    /// A reply that was looked at before its time.
    ready: Option<Reply>,
    /// The last event that came.
    last: Option<u64>,
    over: bool,
}

impl Replies {
    pub(super) fn new(redis: Arc<Redis>, place: Place) -> Self {
        Self { redis, place, entry: String::new(), ready: None, last: None, over: false }
    }

    /// Waits until a stream has begun: something came, or a worker has it in hand and may be silent for long.
    pub(in crate::wire) async fn begun(&mut self) -> Result<(), ClientError> {
        loop {
            match tokio::time::timeout(FIRST_LOOK, self.next()).await {
                Ok(reply) => {
                    self.ready = reply?;
                    return Ok(());
                }
                Err(_) if self.redis.is_in_hand(&self.entry).await? => return Ok(()),
                Err(_) => {}
            }
        }
    }

    /// Whether a reply is there that can be had at once.
    pub(in crate::wire) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    /// The next reply, however long it takes; nothing after the last one.
    pub(in crate::wire) async fn next(&mut self) -> Result<Option<Reply>, ClientError> {
        if let Some(ready) = self.ready.take() {
            return Ok(Some(ready));
        }
        if self.over {
            return Ok(None);
        }
        let reply = match self.place.arrivals.recv().await {
            Some(arrival) => arrival.map_err(|why| self.redis.gone(&why))?,
            None => return Err(self.redis.gone("more replies came than were read")),
        };
        self.over = reply.is_final;
        // What is removed before it is read leaves a gap, and can be asked for again.
        if let (Some(event), Some(last)) = (reply.event, self.last)
            && event > last.saturating_add(1)
        {
            return Err(self.redis.gone("some replies were removed before they were read"));
        }
        self.last = reply.event.or(self.last);
        Ok(Some(reply))
    }

    /// The next reply of a stream. An error when nobody works on it any more.
    pub(in crate::wire) async fn next_of_stream(&mut self) -> Result<Option<Reply>, ClientError> {
        loop {
            match tokio::time::timeout(LOOK, self.next()).await {
                Ok(reply) => return reply,
                // Redis itself may be away for a while: then the reader decides.
                Err(_) => {
                    if let Ok(false) = self.redis.is_in_hand(&self.entry).await {
                        return Err(self.redis.gone("no worker has the request in hand"));
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replies").field("entry", &self.entry).finish_non_exhaustive()
    }
}
