//! The documents of the systems that a profile stands in for: every example, table row, command and rule, run
//! through the real binary. `docs/seeds.md` says which test shows what.

#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

#[path = "../push/receiver.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod receiver;
#[allow(dead_code, reason = "shared with the tests of the commands")]
#[path = "../commands/run.rs"]
mod run;

mod coding_agent;
mod foreign;
mod iac_code;
mod liquid_crypto;
mod listed;
mod proto_agent;
