//! Numbers that differ from run to run and can be had again.

use std::hash::{BuildHasher, RandomState};

/// A source of numbers.
pub struct Random(u64);

impl Random {
    /// A source that starts from `NUNCIO_TEST_SEED`, or somewhere else each time. Says where.
    pub fn new() -> Self {
        let given = std::env::var("NUNCIO_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0)) | 1;
        println!("NUNCIO_TEST_SEED={seed}");
        Self(seed)
    }

    /// Another source, which goes its own way from here.
    pub fn split(&mut self) -> Self {
        Self(self.below(u64::MAX) | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}
