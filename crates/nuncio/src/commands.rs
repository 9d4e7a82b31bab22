//! One file per command.

pub(crate) mod card;
pub(crate) mod client;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod push;
pub(crate) mod serve;
