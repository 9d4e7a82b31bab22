//! Requests and replies by streams in Redis, whatever becomes of workers, callers and Redis itself.

mod attacks;
mod calls;
mod entries;
mod foreign;
mod growth;
mod kit;
mod losses;
