//! Agents that are programs: one process per turn, read line by line.
//!
//! * [`report`]: the seam. A dialect is a pure state machine between the lines of a program and what a
//!   turn reports; it does no I/O, so it can be tested and fuzzed alone.
//! * [`drive`]: the loop that runs a program for a turn.
//! * `child`, `lines`, `tail`, `environment`, [`kin`]: the life of a process.
//! * [`claude`], [`codex`], [`codex_exec`], [`cursor`], [`gemini`], [`goose`], [`opencode`], [`qwen`], [`vibe`]:
//!   programs that people know.
//! * [`generic`]: any other command.
//! * [`words`], [`classify`], [`context_pack`]: arguments, profiles and prompts.

pub(crate) mod child;
pub mod classify;
pub mod claude;
pub mod codex;
pub mod codex_exec;
pub mod context_pack;
pub mod cursor;
pub mod drive;
pub(crate) mod environment;
pub mod gemini;
pub mod generic;
pub mod goose;
mod jsonl;
pub mod kin;
mod ledger;
mod lines;
pub mod opencode;
pub mod qwen;
pub mod report;
mod tail;
pub mod vibe;
pub mod words;
