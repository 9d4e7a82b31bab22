//! A YAML document as a tree that knows its lines.
//!
//! Every mistake in a file is reported at once, so the file is read into this tree first and
//! checked afterwards; typed deserialization would stop at the first mistake.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy, Spanned};

/// A value and its line. Values that do not come from a file have no line.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) line: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    /// Text as the file has it.
    Text(String),
    /// Text without a type of its own (flag, variable, expansion): it is read as what the key wants.
    Loose(String),
    List(Vec<Node>),
    Map(Vec<Field>),
    /// A value that could not be expanded. The problem is already told.
    Unreadable,
}

/// One `key: value` of a mapping, duplicates included.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) line: Option<u64>,
    pub(crate) node: Node,
}

impl Node {
    /// A value that is no part of a file.
    pub(crate) fn loose(text: impl Into<String>) -> Self {
        Self { value: Value::Loose(text.into()), line: None }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Loose(text) => Some(text),
            _ => None,
        }
    }

    /// What a message says was found.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Int(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value:?}"),
            Value::Text(text) | Value::Loose(text) => format!("the text {}", quote(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
            Value::Unreadable => "something unreadable".to_owned(),
        }
    }

    /// The same for values that must not show up in a message.
    pub(crate) fn found_secret(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) | Value::Loose(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
            Value::Unreadable => "something unreadable",
        }
    }

    /// The value as JSON, for settings that are handed on as they are.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Null | Value::Unreadable => Json::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => i64::try_from(*value)
                .map(Json::from)
                .or_else(|_| u64::try_from(*value).map(Json::from))
                .unwrap_or_else(|_| value.to_string().into()),
            Value::Float(value) => (*value).into(),
            Value::Text(text) | Value::Loose(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(fields) => fields.iter().map(|field| (field.key.clone(), field.node.to_json())).collect(),
        }
    }
}

/// A text in quotes, on one line, not endlessly long, and without the password of a URL, which may be cut before its end.
fn quote(text: &str) -> String {
    const LONGEST: usize = 60;
    let text = super::secret::masked(text);
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    Json::String(short).to_string()
}

/// Why a text is no YAML document.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) line: Option<u64>,
    pub(crate) message: String,
}

/// Reads a document. An empty one is `Null`.
pub(crate) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let options = serde_saphyr::options! {
        // A person writes a few levels; far more would only exhaust the stack.
        budget: serde_saphyr::budget! { max_depth: 32, max_nodes: 20_000, max_events: 60_000 },
        // Passes duplicates on, so that they are reported together with the other mistakes.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        // `off` and `no` stay words.
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        // A snippet could show a secret.
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let error = error.without_snippet();
        SyntaxError {
            line: error.location().map(|at| at.line()).filter(|line| *line > 0),
            message: plain(&error.to_string()),
        }
    })
}

/// The parser's message without the position, which is told in our own words.
fn plain(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    if first.starts_with("multiple YAML documents") {
        return "a second document begins here; keep one".to_owned();
    }
    let end = first.find(" at line ").unwrap_or(first.len());
    first[..end].trim_end_matches([':', ',']).to_owned()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { line: Some(spanned.referenced.line()).filter(|line| *line > 0), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            fields.push(Field {
                line: Some(key.referenced.line()).filter(|line| *line > 0),
                key: key.value,
                node: map.next_value()?,
            });
        }
        Ok(Value::Map(fields))
    }
}
