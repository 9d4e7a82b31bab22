//! The client commands: as documented, for scripts, and at a terminal.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "a panic is how a test reports")]

mod agent;
mod documented;
mod files;
mod run;
mod scripts;
mod streams;
mod terminal;
