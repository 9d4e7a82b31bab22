//! The card: one main address and additional ones in 0.3, a list of interfaces in 1.0.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use super::security::{Names, Scheme, SchemeOut, Security, SecurityOut, requirements, schemes};
use super::{Dialect, Members, Up};
use crate::codec::{self, DecodeError, Value, or_default};
use crate::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
};

const VERSION: &str = "0.3";
const GRPC: &str = "GRPC";

/// A card of 0.3, or of 1.0, or of both at once.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Card {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    description: String,
    #[serde(deserialize_with = "or_default")]
    version: String,
    #[serde(alias = "protocol_version", deserialize_with = "or_default")]
    protocol_version: String,
    #[serde(deserialize_with = "or_default")]
    url: String,
    #[serde(alias = "preferred_transport", deserialize_with = "or_default")]
    preferred_transport: String,
    #[serde(alias = "additional_interfaces", deserialize_with = "or_default")]
    additional_interfaces: Vec<Interface>,
    #[serde(alias = "supported_interfaces", deserialize_with = "or_default")]
    supported_interfaces: Vec<AgentInterface>,
    provider: Option<AgentProvider>,
    #[serde(alias = "icon_url")]
    icon_url: Option<String>,
    #[serde(alias = "documentation_url")]
    documentation_url: Option<String>,
    #[serde(deserialize_with = "or_default")]
    capabilities: AgentCapabilities,
    #[serde(alias = "security_schemes", deserialize_with = "or_default")]
    security_schemes: BTreeMap<String, Scheme>,
    #[serde(deserialize_with = "or_default")]
    security: Vec<Security>,
    #[serde(alias = "security_requirements", deserialize_with = "or_default")]
    security_requirements: Vec<Security>,
    #[serde(alias = "default_input_modes", deserialize_with = "or_default")]
    default_input_modes: Vec<String>,
    #[serde(alias = "default_output_modes", deserialize_with = "or_default")]
    default_output_modes: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    skills: Vec<Skill>,
    #[serde(alias = "supports_authenticated_extended_card")]
    supports_authenticated_extended_card: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    signatures: Vec<AgentCardSignature>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Interface {
    #[serde(deserialize_with = "or_default")]
    url: String,
    #[serde(deserialize_with = "or_default")]
    transport: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Skill {
    #[serde(deserialize_with = "or_default")]
    id: String,
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    description: String,
    #[serde(deserialize_with = "or_default")]
    tags: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    examples: Vec<String>,
    #[serde(alias = "input_modes", deserialize_with = "or_default")]
    input_modes: Vec<String>,
    #[serde(alias = "output_modes", deserialize_with = "or_default")]
    output_modes: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    security: Vec<Security>,
    #[serde(alias = "security_requirements", deserialize_with = "or_default")]
    security_requirements: Vec<Security>,
}

impl Skill {
    fn model(self, names: &Names) -> AgentSkill {
        AgentSkill {
            id: self.id,
            name: self.name,
            description: self.description,
            tags: self.tags,
            examples: self.examples,
            input_modes: self.input_modes,
            output_modes: self.output_modes,
            security_requirements: requirements(either(self.security_requirements, self.security), names),
        }
    }
}

/// The members of 1.0 win where a card has both.
fn either<T>(new: Vec<T>, old: Vec<T>) -> Vec<T> {
    if new.is_empty() { old } else { new }
}

impl Card {
    /// Where the agent listens, from the members of 0.3.
    fn interfaces(&mut self) -> Vec<AgentInterface> {
        let version = std::mem::take(&mut self.protocol_version);
        let interface = |url: String, transport: &str| interface(url, transport, &version);
        let mut found = Vec::new();
        if !self.url.is_empty() {
            found.push(interface(std::mem::take(&mut self.url), &self.preferred_transport));
        }
        for more in self.additional_interfaces.drain(..) {
            let more = interface(more.url, &more.transport);
            if !found.contains(&more) {
                found.push(more);
            }
        }
        found
    }
}

/// An interface from what 0.3 says of it.
pub(crate) fn interface(url: String, transport: &str, said: &str) -> AgentInterface {
    AgentInterface {
        url,
        protocol_binding: if transport.is_empty() { "JSONRPC" } else { transport }.to_owned(),
        tenant: String::new(),
        protocol_version: Some(version(said)).filter(|version| !version.is_empty()).unwrap_or(VERSION).to_owned(),
    }
}

/// `Major.Minor` of a version: patch numbers play no part.
fn version(text: &str) -> &str {
    text.match_indices('.').nth(1).map_or(text, |(end, _)| &text[..end])
}

impl Up<AgentCard> for Card {
    fn up(mut self, _: Dialect) -> Result<AgentCard, DecodeError> {
        let supported_interfaces = match std::mem::take(&mut self.supported_interfaces) {
            none if none.is_empty() => self.interfaces(),
            some => some,
        };
        let (security_schemes, names) = schemes(self.security_schemes);
        let mut capabilities = self.capabilities;
        capabilities.extended_agent_card =
            capabilities.extended_agent_card.or(self.supports_authenticated_extended_card);
        Ok(AgentCard {
            name: self.name,
            description: self.description,
            supported_interfaces,
            provider: self.provider,
            version: self.version,
            documentation_url: self.documentation_url,
            capabilities,
            security_schemes,
            security_requirements: requirements(either(self.security_requirements, self.security), &names),
            default_input_modes: self.default_input_modes,
            default_output_modes: self.default_output_modes,
            skills: self.skills.into_iter().map(|skill| skill.model(&names)).collect(),
            signatures: self.signatures,
            icon_url: self.icon_url,
        })
    }
}

/// The interfaces that speak 0.3.
pub(crate) fn offered(card: &AgentCard) -> impl Iterator<Item = &AgentInterface> {
    card.supported_interfaces.iter().filter(|interface| version(&interface.protocol_version) == VERSION)
}

/// Whether an agent speaks 0.3 anywhere.
pub fn is_offered(card: &AgentCard) -> bool {
    offered(card).next().is_some()
}

/// Writes the card of 0.3, if there is one.
pub(super) fn write(card: &AgentCard, out: &mut Vec<u8>) -> bool {
    let some = is_offered(card);
    if some {
        codec::encode_into(&Old(card), out);
    }
    some
}

/// Writes one card for readers of both versions: all of 1.0, and what 0.3 calls otherwise, built from the
/// interfaces that speak 0.3. Without such an interface it is the plain 1.0 card.
pub fn union_card(card: &AgentCard, out: &mut Vec<u8>) {
    let mut both = codec::to_value(card);
    if is_offered(card) {
        merge(&mut both, codec::to_value(&Old(card)));
    }
    codec::encode_into(&both, out);
}

/// Adds what is missing, also inside of objects and lists that both have.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(&key) {
                    Some(into) => merge(into, value),
                    None => _ = into.insert(key, value),
                }
            }
        }
        (Value::Array(into), Value::Array(from)) => {
            into.iter_mut().zip(from).for_each(|(into, from)| merge(into, from));
        }
        _ => {}
    }
}

/// A card that serializes as 0.3.
struct Old<'a>(&'a AgentCard);

impl Serialize for Old<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let card = self.0;
        let mut map = to.serialize_struct("", 1)?;
        let mut interfaces = offered(card).map(Address::from);
        let main = interfaces.next();
        let more: Vec<Address<'_>> = interfaces.filter(|more| main.as_ref() != Some(more)).collect();
        if let (Some(main), Some(interface)) = (main, offered(card).next()) {
            map.serialize_field("protocolVersion", &interface.protocol_version)?;
            map.serialize_field("name", &card.name)?;
            map.serialize_field("description", &card.description)?;
            map.serialize_field("url", &main.url)?;
            map.serialize_field("preferredTransport", main.transport)?;
        }
        map.list("additionalInterfaces", &more)?;
        map.some("provider", card.provider.as_ref())?;
        map.some("iconUrl", card.icon_url.as_ref())?;
        map.serialize_field("version", &card.version)?;
        map.some("documentationUrl", card.documentation_url.as_ref())?;
        map.serialize_field("capabilities", &Capabilities::from(&card.capabilities))?;
        let schemes = card.security_schemes.iter().map(|(name, scheme)| (name.as_str(), SchemeOut(scheme)));
        let schemes: BTreeMap<&str, SchemeOut<'_>> = schemes.collect();
        map.some("securitySchemes", Some(&schemes).filter(|schemes| !schemes.is_empty()))?;
        let security = Some(SecurityOut(&card.security_requirements)).filter(|security| !security.0.is_empty());
        map.some("security", security.as_ref())?;
        map.serialize_field("defaultInputModes", &card.default_input_modes)?;
        map.serialize_field("defaultOutputModes", &card.default_output_modes)?;
        map.serialize_field("skills", &card.skills.iter().map(SkillOut).collect::<Vec<_>>())?;
        map.some("supportsAuthenticatedExtendedCard", card.capabilities.extended_agent_card.as_ref())?;
        map.end()
    }
}

#[derive(PartialEq, Serialize)]
struct Address<'a> {
    url: String,
    transport: &'a str,
}

impl<'a> From<&'a AgentInterface> for Address<'a> {
    fn from(interface: &'a AgentInterface) -> Self {
        let (url, transport) = address(interface);
        Self { url, transport }
    }
}

/// Where an interface is, and its transport. Readers of 0.3 expect a URL with a scheme also for gRPC, where 1.0
/// has `host:port`.
pub(crate) fn address(interface: &AgentInterface) -> (String, &str) {
    let bare = interface.protocol_binding == GRPC && !interface.url.contains("://");
    let scheme = match bare {
        false => "",
        true if interface.url.ends_with(":443") => "https://",
        true => "http://",
    };
    (format!("{scheme}{}", interface.url), &interface.protocol_binding)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notifications: Option<bool>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [AgentExtension],
}

impl<'a> From<&'a AgentCapabilities> for Capabilities<'a> {
    fn from(capabilities: &'a AgentCapabilities) -> Self {
        Self {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            extensions: &capabilities.extensions,
        }
    }
}

struct SkillOut<'a>(&'a AgentSkill);

impl Serialize for SkillOut<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let skill = self.0;
        let mut map = to.serialize_struct("", 1)?;
        map.serialize_field("id", &skill.id)?;
        map.serialize_field("name", &skill.name)?;
        map.serialize_field("description", &skill.description)?;
        map.serialize_field("tags", &skill.tags)?;
        map.list("examples", &skill.examples)?;
        map.list("inputModes", &skill.input_modes)?;
        map.list("outputModes", &skill.output_modes)?;
        let security = Some(SecurityOut(&skill.security_requirements)).filter(|security| !security.0.is_empty());
        map.some("security", security.as_ref())?;
        map.end()
    }
}
