//! `nuncio doctor`.

use crate::cli::ServeArgs;
use crate::config::Config;
use crate::failure::Failure;

/// Runs the command.
pub(crate) async fn run(_args: &ServeArgs, _config: &Config) -> Result<(), Failure> {
    Err(Failure::failed("not built yet"))
}
