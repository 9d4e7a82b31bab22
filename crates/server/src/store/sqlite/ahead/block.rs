//! What is written at once: tasks, and what tells whose they are and where they belong.
//!
//! ```text
//!   mark u32 │ sum u32 │ database u64 │ slot u64 │ length u32 │ tasks │ nothing up to the next slot
//!            └ of all behind it
//! ```

use bytes::{Buf, BufMut};
use nuncio_direct::{PAGE, Pages};

use super::super::short::Short;

/// What a place in the file is counted in.
pub(super) const SLOT: usize = PAGE;

/// How many slots the file has. They are used round and round, and counted on: slot 1025 stands where slot 1 stood.
pub(super) const SLOTS: u64 = 1024;

/// The largest block.
pub(super) const LARGEST: usize = 32;

const MARK: u32 = u32::from_le_bytes(*b"nahd");
const HEAD: usize = 36;

/// A block in the making.
pub(super) struct Block {
    pages: Pages,
    /// Up to where it is full.
    end: usize,
}

impl Block {
    pub(super) fn new() -> Self {
        Self::of(Pages::new(LARGEST))
    }

    /// An empty one in the memory of another.
    pub(super) fn of(pages: Pages) -> Self {
        Self { pages, end: HEAD }
    }

    pub(super) fn has_room(&self, task: &Short) -> bool {
        task.len() <= self.pages.len() - self.end
    }

    pub(super) fn put(&mut self, task: &Short) {
        let end = self.end + task.len();
        task.write(&mut &mut self.pages[self.end..end]);
        self.end = end;
    }

    /// How many slots it takes.
    pub(super) fn slots(&self) -> usize {
        self.end.div_ceil(SLOT)
    }

    /// Makes it the block of a slot. Returns its memory, and how much of it is to be written.
    pub(super) fn seal(mut self, database: u64, slot: u64, after: u64) -> (Pages, usize) {
        let slots = self.slots();
        self.pages[self.end..slots * SLOT].fill(0);
        let length = u32::try_from(self.end - HEAD).unwrap_or(u32::MAX);
        let mut head = &mut self.pages[8..HEAD];
        head.put_u64_le(database);
        head.put_u64_le(slot);
        head.put_u64_le(after);
        head.put_u32_le(length);
        let sum = crc32fast::hash(&self.pages[8..self.end]);
        let mut head = &mut self.pages[..8];
        head.put_u32_le(MARK);
        head.put_u32_le(sum);
        (self.pages, slots * SLOT)
    }
}

/// A block that is whole.
pub(super) struct Found {
    pub(super) tasks: Vec<Short>,
    /// The slot behind the block before.
    pub(super) after: u64,
    /// The slot behind it.
    pub(super) next: u64,
}

/// The block of this slot, if it is whole and these bytes begin with it.
pub(super) fn find(mut rest: &[u8], database: u64, slot: u64) -> Option<Found> {
    let (mark, sum) = (rest.try_get_u32_le().ok()?, rest.try_get_u32_le().ok()?);
    let mut head = rest.get(..HEAD - 8)?;
    let of = (head.get_u64_le(), head.get_u64_le());
    let after = head.get_u64_le();
    let length = usize::try_from(head.get_u32_le()).ok()?;
    let whole = rest.get(..(HEAD - 8).checked_add(length)?)?;
    if mark != MARK || of != (database, slot) || crc32fast::hash(whole) != sum {
        return None;
    }
    let mut bytes = &whole[HEAD - 8..];
    let mut tasks = Vec::new();
    while let Some(task) = Short::read(&mut bytes) {
        tasks.push(task);
    }
    let slots = u64::try_from((HEAD + length).div_ceil(SLOT)).ok()?;
    // What its sum says is whole is of another release if it cannot be read.
    bytes.is_empty().then_some(Found { tasks, after, next: slot + slots })
}

/// Where a block of so many slots begins that comes behind all before `next`: none goes beyond the end of the file.
pub(super) fn begin(next: u64, slots: usize) -> u64 {
    let left = SLOTS - next % SLOTS;
    if left < slots as u64 { next + left } else { next }
}

/// Where in the file a slot stands.
pub(super) fn place(slot: u64) -> u64 {
    slot % SLOTS * SLOT as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;

    use super::super::super::short::tests::short;
    use super::*;

    fn block(tasks: &[Short], slot: u64) -> (Vec<u8>, usize) {
        let mut block = Block::new();
        for task in tasks {
            assert!(block.has_room(task));
            block.put(task);
        }
        let (pages, length) = block.seal(7, slot, slot - 1);
        (pages.to_vec(), length)
    }

    proptest! {
        #[test]
        fn a_block_is_found_for_what_it_is_and_nothing_else(
            tasks in prop::collection::vec(short(), 1..20),
            slot: u32,
        ) {
            let slot = u64::from(slot) + 1;
            let (pages, length) = block(&tasks, slot);
            let found = find(&pages[..length], 7, slot).expect("it is there");
            prop_assert_eq!(&found.tasks, &tasks);
            prop_assert_eq!((found.after, found.next), (slot - 1, slot + (length / SLOT) as u64));
            prop_assert!(find(&pages, 8, slot).is_none() && find(&pages, 7, slot + SLOTS).is_none());
            prop_assert!(find(&pages[SLOT..], 7, slot).is_none() && find(&pages[..HEAD], 7, slot).is_none());
        }

        #[test]
        fn a_block_of_which_anything_is_wrong_is_none(
            tasks in prop::collection::vec(short(), 1..4),
            at in 0_usize..1_000_000,
            bit in 0_u8..8,
        ) {
            let (mut file, _) = block(&tasks, 1);
            let end = HEAD + tasks.iter().map(Short::len).sum::<usize>();
            file[at % end] ^= 1 << bit;
            prop_assert!(find(&file, 7, 1).is_none());
        }

        #[test]
        fn what_is_no_block_is_none(bytes in prop::collection::vec(any::<u8>(), 0..5_000), slot in 0_u64..2) {
            prop_assert!(find(&bytes, 0, slot).is_none());
        }
    }

    #[test]
    fn a_full_block_has_no_room() {
        let mut block = Block::new();
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let task = short().new_tree(&mut runner).expect("a task").current();
        let mut count = 0;
        while block.has_room(&task) {
            block.put(&task);
            count += 1;
        }
        let (pages, length) = block.seal(1, 0, 0);
        assert!(length <= LARGEST * SLOT && find(&pages, 1, 0).expect("it is there").tasks.len() == count);
        assert_eq!((begin(1_000, 24), begin(1_000, 25), begin(1_024, 32)), (1_000, 1_024, 1_024));
        assert_eq!((place(1_023), place(1_025)), (1_023 * 4_096, 4_096));
    }
}
