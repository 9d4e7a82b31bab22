//! The command line of `nuncio card`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::config::Secret;

#[derive(Debug, Args)]
pub(crate) struct CardArgs {
    #[command(subcommand)]
    pub(crate) command: CardCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CardCommand {
    /// Report mistakes in cards, with the section of the specification
    #[command(
        after_help = "Examples:\n  nuncio card lint agent-card.json\n  nuncio card lint https://agent.example.com --strict --output json"
    )]
    Lint(LintArgs),
    /// Sign a card and print it
    #[command(
        after_help = "Example:\n  nuncio card sign agent-card.json --key 2026=card-key.pem --sdk-form > signed.json"
    )]
    Sign(SignArgs),
    /// Check the signatures of a card
    #[command(
        after_help = "Examples:\n  nuncio card verify agent-card.json --jwks jwks.json\n  nuncio card verify https://agent.example.com --jwks-url https://agent.example.com/.well-known/jwks.json"
    )]
    Verify(VerifyArgs),
    /// Make a key that signs cards
    #[command(after_help = "Example:\n  nuncio card keygen --algorithm ES256 --out card-key.pem > public.jwk.json")]
    Keygen(KeygenArgs),
    /// Print the public halves of keys, as servers publish them
    #[command(after_help = "Example:\n  nuncio card jwks --key 2026=card-key.pem > jwks.json")]
    Jwks(JwksArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    /// Files or addresses of cards; `-` is stdin
    #[arg(value_name = "CARD", required = true)]
    pub(crate) cards: Vec<String>,
    /// Fail on warnings, too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: CardOutput,
}

#[derive(Debug, Args)]
pub(crate) struct SignArgs {
    /// File or address of the card; `-` is stdin
    #[arg(value_name = "CARD")]
    pub(crate) card: String,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    /// Secret to sign with (HS256), whose key id is `default`
    #[arg(long, value_name = "SECRET", env = "NUNCIO_SIGNING_SECRET", hide_env_values = true)]
    pub(crate) secret: Option<Secret>,
    /// Sign a second time, in the form that the SDKs for Python and JavaScript verify
    #[arg(long)]
    pub(crate) sdk_form: bool,
    /// Where the public keys are published (https)
    #[arg(long, value_name = "URL")]
    pub(crate) jku: Option<String>,
    /// Keep the signatures that the card has
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// File or address of the card; `-` is stdin
    #[arg(value_name = "CARD")]
    pub(crate) card: String,
    /// File with the keys that count (JSON Web Keys)
    #[arg(long, value_name = "FILE")]
    pub(crate) jwks: Option<PathBuf>,
    /// Address of the keys that count (https, or on this machine)
    #[arg(long, value_name = "URL")]
    pub(crate) jwks_url: Option<String>,
    /// Secret that counts (HS256)
    #[arg(long, value_name = "SECRET", env = "NUNCIO_VERIFY_CARD_SECRET", hide_env_values = true)]
    pub(crate) secret: Option<Secret>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: CardOutput,
}

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// Algorithm of the key
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    pub(crate) algorithm: KeyAlgorithm,
    /// Name of the key (`kid`) [default: its thumbprint]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// File for the private key; it must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct JwksArgs {
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    /// Configuration file whose `signing-keys` are meant
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Private key in PEM, and its name (repeatable)
    #[arg(long = "key", value_name = "ID=FILE", value_parser = named_file)]
    pub(crate) keys: Vec<(String, PathBuf)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyAlgorithm {
    #[default]
    #[value(name = "ES256")]
    Es256,
    #[value(name = "RS256")]
    Rs256,
    #[value(name = "EdDSA")]
    EdDsa,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CardOutput {
    #[default]
    Text,
    Json,
}

fn named_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((id, file)) if !id.is_empty() && !file.is_empty() => Ok((id.to_owned(), file.into())),
        _ => Err("expected ID=FILE, such as 2026=card-key.pem".to_owned()),
    }
}
