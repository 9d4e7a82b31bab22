//! How a command fails: what it says, and the exit code that scripts branch on.

use std::process::ExitCode;

use crate::config::masked;
use crate::output::tell;

/// What kind of failure it is. The number is the exit code, and part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The task or the call failed.
    Failed = 1,
    /// Wrong usage or a wrong configuration.
    Usage = 2,
    /// Nobody answers at the other end.
    Unreachable = 3,
    /// The other end does not let this caller in.
    Authentication = 4,
    /// The answer did not come in time.
    Timeout = 5,
    /// The person at the keyboard left: what shells expect after Ctrl-C.
    Interrupted = 130,
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    messages: Vec<String>,
}

impl Failure {
    /// A failure with one message.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, messages: vec![message.into()] }
    }

    /// The plain "it did not work".
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// Everything that is wrong with the usage or the configuration, in reading order.
    pub(crate) fn usage(messages: Vec<String>) -> Self {
        Self { kind: Kind::Usage, messages }
    }

    /// The same, and what to do next.
    pub(crate) fn with(mut self, next: &str) -> Self {
        if let Some(message) = self.messages.last_mut() {
            message.push_str(&format!("\n{next}"));
        }
        self
    }

    /// What kind of failure it is.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Tells the person on stderr.
    pub(crate) fn report(&self) {
        for message in &self.messages {
            tell(&format!("error: {}\n", masked(message)));
        }
    }

    /// Tells the calling program.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&masked(&self.messages.join("; ")))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::failed(format!("{error:#}"))
    }
}
