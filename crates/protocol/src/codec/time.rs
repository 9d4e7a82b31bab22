//! Moments in time, as ProtoJSON writes them.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Text;

/// A moment. Written in UTC with `Z` and at least milliseconds; read with any offset, and without
/// one as UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

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

    /// Microseconds since 1970.
    pub fn as_micros(self) -> i64 {
        self.0.as_microsecond()
    }

    /// Reads RFC 3339 and the forms without an offset that 0.3 peers write.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(time) = text.parse() {
            return Some(Self(time));
        }
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| Self(zoned.timestamp()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0.subsec_nanosecond() {
            n if n % 1_000_000 == 0 => 3,
            n if n % 1_000 == 0 => 6,
            _ => 9,
        };
        write!(f, "{:.*}", digits, self.0)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("expected a time like 2026-01-02T03:04:05.678Z"))
    }
}
