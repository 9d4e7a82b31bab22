//! The command line, as clap sees it.
//!
//! Values of settings stay text here: the configuration checks a flag, a variable and a line of
//! the file with the same code and the same words.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::card::args::CardArgs;
use crate::commands::client::args::{ClientArgs, ROUTE_EXAMPLE, RoutePreviewArgs};

/// Puts any agent on the A2A network.
#[derive(Debug, Parser)]
#[command(name = "nuncio", version, propagate_version = true)]
pub(crate) struct Cli {
    /// Log in detail (RUST_LOG has the last word)
    #[arg(long, short, global = true)]
    pub(crate) debug: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve an agent over A2A
    #[command(visible_alias = "a2a")]
    Serve(ServeArgs),
    /// Talk to an A2A agent
    #[command(visible_alias = "a2a-client")]
    Client(Box<ClientArgs>),
    /// Show which route a call would take
    #[command(hide = true, name = "a2a-route-preview", after_help = ROUTE_EXAMPLE)]
    RoutePreview(RoutePreviewArgs),
    /// Check, sign and verify agent cards, and make keys for that
    Card(CardArgs),
    /// Look after webhooks: what waits, what was given up, and sending it again
    Push(PushArgs),
    /// Check, show or describe the configuration
    Config(ConfigArgs),
    /// Check that everything this configuration needs is there
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// What decides how the server runs. `config check`, `config show` and `doctor` take the same
/// flags, so that they speak about the server that `serve` would start.
#[derive(Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Wire form of events and defaults
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Agent to serve
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Address of the A2A agent behind `--agent upstream`
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Address or name to listen on
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Port to listen on, 0 for any free one
    #[arg(long, value_name = "N")]
    port: Option<String>,
    /// Transport to serve (repeatable)
    #[arg(long, value_name = "TRANSPORT")]
    transport: Vec<String>,
    /// Where tasks are kept
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Directory for the database and other files
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// What clients see of the agent's thinking (repeatable)
    #[arg(long, value_name = "TYPE")]
    thinking_exposure: Vec<String>,
    /// Command of the agent
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl ServeArgs {
    /// The settings that were given as flags, by the name of their key.
    pub(crate) fn settings(&self) -> Vec<(&'static str, Vec<String>)> {
        let one = |value: &Option<String>| value.iter().cloned().collect::<Vec<_>>();
        let mut settings = vec![
            ("profile", one(&self.profile)),
            ("agent", one(&self.agent)),
            ("upstream", one(&self.upstream)),
            ("host", one(&self.host)),
            ("port", one(&self.port)),
            ("transport", self.transport.clone()),
            ("store", one(&self.store)),
            ("data-dir", one(&self.data_dir)),
            ("thinking-exposure", self.thinking_exposure.clone()),
        ];
        settings.retain(|(_, values)| !values.is_empty());
        settings
    }
}

#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    #[command(subcommand)]
    pub(crate) command: PushCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PushCommand {
    /// Print the webhooks that have, or may get, something to deliver
    List(PushListArgs),
    /// Print the webhooks that did not take everything
    Dead(PushListArgs),
    /// Send again what was given up, and what came after it
    Replay(PushReplayArgs),
    /// Make new keys, and put the secrets of all webhooks under the new one
    RotateKey(PushRotateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PushListArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// Only of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task_id: Option<String>,
    /// Print at most so many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: PushOutput,
}

#[derive(Debug, Args)]
pub(crate) struct PushReplayArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// Webhooks of this task
    #[arg(long, value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) task_id: Option<String>,
    /// Only this webhook of the task
    #[arg(long, value_name = "ID", requires = "task_id")]
    pub(crate) config_id: Option<String>,
    /// All webhooks that did not take everything
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PushRotateArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// Only this key: the one that encrypts secrets, or the one that signs notifications
    #[arg(long, value_enum, value_name = "KEY")]
    pub(crate) only: Option<PushKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PushKey {
    Secrets,
    Signing,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum PushOutput {
    #[default]
    Table,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: DoctorOutput,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorOutput {
    #[default]
    Table,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report every mistake in the configuration
    Check(ServeArgs),
    /// Print the effective configuration, and where each value comes from
    Show(ShowArgs),
    /// Print a JSON Schema of the configuration file, for editors
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: ShowOutput,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ShowOutput {
    #[default]
    Table,
    Json,
    Yaml,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn other_spellings_and_the_trailing_command_work() {
        let cli = Cli::try_parse_from(["nuncio", "a2a", "-d", "--port", "1", "--", "x", "-y"]).unwrap();
        assert!(cli.debug);
        let Command::Serve(args) = cli.command else {
            panic!("a2a is serve");
        };
        assert_eq!(args.settings(), [("port", vec!["1".to_owned()])]);
        assert_eq!(args.command, ["x", "-y"]);
        let call = ["nuncio", "a2a-client", "call", "--url", "u", "-p", "hi"];
        assert!(Cli::try_parse_from(call).is_ok());
    }
}
