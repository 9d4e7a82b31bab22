//! Text that never shows itself.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

/// What stands in the place of a secret.
const MASK: &str = "***";

/// A token or password. Debug, Display and Serialize print `***`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl Secret {
    /// The secret itself, for the one place that compares or sends it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// Words without the users and passwords of URLs, of misspelled ones as well: they show what somebody typed.
pub(crate) fn masked(text: &str) -> String {
    text.split_inclusive(['`', '\n']).map(masked_value).collect()
}

/// One value, or a piece of talk with at most one.
fn masked_value(text: &str) -> String {
    let Some(at) = text.rfind('@') else { return text.to_owned() };
    let before = &text[..at];
    let start = before.find("://").map(|scheme| scheme + "://".len()).or_else(|| {
        let space = before.char_indices().rev().find(|(_, c)| c.is_whitespace());
        let word = space.map_or(0, |(at, c)| at + c.len_utf8());
        before[word..].contains(':').then_some(word)
    });
    match start {
        // What a message gives as an example stays.
        Some(start) if &text[start..at] != "user:password" => format!("{}{MASK}{}", &text[..start], &text[at..]),
        _ => text.to_owned(),
    }
}

/// The same for everything in a tree.
pub(crate) fn masked_json(value: Json) -> Json {
    match value {
        Json::String(text) => masked_value(&text).into(),
        Json::Array(all) => all.into_iter().map(masked_json).collect(),
        Json::Object(all) => all.into_iter().map(|(key, value)| (key, masked_json(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_urls_are_masked_and_nothing_else() {
        for (text, shown) in [
            ("https://u:hunter2@h/x", "https://***@h/x"),
            ("https://hunter2@h", "https://***@h"),
            ("redis://:hunter2@a,redis://:hunter2@b", "redis://***@b"),
            ("postgres:/u:hunter2@h/db", "***@h/db"),
            ("postgres//u:hun@ter2@h", "***@h"),
            ("https://u:hunter 2@h", "https://***@h"),
            (
                "`--host`: `https://u:hunter2@h` is not a host: no scheme",
                "`--host`: `https://***@h` is not a host: no scheme",
            ),
            ("unknown word u:hunter2@h found", "unknown word ***@h found"),
            ("see https://a.example\nor u:hunter2@h", "see https://a.example\nor ***@h"),
        ] {
            assert_eq!(masked(text), shown);
        }
        for plain in [
            "",
            "@",
            "alice@example.com",
            "npx @scope/agent@1.0",
            "such as postgres://user:password@host/db",
            "line 3: a value cannot begin with '@'",
        ] {
            assert_eq!(masked(plain), plain);
        }
    }
}
