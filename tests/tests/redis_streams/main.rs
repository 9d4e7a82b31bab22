//! Requests and replies by streams in Redis, whatever becomes of workers, callers and Redis itself.

#![allow(clippy::panic, reason = "a panic is how a test reports")]

mod attacks;
mod calls;
mod entries;
mod foreign;
mod growth;
mod kit;
mod losses;
