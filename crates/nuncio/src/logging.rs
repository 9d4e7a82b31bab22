//! The log: text for people at a terminal, JSON lines for machines, always on stderr.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;
use crate::output::tell;

/// Starts the log. `RUST_LOG` decides the level if it is set, `--debug` otherwise.
pub(crate) fn init(format: LogFormat, debug: bool) {
    // At that level the driver of PostgreSQL shows every value, among them what callers have written.
    let level = if debug { "debug,tokio_postgres=info" } else { "info" };
    let filter = match std::env::var("RUST_LOG") {
        Ok(directives) if !directives.is_empty() => EnvFilter::try_new(&directives).unwrap_or_else(|error| {
            tell(&format!("warning: RUST_LOG is not understood, using `{level}`: {error}\n"));
            EnvFilter::new(level)
        }),
        _ => EnvFilter::new(level),
    };
    let terminal = io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Talk)
        .log_internal_errors(false)
        .with_ansi(terminal && std::env::var_os("NO_COLOR").is_none());
    let text = match format {
        LogFormat::Auto => terminal,
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    if text {
        builder.init();
    } else {
        builder.json().flatten_event(true).init();
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let what = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(what, place, "something panicked");
    }));
}

/// stderr that takes everything: a server goes on when its log cannot be written.
struct Talk;

impl Write for Talk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
