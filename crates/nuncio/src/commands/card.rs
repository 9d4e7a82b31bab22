//! `nuncio card lint | sign | verify | keygen | jwks`: cards in files or at addresses, and the keys for them.

pub(crate) mod args;
mod keys;
mod lint;
mod sign;
mod source;
mod verify;

use std::io::{IsTerminal, stdout};

use nuncio_protocol::codec;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::print;
use crate::terminal::clean;
use args::{CardArgs, CardCommand};

/// Runs the command.
pub(crate) async fn run(args: &CardArgs) -> Result<(), Failure> {
    match &args.command {
        CardCommand::Lint(args) => lint::run(args).await,
        CardCommand::Sign(args) => sign::run(args).await,
        CardCommand::Verify(args) => verify::run(args).await,
        CardCommand::Keygen(args) => keys::generate(args),
        CardCommand::Jwks(args) => keys::jwks(args),
    }
}

/// Writes a value as JSON. On a terminal, what would drive it is taken out.
fn print_json<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let text = format!("{}\n", codec::encode_pretty(value));
    if stdout().is_terminal() { print(&clean(&text)) } else { print(&text) }
}
