//! The `nuncio` command: reads the command line, sets up the log, and hands over to a command.

// They panic where nobody listens; see `output`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod commands;
mod config;
mod failure;
mod logging;
mod output;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::failure::Failure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout with code 0, mistakes to stderr with code 2.
            let text = error.render().to_string();
            match config::masked(&text) {
                masked if masked != text => output::tell(&masked),
                _ => _ = error.print(),
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.exit_code()
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Serve(args) => {
            let loaded = config::load(args)?;
            logging::init(loaded.config.log, cli.debug);
            for warning in &loaded.warnings {
                tracing::warn!("{warning}");
            }
            block_on(commands::serve::run(args, &loaded.config))
        }
        Command::Doctor(args) => {
            let loaded = config::load(&args.serve).or_else(|failure| commands::doctor::unloadable(args, failure))?;
            logging::init(loaded.config.log, cli.debug);
            output::warn(&loaded.warnings);
            block_on(commands::doctor::run(args, &loaded.config))
        }
        Command::Client(args) => {
            logging::init(config::LogFormat::Auto, cli.debug);
            block_on(commands::client::run(args))
        }
        Command::RoutePreview(args) => commands::client::route_preview(args),
        Command::Card(args) => {
            logging::init(config::LogFormat::Auto, cli.debug);
            block_on(commands::card::run(args))
        }
        Command::Push(args) => block_on(commands::push::run(args)),
        Command::Config(args) => block_on(commands::config::run(args)),
        Command::Completions(args) => commands::completions::run(args),
    }
}

fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))?
        .block_on(work)
}
