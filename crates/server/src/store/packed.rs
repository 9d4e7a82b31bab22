//! Events packed into the rows of a database: each behind its length in four bytes. Before the first there can be a
//! snapshot, whose length has its highest bit set.

use bytes::{Buf, BufMut, Bytes};

use super::{LogEvent, Seq};

/// Tells a snapshot from an event.
const SNAPSHOT: u32 = 1 << 31;

/// Puts one event behind what is there.
pub(super) fn pack(into: &mut Vec<u8>, event: &[u8]) {
    put(into, 0, event);
}

/// Puts a snapshot first into a row.
pub(super) fn pack_snapshot(into: &mut Vec<u8>, snapshot: &[u8]) {
    debug_assert!(into.is_empty());
    put(into, SNAPSHOT, snapshot);
}

fn put(into: &mut Vec<u8>, mark: u32, body: &[u8]) {
    // Nothing comes near two gigabytes: a database row holds one at most.
    into.put_u32_le(mark | u32::try_from(body.len()).unwrap_or(u32::MAX));
    into.extend_from_slice(body);
}

/// The snapshot that a row begins with.
pub(super) fn snapshot_of(row: &[u8]) -> Result<&[u8], CutOff> {
    let (length, rest) = row.split_first_chunk().ok_or(CutOff)?;
    let length = u32::from_le_bytes(*length);
    let length = usize::try_from(length & !SNAPSHOT).ok().filter(|_| length & SNAPSHOT != 0);
    length.and_then(|length| rest.get(..length)).ok_or(CutOff)
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
        let (from, mut packed) = (seq, Vec::with_capacity(first.len() + 4));
        pack(&mut packed, first);
        seq += 1;
        while let Some(next) = bodies.next_if(|next| packed.len() + 4 + next.len() <= most) {
            pack(&mut packed, next);
            seq += 1;
        }
        row(from, packed);
    }
}

/// Takes what is next from a row, and whether it is an event. None where the row ends before it does.
fn unpack(row: &mut Bytes) -> Option<(Bytes, bool)> {
    let length = row.try_get_u32_le().ok()?;
    let is_event = length & SNAPSHOT == 0;
    let length = usize::try_from(length & !SNAPSHOT).ok()?;
    (length <= row.len()).then(|| (row.split_to(length), is_event))
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

    /// Takes what is wanted of a row that begins with the event `seq`.
    pub(super) fn take(&mut self, mut seq: Seq, mut row: Bytes) -> Result<(), CutOff> {
        while !row.is_empty() && !self.full() {
            let (body, is_event) = unpack(&mut row).ok_or(CutOff)?;
            if !is_event {
                continue;
            }
            if seq > self.after {
                self.room = self.room.saturating_sub(body.len());
                self.events.push(LogEvent { seq, body });
            }
            seq += 1;
        }
        Ok(())
    }
}
