//! The agent card: what an agent says of itself.

use serde::{Deserialize, Serialize};

use crate::codec::{Metadata, is_false, or_default};
use crate::security::{SecurityRequirement, SecuritySchemes};

/// What an agent is, what it can do, and where it listens. Required members are always written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCard {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What it does.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// Where it listens, best first.
    #[serde(alias = "supported_interfaces", deserialize_with = "or_default")]
    pub supported_interfaces: Vec<AgentInterface>,
    /// Who runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<AgentProvider>,
    /// The agent's own version.
    #[serde(deserialize_with = "or_default")]
    pub version: String,
    /// Where its documentation is.
    #[serde(alias = "documentation_url", skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    /// Optional parts of the protocol that it supports.
    #[serde(deserialize_with = "or_default")]
    pub capabilities: AgentCapabilities,
    /// Ways to authenticate, by name.
    #[serde(
        alias = "security_schemes",
        deserialize_with = "or_default",
        skip_serializing_if = "SecuritySchemes::is_empty"
    )]
    pub security_schemes: SecuritySchemes,
    /// Which of them are needed: any one entry suffices.
    #[serde(alias = "security_requirements", deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub security_requirements: Vec<SecurityRequirement>,
    /// Media types it takes.
    #[serde(alias = "default_input_modes", deserialize_with = "or_default")]
    pub default_input_modes: Vec<String>,
    /// Media types it makes.
    #[serde(alias = "default_output_modes", deserialize_with = "or_default")]
    pub default_output_modes: Vec<String>,
    /// What it can be asked to do.
    #[serde(deserialize_with = "or_default")]
    pub skills: Vec<AgentSkill>,
    /// Proofs of who wrote the card.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<AgentCardSignature>,
    /// A picture.
    #[serde(alias = "icon_url", skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
}

/// One address of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentInterface {
    /// Where.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or a URI.
    #[serde(alias = "protocol_binding", deserialize_with = "or_default")]
    pub protocol_binding: String,
    /// Value to send along with every request.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// `1.0` or `0.3`.
    #[serde(alias = "protocol_version", deserialize_with = "or_default")]
    pub protocol_version: String,
}

/// Who runs an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentProvider {
    /// Their site.
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    /// Their name.
    #[serde(deserialize_with = "or_default")]
    pub organization: String,
}

/// Optional parts of the protocol; absent means no.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCapabilities {
    /// Streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Webhooks.
    #[serde(alias = "push_notifications", skip_serializing_if = "Option::is_none")]
    pub push_notifications: Option<bool>,
    /// Extensions.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<AgentExtension>,
    /// A fuller card for known callers.
    #[serde(alias = "extended_agent_card", skip_serializing_if = "Option::is_none")]
    pub extended_agent_card: Option<bool>,
}

/// An extension that an agent supports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentExtension {
    /// Names it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// How the agent uses it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether clients must support it.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_false")]
    pub required: bool,
    /// Its settings.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Metadata::is_empty")]
    pub params: Metadata,
}

/// Something an agent can be asked to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSkill {
    /// Names it.
    #[serde(deserialize_with = "or_default")]
    pub id: String,
    /// A name for people.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What it does.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// Words to find it by.
    #[serde(deserialize_with = "or_default")]
    pub tags: Vec<String>,
    /// Prompts that it understands.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Media types it takes, if other than the agent's.
    #[serde(alias = "input_modes", deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub input_modes: Vec<String>,
    /// Media types it makes, if other than the agent's.
    #[serde(alias = "output_modes", deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<String>,
    /// Authentication that it needs besides the agent's.
    #[serde(alias = "security_requirements", deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub security_requirements: Vec<SecurityRequirement>,
}

/// A detached JSON Web Signature over the card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCardSignature {
    /// The protected header, base64url.
    #[serde(deserialize_with = "or_default")]
    pub protected: String,
    /// The signature, base64url.
    #[serde(deserialize_with = "or_default")]
    pub signature: String,
    /// The unprotected header.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Metadata::is_empty")]
    pub header: Metadata,
}
