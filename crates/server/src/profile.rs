//! What a server does differently where it stands in for another one.
//!
//! A profile has two halves: how reports look, which is [`Style`] and belongs to [`crate::present`], and how the
//! server behaves, which is here. The bindings and the card ask it at few, named places; the engine gets its
//! [`Manners`] and knows no profile.
//!
//! ```text
//! bind/http      is_rpc_path      which paths take JSON-RPC
//! bind/dispatch  check            whether a request may be carried out: rules for ids
//! card           rpc_path         the path of JSON-RPC that the card names
//!                first_form       what a signature covers that comes first
//!                shape            anything else about the card
//! server         manners          rules of conversation, for the engine
//! ```

use nuncio_protocol::sign::Form;
use nuncio_protocol::{AgentCard, Error};

use crate::bind::dispatch::Request;
use crate::engine::Manners;

mod iac_code;

/// Whom the server behaves like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Plain A2A.
    #[default]
    Nuncio,
    /// iac-code.
    IacCode,
}

impl Profile {
    /// Its rules of conversation.
    pub fn manners(self) -> Manners {
        match self {
            Self::Nuncio => Manners::default(),
            Self::IacCode => iac_code::MANNERS,
        }
    }

    /// Whether messages are read by strict rules: few kinds of text, and never nothing.
    pub fn is_strict(self) -> bool {
        self == Self::IacCode
    }

    /// Whether callers may choose folders below that for temporary files, where no others are configured.
    pub fn works_in_temp(self) -> bool {
        self == Self::IacCode
    }

    /// Whether JSON-RPC is spoken at this path.
    pub(crate) fn is_rpc_path(self, path: &str) -> bool {
        match self {
            Self::Nuncio | Self::IacCode => matches!(path, "/" | "/a2a" | "/a2a/" | "/a2a/jsonrpc" | "/a2a/jsonrpc/"),
        }
    }

    /// The path of JSON-RPC on the card.
    pub(crate) fn rpc_path(self) -> &'static str {
        match self {
            Self::Nuncio | Self::IacCode => "/",
        }
    }

    /// Refuses a request that breaks a rule of this profile.
    pub(crate) fn check(self, request: &Request) -> Result<(), Error> {
        match self {
            Self::Nuncio => Ok(()),
            Self::IacCode => iac_code::check(request),
        }
    }

    /// The form of a card that its clients verify, if they look at the first signature alone.
    pub(crate) fn first_form(self) -> Option<Form> {
        match self {
            Self::IacCode => Some(Form::Escaped),
            Self::Nuncio => None,
        }
    }

    /// Gives the card what only this profile has. `card` is all but addresses, signatures and security.
    pub(crate) fn shape(self, card: &mut AgentCard) {
        match self {
            Self::Nuncio => {}
            Self::IacCode => iac_code::shape(card),
        }
    }
}
