//! Parts: the content is nested, and a data part holds only objects.

use std::fmt;

use bytes::Bytes;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Dialect, Members, Out, Word};
use crate::codec::{Metadata, Object, Text, Value, decode_base64, encode_base64};
use crate::{Content, Part as Model};

/// Says, in the metadata of a part, that its data is a value wrapped into an object.
const COMPAT: &str = "data_part_compat";
/// Holds such a value.
const VALUE: &str = "value";

/// A part as it was read.
pub(super) struct Part {
    part: Model,
    /// A data part without a `kind`: in ProtoJSON its value is one object deeper.
    bare_data: bool,
}

impl Part {
    pub(super) fn up(self, dialect: Dialect) -> Model {
        let mut part = self.part;
        if let Content::Data(value) = &mut part.content
            && self.bare_data
            && dialect == Dialect::Rest
        {
            unwrap(value, "data", Value::is_object);
        }
        restore_data(&mut part);
        part
    }
}

/// Takes a value out of the object that carried it.
pub(crate) fn restore_data(part: &mut Model) {
    let marked = is_marked(part);
    if let Content::Data(value) = &mut part.content
        && marked
        && unwrap(value, VALUE, |_| true)
    {
        part.metadata.shift_remove(COMPAT);
    }
}

/// The object that carries the data of a part, which is marked if that is not the data itself.
pub(crate) fn carried_object(part: &mut Model) -> Option<Object> {
    let marked = is_marked(part);
    let Content::Data(value) = &mut part.content else { return None };
    match value.take() {
        Value::Object(object) if !marked => Some(object),
        value => {
            part.metadata.insert(COMPAT.to_owned(), Value::Bool(true));
            Some([(VALUE.to_owned(), value)].into_iter().collect())
        }
    }
}

fn is_marked(part: &Model) -> bool {
    part.metadata.get(COMPAT) == Some(&Value::Bool(true))
}

/// Replaces an object by its only member, if that has the right name and shape.
fn unwrap(value: &mut Value, key: &str, fits: fn(&Value) -> bool) -> bool {
    match value {
        Value::Object(map) if map.len() == 1 && map.get(key).is_some_and(fits) => {
            *value = map.get_mut(key).map(Value::take).unwrap_or_default();
            true
        }
        _ => false,
    }
}

/// All parts of a message or an artifact.
pub(super) fn up(parts: Vec<Part>, dialect: Dialect) -> Vec<Model> {
    parts.into_iter().map(|part| part.up(dialect)).collect()
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

#[derive(Default)]
struct Members03<'a> {
    kind: Option<Text<'a>>,
    text: Option<String>,
    file: Option<File>,
    data: Option<Value>,
    metadata: Metadata,
}

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part with exactly one of `text`, `file`, `data`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
        let mut found = Members03::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key {
                "kind" => found.kind = map.next_value()?,
                "text" => found.text = map.next_value()?,
                "file" => found.file = map.next_value()?,
                "data" => found.data = Some(map.next_value()?),
                "metadata" => found.metadata = map.next_value::<Option<Metadata>>()?.unwrap_or_default(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        found.part().map_err(A::Error::custom)
    }
}

impl Members03<'_> {
    fn part(mut self) -> Result<Part, &'static str> {
        let kind = self.kind.as_deref();
        if kind != Some("data") {
            self.data = self.data.filter(|value| !value.is_null());
        }
        let bare_data = kind.is_none();
        let (content, filename, media_type) = match (kind, self.text, self.file, self.data) {
            (None | Some("text"), Some(text), None, None) => (Content::Text(text), None, None),
            (None | Some("file"), None, Some(file), None) => (file.content, file.name, file.media_type),
            (None | Some("data"), None, None, Some(data)) => (Content::Data(data), None, None),
            (None | Some("text" | "file" | "data"), None, None, None) => {
                return Err("a part needs one of `text`, `file`, `data`");
            }
            (None | Some("text" | "file" | "data"), ..) => {
                return Err("a part holds only one of `text`, `file`, `data`, the one that its `kind` says");
            }
            _ => return Err("`kind` of a part must be `text`, `file` or `data`"),
        };
        let (filename, media_type) = (filename.unwrap_or_default(), media_type.unwrap_or_default());
        Ok(Part { part: Model { content, metadata: self.metadata, filename, media_type }, bare_data })
    }
}

/// The content of a file part.
struct File {
    content: Content,
    name: Option<String>,
    media_type: Option<String>,
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(FileVisitor)
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = File;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file with exactly one of `bytes`, `uri`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
        let mut content = None;
        let (mut name, mut media_type) = (None, None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let found = match &*key {
                "bytes" => bytes(map.next_value()?, decode_base64).map_err(A::Error::custom)?,
                "fileWithBytes" | "file_with_bytes" => {
                    bytes(map.next_value()?, decode_twice).map_err(A::Error::custom)?
                }
                "uri" | "fileWithUri" | "file_with_uri" => map.next_value::<Option<String>>()?.map(Content::Url),
                "name" => {
                    name = map.next_value()?;
                    None
                }
                "mimeType" | "mime_type" => {
                    media_type = map.next_value()?;
                    None
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            if found.is_some() && content.is_some() {
                return Err(A::Error::custom("a file holds only one of `bytes`, `uri`"));
            }
            content = content.or(found);
        }
        let content = content.ok_or_else(|| A::Error::custom("a file needs one of `bytes`, `uri`"))?;
        Ok(File { content, name, media_type })
    }
}

fn bytes(text: Option<Text<'_>>, decode: fn(&str) -> Option<Bytes>) -> Result<Option<Content>, &'static str> {
    let Some(text) = text else { return Ok(None) };
    decode(&text).map(|bytes| Some(Content::Raw(bytes))).ok_or("the bytes of a file must be base64")
}

/// Reads base64 of base64, which most peers write, and plain base64, which some do. What decodes strictly
/// a second time was encoded twice.
fn decode_twice(text: &str) -> Option<Bytes> {
    decode_base64(text).map(decode_again)
}

/// Reads bytes that are most likely base64.
pub(crate) fn decode_again(once: Bytes) -> Bytes {
    let whole = once.len().is_multiple_of(4) && once.iter().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(b));
    let twice = if whole { str::from_utf8(&once).ok().and_then(decode_base64) } else { None };
    twice.unwrap_or(once)
}

impl Serialize for Out<'_, Model> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(part, dialect) = self;
        let mut map = to.serialize_struct("", 1)?;
        let (kind, wrapped) = match &part.content {
            Content::Text(_) => ("text", false),
            Content::Raw(_) | Content::Url(_) => ("file", false),
            // A mark that is there already would take off a layer, so it gets one to take.
            Content::Data(value) => ("data", !value.is_object() || is_marked(part)),
        };
        if dialect == Dialect::Json {
            map.serialize_field("kind", &Word(kind))?;
        }
        match &part.content {
            Content::Text(text) => map.serialize_field("text", text)?,
            Content::Raw(_) | Content::Url(_) => map.serialize_field("file", &FileOut(part, dialect))?,
            Content::Data(value) => {
                let data = Data(value, wrapped);
                match dialect {
                    Dialect::Json => map.serialize_field("data", &data)?,
                    Dialect::Rest => map.serialize_field("data", &Nested("data", &data))?,
                }
            }
        }
        if wrapped {
            let mut metadata = part.metadata.clone();
            metadata.insert(COMPAT.to_owned(), Value::Bool(true));
            map.serialize_field("metadata", &metadata)?;
        } else {
            map.object("metadata", &part.metadata)?;
        }
        map.end()
    }
}

/// A value, wrapped into an object or not.
struct Data<'a>(&'a Value, bool);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.1 { Nested(VALUE, self.0).serialize(to) } else { self.0.serialize(to) }
    }
}

/// An object with one member.
struct Nested<'a, T>(&'static str, &'a T);

impl<T: Serialize> Serialize for Nested<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        map.serialize_field(self.0, self.1)?;
        map.end()
    }
}

struct FileOut<'a>(&'a Model, Dialect);

impl Serialize for FileOut<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(part, dialect) = self;
        let mut map = to.serialize_struct("", 1)?;
        map.text("name", &part.filename)?;
        map.text("mimeType", &part.media_type)?;
        match (&part.content, dialect) {
            (Content::Raw(bytes), Dialect::Json) => map.serialize_field("bytes", &encode_base64(bytes))?,
            (Content::Raw(bytes), Dialect::Rest) => {
                map.serialize_field("fileWithBytes", &encode_base64(encode_base64(bytes).as_bytes()))?;
            }
            (Content::Url(url), Dialect::Json) => map.serialize_field("uri", url)?,
            (Content::Url(url), Dialect::Rest) => map.serialize_field("fileWithUri", url)?,
            (Content::Text(_) | Content::Data(_), _) => {}
        }
        map.end()
    }
}
