//! What can go wrong, and how each binding says it. This is the one table.

use std::borrow::Cow;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::codec::{DecodeError, Value};

/// The domain of A2A's own error reasons.
pub const DOMAIN: &str = "a2a-protocol.org";

pub(crate) const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
pub(crate) const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $code:literal $http:literal $status:literal $reason:literal;)*) => {
        /// A kind of error. Clients tell them apart by code or by reason, never by HTTP status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $name,)*
        }

        impl ErrorKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The JSON-RPC code.
            pub fn code(self) -> i32 {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status of the REST binding.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$name => $http,)* }
            }

            /// The name of the gRPC status.
            pub fn grpc_status(self) -> &'static str {
                match self { $(Self::$name => $status,)* }
            }

            /// The reason in `ErrorInfo`.
            pub fn reason(self) -> &'static str {
                match self { $(Self::$name => $reason,)* }
            }
        }
    };
}

kinds! {
    /// No such task, or not the caller's.
    TaskNotFound -32001 404 "NOT_FOUND" "TASK_NOT_FOUND";
    /// The task is over or refuses.
    TaskNotCancelable -32002 400 "FAILED_PRECONDITION" "TASK_NOT_CANCELABLE";
    /// The agent has no webhooks.
    PushNotificationNotSupported -32003 400 "FAILED_PRECONDITION" "PUSH_NOTIFICATION_NOT_SUPPORTED";
    /// Not possible with this agent or in this state.
    UnsupportedOperation -32004 400 "FAILED_PRECONDITION" "UNSUPPORTED_OPERATION";
    /// A media type that the agent does not take.
    ContentTypeNotSupported -32005 400 "INVALID_ARGUMENT" "CONTENT_TYPE_NOT_SUPPORTED";
    /// The agent broke the protocol.
    InvalidAgentResponse -32006 500 "INTERNAL" "INVALID_AGENT_RESPONSE";
    /// An extended card is announced but there is none.
    ExtendedAgentCardNotConfigured -32007 400 "FAILED_PRECONDITION" "EXTENDED_AGENT_CARD_NOT_CONFIGURED";
    /// The client must declare an extension.
    ExtensionSupportRequired -32008 400 "FAILED_PRECONDITION" "EXTENSION_SUPPORT_REQUIRED";
    /// The interface does not speak this version.
    VersionNotSupported -32009 400 "FAILED_PRECONDITION" "VERSION_NOT_SUPPORTED";
    /// Not JSON.
    Parse -32700 400 "INVALID_ARGUMENT" "PARSE_ERROR";
    /// Not a request.
    InvalidRequest -32600 400 "INVALID_ARGUMENT" "INVALID_REQUEST";
    /// No such method or path.
    MethodNotFound -32601 404 "NOT_FOUND" "METHOD_NOT_FOUND";
    /// A parameter is missing or wrong.
    InvalidParams -32602 400 "INVALID_ARGUMENT" "INVALID_PARAMS";
    /// Our fault.
    Internal -32603 500 "INTERNAL" "INTERNAL_ERROR";
    /// No credentials, or wrong ones.
    Unauthenticated -31401 401 "UNAUTHENTICATED" "UNAUTHENTICATED";
    /// Known, but not allowed.
    PermissionDenied -31403 403 "PERMISSION_DENIED" "PERMISSION_DENIED";
    /// The request did not arrive in time.
    TooSlow -31408 408 "DEADLINE_EXCEEDED" "REQUEST_TIMEOUT";
    /// More than the server takes.
    TooLarge -31413 413 "INVALID_ARGUMENT" "REQUEST_TOO_LARGE";
    /// The caller asks too often or for too much at once.
    TooMany -31429 429 "RESOURCE_EXHAUSTED" "RATE_LIMITED";
    /// The server cannot take it now.
    Unavailable -31503 503 "UNAVAILABLE" "UNAVAILABLE";
}

impl ErrorKind {
    /// The kind with this JSON-RPC code.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| i64::from(kind.code()) == code)
    }

    /// The kind with this reason.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.reason() == reason)
    }

    /// The kind that 0.3 peers call so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The name that 0.3 peers use: the 1.0 name with `Error` behind it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskNotFound => "TaskNotFoundError",
            Self::TaskNotCancelable => "TaskNotCancelableError",
            Self::PushNotificationNotSupported => "PushNotificationNotSupportedError",
            Self::UnsupportedOperation => "UnsupportedOperationError",
            Self::ContentTypeNotSupported => "ContentTypeNotSupportedError",
            Self::InvalidAgentResponse => "InvalidAgentResponseError",
            Self::ExtendedAgentCardNotConfigured => "AuthenticatedExtendedCardNotConfiguredError",
            Self::ExtensionSupportRequired => "ExtensionSupportRequiredError",
            Self::VersionNotSupported => "VersionNotSupportedError",
            Self::Parse => "JSONParseError",
            Self::InvalidRequest => "InvalidRequestError",
            Self::MethodNotFound => "MethodNotFoundError",
            Self::InvalidParams => "InvalidParamsError",
            Self::Internal => "InternalError",
            Self::Unauthenticated => "UnauthenticatedError",
            Self::PermissionDenied => "PermissionDeniedError",
            Self::TooSlow => "RequestTimeoutError",
            Self::TooLarge => "RequestTooLargeError",
            Self::TooMany => "RateLimitedError",
            Self::Unavailable => "UnavailableError",
        }
    }
}

/// One field of a request that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Its path, in the words of the wire.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}

impl Violation {
    /// What is wrong, and where.
    pub fn new(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self { field: field.into(), description: description.into() }
    }
}

/// An error as a caller sees it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Which one.
    pub kind: ErrorKind,
    /// For people; says what to do next and holds nothing internal.
    pub message: Cow<'static, str>,
    /// The fields that are wrong, for [`ErrorKind::InvalidParams`].
    pub violations: Vec<Violation>,
    /// Facts for programs, such as the task's id.
    pub facts: Vec<(&'static str, String)>,
}

impl Error {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), violations: Vec::new(), facts: Vec::new() }
    }

    /// The same with one fact more.
    #[must_use]
    pub fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    /// No such task, or not the caller's: both look the same.
    pub fn task_not_found(id: &str) -> Self {
        Self::new(ErrorKind::TaskNotFound, "Task not found").fact("taskId", id)
    }

    /// One wrong parameter.
    pub fn invalid(field: &str, what: &str) -> Self {
        Self::violations(vec![Violation::new(field, what)])
    }

    /// Wrong parameters.
    pub fn violations(violations: Vec<Violation>) -> Self {
        let all: Vec<String> = violations.iter().map(|v| format!("{} {}", v.field, v.description)).collect();
        let message = format!("Invalid parameters: {}", all.join("; "));
        Self { violations, ..Self::new(ErrorKind::InvalidParams, message) }
    }

    /// Fails when there are violations.
    pub fn check(violations: Vec<Violation>) -> Result<(), Self> {
        if violations.is_empty() { Ok(()) } else { Err(Self::violations(violations)) }
    }

    /// An error that the caller did not cause and cannot mend.
    pub fn internal() -> Self {
        Self::new(ErrorKind::Internal, "Internal error: the server's log says more")
    }

    /// `{"code", "message", "data"}` of JSON-RPC.
    pub fn jsonrpc(&self) -> JsonRpcError<'_> {
        JsonRpcError(self)
    }

    /// `{"error": {"code", "status", "message", "details"}}` of REST.
    pub fn rest(&self) -> RestError<'_> {
        self.rest_as(self.kind.http_status())
    }

    /// The same under another HTTP status than the usual one, which `code` then repeats.
    pub fn rest_as(&self, status: u16) -> RestError<'_> {
        RestError(self, status)
    }

    pub(crate) fn status(&self, code: u16) -> Status<'_> {
        Status(self, code)
    }

    fn details(&self) -> Details<'_> {
        Details(self)
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Syntax(what) => Self::new(ErrorKind::Parse, format!("The body is not valid JSON: {what}")),
            DecodeError::Shape { path, what } if path.is_empty() => {
                Self::new(ErrorKind::InvalidParams, format!("Invalid parameters: {what}"))
            }
            DecodeError::Shape { path, what } => Self::invalid(&path, &what),
        }
    }
}

/// An error as the `error` member of a JSON-RPC 1.0 response.
pub struct JsonRpcError<'a>(&'a Error);

impl Serialize for JsonRpcError<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 3)?;
        map.serialize_field("code", &self.0.kind.code())?;
        map.serialize_field("message", &self.0.message)?;
        map.serialize_field("data", &self.0.details())?;
        map.end()
    }
}

/// An error as a REST 1.0 body.
pub struct RestError<'a>(&'a Error, u16);

impl Serialize for RestError<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        map.serialize_field("error", &self.0.status(self.1))?;
        map.end()
    }
}

/// The inner object of a REST body.
pub(crate) struct Status<'a>(&'a Error, u16);

impl Serialize for Status<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 4)?;
        map.serialize_field("code", &self.1)?;
        map.serialize_field("status", self.0.kind.grpc_status())?;
        map.serialize_field("message", &self.0.message)?;
        map.serialize_field("details", &self.0.details())?;
        map.end()
    }
}

struct Details<'a>(&'a Error);

impl Serialize for Details<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut all = vec![Detail::Info(self.0)];
        if !self.0.violations.is_empty() {
            all.push(Detail::Fields(&self.0.violations));
        }
        all.serialize(to)
    }
}

enum Detail<'a> {
    Info(&'a Error),
    Fields(&'a [Violation]),
}

impl Serialize for Detail<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        match self {
            Self::Info(error) => {
                map.serialize_field("@type", ERROR_INFO)?;
                map.serialize_field("reason", error.kind.reason())?;
                map.serialize_field("domain", DOMAIN)?;
                if !error.facts.is_empty() {
                    let facts: serde_json::Map<String, Value> = error
                        .facts
                        .iter()
                        .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())))
                        .collect();
                    map.serialize_field("metadata", &facts)?;
                }
            }
            Self::Fields(violations) => {
                map.serialize_field("@type", BAD_REQUEST)?;
                map.serialize_field("fieldViolations", violations)?;
            }
        }
        map.end()
    }
}
