//! The JSON that programs print.

use nuncio_protocol::Value;
use nuncio_protocol::codec::{self, DecodeError};

/// Reads it. A program that cuts its output in the middle of a character writes half of it, as an escape or as
/// bytes: that half is lost, and nothing else.
pub(super) fn decode(json: &[u8]) -> Result<Value, DecodeError> {
    codec::decode(json).or_else(|error| {
        let text = String::from_utf8_lossy(json);
        let mended = mend(&text).map_or(text, Into::into);
        codec::decode(mended.as_bytes()).map_err(|_| error)
    })
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
                mended.push(char::REPLACEMENT_CHARACTER);
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

    #[test]
    fn halves_of_characters_are_all_that_is_lost() {
        let said = |json: &[u8]| decode(json).ok().and_then(|value| value["a"].as_str().map(str::to_owned));
        assert_eq!(said(br#"{"a":"x\ud83dy"}"#).as_deref(), Some("x\u{FFFD}y"));
        assert_eq!(said(br#"{"a":"\ude00"}"#).as_deref(), Some("\u{FFFD}"));
        assert_eq!(said(br#"{"a":"\ud83d\ud83d\ude00"}"#).as_deref(), Some("\u{FFFD}😀"));
        assert_eq!(said(br#"{"a":"\\ud83d \ud83d"}"#).as_deref(), Some("\\ud83d \u{FFFD}"));
        assert_eq!(said(b"{\"a\":\"x\xf0\x9fy\"}").as_deref(), Some("x\u{FFFD}y"));
        assert!(decode(br#"{"a":"\ud83d"#).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_line_can_be_read(line in "(\\{|\\\\|u|d83d|\"|[0-9a-f]|.){0,40}") {
            let _ = decode(line.as_bytes());
            let _ = mend(&line);
        }
    }
}
