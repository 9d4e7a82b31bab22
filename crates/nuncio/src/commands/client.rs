//! `nuncio client`.

use crate::cli::{ClientArgs, ClientCommand};
use crate::failure::Failure;

/// Runs the command.
pub(crate) async fn run(args: &ClientArgs) -> Result<(), Failure> {
    match &args.command {
        ClientCommand::Call(_) | ClientCommand::Discover(_) => Err(Failure::failed("not built yet")),
    }
}
