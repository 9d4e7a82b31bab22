//! What can go wrong, and what to do about it.

use std::fmt;
use std::time::Duration;

use nuncio_protocol::{DOMAIN, ErrorKind, TaskId, Value, Violation};

/// Why a call failed. The text is for people: it says what to do next and holds no credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address or an option cannot be used; nothing was sent.
    #[error("{what}")]
    Invalid {
        /// What is wrong.
        what: String,
    },
    /// No connection, or it broke.
    #[error("Cannot reach {url}: {cause}. Check the address, and that the agent is running.")]
    Unreachable {
        /// Who.
        url: String,
        /// Why, as far as the network says.
        cause: String,
    },
    /// A connection, but no answer in time.
    #[error(
        "No answer from {url} within {after:?}. The agent may still be working: look at its tasks, allow more time, \
         or use a stream."
    )]
    Timeout {
        /// Who.
        url: String,
        /// The limit.
        after: Duration,
    },
    /// An answer that is not A2A's, but HTTP's own.
    #[error("{url} answered with HTTP status {status}{}. {}", Said(said), status_hint(*status))]
    Http {
        /// Who.
        url: String,
        /// The status.
        status: u16,
        /// The beginning of the body.
        said: String,
        /// When to come back, if the server says so.
        retry_after: Option<Duration>,
    },
    /// Missing, wrong or insufficient credentials.
    #[error("{url} {}{}. {}", refusal(*status), Said(said), credentials_hint(*status, *sent))]
    Unauthorized {
        /// Who.
        url: String,
        /// 401 for unknown callers, 403 for callers that may not do this.
        status: u16,
        /// Whether credentials went along.
        sent: bool,
        /// What the server wants instead, or why.
        said: String,
    },
    /// The agent understood the call and refused it.
    #[error(transparent)]
    Agent(Box<AgentError>),
    /// The answer is not what A2A says it must be.
    #[error("{url} does not speak A2A as expected: {what}. Check that the address is the one in the agent's card.")]
    Protocol {
        /// Who.
        url: String,
        /// What is wrong.
        what: String,
    },
    /// More bytes than the limit.
    #[error("The answer of {url} is larger than {limit} bytes. Ask for less, or raise the limit.")]
    TooLarge {
        /// Who.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// The card leads to an origin for which the credentials were not given.
    #[error(
        "The card at {typed} names an interface at {other}. Credentials for {typed} are not sent there. If you trust \
         it, use that address directly, or allow credentials across origins."
    )]
    CrossOrigin {
        /// What the user typed.
        typed: String,
        /// Where the card leads.
        other: String,
    },
    /// The server sends us to another origin.
    #[error("{url} redirects to {to}, which is not followed. If you trust it, use that address.")]
    Redirect {
        /// Who.
        url: String,
        /// Where to.
        to: String,
    },
    /// The card offers nothing that this client can use.
    #[error("The card at {url} offers {}. This client speaks JSONRPC 1.0.", Offers(offers))]
    NoInterface {
        /// Where the card is.
        url: String,
        /// Binding, version and address of each interface.
        offers: Vec<String>,
    },
    /// The stream ended before the task did, and there is no way to go on.
    #[error("The stream ended before the task did{}. {}", Because(cause.as_deref()), cut_hint(task.as_ref()))]
    Cut {
        /// The task, if the agent has named it.
        task: Option<TaskId>,
        /// Why the last connection failed; nothing if the agent closed it and does not open another.
        cause: Option<Box<ClientError>>,
    },
}

impl ClientError {
    /// Whether the same call may well succeed in a moment.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Http { status, .. } => matches!(status, 408 | 425 | 429 | 502 | 503 | 504),
            Self::Agent(error) => matches!(error.kind, Some(ErrorKind::Unavailable | ErrorKind::TooMany)),
            _ => false,
        }
    }

    /// The kind of the agent's error, if it is one that A2A knows.
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Agent(error) => error.kind,
            _ => None,
        }
    }

    /// When the server wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Http { retry_after, .. } => *retry_after,
            Self::Agent(error) => error.retry_after,
            _ => None,
        }
    }
}

/// An error that the agent reports.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentError {
    /// The JSON-RPC code.
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
                let text = |name| violation.get(name).and_then(Value::as_str).unwrap_or_default();
                Violation::new(text("field"), text("description"))
            })
            .collect();
        let code = code.unwrap_or_default();
        Some(Self {
            code,
            kind: ErrorKind::from_reason(reason).or_else(|| ErrorKind::from_code(code)),
            reason: reason.to_owned(),
            message: plain(message.unwrap_or("(no message)"), MOST_TEXT),
            violations,
            details,
            retry_after: None,
        })
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
        Some(ErrorKind::MethodNotFound) => "Check that the address is a JSON-RPC interface from its card.",
        Some(ErrorKind::TooLarge) => "Send less at once.",
        Some(ErrorKind::TooMany | ErrorKind::Unavailable) => "Try again in a moment.",
        _ => "The people who run the agent know more.",
    }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        404 | 405 | 410 => "Check the address: there is no agent at it.",
        408 | 425 | 429 | 502..=504 => "Try again in a moment.",
        500.. => "The people who run the agent know more.",
        _ => "Check the address and the request.",
    }
}

fn refusal(status: u16) -> &'static str {
    if status == 403 { "does not allow this call" } else { "does not accept the caller" }
}

fn credentials_hint(status: u16, sent: bool) -> &'static str {
    match (status, sent) {
        (403, _) => "Ask for the permission, or use other credentials.",
        (_, true) => "The credentials are wrong or have expired: get new ones.",
        (_, false) => "Credentials are needed: set a token or a header.",
    }
}

fn cut_hint(task: Option<&TaskId>) -> String {
    match task {
        Some(task) => format!("Ask for task {} later.", plain(task.as_str(), 100)),
        None => "The message may have arrived all the same: look at the agent's tasks before sending it again.".into(),
    }
}

/// What the other side says, if anything.
struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0.trim_end_matches('.')) }
    }
}

struct Because<'a>(Option<&'a ClientError>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(error) => write!(f, " ({})", error.to_string().trim_end_matches('.')),
        }
    }
}

struct Offers<'a>(&'a [String]);

impl fmt::Display for Offers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("no interface at all") } else { f.write_str(&self.0.join(", ")) }
    }
}

/// So many characters of foreign text are shown.
pub(crate) const MOST_TEXT: usize = 1000;

/// Foreign text that is safe to print: one line, no control characters, of limited length.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}
