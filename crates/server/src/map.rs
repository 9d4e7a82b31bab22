//! Maps of the hot paths.

/// A map whose hash is several times cheaper than the standard one and, being seeded at random, just as
/// safe against callers who choose their keys to collide.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, foldhash::quality::RandomState>;
