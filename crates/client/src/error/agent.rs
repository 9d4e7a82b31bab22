//! An error that the agent reports, in the words of any binding.

use std::fmt;
use std::time::Duration;

use nuncio_protocol::proto::Code;
use nuncio_protocol::{DOMAIN, ErrorKind, Value, Violation};

use super::{MOST_TEXT, plain};

/// An error that the agent reports.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentError {
    /// The JSON-RPC code, also where the binding has another one; without a kind, what the binding has.
    pub code: i64,
    /// What A2A calls it; `None` for codes and reasons that A2A does not know.
    pub kind: Option<ErrorKind>,
    /// The reason in `ErrorInfo`, if there is one.
    pub reason: String,
    /// The agent's own words.
    pub message: String,
    /// The fields that are wrong.
    pub violations: Vec<Violation>,
    /// The `data` member as it came, in whatever shape.
    pub details: Value,
    /// When to come back, if the server says so.
    pub retry_after: Option<Duration>,
}

impl AgentError {
    /// Reads the `error` member of a JSON-RPC response. Only a code or a message makes it one.
    pub(crate) fn from_jsonrpc(error: &Value) -> Option<Self> {
        let code = error.get("code").and_then(number);
        let message = error.get("message").and_then(Value::as_str);
        if code.is_none() && message.is_none() {
            return None;
        }
        let details = error.get("data").cloned().unwrap_or_default();
        Some(Self::new(code.unwrap_or_default(), None, message, details))
    }

    /// Reads the body of a REST answer with a bad status. `old` agents, of 0.3, share no shape: some say the code
    /// of JSON-RPC, some the name of the error, and some only a text beside the status.
    pub(crate) fn from_rest(status: u16, body: &Value, old: bool) -> Option<Self> {
        let inner = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
        let message = inner.get("message").and_then(Value::as_str);
        let code = body.get("code").or_else(|| inner.get("code")).and_then(number);
        if message.is_none() && code.is_none() {
            return None;
        }
        let named = body.get("type").and_then(Value::as_str).and_then(ErrorKind::from_name);
        let told = named.or_else(|| code.and_then(ErrorKind::from_code));
        let kind = told.or_else(|| if old { by_status(status) } else { None });
        let details = inner.get("details").or_else(|| inner.get("data")).cloned().unwrap_or_default();
        Some(Self::new(code.unwrap_or_else(|| status.into()), kind, message, details))
    }

    /// Reads the status of a gRPC call. Agents without details are told by the name in their text, as 0.3 has it, or
    /// else by the code.
    pub(crate) fn from_grpc(code: Code, text: &str, details: Value) -> Self {
        let named = text.split_once(": ").and_then(|(name, rest)| Some((ErrorKind::from_name(name)?, rest)));
        let (kind, text) = named.map_or((by_code(code), text), |(kind, rest)| (Some(kind), rest));
        // What the details say comes first, and brings its own code.
        Self::new(code.number().into(), kind, Some(text).filter(|text| !text.is_empty()), details)
    }

    fn new(code: i64, kind: Option<ErrorKind>, message: Option<&str>, details: Value) -> Self {
        // An array in 1.0; some agents send a single object.
        let list = match &details {
            Value::Array(list) => list.as_slice(),
            other => std::slice::from_ref(other),
        };
        let info = |detail: &&Value| detail.get("domain").and_then(Value::as_str) == Some(DOMAIN);
        let reason = list.iter().find(info).and_then(|info| info.get("reason")?.as_str()).unwrap_or_default();
        let violations = list
            .iter()
            .filter_map(|detail| detail.get("fieldViolations")?.as_array())
            .flatten()
            .map(|violation| {
                let text = |name| plain(violation.get(name).and_then(Value::as_str).unwrap_or_default(), MOST_TEXT);
                Violation::new(text("field"), text("description"))
            })
            .collect();
        let kind = ErrorKind::from_reason(reason).or(kind).or_else(|| ErrorKind::from_code(code));
        // Codes above zero are statuses of HTTP, which do not tell errors apart.
        let code = if code >= 0 { kind.map_or(code, |kind| kind.code().into()) } else { code };
        Self {
            code,
            kind,
            reason: reason.to_owned(),
            message: plain(message.unwrap_or("(no message)"), MOST_TEXT),
            violations,
            details,
            retry_after: None,
        }
    }
}

/// What agents of 0.3 mean by a status that comes without a code.
fn by_status(status: u16) -> Option<ErrorKind> {
    match status {
        404 => Some(ErrorKind::TaskNotFound),
        409 => Some(ErrorKind::TaskNotCancelable),
        415 => Some(ErrorKind::ContentTypeNotSupported),
        422 => Some(ErrorKind::InvalidParams),
        501 => Some(ErrorKind::UnsupportedOperation),
        502 => Some(ErrorKind::InvalidAgentResponse),
        _ => None,
    }
}

/// What a gRPC code means without details.
fn by_code(code: Code) -> Option<ErrorKind> {
    match code {
        Code::InvalidArgument => Some(ErrorKind::InvalidParams),
        Code::NotFound => Some(ErrorKind::TaskNotFound),
        Code::PermissionDenied => Some(ErrorKind::PermissionDenied),
        Code::Unauthenticated => Some(ErrorKind::Unauthenticated),
        Code::ResourceExhausted => Some(ErrorKind::TooMany),
        Code::FailedPrecondition => Some(ErrorKind::UnsupportedOperation),
        Code::Unimplemented => Some(ErrorKind::MethodNotFound),
        Code::Internal => Some(ErrorKind::Internal),
        Code::Unavailable => Some(ErrorKind::Unavailable),
        _ => None,
    }
}

/// Some agents write the code as text or as a float.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse().ok(),
        #[allow(clippy::cast_possible_truncation)] // checked: whole, and far inside the range
        other => other
            .as_i64()
            .or_else(|| other.as_f64().filter(|code| code.fract() == 0.0 && code.abs() < 1e15).map(|code| code as i64)),
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The agent answers: {}", self.message.trim_end_matches('.'))?;
        for violation in &self.violations {
            if !self.message.contains(&violation.field) {
                write!(f, "; {} {}", violation.field, violation.description)?;
            }
        }
        if self.kind.is_none() {
            write!(f, " (code {})", self.code)?;
        }
        write!(f, ". {}", kind_hint(self.kind))
    }
}

impl std::error::Error for AgentError {}

fn kind_hint(kind: Option<ErrorKind>) -> &'static str {
    match kind {
        Some(ErrorKind::TaskNotFound) => "Check the task's id, and that the task belongs to these credentials.",
        Some(ErrorKind::TaskNotCancelable) => "It is over, or the agent does not let go of it: look at its state.",
        Some(ErrorKind::UnsupportedOperation | ErrorKind::PushNotificationNotSupported) => {
            "The agent cannot do this, or not in the task's state: see its card and the task."
        }
        Some(ErrorKind::ContentTypeNotSupported) => "Send one of the media types in the agent's card.",
        Some(ErrorKind::ExtensionSupportRequired) => "Activate the extensions that its card requires.",
        Some(ErrorKind::VersionNotSupported) => "Use an interface from its card that speaks this version.",
        Some(ErrorKind::Parse | ErrorKind::InvalidRequest | ErrorKind::InvalidParams) => "Correct the request.",
        Some(ErrorKind::MethodNotFound) => "Check that the address is an interface from its card.",
        Some(ErrorKind::TooSlow) => "The way there is slow: try again, or send less at once.",
        Some(ErrorKind::TooLarge) => "Send less at once.",
        Some(ErrorKind::TooMany | ErrorKind::Unavailable) => "Try again in a moment.",
        _ => "The people who run the agent know more.",
    }
}
