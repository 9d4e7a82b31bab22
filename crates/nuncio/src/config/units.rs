//! Durations and sizes as people write them.

use std::time::Duration;

const DAY: u64 = 24 * 60 * 60 * 1000;

/// Units of time in milliseconds, longest first.
const TIME: [(&str, u64); 5] = [("d", DAY), ("h", 60 * 60 * 1000), ("m", 60 * 1000), ("s", 1000), ("ms", 1)];

/// Units of size in bytes; the binary ones are those we print.
const SIZE: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// Deadlines further away than a century are mistakes, and would overflow the clock.
const LONGEST: u64 = 36_500 * DAY;

/// Why a text is no duration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoDuration {
    /// A number alone: nobody knows of what.
    NoUnit,
    /// More than a century.
    TooLong,
    /// Something else.
    Other,
}

/// Reads `500ms`, `3s`, `10m`, `1h`, `30d` or `0`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, NoDuration> {
    let (digits, unit) = split(text).ok_or(NoDuration::Other)?;
    if unit.is_empty() {
        let zero = digits.bytes().all(|digit| digit == b'0');
        return zero.then_some(Duration::ZERO).ok_or(NoDuration::NoUnit);
    }
    let (_, scale) = TIME.iter().find(|(name, _)| *name == unit).ok_or(NoDuration::Other)?;
    digits
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(*scale))
        .filter(|millis| *millis <= LONGEST)
        .map(Duration::from_millis)
        .ok_or(NoDuration::TooLong)
}

/// Writes a duration so that [`parse_duration`] reads the same back.
pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(LONGEST);
    if millis == 0 {
        return "0".to_owned();
    }
    show(millis, &TIME)
}

/// Reads `10MiB`, `64KiB`, `1GB` or a number of bytes.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = split(text)?;
    let scale = if unit.is_empty() {
        1
    } else {
        let known = SIZE.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
        known.1
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

/// Writes a size so that [`parse_size`] reads the same back.
pub(crate) fn show_size(bytes: u64) -> String {
    if bytes == 0 {
        return "0B".to_owned();
    }
    show(bytes, &SIZE)
}

fn show(value: u64, units: &[(&str, u64)]) -> String {
    units
        .iter()
        .find(|(_, scale)| value.is_multiple_of(*scale))
        .map_or_else(|| value.to_string(), |(name, scale)| format!("{}{name}", value / scale))
}

/// Splits `10 MiB` into `10` and `MiB`.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    (!digits.is_empty()).then_some((digits, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_a_unit() {
        let read = |text| parse_duration(text).map(show_duration);
        for text in ["500ms", "3s", "10m", "1h", "30d", "0"] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
        assert_eq!(read("0s").as_deref(), Ok("0"));
        assert_eq!(read("90s").as_deref(), Ok("90s"));
        assert_eq!(read("120s").as_deref(), Ok("2m"));
        assert_eq!(read("30"), Err(NoDuration::NoUnit));
        assert_eq!(read("99999999999999999999d"), Err(NoDuration::TooLong));
        assert_eq!(read("40000d"), Err(NoDuration::TooLong));
        for text in ["", "s", "-3s", "1.5s", "3 weeks", "3S", "1h30m"] {
            assert_eq!(read(text), Err(NoDuration::Other), "{text}");
        }
    }

    #[test]
    fn sizes_are_decimal_or_binary() {
        assert_eq!(parse_size("10MiB"), Some(10 << 20));
        assert_eq!(parse_size("64 kib"), Some(64 << 10));
        assert_eq!(parse_size("1GB"), Some(1_000_000_000));
        assert_eq!(parse_size("1234"), Some(1234));
        for text in ["", "MiB", "-1", "1.5MiB", "1 parsec", "99999999999TiB"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        assert_eq!(show_size(10 << 20), "10MiB");
        assert_eq!(show_size(1_000_000_000), "1GB");
        assert_eq!(show_size(1001), "1001B");
    }
}
