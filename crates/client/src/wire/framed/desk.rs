//! Who waits for replies on one connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nuncio_protocol::Value;
use nuncio_protocol::codec::{self, Raw};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::wire::redis::Reply;

/// Replies that may wait for one call. A stream that lets more of them wait has to ask again for what is missing, so
/// that it cannot hold up the others.
const ROOM: usize = 1024;
/// The same in bytes: few large replies take as much room as many small ones. One alone may be larger.
const ROOM_BYTES: usize = 32 << 20;

/// What a call gets.
pub(super) enum Arrival {
    Reply(Reply),
    /// There will be no more, for this reason.
    Lost(String),
}

/// The calls that wait.
#[derive(Default)]
pub(super) struct Desk {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, Call>,
    /// Why the connection has ended.
    closed: Option<String>,
}

struct Call {
    to: Sender<Arrival>,
    streams: bool,
    /// Bytes that were sent to it, and that it has not taken.
    waiting: Arc<AtomicUsize>,
}

/// A place at the desk, given up when it is dropped.
pub(super) struct Place {
    pub(super) id: u64,
    desk: Arc<Desk>,
    arrivals: Receiver<Arrival>,
    waiting: Arc<AtomicUsize>,
}

impl Place {
    /// What comes next; nothing when more came than there was room for.
    pub(super) async fn next(&mut self) -> Option<Arrival> {
        let arrival = self.arrivals.recv().await;
        if let Some(Arrival::Reply(reply)) = &arrival {
            self.waiting.fetch_sub(reply.payload.len(), Ordering::Relaxed);
        }
        arrival
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.desk.waiting.lock().calls.remove(&self.id);
    }
}

/// A frame of either form.
#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    id: Value,
    payload: Option<Raw>,
    #[serde(rename = "final", default)]
    last: bool,
    #[serde(rename = "eventId")]
    event: Option<u64>,
    #[serde(default)]
    error: Value,
}

impl Desk {
    /// A place for a call.
    pub(super) fn expect(self: &Arc<Self>, id: u64, streams: bool) -> Place {
        let (to, arrivals) = channel(ROOM);
        let bytes = Arc::<AtomicUsize>::default();
        let mut waiting = self.waiting.lock();
        match &waiting.closed {
            Some(why) => _ = to.try_send(Arrival::Lost(why.clone())),
            None => _ = waiting.calls.insert(id, Call { to, streams, waiting: bytes.clone() }),
        }
        Place { id, desk: self.clone(), arrivals, waiting: bytes }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.waiting.lock().closed.is_some()
    }

    /// Whether nobody else waits.
    pub(super) fn is_last(&self, id: u64) -> bool {
        self.waiting.lock().calls.keys().all(|other| *other == id)
    }

    /// Tells everybody that there is nothing more to come.
    pub(super) fn close(&self, why: &str) {
        let mut waiting = self.waiting.lock();
        waiting.closed.get_or_insert_with(|| why.to_owned());
        for (_, call) in waiting.calls.drain() {
            let _ = call.to.try_send(Arrival::Lost(why.to_owned()));
        }
    }

    /// A line: the response itself.
    pub(super) fn line(&self, line: &[u8]) {
        let Ok(frame) = codec::decode::<Frame>(line) else { return };
        let payload = line.trim_ascii_end().to_vec();
        let failed = !frame.error.is_null();
        self.deliver(&frame, payload, failed);
    }

    /// An envelope: the response is in it.
    pub(super) fn envelope(&self, text: &[u8]) {
        let Ok(frame) = codec::decode::<Frame>(text) else { return };
        let Some(payload) = &frame.payload else { return };
        self.deliver(&frame, payload.get().as_bytes().to_vec(), frame.last);
    }

    fn deliver(&self, frame: &Frame, payload: Vec<u8>, last: bool) {
        let mut waiting = self.waiting.lock();
        let id = match (frame.id.as_u64(), waiting.calls.len()) {
            (Some(id), _) => id,
            // Whoever could not read the request could not know its id.
            (None, 1) if frame.id.is_null() => waiting.calls.keys().next().copied().unwrap_or_default(),
            _ => return,
        };
        let Some(call) = waiting.calls.get(&id) else { return };
        let is_final = last || frame.last || !call.streams;
        let length = payload.len();
        let before = call.waiting.fetch_add(length, Ordering::Relaxed);
        let is_full = before > 0 && before.saturating_add(length) > ROOM_BYTES;
        let reply = Reply { payload, event: frame.event, is_final };
        // A call without room is over for now: the end of its channel tells.
        if is_full || call.to.try_send(Arrival::Reply(reply)).is_err() || is_final {
            waiting.calls.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn next(place: &mut Place) -> Option<(String, Option<u64>, bool)> {
        match place.arrivals.try_recv().ok()? {
            Arrival::Reply(reply) => {
                Some((String::from_utf8(reply.payload).expect("text"), reply.event, reply.is_final))
            }
            Arrival::Lost(why) => Some((why, None, true)),
        }
    }

    #[test]
    fn each_call_gets_its_own_replies_in_both_forms() {
        let desk = Arc::new(Desk::default());
        let (mut one, mut stream) = (desk.expect(1, false), desk.expect(2, true));
        desk.line(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{},\"eventId\":7}\n");
        desk.line(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
        desk.line(b"garbage");
        desk.envelope(b"{\"id\":2,\"payload\":{\"a\":1},\"final\":false,\"eventId\":8}");
        desk.envelope(b"{\"id\":2,\"payload\":{\"id\":2},\"final\":true}");
        assert_eq!(next(&mut one), Some(("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}".into(), None, true)));
        assert_eq!(next(&mut stream).expect("an event").1, Some(7));
        assert_eq!(next(&mut stream), Some(("{\"a\":1}".into(), Some(8), false)));
        assert_eq!(next(&mut stream), Some(("{\"id\":2}".into(), None, true)));
        assert!(desk.is_last(9));
    }

    #[test]
    fn a_lost_connection_is_told_to_all_and_to_those_who_come_late() {
        let desk = Arc::new(Desk::default());
        let mut early = desk.expect(1, false);
        desk.close("gone");
        let mut late = desk.expect(2, false);
        assert_eq!(next(&mut early).expect("an end").0, "gone");
        assert_eq!(next(&mut late).expect("an end").0, "gone");
        assert!(desk.is_closed());
    }

    proptest! {
        #[test]
        fn whatever_an_agent_sends_calls_get_their_own_replies_alone(
            frames in prop::collection::vec((any::<bool>(), frame()), 0..20)
        ) {
            let desk = Arc::new(Desk::default());
            let (mut one, mut stream) = (desk.expect(1, false), desk.expect(2, true));
            for (line, frame) in &frames {
                if *line { desk.line(frame) } else { desk.envelope(frame) }
            }
            let (ones, streamed) = (std::iter::from_fn(|| next(&mut one)), std::iter::from_fn(|| next(&mut stream)));
            prop_assert!(ones.count() <= 1, "a plain call has one answer");
            let lasts: Vec<bool> = streamed.map(|(_, _, last)| last).collect();
            prop_assert!(lasts.iter().rev().skip(1).all(|last| !last), "nothing comes after the last");
        }
    }

    /// Frames that mean something, and bytes that nearly do.
    fn frame() -> impl Strategy<Value = Vec<u8>> {
        let id = prop::sample::select(vec!["1", "2", "3", "null", "\"1\"", "-1", "1.5", "[]"]);
        let rest = prop::sample::select(vec![
            r#""result":{}"#,
            r#""error":{"code":1}"#,
            r#""payload":{"jsonrpc":"2.0"},"final":false,"eventId":3"#,
            r#""payload":[],"final":true"#,
            r#""final":true"#,
            r#""final":7"#,
            r#""eventId":-1"#,
        ]);
        let whole = (id, rest).prop_map(|(id, rest)| format!("{{\"id\":{id},{rest}}}").into_bytes());
        prop_oneof![4 => whole, 1 => prop::collection::vec(any::<u8>(), 0..64)]
    }

    #[test]
    fn a_stream_that_nobody_reads_ends_instead_of_growing() {
        let desk = Arc::new(Desk::default());
        let mut slow = desk.expect(1, true);
        for _ in 0..=ROOM {
            desk.line(b"{\"id\":1,\"result\":{}}");
        }
        let all = std::iter::from_fn(|| next(&mut slow)).count();
        assert_eq!(all, ROOM);
        assert!(slow.arrivals.try_recv().is_err() && slow.arrivals.is_closed());
    }

    #[tokio::test]
    async fn large_replies_that_nobody_reads_do_not_grow_either() {
        let desk = Arc::new(Desk::default());
        let mut line = br#"{"id":1,"result":""#.to_vec();
        line.resize(ROOM_BYTES / 4 - 2, b'x');
        line.extend_from_slice(br#""}"#);
        let mut slow = desk.expect(1, true);
        for _ in 0..4 {
            desk.line(&line);
        }
        assert!(matches!(slow.next().await, Some(Arrival::Reply(_))));
        desk.line(&line);
        assert!(!slow.arrivals.is_closed(), "what was taken has made room");
        desk.line(&line);
        for _ in 0..4 {
            assert!(matches!(slow.next().await, Some(Arrival::Reply(_))));
        }
        assert!(slow.next().await.is_none());
        let mut one = desk.expect(2, false);
        desk.line(&[br#"{"id":2,"result":""#, &*vec![b'x'; 2 * ROOM_BYTES], br#""}"#].concat());
        assert!(matches!(one.next().await, Some(Arrival::Reply(_))), "one alone may be larger");
    }
}
