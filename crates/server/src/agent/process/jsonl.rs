//! What the readers of JSON lines share.
//!
//! * [`read`], [`write`]: lines in and out.
//! * [`prose`]: an answer in pieces, said once and in paragraphs.
//! * [`calls`]: the tool calls that are under way.
//! * [`question`]: questions with options, and the answers to them.
//! * [`verdict`]: how a turn ends, once.

use std::fmt::Write as _;

use nuncio_protocol::{Value, codec};

use super::report::Report;

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
    let error = match codec::decode(line.as_bytes()) {
        Ok(value) => return Line::Json(value),
        Err(error) => error,
    };
    // A program that cuts its output in the middle of a character writes half of it as an escape.
    match mend(line).and_then(|mended| codec::decode(mended.as_bytes()).ok()) {
        Some(value) => Line::Json(value),
        None => Line::Broken(error.to_string()),
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

/// The line with halves of surrogate pairs replaced; `None` if there are none.
fn mend(line: &str) -> Option<String> {
    let mut mended = String::with_capacity(line.len());
    let mut changed = false;
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                changed = true;
                let _ = write!(mended, "\u{FFFD}");
                rest = &rest[6..];
                continue;
            }
            // The escaped character goes with its backslash, or `\\u` would look like an escape.
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    mended.push_str(rest);
    changed.then_some(mended)
}

/// The code unit of a `\uXXXX` at the beginning.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(line: &str) -> Option<Value> {
        match read(line) {
            Line::Json(value) => Some(value),
            _ => None,
        }
    }

    #[test]
    fn halves_of_characters_do_not_break_a_line() {
        let said = |json: &str| value(json).map(|value| text(&value, "a").to_owned());
        assert_eq!(said(r#"{"a":"x\ud83dy"}"#).as_deref(), Some("x\u{FFFD}y"));
        assert_eq!(said(r#"{"a":"\ude00"}"#).as_deref(), Some("\u{FFFD}"));
        assert_eq!(said(r#"{"a":"\ud83d\ud83d\ude00"}"#).as_deref(), Some("\u{FFFD}😀"));
        assert_eq!(said(r#"{"a":"\\ud83d \ud83d"}"#).as_deref(), Some("\\ud83d \u{FFFD}"));
    }

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

    proptest::proptest! {
        #[test]
        fn any_line_can_be_read(line in "(\\{|\\\\|u|d83d|\"|[0-9a-f]|.){0,40}") {
            let _ = read(&line);
            let _ = mend(&line);
        }
    }
}
