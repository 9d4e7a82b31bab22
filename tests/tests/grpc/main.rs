//! gRPC: frames by hand, what every gRPC server has, a port of its own, and what streams do at their ends.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that goes wrong is over")]

mod foreign;
mod frames;
mod kit;
mod services;
mod streams;
