//! Lines that a person types.

use std::io::{BufRead, stdin};
use std::sync::mpsc as blocking;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// What came from the keyboard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or no keyboard any more.
    End,
}

/// The keyboard. From its making on, Ctrl-C no longer ends the process by itself.
pub(crate) struct Keyboard {
    interrupts: Signal,
    lines: Option<Lines>,
}

/// A thread that reads lines, one for each that is asked for. It is a thread of its own because nothing can stop a
/// read from a terminal, and the process must be able to end all the same.
struct Lines {
    ask: blocking::Sender<()>,
    typed: mpsc::UnboundedReceiver<Option<String>>,
    /// A line was asked for and has not come.
    waiting: bool,
}

impl Keyboard {
    /// Listens.
    pub(crate) fn new() -> Result<Self, Failure> {
        let interrupts = signal(SignalKind::interrupt())
            .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Self { interrupts, lines: None })
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn interrupt(&mut self) {
        if self.interrupts.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for a line or for Ctrl-C.
    pub(crate) async fn typed(&mut self) -> Typed {
        let Self { interrupts, lines } = self;
        let lines = lines.get_or_insert_with(Lines::start);
        tokio::select! {
            _ = interrupts.recv() => Typed::Interrupt,
            line = lines.next() => line.map_or(Typed::End, Typed::Line),
        }
    }
}

impl Lines {
    fn start() -> Self {
        let (ask, asked) = blocking::channel();
        let (tell, typed) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            while asked.recv().is_ok() {
                let mut line = String::new();
                let read = stdin().lock().read_line(&mut line).unwrap_or(0);
                let line = (read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned());
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { ask, typed, waiting: false }
    }

    async fn next(&mut self) -> Option<String> {
        if !self.waiting {
            self.ask.send(()).ok()?;
            self.waiting = true;
        }
        let line = self.typed.recv().await.flatten();
        self.waiting = false;
        line
    }
}
