//! JSON-RPC in frames: WebSocket, stdio and Unix sockets, through the real binary.

mod access;
mod calls;
mod client;
mod foreign;
mod kit;
mod life;
mod load;
mod odd;
