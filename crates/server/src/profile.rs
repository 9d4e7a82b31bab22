//! What a server does differently where it stands in for another one.
//!
//! A profile has two halves: how reports look, which is [`Style`] and belongs to [`crate::present`], and how the
//! server behaves, which is here. The bindings and the card ask it at few, named places; the engine gets its
//! [`Manners`] and knows no profile.
//!
//! ```text
//! bind/http      is_rpc_path      which paths take JSON-RPC
//!                has_old_card     whether the card is also at its path of 0.3
//!                has_mcp          whether tools are offered by MCP
//!                health           what `/health` says
//!                refusal          what a caller who is not let in is told
//! bind/rpc       accent           how answers differ from the plain ones of their version
//!                mend             what may be missing from a request
//! bind/dispatch  check            whether a request may be carried out: rules for ids
//! card           rpc_path         the path of JSON-RPC that the card names
//!                first_form       what a signature covers that comes first
//!                shape            anything else about the card
//!                finish_card      what no card of 1.0 has
//! server         manners          rules of conversation, for the engine
//! ```

use http::StatusCode;
use nuncio_protocol::sign::Form;
use nuncio_protocol::{AgentCard, Error, Value};

use crate::bind::dialect::Accent;
use crate::bind::dispatch::Request;
use crate::call::Version;
use crate::engine::Manners;
use crate::push::Tone;

pub(crate) mod coding_agent;
mod iac_code;
pub(crate) mod liquid_crypto;
pub(crate) mod proto_agent;

/// Whom the server behaves like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Plain A2A.
    #[default]
    Nuncio,
    /// iac-code.
    IacCode,
    /// protoAgent.
    ProtoAgent,
    /// LiquidCrypto.
    LiquidCrypto,
    /// coding-agent-a2a.
    CodingAgent,
}

impl Profile {
    /// Its rules of conversation.
    pub fn manners(self) -> Manners {
        match self {
            Self::Nuncio | Self::LiquidCrypto => Manners::default(),
            Self::IacCode => iac_code::MANNERS,
            Self::ProtoAgent => proto_agent::manners(),
            Self::CodingAgent => coding_agent::manners(),
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
        let usual = matches!(path, "/" | "/a2a" | "/a2a/" | "/a2a/jsonrpc" | "/a2a/jsonrpc/");
        usual || self == Self::LiquidCrypto && liquid_crypto::is_path(path)
    }

    /// The path of JSON-RPC on the card.
    pub(crate) fn rpc_path(self) -> &'static str {
        match self {
            Self::Nuncio | Self::IacCode | Self::LiquidCrypto => "/",
            Self::ProtoAgent => "/a2a",
            Self::CodingAgent => "/a2a/jsonrpc",
        }
    }

    /// Refuses a request that breaks a rule of this profile.
    pub(crate) fn check(self, request: &Request) -> Result<(), Error> {
        match self {
            Self::IacCode => iac_code::check(request),
            _ => Ok(()),
        }
    }

    /// The form of a card that its clients verify, if they look at the first signature alone.
    pub(crate) fn first_form(self) -> Option<Form> {
        match self {
            Self::IacCode => Some(Form::Escaped),
            Self::Nuncio | Self::ProtoAgent | Self::LiquidCrypto | Self::CodingAgent => None,
        }
    }

    /// Gives the card what only this profile has. `card` is all but addresses, signatures and security.
    pub(crate) fn shape(self, card: &mut AgentCard) {
        match self {
            Self::Nuncio | Self::ProtoAgent => {}
            Self::IacCode => iac_code::shape(card),
            Self::LiquidCrypto => liquid_crypto::shape(card),
            Self::CodingAgent => coding_agent::shape(card),
        }
    }

    /// Whether the card, as it is written, still lacks something that the model does not know.
    pub(crate) fn has_more_card(self, is_v1: bool) -> bool {
        match self {
            Self::Nuncio | Self::IacCode => false,
            Self::ProtoAgent | Self::CodingAgent => !is_v1,
            Self::LiquidCrypto => true,
        }
    }

    /// Gives the written card what the model does not know.
    pub(crate) fn finish_card(self, card: &mut Value, base_url: &str) {
        match self {
            Self::Nuncio | Self::IacCode => {}
            Self::ProtoAgent => proto_agent::finish_card(card),
            Self::LiquidCrypto => liquid_crypto::finish_card(card, base_url),
            Self::CodingAgent => coding_agent::finish_card(card),
        }
    }

    /// Whether the card is also where clients of 0.3 look first.
    pub(crate) fn has_old_card(self) -> bool {
        self != Self::LiquidCrypto
    }

    /// Whether tools are offered by MCP.
    pub(crate) fn has_mcp(self) -> bool {
        self == Self::CodingAgent
    }

    /// What `/health` says, if not the usual. `agent` is the one that is served.
    pub(crate) fn health(self, agent: &str) -> Option<Value> {
        (self == Self::CodingAgent).then(|| nuncio_protocol::json!({ "status": "ok", "adapter": agent }))
    }

    /// What a caller who is not let in is told, if not the usual.
    pub(crate) fn refusal(self, status: StatusCode) -> Option<Value> {
        (self == Self::ProtoAgent).then(|| proto_agent::refusal(status))
    }

    /// How answers to this method at this path differ from the plain ones of their version.
    pub(crate) fn accent(self, path: &str, method: &str, version: Version) -> Accent {
        match (self, version) {
            (Self::LiquidCrypto, _) if liquid_crypto::is_path(path) && liquid_crypto::is_method(method) => {
                Accent::Draft
            }
            (Self::ProtoAgent, Version::V03) => Accent::ProtoAgent,
            (Self::CodingAgent, Version::V03) => Accent::CodingAgent,
            _ => Accent::Plain,
        }
    }

    /// How the webhooks of callers who speak this version are told, where that is not as the version says.
    pub(crate) fn tone(self, version: Version) -> Option<Tone> {
        (self == Self::ProtoAgent && version == Version::V03).then_some(Tone::ProtoAgent)
    }

    /// Adds to a request of 0.3 what its clients leave out. `params` is what it was read from.
    pub(crate) fn mend(self, request: &mut Request, params: &str) {
        if self == Self::ProtoAgent {
            proto_agent::mend(request, params);
        }
    }

    /// Whether canceling a task that is over changes nothing, instead of being an error.
    pub(crate) fn may_cancel_again(self) -> bool {
        matches!(self, Self::ProtoAgent | Self::CodingAgent)
    }
}
