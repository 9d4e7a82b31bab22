//! JSON-RPC in frames: WebSocket, stdio and Unix sockets, through the real binary.

#![allow(clippy::panic, reason = "a panic is how a test reports")]

mod access;
mod calls;
mod client;
mod foreign;
mod kit;
mod life;
mod load;
mod odd;
