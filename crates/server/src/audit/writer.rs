//! The thread that writes the record.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nuncio_protocol::{Timestamp, codec, json};

use super::Waiting;

/// Lines written at once.
const BATCH: usize = 512;
/// How often the log says that the record cannot be written.
const COMPLAIN: Duration = Duration::from_secs(60);

pub(super) struct Writer {
    to: To,
    complained: Option<Instant>,
    /// The last line may have been written in part.
    torn: bool,
}

enum To {
    Stderr,
    File { path: PathBuf, file: File },
}

impl Writer {
    pub(super) fn stderr() -> Self {
        Self { to: To::Stderr, complained: None, torn: false }
    }

    pub(super) fn file(path: &Path) -> io::Result<Self> {
        let to = To::File { path: path.to_owned(), file: open(path)? };
        Ok(Self { to, complained: None, torn: false })
    }

    /// Writes until nobody can have anything to write any more.
    pub(super) fn run(mut self, waiting: &Receiver<Waiting>, lost: &AtomicU64) {
        let mut text = Vec::new();
        while let Ok(first) = waiting.recv() {
            let mut flushed = Vec::new();
            let mut lines = 0;
            for next in std::iter::once(first).chain(waiting.try_iter().take(BATCH)) {
                match next {
                    Waiting::Line(line) => {
                        codec::encode_into(&*line, &mut text);
                        text.push(b'\n');
                        lines += 1;
                    }
                    Waiting::Flush(done) => flushed.push(done),
                }
            }
            let missing = lost.swap(0, Ordering::Relaxed);
            if missing > 0 {
                tracing::warn!(lines = missing, "lines of the audit log were lost: it cannot be written fast enough");
                let line =
                    json!({ "time": Timestamp::now(), "operation": "Audit", "outcome": "lost", "lines": missing });
                codec::encode_into(&line, &mut text);
                text.push(b'\n');
            }
            if self.torn {
                text.insert(0, b'\n');
            }
            let written = self.write(&text);
            self.torn = written.is_err();
            if let Err(error) = written {
                lost.fetch_add(lines + missing, Ordering::Relaxed);
                self.complain(&error);
            }
            text.clear();
            for done in flushed {
                let _ = done.send(());
            }
        }
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match &mut self.to {
            To::Stderr => io::stderr().lock().write_all(text),
            To::File { path, file } => {
                // Whoever rotates it has moved the file away, and expects another in its place.
                if !is_same(path, file)? {
                    *file = open(path)?;
                }
                file.write_all(text)
            }
        }
    }

    fn complain(&mut self, error: &io::Error) {
        if self.complained.is_none_or(|at| at.elapsed() >= COMPLAIN) {
            self.complained = Some(Instant::now());
            tracing::error!(%error, "the audit log cannot be written: its lines are lost until it can");
        }
    }
}

/// Opens the file for its owner alone.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Whether the path still leads to this file.
fn is_same(path: &Path, file: &File) -> io::Result<bool> {
    let there = match path.metadata() {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let here = file.metadata()?;
    Ok((there.dev(), there.ino()) == (here.dev(), here.ino()))
}
