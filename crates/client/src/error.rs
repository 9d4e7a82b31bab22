//! What can go wrong, and what to do about it.

use std::fmt;
use std::time::Duration;

use nuncio_protocol::sign::Verdict;
use nuncio_protocol::{ErrorKind, TaskId};

mod agent;

pub use agent::AgentError;

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
    #[error("The answer of {url} is larger than the {limit} bytes that this client reads. Ask for less at once.")]
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
    /// The card is not from whom it should be.
    #[error("The card at {url} is refused, as its signature is {verdict}. {}", signature_hint(verdict))]
    CardSignature {
        /// Where the card is.
        url: String,
        /// What its signatures are worth.
        verdict: Box<Verdict>,
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
    #[error("The card at {url} offers {}. {}", Offers(offers), wanted_hint(wanted))]
    NoInterface {
        /// Where the card is.
        url: String,
        /// The binding and the version that the caller insists on; empty if any will do.
        wanted: String,
        /// Binding, version and address of each interface.
        offers: Vec<String>,
    },
    /// The agent talks only to clients that support certain extensions.
    #[error(
        "The agent at {url} requires extensions that are not activated: {}. Activate them if you support them.",
        missing.join(", ")
    )]
    ExtensionsRequired {
        /// Where the card is.
        url: String,
        /// Their URIs.
        missing: Vec<String>,
    },
    /// The version or the binding in use has no such operation; nothing was sent.
    #[error("{what}")]
    Unsupported {
        /// What, and what to do instead.
        what: String,
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
            Self::Unsupported { .. } => Some(ErrorKind::UnsupportedOperation),
            _ => None,
        }
    }

    /// The same, with what the headers of the answer say about another attempt.
    pub(crate) fn after(self, pause: Option<Duration>) -> Self {
        match self {
            Self::Agent(mut error) => {
                error.retry_after = pause;
                Self::Agent(error)
            }
            other => other,
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

fn status_hint(status: u16) -> &'static str {
    match status {
        404 | 405 | 410 => "Check the address: there is no agent at it.",
        408 | 425 | 429 | 502..=504 => "Try again in a moment.",
        500.. => "The people who run the agent know more.",
        _ => "Check the address and the request.",
    }
}

fn signature_hint(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Absent => "Ask the people who run the agent to sign its card, or do not require a signature.",
        Verdict::Unverifiable(_) => "Check the keys that are given for it.",
        _ => "Do not trust the card before the people who run the agent have explained it.",
    }
}

fn wanted_hint(wanted: &str) -> String {
    if wanted.is_empty() {
        return "This client speaks JSONRPC and HTTP+JSON, of A2A 1.0 and 0.3.".into();
    }
    format!("You asked for {wanted}: allow what the card offers, or ask for another agent.")
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
