//! Moments in time, as ProtoJSON writes them.

use std::cell::RefCell;
use std::fmt;

use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Text;

/// A moment. Written in UTC with `Z` and at least milliseconds; read with any offset, and without
/// one as UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

/// From here on there are places on earth where a moment is beyond [`jiff::Timestamp::MAX`].
const LATE: DateTime = jiff::civil::date(9999, 12, 30).at(0, 0, 0, 0);

impl Timestamp {
    /// The present, to the millisecond, which is all that the protocol asks for.
    pub fn now() -> Self {
        let now = jiff::Timestamp::now();
        Self(jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now))
    }

    /// From microseconds since 1970; `None` beyond the year 9999.
    pub fn from_micros(micros: i64) -> Option<Self> {
        jiff::Timestamp::from_microsecond(micros).ok().map(Self)
    }

    /// A time so many seconds and then nanoseconds after 1970; `None` outside of the years 1 to 9999, of which the last
    /// hours are all the same.
    pub(crate) fn from_parts(seconds: i64, nanos: i32) -> Option<Self> {
        (0..1_000_000_000).contains(&nanos).then_some(())?;
        (-62_135_596_800..=253_402_300_799).contains(&seconds).then_some(())?;
        Some(Self(jiff::Timestamp::new(seconds, nanos).unwrap_or(jiff::Timestamp::MAX)))
    }

    /// Seconds since 1970, and nanoseconds after those.
    pub(crate) fn parts(self) -> (i64, i32) {
        match (self.0.as_second(), self.0.subsec_nanosecond()) {
            (seconds, nanos) if nanos < 0 => (seconds - 1, nanos + 1_000_000_000),
            parts => parts,
        }
    }

    /// Microseconds since 1970.
    pub fn as_micros(self) -> i64 {
        self.0.as_microsecond()
    }

    /// The same, of a moment between two of them the later.
    pub fn as_micros_up(self) -> i64 {
        self.0.as_microsecond() + i64::from(self.0.subsec_nanosecond() % 1_000 > 0)
    }

    /// Reads RFC 3339 and the forms without an offset that 0.3 peers write.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(time) = text.parse() {
            return Some(Self(time));
        }
        let pieces = Pieces::parse(text).ok()?;
        let civil = pieces.date().to_datetime(pieces.time()?);
        // The last hours of the year 9999 are too late to be told apart.
        if civil >= LATE {
            return Some(Self(jiff::Timestamp::MAX));
        }
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| Self(zoned.timestamp()))
    }
}

/// Room for the longest form, with nine digits behind the second.
const LONGEST: usize = "2026-01-02T03:04:05.123456789Z".len();

impl Timestamp {
    /// Writes the text by hand: it is in every status, and a general formatter costs ten times as much.
    fn text(self, buffer: &mut [u8; LONGEST]) -> &str {
        let time = TimeZone::UTC.to_datetime(self.0);
        let nanos = self.0.subsec_nanosecond();
        if nanos < 0 || !(0..=9999).contains(&time.year()) {
            // Before 1970 or the year 0: rare enough for the general way.
            return Self::general_text(self.0, buffer);
        }
        buffer.copy_from_slice(b"0000-00-00T00:00:00.000000000Z");
        put(&mut buffer[0..4], time.year().unsigned_abs().into());
        put(&mut buffer[5..7], time.month().unsigned_abs().into());
        put(&mut buffer[8..10], time.day().unsigned_abs().into());
        put(&mut buffer[11..13], time.hour().unsigned_abs().into());
        put(&mut buffer[14..16], time.minute().unsigned_abs().into());
        put(&mut buffer[17..19], time.second().unsigned_abs().into());
        put(&mut buffer[20..29], nanos.unsigned_abs());
        let end = 20 + digits(nanos);
        buffer[end] = b'Z';
        std::str::from_utf8(&buffer[..=end]).unwrap_or_default()
    }

    fn general_text(time: jiff::Timestamp, buffer: &mut [u8; LONGEST]) -> &str {
        let text = format!("{:.*}", digits(time.subsec_nanosecond()), time);
        let end = text.len().min(LONGEST);
        buffer[..end].copy_from_slice(&text.as_bytes()[..end]);
        std::str::from_utf8(&buffer[..end]).unwrap_or_default()
    }
}

/// How many digits behind the second: 3, or as many groups of three as it takes.
fn digits(nanos: i32) -> usize {
    match nanos {
        n if n % 1_000_000 == 0 => 3,
        n if n % 1_000 == 0 => 6,
        _ => 9,
    }
}

/// Writes a number with leading zeros.
fn put(into: &mut [u8], mut number: u32) {
    for digit in into.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut [0; LONGEST]))
    }
}

thread_local! {
    /// The last that was written: several in a row are most often of the same millisecond.
    static LAST: RefCell<(Option<Timestamp>, String)> = const { RefCell::new((None, String::new())) };
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        LAST.with_borrow_mut(|(last, text)| {
            if last.replace(*self) != Some(*self) {
                text.clear();
                text.push_str(self.text(&mut [0; LONGEST]));
            }
            to.serialize_str(text)
        })
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("expected a time like 2026-01-02T03:04:05.678Z"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_moments_of_the_year_9999_are_read() {
        let last = Timestamp(jiff::Timestamp::MAX);
        for text in ["9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59"] {
            assert_eq!(Timestamp::parse(text), Some(last), "{text}");
        }
        assert_eq!(Timestamp::from_parts(253_402_300_799, 999_999_999), Some(last));
        assert_eq!(Timestamp::from_parts(253_402_300_800, 0), None);
        for wrong in ["9999-12-31", "9999-12-32T00:00:00Z", "10000-01-01T00:00:00Z", "9999-12-31T25:00:00Z", "x"] {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
        assert!(Timestamp::parse("9999-12-29T23:59:59Z").is_some_and(|time| time < last));
    }

    #[test]
    fn microseconds_are_rounded_up_where_that_is_asked() {
        let micros = |text| Timestamp::parse(text).map(|time| (time.as_micros(), time.as_micros_up()));
        assert_eq!(micros("1970-01-01T00:00:01.000001Z"), Some((1_000_001, 1_000_001)));
        assert_eq!(micros("1970-01-01T00:00:01.000001001Z"), Some((1_000_001, 1_000_002)));
        assert_eq!(micros("1969-12-31T23:59:58.999999999Z"), Some((-1_000_000, -1_000_000)));
    }

    proptest::proptest! {
        #[test]
        fn the_text_is_the_same_as_the_general_one(micros in -62_135_596_800_000_000_i64..253_402_207_200_000_000) {
            let time = Timestamp::from_micros(micros).expect("in range");
            let mut buffer = [0; LONGEST];
            let general = Timestamp::general_text(time.0, &mut buffer).to_owned();
            proptest::prop_assert_eq!(time.to_string(), general);
            proptest::prop_assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
            for time in [time, time, Timestamp::now()] {
                proptest::prop_assert_eq!(super::super::to_value(&time), time.to_string());
            }
        }
    }
}
