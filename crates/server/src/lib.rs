//! Placeholder for the map of this crate.
pub mod store;
