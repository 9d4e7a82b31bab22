//! stdout carries data, stderr carries talk.

use std::io::{self, Write};

use crate::failure::Failure;

/// Writes data to stdout. A reader that has seen enough (`| head`) is not a failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_on(text).map(drop)
}

/// The same, and whether the reader is still there.
pub(crate) fn print_on(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(format!("cannot write to stdout: {error}"))),
    }
}

/// Says what looks like a mistake but stops nothing.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        tell(&format!("warning: {warning}\n"));
    }
}

/// Writes talk to stderr. Talk that nobody can hear is no failure, where `eprintln!` panics.
pub(crate) fn tell(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
