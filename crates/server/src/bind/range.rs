//! Which bytes of a content a request asks for.

use http::{HeaderMap, header};

/// What to send of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// All of it.
    Whole,
    /// From the first to the last byte, both included.
    Some(u64, u64),
    /// There is nothing where the request points to.
    Unsatisfiable,
}

/// Reads `Range` and `If-Range`. Anything but one plain range of bytes is answered with the whole content.
pub(crate) fn wanted(headers: &HeaderMap, size: u64, etag: &str) -> Range {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let Some(range) = text(header::RANGE) else { return Range::Whole };
    // Whoever has the beginning of another content must not get the end of this one.
    if headers.contains_key(header::IF_RANGE) && text(header::IF_RANGE).map(str::trim) != Some(etag) {
        return Range::Whole;
    }
    read(range, size).unwrap_or(Range::Whole)
}

fn read(text: &str, size: u64) -> Option<Range> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || range.contains(',') {
        return None;
    }
    let number = |text: &str| match text.trim() {
        text if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            // More digits than a number holds are a number beyond every content.
            Some(text.parse().unwrap_or(u64::MAX))
        }
        _ => None,
    };
    let end = size.saturating_sub(1);
    let (first, last) = match (first.trim(), last.trim()) {
        ("", count) => match number(count)? {
            0 => (size, end),
            count => (size.saturating_sub(count), end),
        },
        (first, "") => (number(first)?, end),
        (first, last) => (number(first)?, number(last)?),
    };
    Some(match (first, last) {
        (first, _) if first >= size => Range::Unsatisfiable,
        (first, last) if first > last => return None,
        (first, last) => Range::Some(first, last.min(end)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_understood() {
        let read = |text, size| read(text, size).unwrap_or(Range::Whole);
        for (text, size, expected) in [
            ("bytes=0-4", 10, Range::Some(0, 4)),
            ("Bytes = 0-4", 10, Range::Some(0, 4)),
            ("bytes=5-", 10, Range::Some(5, 9)),
            ("bytes=-3", 10, Range::Some(7, 9)),
            ("bytes=-30", 10, Range::Some(0, 9)),
            ("bytes=0-99999999999999999999999", 10, Range::Some(0, 9)),
            ("bytes=9-9", 10, Range::Some(9, 9)),
            ("bytes=10-", 10, Range::Unsatisfiable),
            ("bytes=99999999999999999999999-", 10, Range::Unsatisfiable),
            ("bytes=-0", 10, Range::Unsatisfiable),
            ("bytes=0-", 0, Range::Unsatisfiable),
            ("bytes=-1", 0, Range::Unsatisfiable),
            ("bytes=4-1", 10, Range::Whole),
            ("bytes=0-1,3-4", 10, Range::Whole),
            ("bytes=a-b", 10, Range::Whole),
            ("bytes=-", 10, Range::Whole),
            ("bytes=+1-2", 10, Range::Whole),
            ("lines=0-4", 10, Range::Whole),
            ("", 10, Range::Whole),
        ] {
            assert_eq!(read(text, size), expected, "{text} of {size}");
        }
    }
}
