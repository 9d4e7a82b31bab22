//! What the readers of JSON lines share.
//!
//! * [`read`], [`write`]: lines in and out.
//! * [`prose`]: an answer in pieces, said once and in paragraphs.
//! * [`calls`]: the tool calls that are under way.
//! * [`question`]: questions with options, and the answers to them.
//! * [`verdict`]: how a turn ends, once.

use nuncio_protocol::{Value, codec};

use super::report::Report;
use crate::agent::spoken;

pub(super) mod calls;
pub(super) mod prose;
pub(super) mod question;
pub(super) mod verdict;

/// A line of a program that prints JSON, and sometimes something else.
pub(super) enum Line {
    /// An object.
    Json(Value),
    /// Something for people.
    Other,
    /// It begins like an object and is none.
    Broken(String),
}

/// Reads a line.
pub(super) fn read(line: &str) -> Line {
    let line = line.trim();
    if !line.starts_with('{') {
        return Line::Other;
    }
    match spoken::decode(line.as_bytes()) {
        Ok(value) => Line::Json(value),
        Err(error) => Line::Broken(error.to_string()),
    }
}

/// A line for the program's stdin.
pub(super) fn write(value: &Value) -> Report {
    Report::Write(line(value))
}

/// The bytes of a line for the program's stdin.
pub(super) fn line(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode_into(value, &mut bytes);
    bytes.push(b'\n');
    bytes
}

/// The text of a member; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The beginning of a text, for titles and messages.
pub(super) fn brief(text: &str, most: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_people_and_broken_lines_are_told_apart() {
        assert!(matches!(read("[SandboxDebug] {}"), Line::Other));
        assert!(matches!(read(""), Line::Other));
        assert!(matches!(read("{\"a\":"), Line::Broken(_)));
        assert!(matches!(read("  {} \r"), Line::Json(_)));
    }

    #[test]
    fn a_brief_text_ends_between_characters() {
        assert_eq!(brief(" grün ", 3), "grü…");
        assert_eq!(brief("grün", 4), "grün");
    }
}
