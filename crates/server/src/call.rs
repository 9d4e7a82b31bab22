//! Who calls, and how.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::auth::Grants;
use crate::push::Tone;
use crate::store::{Scope, Seq};

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// A2A 0.3.
    V03,
    /// A2A 1.0.
    V1,
}

impl Version {
    /// As it appears in headers and cards.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }

    /// Reads `Major.Minor`; a patch number does not count.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().split('.');
        let known = match (numbers.next()?, numbers.next()?) {
            ("0", "3") => Self::V03,
            ("1", "0") => Self::V1,
            _ => return None,
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match (numbers.next(), numbers.next()) {
            (None, _) => Some(known),
            (Some(patch), None) if is_number(patch) => Some(known),
            _ => None,
        }
    }
}

/// One call, whatever binding it came through.
#[derive(Clone, Debug)]
pub struct Call {
    /// Tenant and authenticated caller.
    pub scope: Scope,
    /// The version the caller speaks.
    pub version: Version,
    /// The extensions that the caller activates and the agent declares.
    pub extensions: Vec<Arc<str>>,
    /// Makes a retried send recognisable.
    pub idempotency_key: Option<Arc<str>>,
    /// The trace that the call belongs to, for what is sent on its behalf.
    pub traceparent: Option<Arc<str>>,
    /// The last event that a reconnecting reader has seen.
    pub after: Option<Seq>,
    /// What the caller may do.
    pub grants: Grants,
    /// Who it is by name, also where others share the scope.
    pub caller: Arc<str>,
    /// By which way it came in.
    pub way: Way,
    /// How its webhooks are told, where that is not the form of its version.
    pub(crate) tone: Option<Tone>,
}

/// The way by which a call came in. Transports without addresses have none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// What the call was put in: `jsonrpc`, if nothing else is said.
    pub binding: Option<&'static str>,
    /// Where it arrived.
    pub local: Option<SocketAddr>,
    /// The other end of the connection, which may be a proxy.
    pub peer: Option<SocketAddr>,
    /// Where it comes from.
    pub client: Option<IpAddr>,
}
