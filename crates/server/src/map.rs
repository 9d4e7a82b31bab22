//! Maps of the hot paths.

use std::hash::{BuildHasher, Hash};
use std::mem;

use foldhash::quality::RandomState;

/// A map whose hash is several times cheaper than the standard one and, being seeded at random, just as
/// safe against callers who choose their keys to collide.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, RandomState>;

/// A map for very many. It grows a part at a time (linear hashing), where a single table moves as a whole when it is
/// full: with a hundred thousand keys on the heap that takes many milliseconds, for which everybody waits.
pub(crate) struct Spread<K, V> {
    /// There is always one.
    parts: Vec<Map<K, V>>,
    hasher: RandomState,
}

/// How many a part holds before one is split: what fits a table of 256.
const PART: usize = 224;

impl<K, V> Default for Spread<K, V> {
    fn default() -> Self {
        Self { parts: vec![Map::default()], hasher: RandomState::default() }
    }
}

impl<K: Hash + Eq, V> Spread<K, V> {
    /// The map that holds the key if any does.
    pub(crate) fn part(&self, key: &K) -> &Map<K, V> {
        &self.parts[self.place(key)]
    }

    /// The same, to change or remove what is there.
    pub(crate) fn part_mut(&mut self, key: &K) -> &mut Map<K, V> {
        let place = self.place(key);
        &mut self.parts[place]
    }

    /// The same, to add the key.
    pub(crate) fn room_for(&mut self, key: &K) -> &mut Map<K, V> {
        if self.part(key).len() >= PART {
            self.split();
        }
        self.part_mut(key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.iter().all(Map::is_empty)
    }

    fn place(&self, key: &K) -> usize {
        // Tables make use of the lowest and the highest bits.
        let hash = usize::try_from(self.hasher.hash_one(key) >> 32).unwrap_or_default();
        let all = self.parts.len().next_power_of_two();
        let place = hash & (all - 1);
        // Parts that are not split yet hold what will be in their other half.
        if place < self.parts.len() { place } else { place - all / 2 }
    }

    /// Splits the part whose turn it is, which need not be the full one: that comes later.
    fn split(&mut self) {
        let whole = self.parts.len() - (1 << self.parts.len().ilog2());
        let both = mem::take(&mut self.parts[whole]);
        self.parts.push(Map::default());
        for (key, value) in both {
            self.part_mut(&key).insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Map, PART, Spread};

    proptest! {
        #[test]
        fn a_spread_map_is_a_map(changes in prop::collection::vec((any::<bool>(), 0_u16..3_000), 0..6_000)) {
            let (mut spread, mut plain) = (Spread::default(), Map::default());
            for (n, (add, key)) in changes.into_iter().enumerate() {
                let (one, other) = match add {
                    true => (spread.room_for(&key).insert(key, n), plain.insert(key, n)),
                    false => (spread.part_mut(&key).remove(&key), plain.remove(&key)),
                };
                prop_assert_eq!(one, other);
            }
            prop_assert_eq!(spread.is_empty(), plain.is_empty());
            for key in 0..3_000 {
                prop_assert_eq!(spread.part(&key).get(&key), plain.get(&key));
            }
        }
    }

    #[test]
    fn no_part_grows_with_the_whole() {
        let mut spread = Spread::default();
        for key in 0..200_000 {
            spread.room_for(&key).insert(key, ());
            assert!(spread.part(&key).len() <= 3 * PART, "{key}");
        }
        assert_eq!(spread.parts.iter().map(Map::len).sum::<usize>(), 200_000);
    }
}
