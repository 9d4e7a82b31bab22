//! Parts: the pieces that messages and artifacts are made of.

use std::fmt;

use bytes::Bytes;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::codec::{self, Metadata, Text, Value};

/// One piece of content.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it holds.
    pub content: Content,
    /// Data of whoever wrote it.
    pub metadata: Metadata,
    /// A name for the content as a file.
    pub filename: String,
    /// Its media type; empty when not said.
    pub media_type: String,
}

/// What a part holds: exactly one of these.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// The bytes of a file.
    Raw(Bytes),
    /// Where the content can be fetched.
    Url(String),
    /// Any JSON value, also `null`.
    Data(Value),
}

impl Part {
    /// A part of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(text.into()).into()
    }

    /// A part that holds a JSON value.
    pub fn data(value: Value) -> Self {
        Content::Data(value).into()
    }

    /// The text, if that is what it holds.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self { content, metadata: Metadata::new(), filename: String::new(), media_type: String::new() }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        match &self.content {
            Content::Text(text) => map.serialize_field("text", text)?,
            Content::Raw(bytes) => map.serialize_field("raw", &Base64(bytes))?,
            Content::Url(url) => map.serialize_field("url", url)?,
            Content::Data(value) => map.serialize_field("data", value)?,
        }
        if !self.metadata.is_empty() {
            map.serialize_field("metadata", &self.metadata)?;
        }
        if !self.filename.is_empty() {
            map.serialize_field("filename", &self.filename)?;
        }
        if !self.media_type.is_empty() {
            map.serialize_field("mediaType", &self.media_type)?;
        }
        map.end()
    }
}

struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        codec::serialize_base64(self.0, to)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part with exactly one of `text`, `raw`, `url`, `data`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
        let mut content = None;
        let (mut metadata, mut filename, mut media_type) = (None, None, None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let found = match &*key {
                "text" => map.next_value::<Option<String>>()?.map(Content::Text),
                "raw" => match map.next_value::<Option<Text<'de>>>()? {
                    None => None,
                    Some(text) => Some(Content::Raw(
                        codec::decode_base64(&text).ok_or_else(|| A::Error::custom("`raw` is not base64"))?,
                    )),
                },
                "url" => map.next_value::<Option<String>>()?.map(Content::Url),
                "data" => Some(Content::Data(map.next_value()?)),
                "metadata" => {
                    metadata = map.next_value::<Option<Metadata>>()?;
                    None
                }
                "filename" => {
                    filename = map.next_value::<Option<String>>()?;
                    None
                }
                "mediaType" | "media_type" => {
                    media_type = map.next_value::<Option<String>>()?;
                    None
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            if found.is_some() && content.is_some() {
                return Err(A::Error::custom("a part holds only one of `text`, `raw`, `url`, `data`"));
            }
            content = content.or(found);
        }
        Ok(Part {
            content: content.ok_or_else(|| A::Error::custom("a part needs one of `text`, `raw`, `url`, `data`"))?,
            metadata: metadata.unwrap_or_default(),
            filename: filename.unwrap_or_default(),
            media_type: media_type.unwrap_or_default(),
        })
    }
}
