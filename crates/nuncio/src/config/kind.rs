//! The kinds of values: how each is read, shown and described. Simple kinds are here; kinds that
//! are made of several values are in [`super::list`] and [`super::entry`].

use std::path::PathBuf;
use std::time::Duration;

use nuncio_server::agent::process::generic::Approvals;
use serde_json::{Value as Json, json};

use super::expand::expand_home;
use super::node::{Node, Value};
use super::problem::{Problem, Spot};
use super::secret::Secret;
use super::units::{self, NoDuration};

/// A kind of value.
pub(crate) trait Kind {
    type Value;

    /// Whether one environment variable can carry it.
    const IN_ENVIRONMENT: bool = true;

    /// Reads a value, or says what is wrong with it.
    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value>;

    /// The value of a key that nobody has set and that has no default.
    fn absent(&self) -> Option<Self::Value> {
        None
    }

    /// The value as a file would have it, secrets masked; null if it is not set.
    fn show(&self, value: &Self::Value) -> Json;

    /// The JSON Schema of the value.
    fn schema(&self) -> Json;
}

/// Puts a problem on the list and gives the "no value" that goes with it.
pub(crate) fn fail<T>(problems: &mut Vec<Problem>, problem: Problem) -> Option<T> {
    problems.push(problem);
    None
}

/// A key that may stay unset.
pub(crate) struct Maybe<K>(pub(crate) K);

impl<K: Kind> Kind for Maybe<K> {
    type Value = Option<K::Value>;
    const IN_ENVIRONMENT: bool = K::IN_ENVIRONMENT;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        self.0.read(node, spot, problems).map(Some)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(None)
    }

    fn show(&self, value: &Self::Value) -> Json {
        value.as_ref().map_or(Json::Null, |value| self.0.show(value))
    }

    fn schema(&self) -> Json {
        self.0.schema()
    }
}

/// Text that is not empty.
pub(crate) struct Text;

impl Kind for Text {
    type Value = String;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<String> {
        match node.text() {
            Some(text) if text.trim().is_empty() => fail(problems, spot.problem("expected text, found an empty one")),
            Some(text) => Some(text.to_owned()),
            None => {
                let mut problem = spot.wrong(node, "text");
                if !matches!(node.value, Value::Null | Value::List(_) | Value::Map(_)) {
                    problem.text.push_str("; put it in quotes");
                }
                fail(problems, problem)
            }
        }
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }

    fn schema(&self) -> Json {
        json!({"type": "string", "minLength": 1})
    }
}

/// A regular expression for the lines that ask for an approval.
pub(crate) struct Pattern;

impl Kind for Pattern {
    type Value = String;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<String> {
        let text = Text.read(node, spot, problems)?;
        match Approvals::new(Some(&text), None) {
            Ok(_) => Some(text),
            Err(error) => fail(problems, spot.problem(error)),
        }
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }

    fn schema(&self) -> Json {
        Text.schema()
    }
}

/// Text that no message and no listing may show.
pub(crate) struct SecretText;

impl Kind for SecretText {
    type Value = Secret;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Secret> {
        let Some(text) = node.text() else {
            let message = format!("expected text in quotes, found {}", node.found_secret());
            return fail(problems, spot.problem(message));
        };
        match check_token(text) {
            Ok(()) => Some(Secret(text.to_owned())),
            Err(message) => fail(problems, spot.problem(message)),
        }
    }

    fn show(&self, value: &Secret) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        json!({"type": "string", "minLength": 1})
    }
}

/// A token has to survive the trip through an HTTP header.
pub(crate) fn check_token(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        Err("the token is empty; give it a value or remove the key")
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err("a token has only visible ASCII characters and no spaces")
    } else {
        Ok(())
    }
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<bool> {
        match &node.value {
            Value::Bool(value) => Some(*value),
            Value::Loose(text) if text == "true" => Some(true),
            Value::Loose(text) if text == "false" => Some(false),
            _ => fail(problems, spot.wrong(node, "true or false")),
        }
    }

    fn show(&self, value: &bool) -> Json {
        (*value).into()
    }

    fn schema(&self) -> Json {
        json!({"type": "boolean"})
    }
}

/// A port; 0 lets the system choose.
pub(crate) struct Port;

impl Kind for Port {
    type Value = u16;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<u16> {
        match whole(node).and_then(|value| u16::try_from(value).ok()) {
            Some(port) => Some(port),
            None => fail(problems, spot.wrong(node, "a number from 1 to 65535")),
        }
    }

    fn show(&self, value: &u16) -> Json {
        (*value).into()
    }

    fn schema(&self) -> Json {
        json!({"type": "integer", "minimum": 0, "maximum": 65535})
    }
}

/// How many of something there may be.
pub(crate) struct Count;

/// Far beyond any machine, and far below what a semaphore can hold.
const MOST: u64 = 100_000_000;

impl Kind for Count {
    type Value = u64;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<u64> {
        let count = whole(node).and_then(|value| u64::try_from(value).ok());
        match count.filter(|count| (1..=MOST).contains(count)) {
            Some(count) => Some(count),
            None => {
                let expected = format!("a number from 1 to {MOST}");
                fail(problems, spot.wrong(node, expected))
            }
        }
    }

    fn show(&self, value: &u64) -> Json {
        (*value).into()
    }

    fn schema(&self) -> Json {
        json!({"type": "integer", "minimum": 1, "maximum": MOST})
    }
}

fn whole(node: &Node) -> Option<i128> {
    match &node.value {
        Value::Int(value) => Some(*value),
        Value::Loose(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A size in bytes, between two limits.
pub(crate) struct Size {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Kind for Size {
    type Value = u64;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<u64> {
        let size = match &node.value {
            Value::Int(value) => u64::try_from(*value).ok(),
            Value::Text(text) | Value::Loose(text) => units::parse_size(text),
            _ => None,
        };
        let Some(size) = size else {
            let expected = "a size such as `64KiB`, `10MiB`, `1GB` or a number of bytes";
            return fail(problems, spot.wrong(node, expected));
        };
        if !(self.min..=self.max).contains(&size) {
            let (min, max) = (units::show_size(self.min), units::show_size(self.max));
            return fail(problems, spot.wrong(node, format!("a size from {min} to {max}")));
        }
        Some(size)
    }

    fn show(&self, value: &u64) -> Json {
        units::show_size(*value).into()
    }

    fn schema(&self) -> Json {
        json!({
            "type": ["string", "integer"],
            "pattern": "^[0-9]+ *(([KMGTkmgt][Ii]?)?[Bb])?$",
            "minimum": self.min,
            "maximum": self.max,
        })
    }
}

/// A span of time with a unit.
pub(crate) struct Time {
    /// Whether 0 is a sensible value.
    pub(crate) zero: bool,
}

impl Kind for Time {
    type Value = Duration;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Duration> {
        const EXPECTED: &str = "a duration such as `500ms`, `3s`, `10m`, `1h` or `30d`";
        let read = match &node.value {
            Value::Int(0) => Ok(Duration::ZERO),
            Value::Int(_) | Value::Float(_) => Err(NoDuration::NoUnit),
            Value::Text(text) | Value::Loose(text) => units::parse_duration(text),
            _ => Err(NoDuration::Other),
        };
        let mut problem = spot.wrong(node, EXPECTED);
        match read {
            Ok(duration) if self.zero || !duration.is_zero() => return Some(duration),
            Ok(_) => problem = spot.problem("expected a duration longer than 0"),
            Err(NoDuration::NoUnit) => {
                problem.text.push_str(", which has no unit: add one of `ms`, `s`, `m`, `h`, `d`");
            }
            Err(NoDuration::TooLong) => problem.text.push_str(", which is more than 100 years"),
            Err(NoDuration::Other) => {}
        }
        fail(problems, problem)
    }

    fn show(&self, value: &Duration) -> Json {
        units::show_duration(*value).into()
    }

    fn schema(&self) -> Json {
        let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
        match self.zero {
            true => json!({"anyOf": [text("^(0+|[0-9]+ *(ms|s|m|h|d))$"), {"const": 0}]}),
            false => text("^[0-9]*[1-9][0-9]* *(ms|s|m|h|d)$"),
        }
    }
}

/// A span of time that 0 turns off.
pub(crate) struct TimeOrOff;

impl Kind for TimeOrOff {
    type Value = Option<Duration>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let duration = Time { zero: true }.read(node, spot, problems)?;
        Some(Some(duration).filter(|duration| !duration.is_zero()))
    }

    fn show(&self, value: &Self::Value) -> Json {
        units::show_duration(value.unwrap_or_default()).into()
    }

    fn schema(&self) -> Json {
        Time { zero: true }.schema()
    }
}

/// A file or directory.
pub(crate) struct Path;

impl Kind for Path {
    type Value = PathBuf;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<PathBuf> {
        let text = Text.read(node, spot, problems)?;
        match expand_home(&text, spot.home) {
            Ok(path) => Some(path),
            Err(message) => fail(problems, spot.problem(message)),
        }
    }

    fn show(&self, value: &PathBuf) -> Json {
        value.to_string_lossy().into()
    }

    fn schema(&self) -> Json {
        Text.schema()
    }
}
