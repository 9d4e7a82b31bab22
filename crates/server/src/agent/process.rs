//! Agents that are programs: one process per turn, read line by line.
//!
//! * [`report`]: the seam. A dialect is a pure state machine between the lines of a program and what a
//!   turn reports; it does no I/O, so it can be tested and fuzzed alone.
//! * `child`, `lines`, `tail`, `environment`, [`kin`]: the life of a process.
//! * [`cursor`], [`gemini`], [`goose`], [`opencode`], [`vibe`]: programs that people know.
//! * [`generic`]: any other command.
//! * [`words`], [`classify`], [`context_pack`]: arguments, profiles and prompts.

pub(crate) mod child;
pub mod classify;
pub mod drive;
pub mod context_pack;
pub mod cursor;
mod environment;
pub mod gemini;
pub mod generic;
pub mod goose;
pub mod kin;
mod ledger;
mod lines;
pub mod opencode;
pub mod report;
#[cfg(test)]
mod robust;
mod tail;
pub mod vibe;
pub mod words;
