//! Maps of the hot paths.

use std::hash::{BuildHasher, Hash};
use std::mem;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table;

/// A map whose hash is several times cheaper than the standard one and, being seeded at random, just as
/// safe against callers who choose their keys to collide.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, RandomState>;

/// A map for very many. It grows a part at a time (linear hashing), where a single table moves as a whole when it is
/// full: with a hundred thousand keys on the heap that takes many milliseconds, for which everybody waits.
pub(crate) struct Spread<K, V> {
    /// There is always one.
    parts: Vec<HashTable<Entry<K, V>>>,
    hasher: RandomState,
}

/// With its hash, so that nothing reaches for the key when it moves: most keys are in no cache.
struct Entry<K, V> {
    hash: u64,
    key: K,
    value: V,
}

/// How many a part holds before one is split: what fits a table of 256.
const PART: usize = 224;

impl<K, V> Default for Spread<K, V> {
    fn default() -> Self {
        Self { parts: vec![HashTable::new()], hasher: RandomState::default() }
    }
}

impl<K: Hash + Eq, V> Spread<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let hash = self.hasher.hash_one(key);
        let found = self.parts[self.place(hash)].find(hash, |entry| entry.key == *key);
        found.map(|entry| &entry.value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let hash = self.hasher.hash_one(key);
        let place = self.place(hash);
        let found = self.parts[place].find_mut(hash, |entry| entry.key == *key);
        found.map(|entry| &mut entry.value)
    }

    /// Sets the value of a key, and returns the one that it had.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.entry(&key) {
            (_, hash_table::Entry::Occupied(known)) => Some(mem::replace(&mut known.into_mut().value, value)),
            (hash, hash_table::Entry::Vacant(free)) => {
                free.insert(Entry { hash, key, value });
                None
            }
        }
    }

    /// Gives a key a value, unless it has one, which is returned then.
    pub(crate) fn add(&mut self, key: K, value: V) -> Option<&mut V> {
        match self.entry(&key) {
            (_, hash_table::Entry::Occupied(known)) => Some(&mut known.into_mut().value),
            (hash, hash_table::Entry::Vacant(free)) => {
                free.insert(Entry { hash, key, value });
                None
            }
        }
    }

    /// Where a key is or would be, and its hash.
    fn entry(&mut self, key: &K) -> (u64, hash_table::Entry<'_, Entry<K, V>>) {
        let hash = self.hasher.hash_one(key);
        if self.parts[self.place(hash)].len() >= PART {
            self.split();
        }
        let place = self.place(hash);
        (hash, self.parts[place].entry(hash, |entry| entry.key == *key, |entry| entry.hash))
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let hash = self.hasher.hash_one(key);
        let place = self.place(hash);
        let found = self.parts[place].find_entry(hash, |entry| entry.key == *key).ok()?;
        Some(found.remove().0.value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.iter().all(HashTable::is_empty)
    }
}

impl<K, V> Spread<K, V> {
    fn place(&self, hash: u64) -> usize {
        // Tables make use of the lowest and the highest bits.
        let hash = usize::try_from(hash >> 32).unwrap_or_default();
        let all = self.parts.len().next_power_of_two();
        let place = hash & (all - 1);
        // Parts that are not split yet hold what will be in their other half.
        if place < self.parts.len() { place } else { place - all / 2 }
    }

    /// Splits the part whose turn it is, which need not be the full one: that comes later.
    fn split(&mut self) {
        let whole = self.parts.len() - (1 << self.parts.len().ilog2());
        let both = mem::take(&mut self.parts[whole]);
        self.parts.push(HashTable::new());
        for entry in both {
            let place = self.place(entry.hash);
            self.parts[place].insert_unique(entry.hash, entry, |entry| entry.hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{HashTable, Map, PART, Spread};

    proptest! {
        #[test]
        fn a_spread_map_is_a_map(changes in prop::collection::vec((any::<bool>(), 0_u16..3_000), 0..6_000)) {
            let (mut spread, mut plain) = (Spread::default(), Map::default());
            for (n, (add, key)) in changes.into_iter().enumerate() {
                let (one, other) = match add {
                    true => (spread.insert(key, n), plain.insert(key, n)),
                    false => (spread.remove(&key), plain.remove(&key)),
                };
                prop_assert_eq!(one, other);
            }
            prop_assert_eq!(spread.is_empty(), plain.is_empty());
            for key in 0..3_000 {
                prop_assert_eq!(spread.get(&key), plain.get(&key));
                prop_assert_eq!(spread.get_mut(&key), plain.get_mut(&key));
                let known = plain.get(&key).copied();
                prop_assert_eq!(spread.add(key, 7).copied(), known);
                prop_assert_eq!(spread.get(&key), Some(&known.unwrap_or(7)));
            }
        }
    }

    #[test]
    fn no_part_grows_with_the_whole() {
        let mut spread = Spread::default();
        for key in 0..200_000 {
            spread.insert(key, ());
            if key % 1_000 == 0 {
                assert!(spread.parts.iter().all(|part| part.len() <= 3 * PART), "{key}");
            }
        }
        assert_eq!(spread.parts.iter().map(HashTable::len).sum::<usize>(), 200_000);
    }
}
