//! Telling clients about their tasks, without being turned against anyone.
//!
//! * [`guard`]: the HTTP client for every address that a peer has named;
//! * [`keyring`]: the secrets of webhooks, encrypted where they are kept;
//! * [`sign`]: a signature on every notification, and the keys to check it with.

pub mod guard;
pub mod keyring;
pub mod sign;
