//! Several servers with one database are one server, whatever happens to any of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test reports")]

mod acting;
mod chaos;
mod following;
mod judge;
mod logbook;
mod sharing;
mod starting;
mod takeover;

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../push/receiver.rs"]
mod receiver;
