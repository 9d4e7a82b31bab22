//! A program that speaks on its stdin and stdout: `stdio:COMMAND`, as a shell reads it.
//!
//! Only a person names one; a card never does.

use std::process::Stdio;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Url;
use tokio::process::Command;

use super::{End, gone};
use crate::error::ClientError;

/// The address of a command that somebody typed.
pub(crate) fn command_of(command: &str) -> Option<Url> {
    let command = command.trim();
    let address = format!("stdio:{}", utf8_percent_encode(command, NON_ALPHANUMERIC));
    Url::parse(&address).ok().filter(|_| !command.is_empty())
}

pub(super) fn open(url: &Url, end: End) -> Result<(), ClientError> {
    let command = percent_decode_str(url.path()).decode_utf8_lossy();
    let spawned = Command::new("sh")
        .args(["-c", &command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn();
    let mut child = spawned.map_err(|error| gone(url, &format!("the command cannot be started: {error}")))?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(gone(url, "the command has no streams"));
    };
    tokio::spawn(async move {
        // It ends when its stdin does.
        end.lines(stdout, stdin).await;
        let _ = child.wait().await;
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_survives_being_an_address() {
        let url = command_of(" nuncio serve --transport stdio 'a?b#c%20' ").expect("an address");
        let command = percent_decode_str(url.path()).decode_utf8().expect("text");
        assert_eq!(command, "nuncio serve --transport stdio 'a?b#c%20'");
        assert!(command_of("  ").is_none());
    }
}
