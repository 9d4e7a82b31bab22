//! The events that were seen lately.

use std::collections::{HashSet, VecDeque};

/// So many are remembered.
const MOST: usize = 10_000;

/// Remembers the last ones, and forgets the oldest.
#[derive(Debug, Default)]
pub(super) struct Seen {
    order: VecDeque<Box<str>>,
    known: HashSet<Box<str>>,
}

impl Seen {
    /// Remembers an event; true if it was known.
    pub(super) fn put(&mut self, event: &str) -> bool {
        if self.known.contains(event) {
            return true;
        }
        if self.order.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(event.into());
        self.known.insert(event.into());
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut seen = Seen::default();
        for i in 0..=MOST {
            assert!(!seen.put(&i.to_string()));
        }
        assert!(seen.put(&MOST.to_string()) && seen.put("1"));
        assert!(!seen.put("0"));
        assert_eq!((seen.order.len(), seen.known.len()), (MOST, MOST));
    }
}
