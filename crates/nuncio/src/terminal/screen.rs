//! The answer on stdout, all talk on stderr, and a sign of life while nothing happens.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use super::{Cleaner, Paint, clean, colours, is_dumb};
use crate::failure::Failure;
use crate::output::{print_on, tell};

/// Waits shorter than this show nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// What the line under the cursor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Empty,
    Answer,
    Thinking,
    Spinner,
}

/// Where a call is shown.
pub(crate) struct Screen {
    /// Whether the answer goes to a terminal.
    shown: bool,
    /// Whether a spinner can be drawn.
    spins: bool,
    colours: bool,
    /// Whether whoever reads the answer has left.
    is_left: bool,
    cleaner: Cleaner,
    thoughts: Cleaner,
    line: Line,
    /// Whether the last line of the answer has no end yet.
    midline: bool,
    /// Whether a line of thinking has begun.
    thinking: bool,
    since: Instant,
    last: Instant,
    frame: usize,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            shown: io::stdout().is_terminal(),
            spins: io::stderr().is_terminal() && !is_dumb(),
            colours: colours(&io::stderr()),
            is_left: false,
            cleaner: Cleaner::default(),
            thoughts: Cleaner::default(),
            line: Line::Empty,
            midline: false,
            thinking: false,
            since: now,
            last: now,
            frame: 0,
        }
    }

    /// A piece of the answer. On a terminal it is cleaned, elsewhere it is what the agent sent.
    pub(crate) fn answer(&mut self, text: &str) -> Result<(), Failure> {
        let cleaned = self.shown.then(|| self.cleaner.clean(text));
        let text = cleaned.as_deref().unwrap_or(text);
        let Some(last) = text.chars().last() else { return Ok(()) };
        self.erase();
        self.end_thinking();
        self.is_left |= !print_on(text)?;
        self.midline = last != '\n';
        if self.shown {
            self.line = if self.midline { Line::Answer } else { Line::Empty };
        }
        self.moved();
        Ok(())
    }

    /// The answer is complete: ends its last line.
    pub(crate) fn end_answer(&mut self) -> Result<(), Failure> {
        if !self.midline {
            return Ok(());
        }
        self.erase();
        self.is_left |= !print_on("\n")?;
        self.midline = false;
        if self.line == Line::Answer {
            self.line = Line::Empty;
        }
        Ok(())
    }

    /// Whether nobody reads the answer any more: what follows is for nobody.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left
    }

    /// A line about what happens.
    pub(crate) fn note(&mut self, text: &str) {
        self.line(Paint::Dim, text);
    }

    /// A line that matters.
    pub(crate) fn say(&mut self, text: &str) {
        self.line(Paint::Plain, text);
    }

    /// A question; what is typed follows on the same line.
    pub(crate) fn ask(&mut self, text: &str) {
        self.fresh_line();
        tell(&format!("{} ", Paint::Bold.on(self.colours, text)));
        self.moved();
    }

    /// Whoever typed a line moved the cursor.
    pub(crate) fn typed(&mut self) {
        self.line = Line::Empty;
        self.moved();
    }

    /// Ctrl-C left its trace in the line.
    pub(crate) fn interrupted(&mut self) {
        self.erase();
        self.thinking = false;
        tell("\n");
        self.typed();
    }

    /// A piece of the agent's thinking.
    pub(crate) fn think(&mut self, text: &str) {
        let text = self.thoughts.clean(text);
        if text.is_empty() {
            return;
        }
        if !self.thinking {
            self.fresh_line();
            tell(&Paint::Dim.on(self.colours, "thinking: "));
        }
        tell(&Paint::Dim.on(self.colours, &text));
        self.thinking = !text.ends_with('\n');
        self.line = if self.thinking { Line::Thinking } else { Line::Empty };
        self.moved();
    }

    /// Some time has passed. On a long wait a spinner says that the wait goes on.
    pub(crate) fn tick(&mut self) {
        let free = matches!(self.line, Line::Empty | Line::Spinner);
        if !self.spins || !free || self.last.elapsed() < PATIENCE {
            return;
        }
        let sign = FRAMES[self.frame % FRAMES.len()];
        self.frame += 1;
        let text = format!("{sign} waiting for the agent, {} s (Ctrl-C to stop)", self.since.elapsed().as_secs());
        tell(&format!("\r{}\x1b[K", Paint::Dim.on(self.colours, &text)));
        self.line = Line::Spinner;
    }

    /// Nothing more is to come.
    pub(crate) fn close(&mut self) {
        self.erase();
        self.end_thinking();
    }

    fn line(&mut self, paint: Paint, text: &str) {
        self.fresh_line();
        for line in clean(text).lines() {
            tell(&format!("{}\n", paint.on(self.colours, line)));
        }
        self.moved();
    }

    /// Makes sure that what follows on stderr begins a line. The answer on stdout is not touched.
    fn fresh_line(&mut self) {
        self.erase();
        if self.line == Line::Answer {
            tell("\n");
            self.line = Line::Empty;
        }
        self.end_thinking();
    }

    fn end_thinking(&mut self) {
        if std::mem::take(&mut self.thinking) {
            tell("\n");
            self.line = Line::Empty;
        }
    }

    fn erase(&mut self) {
        if self.line == Line::Spinner {
            tell("\r\x1b[K");
            self.line = Line::Empty;
        }
    }

    fn moved(&mut self) {
        self.last = Instant::now();
    }
}
