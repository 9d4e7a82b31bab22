//! A client for A2A agents.

pub mod sse;
