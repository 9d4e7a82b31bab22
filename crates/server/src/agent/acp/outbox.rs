//! Answers on their way to the agent. One that asks and never reads must not fill our memory, so an
//! answer keeps its place until it is written.

use std::sync::Arc;

use agent_client_protocol_schema::v1::Error;
use bytes::Bytes;
use nuncio_protocol::Value;
use tokio::sync::mpsc::WeakUnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::peer;

/// The most short answers that may wait to be written; then the agent is not heard any more.
const MOST_WAITING: usize = 256;

/// The way to the agent's input.
#[derive(Clone)]
pub(super) struct Outbox {
    /// Weak, so that the input closes when the connection lets go of it.
    writer: Option<WeakUnboundedSender<Bytes>>,
    places: Arc<Semaphore>,
}

impl Outbox {
    pub(super) fn new(writer: Option<WeakUnboundedSender<Bytes>>) -> Self {
        Self { writer, places: Arc::new(Semaphore::new(MOST_WAITING)) }
    }

    /// Answers a request, as soon as there is a place.
    pub(super) async fn answer(&self, id: &Value, result: Result<Value, Error>) {
        if let Ok(place) = self.places.clone().acquire_owned().await {
            self.answer_holding(id, result, vec![place]);
        }
    }

    /// Answers a request that has its places already; they are free again when the answer is written.
    pub(super) fn answer_holding(&self, id: &Value, result: Result<Value, Error>, places: Vec<OwnedSemaphorePermit>) {
        if let Some(writer) = self.writer.as_ref().and_then(WeakUnboundedSender::upgrade) {
            let line = peer::answer(id, result);
            let _ = writer.send(Bytes::from_owner(Held { line, _places: places }));
        }
    }
}

/// A line, and its place for as long as it is not written.
struct Held {
    line: Bytes,
    _places: Vec<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.line
    }
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::json;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn answers_that_nobody_reads_do_not_pile_up() {
        let (writer, mut reader) = mpsc::unbounded_channel();
        let outbox = Outbox::new(Some(writer.downgrade()));
        let all = async {
            for id in 0..1000 {
                outbox.answer(&json!(id), Ok(json!({}))).await;
            }
        };
        tokio::pin!(all);
        tokio::select! {
            biased;
            () = &mut all => panic!("nothing held it back"),
            () = std::future::ready(()) => assert_eq!(reader.len(), MOST_WAITING),
        }
        let read = async {
            for _ in 0..1000 {
                reader.recv().await.unwrap();
            }
        };
        tokio::join!(all, read);
        assert_eq!(outbox.places.available_permits(), MOST_WAITING);
    }
}
