//! Placeholder for the map of this crate.
