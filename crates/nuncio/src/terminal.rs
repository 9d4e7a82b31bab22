//! What a terminal can do, and what must not reach it.

mod clean;
mod keyboard;
mod paint;
mod screen;
mod table;

use std::io::{self, IsTerminal};

pub(crate) use clean::{Cleaner, clean, one_line};
pub(crate) use keyboard::{Keyboard, Typed};
pub(crate) use paint::Paint;
pub(crate) use screen::Screen;
pub(crate) use table::{Cell, Table};

/// How many characters fit into a line of stdout; nothing if it is not a terminal.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Whether `stream` shows colours and the person has nothing against them.
pub(crate) fn colours(stream: &impl IsTerminal) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !unwanted && !is_dumb()
}

/// Whether the terminal can do nothing but print lines.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Whether there is a person who can be asked.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
