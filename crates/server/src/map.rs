//! Maps of the hot paths.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use foldhash::quality::RandomState;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// A map whose hash is several times cheaper than the standard one and, being seeded at random, just as
/// safe against callers who choose their keys to collide.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, RandomState>;

/// A map of very many ids. A tree, where a table would move as a whole when it is full, for which everybody waits. The
/// ids that servers make are numbers in it, the newest the largest: what is added stands beside what was added last,
/// and nothing reaches for texts, which are in no cache.
pub(crate) struct ById<V> {
    uuids: BTreeMap<u128, V>,
    /// All that are not written as servers write them.
    texts: BTreeMap<Box<str>, V>,
}

impl<V> Default for ById<V> {
    fn default() -> Self {
        Self { uuids: BTreeMap::new(), texts: BTreeMap::new() }
    }
}

impl<V> ById<V> {
    pub(crate) fn get(&self, id: &str) -> Option<&V> {
        match number(id) {
            Some(uuid) => self.uuids.get(&uuid),
            None => self.texts.get(id),
        }
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        match number(id) {
            Some(uuid) => self.uuids.get_mut(&uuid),
            None => self.texts.get_mut(id),
        }
    }

    /// Sets the value of an id, and returns the one that it had.
    pub(crate) fn insert(&mut self, id: &str, value: V) -> Option<V> {
        match number(id) {
            Some(uuid) => self.uuids.insert(uuid, value),
            None => self.texts.insert(id.into(), value),
        }
    }

    /// Gives an id a value, unless it has one, which is returned then.
    pub(crate) fn add(&mut self, id: &str, value: V) -> Option<&mut V> {
        match number(id) {
            Some(uuid) => add(self.uuids.entry(uuid), value),
            None => add(self.texts.entry(id.into()), value),
        }
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<V> {
        match number(id) {
            Some(uuid) => self.uuids.remove(&uuid),
            None => self.texts.remove(id),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.uuids.is_empty() && self.texts.is_empty()
    }
}

fn add<K: Ord, V>(entry: Entry<'_, K, V>, value: V) -> Option<&mut V> {
    match entry {
        Entry::Occupied(known) => Some(known.into_mut()),
        Entry::Vacant(free) => {
            free.insert(value);
            None
        }
    }
}

/// A UUID in the one form that is written back the same.
fn number(id: &str) -> Option<u128> {
    let usual = id.len() == Hyphenated::LENGTH && !id.bytes().any(|byte| byte.is_ascii_uppercase());
    usual.then(|| Uuid::try_parse_ascii(id.as_bytes()).ok()).flatten().map(|uuid| uuid.as_u128())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ById, Map, number};

    /// Few ids, so that they meet: as servers write them, otherwise written, and no UUIDs.
    fn ids() -> impl Strategy<Value = String> {
        "0123456[789]-89ab-7def-8[ab]00-000000000000|0123456[78]89AB7def8[ab]00000000000000|0123456[78]-89AB-7def-8000-0{12}|\\{0123456[78]-89ab-7def-8000-0{12}\\}|[a-c]{0,2}|[0-9a-f-]{36}|é{18}"
    }

    proptest! {
        #[test]
        fn a_map_by_id_is_a_map(changes in prop::collection::vec((0..3, ids()), 0..200)) {
            let (mut by_id, mut plain) = (ById::default(), Map::default());
            for (n, (change, id)) in changes.into_iter().enumerate() {
                let (one, other) = match change {
                    0 => (by_id.insert(&id, n), plain.insert(id.clone(), n)),
                    1 => (by_id.remove(&id), plain.remove(&id)),
                    _ => {
                        let known = plain.get(&id).copied();
                        plain.entry(id.clone()).or_insert(n);
                        (by_id.add(&id, n).copied(), known)
                    }
                };
                prop_assert_eq!(one, other);
                prop_assert_eq!(by_id.get(&id), plain.get(&id));
                prop_assert_eq!(by_id.get_mut(&id), plain.get_mut(&id));
                prop_assert_eq!(by_id.is_empty(), plain.is_empty());
            }
        }
    }

    #[test]
    fn what_a_server_makes_is_a_number() {
        let id = nuncio_protocol::TaskId::fresh();
        assert!(number(id.as_str()).is_some());
        assert!(number(&id.as_str().to_uppercase()).is_none());
        assert!(number(&format!("{{{id}}}")).is_none());
    }
}
