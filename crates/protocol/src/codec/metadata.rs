//! Objects that belong to whoever wrote them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Object, Value};

/// A JSON object that belongs to whoever wrote it. Empty and absent are the same. Most are empty, and nearly all that
/// A2A speaks of has one, so that an empty one takes the room of a pointer.
#[derive(Clone, Default)]
pub struct Metadata(Option<Box<Object>>);

impl Metadata {
    /// An empty one.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|object| object.is_empty())
    }

    /// The object itself.
    pub fn into_object(self) -> Object {
        self.0.map(|object| *object).unwrap_or_default()
    }
}

static EMPTY: LazyLock<Object> = LazyLock::new(Object::new);

impl Deref for Metadata {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for Metadata {
    fn deref_mut(&mut self) -> &mut Object {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Metadata {}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl From<Object> for Metadata {
    fn from(object: Object) -> Self {
        Self((!object.is_empty()).then(|| Box::new(object)))
    }
}

impl From<Metadata> for Value {
    fn from(metadata: Metadata) -> Self {
        Self::Object(metadata.into_object())
    }
}

impl FromIterator<(String, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Object::from_iter(members).into()
    }
}

impl IntoIterator for Metadata {
    type Item = (String, Value);
    type IntoIter = serde_json::map::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.into_object().into_iter()
    }
}

impl<'a> IntoIterator for &'a Metadata {
    type Item = (&'a String, &'a Value);
    type IntoIter = serde_json::map::Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Object::deserialize(from).map(Self::from)
    }
}
