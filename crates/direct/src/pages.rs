//! Memory that a disk can read by itself.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// What files are written in: no disk in use asks for larger pieces, or for addresses that divide by more.
pub const PAGE: usize = 4096;

/// Whole pages of zeros, at an address that is a multiple of [`PAGE`].
pub struct Pages {
    /// Never moves and never grows.
    memory: Box<[u8]>,
    start: usize,
    length: usize,
}

impl Pages {
    /// So many of them.
    pub fn new(count: usize) -> Self {
        let length = count * PAGE;
        let memory = vec![0; length + PAGE].into_boxed_slice();
        // Never more than a page away: a byte can stand anywhere.
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Self { memory, start, length }
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pages", self.length / PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_stand_where_pages_stand() {
        for count in [0, 1, 3, 32] {
            let mut pages = Pages::new(count);
            assert_eq!(pages.len(), count * PAGE);
            assert!(count == 0 || pages.as_ptr().addr().is_multiple_of(PAGE));
            assert!(pages.iter().all(|byte| *byte == 0));
            pages.fill(7);
        }
    }
}
