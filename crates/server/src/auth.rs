//! Who calls, and what he may do.
//!
//! Every transport hands what its caller shows to the gate. Any of the configured schemes suffices: a bearer
//! token, a password, an API key, a token of an OpenID provider, or what the transport itself has proven.

mod api_key;
mod basic;
mod bearer;
mod certificate;
mod file;
mod gate;
mod grants;
mod issuer;
mod jwks;
mod options;
mod security;
mod throttle;

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use nuncio_protocol::{Error, ErrorKind};

pub use api_key::ApiKey;
pub use basic::Password;
pub use bearer::{Token, TokenSecret};
pub(crate) use certificate::owner as owner_of;
pub use certificate::{CertificateName, Validity, validity};
pub(crate) use file::Stamp;
pub use file::read_secret;
pub(crate) use gate::Gate;
pub use grants::{Grants, ScopeTable, UnknownOperation};
pub use issuer::{Issuer, IssuerError, IssuerOptions, algorithm};
pub use jsonwebtoken::Algorithm;
pub use jwks::KeySource;
pub use options::AuthOptions;
pub(crate) use security::Security;

use crate::call::Way;

/// What a caller shows, whatever transport it came by: credentials stand where HTTP has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    /// The headers, metadata or first frame.
    pub(crate) headers: &'a HeaderMap,
    /// The query of the address.
    pub(crate) query: Option<&'a str>,
    /// Where the call comes from; nothing where the transport has no addresses.
    pub(crate) from: Option<IpAddr>,
    /// Who it is by the word of the transport itself: a certificate, or the user at the other end of a socket.
    pub(crate) proven: Option<&'a Arc<str>>,
}

/// What a connection has proven about whoever is at its other end, beside each of its requests.
#[derive(Clone, Debug)]
pub(crate) struct Proven(pub(crate) Arc<str>);

/// What the connection of a request has proven.
pub(crate) fn proven(parts: &http::request::Parts) -> Option<&Arc<str>> {
    parts.extensions.get::<Proven>().map(|proven| &proven.0)
}

/// Somebody who may come in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// Who it is; empty where nothing is protected.
    pub(crate) name: Arc<str>,
    /// Whose tasks he works with: his own, or those of his group where groups share.
    pub(crate) owner: Arc<str>,
    /// What he may do.
    pub(crate) grants: Grants,
    /// By which way.
    pub(crate) way: Way,
}

impl Caller {
    /// Somebody who may do everything with what is his own.
    pub(crate) fn named(name: Arc<str>) -> Self {
        Self { owner: name.clone(), name, ..Self::default() }
    }

    /// The same caller, who came by this way.
    pub(crate) fn by(self, way: Way) -> Self {
        Self { way, ..self }
    }
}

/// Why somebody may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No credentials, or wrong ones.
    Unauthorized,
    /// Known, but nothing is allowed to him.
    Forbidden,
    /// Too many wrong credentials from the same address.
    TooMany {
        /// Seconds until the next wrong ones are looked at again.
        retry_after: u64,
    },
    /// Who it is cannot be found out now: the keys of the issuer cannot be had.
    Unavailable,
}

impl Denied {
    /// What kind of error it is.
    pub(crate) fn kind(self) -> ErrorKind {
        match self {
            Self::Unauthorized => ErrorKind::Unauthenticated,
            Self::Forbidden => ErrorKind::PermissionDenied,
            Self::TooMany { .. } => ErrorKind::TooMany,
            Self::Unavailable => ErrorKind::Unavailable,
        }
    }

    /// What is put on record.
    pub(crate) fn outcome(self) -> &'static str {
        self.kind().reason()
    }

    /// The same as an error of the protocol; `how` tells where credentials belong in this binding.
    pub(crate) fn error(self, how: &'static str) -> Error {
        let text = match self {
            Self::Unauthorized => how,
            Self::Forbidden => "These credentials allow nothing here: ask for ones with the scope for it",
            Self::TooMany { .. } => "Too many wrong credentials: try again later",
            Self::Unavailable => "Credentials cannot be checked now: try again later",
        };
        Error::new(self.kind(), text)
    }
}
