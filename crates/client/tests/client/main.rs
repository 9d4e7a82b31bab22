//! The client against real servers on real sockets.
#![allow(clippy::unwrap_used, clippy::panic)] // helpers outside of test functions, too

mod calls;
mod discovery;
mod resume;
mod server;
mod signatures;
mod streams;
