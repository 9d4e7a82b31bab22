//! JSON in and out: the only place that calls `serde_json`.
//!
//! Tolerant in: `camelCase` and `snake_case` names, enums by name or number, integers as numbers or
//! strings, any base64 alphabet, `null` for absent, unknown members. Strict out: ProtoJSON as A2A 1.0
//! writes it, without a member that 1.0 does not know.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use bytes::Bytes;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod mend;
mod mend_card;
mod metadata;
mod objects;
mod raw;
mod time;
mod write;

pub use mend::mend;
pub(crate) use mend_card::is_folded;
pub use mend_card::mend_card;
pub use metadata::Metadata;
use objects::Objects;
pub use raw::Raw;
pub(crate) use raw::{decode_base64, encode_base64};
pub use time::Timestamp;

/// Any JSON value; numbers and the order of keys stay as they were.
pub type Value = serde_json::Value;

/// A JSON object; the order of keys stays as it was.
pub type Object = serde_json::Map<String, Value>;

/// Builds a [`Value`] in place.
pub use serde_json::json;

/// Why some bytes are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON at all.
    #[error("not valid JSON: {0}")]
    Syntax(String),
    /// JSON, but not of the expected shape.
    #[error("{}{what}", Place(path))]
    Shape {
        /// Where, in the words of the sender: `message.parts[0].text`; empty at the top.
        path: String,
        /// What is wrong there.
        what: String,
    },
}

struct Place<'a>(&'a str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "{}: ", self.0)
    }
}

/// Reads a value. The place of a mistake is looked for only when there is one.
pub fn decode<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, DecodeError> {
    // Members that nobody reads are not looked into, and JSON is UTF-8 everywhere.
    let text = std::str::from_utf8(json).map_err(|error| DecodeError::Syntax(error.to_string()))?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = T::deserialize(Objects(&mut reader)).and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| explain::<T>(json, &error))
}

fn explain<'a, T: Deserialize<'a>>(json: &'a [u8], error: &serde_json::Error) -> DecodeError {
    // There is no other sign of it.
    let deep = error.is_syntax() && error.to_string().starts_with("recursion limit exceeded");
    if (error.is_syntax() && !deep) || error.is_eof() {
        return DecodeError::Syntax(short(error));
    }
    // Behind a mistake of shape there may be one of syntax, and what is not JSON has no shape.
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(json) {
        return DecodeError::Syntax(short(&error));
    }
    if deep {
        return DecodeError::Shape { path: String::new(), what: "nests deeper than 100 levels".into() };
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    match serde_path_to_error::deserialize::<_, T>(Objects(&mut reader)) {
        Err(error) => {
            let path = error.path().to_string();
            DecodeError::Shape { path: if path == "." { String::new() } else { path }, what: short(error.inner()) }
        }
        Ok(_) => DecodeError::Syntax(short(error)),
    }
}

/// The message without what it quotes at length from the input.
fn short(error: &serde_json::Error) -> String {
    const MOST: usize = 200;
    let mut text = error.to_string();
    if text.len() > MOST {
        let end = (0..=MOST).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Reads a value that is already a tree.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, DecodeError> {
    T::deserialize(Objects(value))
        .map_err(|error: serde_json::Error| DecodeError::Shape { path: String::new(), what: short(&error) })
}

/// Turns a value into a tree.
pub fn to_value<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("the model has string keys and no failing serializer")
}

thread_local! {
    /// Where values are written before their length is known.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The largest scratch that is kept.
const SCRATCH_KEPT: usize = 64 << 10;

/// Writes a value. What is written is often kept for long, so that it takes no more room than it needs.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Bytes {
    let mut scratch = SCRATCH.take();
    scratch.clear();
    encode_into(value, &mut scratch);
    let encoded = Bytes::copy_from_slice(&scratch);
    if scratch.capacity() <= SCRATCH_KEPT {
        SCRATCH.set(scratch);
    }
    encoded
}

/// Writes a value behind what is already there.
pub fn encode_into<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    write::write(value, out).expect("the model has string keys and no failing serializer");
}

/// Writes a value for people to read.
pub fn encode_pretty<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string_pretty(value).expect("the model has string keys and no failing serializer")
}

/// Text that is borrowed from the input where it needs no unescaping.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// `null` means absent, absent means default.
pub(crate) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A list that most often has one element, and then takes no more room than that.
pub(crate) fn few<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Few<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a sequence")
        }

        fn visit_unit<E>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let Some(first) = from.next_element()? else { return Ok(Vec::new()) };
            let mut all = vec![first];
            while let Some(next) = from.next_element()? {
                all.push(next);
            }
            Ok(all)
        }
    }
    from.deserialize_any(Few(PhantomData))
}

/// An int32 as a number, a whole float or a decimal string.
pub(crate) fn int32<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form<'a> {
        Whole(i64),
        Float(f64),
        #[serde(borrow)]
        Text(Cow<'a, str>),
    }
    let wrong = || D::Error::custom("expected a whole number of at most 32 bits");
    let number = match Option::<Form<'_>>::deserialize(from)? {
        None => return Ok(None),
        Some(Form::Whole(n)) => n,
        #[allow(clippy::cast_possible_truncation)] // checked: whole, and far inside the range
        Some(Form::Float(n)) if n.fract() == 0.0 && n.abs() < 1e10 => n as i64,
        Some(Form::Float(_)) => return Err(wrong()),
        Some(Form::Text(text)) => text.parse().map_err(|_| wrong())?,
    };
    i32::try_from(number).map(Some).map_err(|_| wrong())
}

/// Like [`int32`], for fields where zero and absent are the same.
pub(crate) fn int32_or_zero<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    Ok(int32(from)?.unwrap_or_default())
}

/// Whether a plain boolean has its default and so is not written.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it with a reference
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// Whether a plain number has its default and so is not written.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it with a reference
pub(crate) fn is_zero(value: &i32) -> bool {
    *value == 0
}

/// An enum whose wire form is a name, and whose input may be its number too.
macro_rules! proto_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$vdoc])* $variant = $number,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)* _ => None }
            }

            /// The value with this number.
            pub fn from_number(number: i64) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }

            /// The number in the protocol's schema.
            pub fn number(self) -> u8 {
                self as u8
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_unit_variant(stringify!($name), u32::from(self.number()), self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("the name or number of a ", stringify!($name)))
                    }
                    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<$name, E> {
                        $name::from_name(name).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(name), &self))
                    }
                    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<$name, E> {
                        i64::try_from(n).ok().and_then($name::from_number)
                            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(n), &self))
                    }
                    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<$name, E> {
                        $name::from_number(n).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(n), &self))
                    }
                    fn visit_unit<E: serde::de::Error>(self) -> Result<$name, E> {
                        Ok($name::default())
                    }
                }
                from.deserialize_any(Visitor)
            }
        }
    };
}
pub(crate) use proto_enum;

/// A message of which exactly one member is set.
macro_rules! one_of {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident($inner:ty) = $camel:literal $(| $snake:literal)?,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $camel)] $variant($inner),)*
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("an object with exactly one of", $(" `", $camel, "`"),*))
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        use serde::de::Error;
                        let mut found: Option<$name> = None;
                        while let Some(key) = map.next_key::<crate::codec::Text<'de>>()? {
                            let next = match &*key {
                                $($camel $(| $snake)? => map.next_value::<Option<$inner>>()?.map($name::$variant),)*
                                _ => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                    None
                                }
                            };
                            if next.is_some() && found.is_some() {
                                return Err(A::Error::custom(concat!("more than one of", $(" `", $camel, "`"),*)));
                            }
                            found = found.or(next);
                        }
                        found.ok_or_else(|| A::Error::custom(concat!("none of", $(" `", $camel, "`"),*)))
                    }
                }
                from.deserialize_map(Visitor)
            }
        }
    };
}
pub(crate) use one_of;

/// Writes bytes as base64 text.
pub(crate) fn serialize_base64<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&encode_base64(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_is_too_deep_is_json_all_the_same() {
        let deep = |levels: usize, close: usize| format!("{}{}", "[".repeat(levels), "]".repeat(close));
        assert!(decode::<Value>(deep(100, 100).as_bytes()).is_ok());
        let error = decode::<Value>(deep(1000, 1000).as_bytes()).expect_err("it is too deep");
        assert_eq!(error.to_string(), "nests deeper than 100 levels");
        let error = decode::<Value>(deep(1000, 999).as_bytes()).expect_err("it is not closed");
        assert!(matches!(error, DecodeError::Syntax(_)), "{error}");
    }
}
