//! Agents that are programs: one process per turn, read line by line.
//!
//! * [`report`]: the seam. A dialect is a pure state machine between the lines of a program and what a
//!   turn reports; it does no I/O, so it can be tested and fuzzed alone.
//! * `child`, `lines`, `tail`, `environment`, [`kin`]: the life of a process.

pub(crate) mod child;
pub mod classify;
pub mod drive;
pub(crate) mod environment;
pub mod kin;
mod lines;
pub mod report;
mod tail;
