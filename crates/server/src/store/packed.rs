//! Events packed into one piece, which is a row of a database or what is kept in memory: each behind its length in four
//! bytes. Before the first there can be a snapshot, whose length has its highest bit set. Where the second bit is set,
//! what nearly every event says is shortened.

mod short;

use bytes::{Buf, BufMut, Bytes};

use super::{LogEvent, Seq};
use short::full;
pub(super) use short::{FullIds, Ids};

/// Tells a snapshot from an event.
const SNAPSHOT: u32 = 1 << 31;

/// Says that ids and phrases are shortened.
const SHORT: u32 = 1 << 30;

/// Puts one event behind what is there.
pub(super) fn pack(into: &mut Vec<u8>, event: &[u8], ids: Option<&Ids<'_>>) {
    put(into, 0, event, ids);
}

/// How much room an event takes whose ids are not shortened.
pub(super) fn packed_len(event: &[u8]) -> usize {
    4 + event.len()
}

/// Puts a snapshot first into a row.
pub(super) fn pack_snapshot(into: &mut Vec<u8>, snapshot: &[u8], ids: Option<&Ids<'_>>) {
    debug_assert!(into.is_empty());
    put(into, SNAPSHOT, snapshot, ids);
}

fn put(into: &mut Vec<u8>, mark: u32, body: &[u8], ids: Option<&Ids<'_>>) {
    let start = into.len();
    into.put_u32_le(0);
    let short = if ids.is_some_and(|ids| ids.shorten(body, into)) {
        SHORT
    } else {
        into.extend_from_slice(body);
        0
    };
    // Nothing comes near a gigabyte: a database row holds no more.
    let length = u32::try_from(into.len() - start - 4).unwrap_or(SHORT - 1);
    into[start..start + 4].copy_from_slice(&(mark | short | length).to_le_bytes());
}

/// The snapshot that a row begins with.
pub(super) fn snapshot_of(row: &[u8], ids: FullIds<'_>) -> Result<Bytes, CutOff> {
    let (head, rest) = row.split_first_chunk().ok_or(CutOff)?;
    let head = u32::from_le_bytes(*head);
    let length = length(head).filter(|_| head & SNAPSHOT != 0);
    let body = length.and_then(|length| rest.get(..length)).ok_or(CutOff)?;
    if head & SHORT == 0 { Ok(Bytes::copy_from_slice(body)) } else { full(body, ids) }
}

fn length(head: u32) -> Option<usize> {
    usize::try_from(head & !(SNAPSHOT | SHORT)).ok()
}

/// Packs events from number `seq` on into rows of at most `most` bytes each, unless one event alone is larger.
pub(super) fn pack_rows<'a>(
    mut seq: Seq,
    bodies: impl Iterator<Item = &'a Bytes>,
    most: usize,
    mut row: impl FnMut(Seq, Vec<u8>),
) {
    let mut bodies = bodies.peekable();
    while let Some(first) = bodies.next() {
        let (from, mut packed) = (seq, Vec::with_capacity(packed_len(first)));
        pack(&mut packed, first, None);
        seq += 1;
        while let Some(next) = bodies.next_if(|next| packed.len() + packed_len(next) <= most) {
            pack(&mut packed, next, None);
            seq += 1;
        }
        row(from, packed);
    }
}

/// Takes what is next from a row, and what its head says of it. None where the row ends before it does.
fn unpack(row: &mut Bytes) -> Option<(Bytes, u32)> {
    let head = row.try_get_u32_le().ok()?;
    let length = length(head)?;
    (length <= row.len()).then(|| (row.split_to(length), head))
}

/// A row that does not hold what it says.
#[derive(Debug, thiserror::Error)]
#[error("a row of events is cut off")]
pub(super) struct CutOff;

/// Events after a number, taken from rows as far as limits allow.
pub(super) struct Found {
    pub(super) events: Vec<LogEvent>,
    after: Seq,
    limit: usize,
    room: usize,
}

impl Found {
    pub(super) fn new(after: Seq, limit: usize, room: usize) -> Self {
        Self { events: Vec::new(), after, limit, room }
    }

    pub(super) fn full(&self) -> bool {
        self.events.len() >= self.limit || (self.room == 0 && !self.events.is_empty())
    }

    pub(super) fn add(&mut self, seq: Seq, body: Bytes) {
        self.room = self.room.saturating_sub(body.len());
        self.events.push(LogEvent { seq, body });
    }

    /// Takes what is wanted of a row that begins with the event `seq`.
    pub(super) fn take(&mut self, mut seq: Seq, mut row: Bytes, ids: FullIds<'_>) -> Result<(), CutOff> {
        while !row.is_empty() && !self.full() {
            let (body, head) = unpack(&mut row).ok_or(CutOff)?;
            if head & SNAPSHOT != 0 {
                continue;
            }
            if seq > self.after {
                self.add(seq, if head & SHORT == 0 { body } else { full(&body, ids)? });
            }
            seq += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{ContextId, TaskId};
    use proptest::prelude::*;

    use super::*;

    /// Texts in which ids stand where they should, and where they should not.
    fn bodies() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("([ab\u{1}\u{2}\"\u{e9}-]|d\":\"|d\":\"a|d\":\"ab-){0,12}", 1..6)
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            bodies in bodies(),
            task in "[ab-]{0,3}|a?d\":\"[ab]?",
            context in "[ab-]{0,3}",
            short: bool,
            after in 0_u64..6,
        ) {
            let (id, context_id) = (TaskId::from(&*task), ContextId::from(&*context));
            let ids = Ids::new(&id, &context_id);
            let (ids, full_ids) = if short { (Some(&ids), Some((&*task, &*context))) } else { (None, None) };
            let mut row = Vec::new();
            pack_snapshot(&mut row, bodies[0].as_bytes(), ids);
            for body in &bodies {
                pack(&mut row, body.as_bytes(), ids);
            }
            prop_assert_eq!(snapshot_of(&row, full_ids).expect("a snapshot"), bodies[0].as_bytes());
            let mut found = Found::new(after, usize::MAX, usize::MAX);
            found.take(1, row.into(), full_ids).expect("a row");
            let wanted = (1..).zip(&bodies).filter(|(seq, _)| *seq > after);
            let wanted: Vec<_> = wanted.map(|(seq, body)| LogEvent { seq, body: body.clone().into() }).collect();
            prop_assert_eq!(found.events, wanted);
        }

        #[test]
        fn a_row_that_is_no_row_is_an_error_or_nothing(row in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = snapshot_of(&row, Some(("t", "c")));
            let _ = Found::new(0, usize::MAX, usize::MAX).take(1, row.into(), None);
        }
    }

    #[test]
    fn ids_take_a_byte_each() {
        let (task, context) = (TaskId::fresh(), ContextId::fresh());
        let body = format!("{{\"taskId\":\"{task}\",\"contextId\":\"{context}\"}}");
        let (mut row, ids) = (Vec::new(), Ids::new(&task, &context));
        pack(&mut row, body.as_bytes(), Some(&ids));
        assert_eq!(row.len(), 4 + body.len() - 2 * 35);
        assert!(Found::new(0, 1, 1).take(1, row.into(), None).is_err(), "without the ids it cannot be read");
    }
}
