//! Who may come in, what they may see, and over which kind of connection.

#![allow(clippy::panic, reason = "that is how tests fail")]

mod asks;
mod browser;
mod flood;
mod kit;
mod matrix;
mod others;
mod provider;
mod redis_tls;
mod schemes;
mod streams;
mod tls;
