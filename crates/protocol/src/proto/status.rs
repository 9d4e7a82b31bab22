//! Errors as gRPC has them: a code, a text, and `google.rpc.Status` with the details.

use bytes::Bytes;
use prost::Message;
use std::collections::BTreeMap;

use crate::codec::{Value, json};
use crate::error::{BAD_REQUEST, DOMAIN, ERROR_INFO, Error, ErrorKind};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal,)*) => {
        /// How a call ended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $name = $number,)*
        }

        impl Code {
            /// The name in upper case.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The code with this number; numbers that nobody knows are unknown errors.
            pub fn from_number(number: i32) -> Self {
                match number { $($number => Self::$name,)* _ => Self::Unknown }
            }

            /// The code with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// Well.
    Ok = 0 "OK",
    /// The caller went away.
    Cancelled = 1 "CANCELLED",
    /// In a way that has no code.
    Unknown = 2 "UNKNOWN",
    /// The request is wrong.
    InvalidArgument = 3 "INVALID_ARGUMENT",
    /// It took longer than the caller wanted.
    DeadlineExceeded = 4 "DEADLINE_EXCEEDED",
    /// There is no such thing.
    NotFound = 5 "NOT_FOUND",
    /// There is one already.
    AlreadyExists = 6 "ALREADY_EXISTS",
    /// Known, but not allowed.
    PermissionDenied = 7 "PERMISSION_DENIED",
    /// Too much, or too often.
    ResourceExhausted = 8 "RESOURCE_EXHAUSTED",
    /// Not in this state.
    FailedPrecondition = 9 "FAILED_PRECONDITION",
    /// Somebody else was faster.
    Aborted = 10 "ABORTED",
    /// Past the end.
    OutOfRange = 11 "OUT_OF_RANGE",
    /// No such method.
    Unimplemented = 12 "UNIMPLEMENTED",
    /// The server's fault.
    Internal = 13 "INTERNAL",
    /// Not now.
    Unavailable = 14 "UNAVAILABLE",
    /// Something is lost.
    DataLoss = 15 "DATA_LOSS",
    /// No credentials, or wrong ones.
    Unauthenticated = 16 "UNAUTHENTICATED",
}

impl Code {
    /// The code of a kind of error. Two have another one here than in the REST body.
    pub fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::TooLarge => Self::ResourceExhausted,
            ErrorKind::MethodNotFound => Self::Unimplemented,
            kind => Self::from_name(kind.grpc_status()).unwrap_or(Self::Unknown),
        }
    }

    /// The number on the wire.
    pub fn number(self) -> i32 {
        self as i32
    }
}

/// `google.rpc.Status`, as it travels in `grpc-status-details-bin`.
#[derive(Clone, PartialEq, Message)]
pub struct Status {
    /// The number of the code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// For people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// For programs.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    /// What it is.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The message.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

/// `google.rpc.BadRequest`.
#[derive(Clone, PartialEq, Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    field_violations: Vec<FieldViolation>,
}

#[derive(Clone, PartialEq, Message)]
struct FieldViolation {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, tag = "2")]
    description: String,
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Self {
        let any = |type_url: &str, value: Vec<u8>| Any { type_url: type_url.to_owned(), value: value.into() };
        let info = ErrorInfo {
            reason: error.kind.reason().to_owned(),
            domain: DOMAIN.to_owned(),
            metadata: error.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        };
        let mut details = vec![any(ERROR_INFO, info.encode_to_vec())];
        if !error.violations.is_empty() {
            let violation =
                |v: &crate::Violation| FieldViolation { field: v.field.clone(), description: v.description.clone() };
            let request = BadRequest { field_violations: error.violations.iter().map(violation).collect() };
            details.push(any(BAD_REQUEST, request.encode_to_vec()));
        }
        Self { code: Code::of(error.kind).number(), message: error.message.to_string(), details }
    }
}

impl Status {
    /// The details as the JSON bindings have them; those of an unknown type are left out.
    pub fn details_json(&self) -> Value {
        self.details.iter().filter_map(detail_json).collect()
    }
}

fn detail_json(detail: &Any) -> Option<Value> {
    match &*detail.type_url {
        ERROR_INFO => {
            let info = ErrorInfo::decode(detail.value.clone()).ok()?;
            Some(json!({
                "@type": ERROR_INFO, "reason": info.reason, "domain": info.domain, "metadata": info.metadata,
            }))
        }
        BAD_REQUEST => {
            let request = BadRequest::decode(detail.value.clone()).ok()?;
            let violation = |v: FieldViolation| json!({ "field": v.field, "description": v.description });
            let all: Value = request.field_violations.into_iter().map(violation).collect();
            Some(json!({ "@type": BAD_REQUEST, "fieldViolations": all }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_survive_the_way() {
        let error = Error::invalid("message.parts", "must not be empty").fact("taskId", "t");
        let status = Status::decode(&*Status::from(&error).encode_to_vec()).expect("valid");
        assert_eq!(status.code, 3);
        let details = status.details_json();
        assert_eq!(details[0]["reason"], "INVALID_PARAMS");
        assert_eq!(details[0]["metadata"]["taskId"], "t");
        assert_eq!(details[1]["fieldViolations"][0]["field"], "message.parts");
    }

    #[test]
    fn every_kind_has_a_code() {
        for kind in ErrorKind::ALL {
            assert_ne!(Code::of(*kind), Code::Unknown, "{kind:?}");
        }
    }
}
