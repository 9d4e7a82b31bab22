//! Errors as 0.3 peers read them.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::codec::{Metadata, Value};
use crate::error::{Error, ErrorKind};

/// An error as the `error` member of a 0.3 JSON-RPC response.
///
/// A missing extension, which 0.3 has no code for, becomes an unsupported operation. A wrong version keeps
/// its code: it speaks to clients that know more than 0.3, and others take it for a generic error.
pub fn json_error(error: &Error) -> JsonError<'_> {
    JsonError(error)
}

/// An error as a 0.3 REST body. The text of 0.3 names no shape, so this holds what each of the three
/// common readers looks for: `type` and `message`; `code`, `message` and `data`; `error`.
pub fn rest_error(error: &Error) -> RestError<'_> {
    rest_error_as(error, error.kind.http_status())
}

/// The same under another HTTP status than the usual one.
pub fn rest_error_as(error: &Error, status: u16) -> RestError<'_> {
    RestError(error, status)
}

/// An error that serializes as `{"code", "message", "data"}`.
pub struct JsonError<'a>(&'a Error);

/// An error that serializes for every reader of 0.3 REST.
pub struct RestError<'a>(&'a Error, u16);

fn code(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::ExtensionSupportRequired => ErrorKind::UnsupportedOperation.code(),
        kind => kind.code(),
    }
}

impl Serialize for JsonError<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 3)?;
        map.serialize_field("code", &code(self.0.kind))?;
        map.serialize_field("message", &self.0.message)?;
        map.serialize_field("data", &Data(self.0))?;
        map.end()
    }
}

impl Serialize for RestError<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 5)?;
        map.serialize_field("type", self.0.kind.name())?;
        map.serialize_field("code", &code(self.0.kind))?;
        map.serialize_field("message", &self.0.message)?;
        map.serialize_field("data", &Data(self.0))?;
        map.serialize_field("error", &self.0.status(self.1))?;
        map.end()
    }
}

/// The free-form part of an error: an object in 0.3.
struct Data<'a>(&'a Error);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        map.serialize_field("reason", self.0.kind.reason())?;
        if !self.0.facts.is_empty() {
            let facts = self.0.facts.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())));
            map.serialize_field("metadata", &facts.collect::<Metadata>())?;
        }
        if !self.0.violations.is_empty() {
            map.serialize_field("fieldViolations", &self.0.violations)?;
        }
        map.end()
    }
}
