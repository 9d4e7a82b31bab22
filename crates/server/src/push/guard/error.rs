//! Why something was not sent, or did not arrive.

use std::error::Error;

use super::resolve::Unresolved;

/// Why an address is not used. Everything here follows from the address itself and from what its name resolves
/// to, never from what listens there; the text names no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Not a URL, or one with characters that no URL has.
    #[error("it is not a URL of at most 2048 characters, such as https://hooks.example.com/a2a")]
    Malformed,
    /// Another protocol.
    #[error("{}", if *https_only { "it must begin with https://" } else { "it must begin with https:// or http://" })]
    Scheme {
        /// Whether plain HTTP is refused, too.
        https_only: bool,
    },
    /// A user name or a password inside of the URL.
    #[error("it must not hold a user name or a password; give credentials apart from it")]
    UserInfo,
    /// A port on which something other than HTTP is spoken.
    #[error("its port belongs to another protocol; use 443, 80 or a port above 1024 of your own")]
    Port,
    /// Not on the public internet, as far as its name and all of its addresses tell.
    #[error("its host is not one of the public internet; use another, or ask whoever runs this server to allow it")]
    Host,
    /// A header that could be read as two.
    #[error("a header value has characters other than printable ASCII; give credentials and tokens in one plain line")]
    Header,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// It must not be sent, now or later.
    #[error("The address cannot be used: {0}.")]
    Refused(#[from] Refused),
    /// It may well work later.
    #[error("No answer: {0}.")]
    Transient(Fault),
    /// The answer is larger than the caller takes.
    #[error("The answer is larger than {limit} bytes.")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// What the network did. It says no more than the receiver's own operator would see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The name has no address.
    #[error("the host's name cannot be resolved")]
    Name,
    /// No connection, or no agreement on TLS.
    #[error("no connection, or its certificate is not trusted")]
    Connect,
    /// Too slow.
    #[error("not complete in time")]
    Timeout,
    /// Something that is not HTTP, or a connection that broke.
    #[error("the connection broke, or the answer is not HTTP")]
    Broken,
}

impl From<reqwest::Error> for SendError {
    fn from(error: reqwest::Error) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(inner) = cause {
            match inner.downcast_ref() {
                Some(Unresolved::Refused(refused)) => return Self::Refused(*refused),
                Some(Unresolved::Unknown) => return Self::Transient(Fault::Name),
                None => cause = inner.source(),
            }
        }
        let fault = match &error {
            error if error.is_timeout() => Fault::Timeout,
            error if error.is_connect() => Fault::Connect,
            _ => Fault::Broken,
        };
        let error = error.without_url();
        tracing::debug!(error = &error as &dyn Error, %fault, "an outbound request failed");
        Self::Transient(fault)
    }
}
