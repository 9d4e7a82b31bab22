//! The client commands: as documented, for scripts, and at a terminal.

mod agent;
mod documented;
mod files;
mod run;
mod scripts;
mod streams;
mod terminal;
