//! Protobuf: what gRPC peers of both versions exchange, converted to and from the 1.0 model.
//!
//! The messages themselves are generated from the schemas in `proto/` by `cargo xtask proto`. JSON inside of them,
//! `google.protobuf.Struct` and `Value`, is kept as bytes there and read and written by [`json`] without a tree in
//! between; numbers in it are doubles, so whole numbers above 2^53 are rounded.
//!
//! [`read`] and [`write()`] connect a message with its counterpart in the model. What 0.3 cannot carry is lost on the
//! way down, as [`crate::v03`] says of its REST dialect.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;

use crate::codec::{self, DecodeError, Metadata};
use crate::{ArtifactId, ContextId, Error, MessageId, PushId, Role, TaskId, TaskState};

/// Messages of A2A 1.0: the package `lf.a2a.v1`.
#[allow(missing_docs, clippy::all)]
#[rustfmt::skip]
#[path = "proto/generated/lf.a2a.v1.rs"]
pub mod v1;

/// Messages of A2A 0.3: the package `a2a.v1`.
#[allow(missing_docs, clippy::all)]
#[rustfmt::skip]
#[path = "proto/generated/a2a.v1.rs"]
pub mod v03;

/// JSON-RPC in gRPC: the package `iac_code.a2a.transports.proto`.
#[allow(missing_docs, clippy::all)]
#[rustfmt::skip]
#[path = "proto/generated/iac_code.a2a.transports.proto.rs"]
pub mod envelope;

/// Whether a service can be called: the package `grpc.health.v1`.
#[allow(missing_docs, clippy::all)]
#[rustfmt::skip]
#[path = "proto/generated/grpc.health.v1.rs"]
pub mod health;

/// What a server offers: the package `grpc.reflection.v1`.
#[allow(missing_docs, clippy::all)]
#[rustfmt::skip]
#[path = "proto/generated/grpc.reflection.v1.rs"]
pub mod reflection;

pub mod json;
pub mod status;

mod card;
mod card_v03;
mod request;
mod request_v03;
mod task;
mod task_v03;

pub use status::{Code, Status};

/// All schemas as a `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!("proto/generated/descriptors.bin");

/// A moment: `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Timestamp {
    /// Since 1970.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Further nanoseconds, never negative.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// Nothing: `google.protobuf.Empty`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Empty {}

/// Something of the model that can be read from a message.
pub trait Up<W>: Sized {
    /// Reads it; an error names the field.
    fn up(wire: W) -> Result<Self, DecodeError>;
}

/// A message that something of the model can be written as.
pub trait Down<M> {
    /// Converts it.
    fn down(model: M) -> Self;
}

/// Reads a message as a part of the model.
pub fn read<W: Message + Default, M: Up<W>>(bytes: Bytes) -> Result<M, Error> {
    Ok(M::up(decode(bytes)?)?)
}

/// Reads a message.
pub fn decode<W: Message + Default>(bytes: Bytes) -> Result<W, Error> {
    W::decode(bytes).map_err(|error| unreadable(&error))
}

/// Writes a part of the model as a message.
pub fn write<W: Message + Down<M>, M>(model: M) -> Vec<u8> {
    W::down(model).encode_to_vec()
}

/// The reader knows in which fields of which messages it was; the caller knows the fields.
fn unreadable(error: &prost::DecodeError) -> Error {
    let text = error.to_string();
    let mut what = text.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&text);
    let mut path = Vec::new();
    while let Some((place, rest)) = what.split_once(": ") {
        let Some((_, field)) = place.split_once('.') else { break };
        path.push(camel(field));
        what = rest;
    }
    if path.is_empty() {
        return Error::new(crate::ErrorKind::InvalidParams, format!("The message is not valid protobuf: {what}"));
    }
    // The innermost is named first.
    path.reverse();
    Error::invalid(&path.join("."), &format!("is not valid protobuf: {what}"))
}

/// A field as all other bindings call it.
fn camel(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut raise = false;
    for c in field.chars() {
        if c == '_' {
            raise = true;
        } else {
            out.push(if std::mem::take(&mut raise) { c.to_ascii_uppercase() } else { c });
        }
    }
    out
}

/// Says in which field a mistake is.
fn at<T>(field: &str, result: Result<T, DecodeError>) -> Result<T, DecodeError> {
    result.map_err(|error| match error {
        DecodeError::Shape { path, what } => {
            let field = camel(field);
            let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
            DecodeError::Shape { path: format!("{field}{dot}{path}"), what }
        }
        error @ DecodeError::Syntax(_) => error,
    })
}

fn wrong(what: &str) -> DecodeError {
    DecodeError::Shape { path: String::new(), what: what.to_owned() }
}

/// Declares that a part of the model and messages have the same fields.
macro_rules! same {
    ($($model:ty = $($wire:ty),+ { $($field:ident),* $(,)? })*) => {$(
        $crate::proto::same! { @each $model, [$($wire),+], [$($field)*] }
    )*};
    (@each $model:ty, [$($wire:ty),+], $fields:tt) => {$(
        $crate::proto::same! { @one $model, $wire, $fields }
    )+};
    (@one $model:ty, $wire:ty, [$($field:ident)*]) => {
        impl $crate::proto::Down<$model> for $wire {
            fn down(model: $model) -> Self {
                Self { $($field: $crate::proto::Down::down(model.$field)),* }
            }
        }

        impl $crate::proto::Up<$wire> for $model {
            fn up(wire: $wire) -> Result<Self, DecodeError> {
                Ok(Self { $($field: $crate::proto::at(stringify!($field), $crate::proto::Up::up(wire.$field))?),* })
            }
        }
    };
}
use same;

/// Declares that a part of the model is always there, which no message field is.
macro_rules! required {
    ($($model:ty = $($wire:ty),+;)*) => {$($(
        impl $crate::proto::Down<$model> for Option<$wire> {
            fn down(model: $model) -> Self {
                Some($crate::proto::Down::down(model))
            }
        }

        impl $crate::proto::Up<Option<$wire>> for $model {
            fn up(wire: Option<$wire>) -> Result<Self, DecodeError> {
                wire.map_or_else(|| Ok(Self::default()), $crate::proto::Up::up)
            }
        }
    )+)*};
}
use required;

/// What is the same on both sides.
macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Down<$type> for $type {
            fn down(model: $type) -> Self {
                model
            }
        }

        impl Up<$type> for $type {
            fn up(wire: $type) -> Result<Self, DecodeError> {
                Ok(wire)
            }
        }
    )*};
}
plain!(String, bool, i32);

macro_rules! ids {
    ($($id:ty),*) => {$(
        impl Down<$id> for String {
            fn down(model: $id) -> Self {
                model.as_str().to_owned()
            }
        }

        impl Up<String> for $id {
            fn up(wire: String) -> Result<Self, DecodeError> {
                Ok(wire.into())
            }
        }
    )*};
}
ids!(TaskId, ContextId, MessageId, ArtifactId, PushId);

/// Values that nobody knows are as good as none.
macro_rules! enums {
    ($($type:ty),*) => {$(
        impl Down<$type> for i32 {
            fn down(model: $type) -> Self {
                model.number().into()
            }
        }

        impl Up<i32> for $type {
            fn up(wire: i32) -> Result<Self, DecodeError> {
                Ok(Self::from_number(wire.into()).unwrap_or_default())
            }
        }
    )*};
}
enums!(TaskState, Role);

impl Down<Metadata> for Bytes {
    fn down(model: Metadata) -> Self {
        json::write_object(&model).into()
    }
}

impl Up<Bytes> for Metadata {
    fn up(wire: Bytes) -> Result<Self, DecodeError> {
        json::read_object(&wire).map(Self::from)
    }
}

impl Down<codec::Timestamp> for Timestamp {
    fn down(model: codec::Timestamp) -> Self {
        let (seconds, nanos) = model.parts();
        Self { seconds, nanos }
    }
}

impl Up<Timestamp> for codec::Timestamp {
    fn up(wire: Timestamp) -> Result<Self, DecodeError> {
        Self::from_parts(wire.seconds, wire.nanos).ok_or_else(|| wrong("is not a time between the years 1 and 9999"))
    }
}

impl<M, W: Down<M>> Down<Option<M>> for Option<W> {
    fn down(model: Option<M>) -> Self {
        model.map(W::down)
    }
}

impl<W, M: Up<W>> Up<Option<W>> for Option<M> {
    fn up(wire: Option<W>) -> Result<Self, DecodeError> {
        wire.map(M::up).transpose()
    }
}

impl<M, W: Down<M>> Down<Vec<M>> for Vec<W> {
    fn down(model: Vec<M>) -> Self {
        model.into_iter().map(W::down).collect()
    }
}

impl<W, M: Up<W>> Up<Vec<W>> for Vec<M> {
    fn up(wire: Vec<W>) -> Result<Self, DecodeError> {
        let one = |(i, wire)| M::up(wire).map_err(|error| (i, error));
        let all: Result<Self, _> = wire.into_iter().enumerate().map(one).collect();
        all.or_else(|(i, error)| at(&format!("[{i}]"), Err(error)))
    }
}

impl<M, W: Down<M>> Down<BTreeMap<String, M>> for BTreeMap<String, W> {
    fn down(model: BTreeMap<String, M>) -> Self {
        model.into_iter().map(|(key, value)| (key, W::down(value))).collect()
    }
}

impl<W, M: Up<W>> Up<BTreeMap<String, W>> for BTreeMap<String, M> {
    fn up(wire: BTreeMap<String, W>) -> Result<Self, DecodeError> {
        wire.into_iter().map(|(key, value)| Ok((key, M::up(value)?))).collect()
    }
}
