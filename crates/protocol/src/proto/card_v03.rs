//! The card of 0.3: one main address and additional ones.

use super::card::schemes;
use super::{Down, Up, at, v03};
use crate::codec::DecodeError;
use crate::v03::{address, interface, offered};
use crate::{AgentCapabilities, AgentCard, AgentSkill};

impl Down<AgentCard> for v03::AgentCard {
    /// Signatures cover the 1.0 form and are left out.
    fn down(model: AgentCard) -> Self {
        let addresses: Vec<_> = offered(&model).map(address).collect();
        let mut addresses =
            addresses.into_iter().map(|(url, transport)| v03::AgentInterface { url, transport: transport.to_owned() });
        let main = addresses.next().unwrap_or_default();
        let additional_interfaces = addresses.filter(|other| *other != main).collect();
        let protocol_version = offered(&model).next().map(|i| i.protocol_version.clone()).unwrap_or_default();
        let capabilities = model.capabilities;
        Self {
            protocol_version,
            name: model.name,
            description: model.description,
            url: main.url,
            preferred_transport: main.transport,
            additional_interfaces,
            provider: Down::down(model.provider),
            version: model.version,
            documentation_url: model.documentation_url.unwrap_or_default(),
            supports_authenticated_extended_card: capabilities.extended_agent_card.unwrap_or_default(),
            capabilities: Some(v03::AgentCapabilities {
                streaming: capabilities.streaming.unwrap_or_default(),
                push_notifications: capabilities.push_notifications.unwrap_or_default(),
                extensions: Down::down(capabilities.extensions),
            }),
            security_schemes: model.security_schemes.into_iter().map(|(n, s)| (n, Down::down(s))).collect(),
            security: Down::down(model.security_requirements),
            default_input_modes: model.default_input_modes,
            default_output_modes: model.default_output_modes,
            skills: Down::down(model.skills),
            signatures: Vec::new(),
            icon_url: model.icon_url.unwrap_or_default(),
        }
    }
}

impl Up<v03::AgentCard> for AgentCard {
    fn up(wire: v03::AgentCard) -> Result<Self, DecodeError> {
        let mut supported_interfaces = Vec::new();
        let addresses = std::iter::once((wire.url, wire.preferred_transport))
            .chain(wire.additional_interfaces.into_iter().map(|i| (i.url, i.transport)));
        for (url, transport) in addresses.filter(|(url, _)| !url.is_empty()) {
            let one = interface(url, &transport, &wire.protocol_version);
            if !supported_interfaces.contains(&one) {
                supported_interfaces.push(one);
            }
        }
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let capabilities = wire.capabilities.unwrap_or_default();
        Ok(Self {
            name: wire.name,
            description: wire.description,
            supported_interfaces,
            provider: Up::up(wire.provider)?,
            version: wire.version,
            documentation_url: text(wire.documentation_url),
            capabilities: AgentCapabilities {
                streaming: Some(capabilities.streaming),
                push_notifications: Some(capabilities.push_notifications),
                extensions: at("capabilities", Up::up(capabilities.extensions))?,
                extended_agent_card: Some(wire.supports_authenticated_extended_card),
            },
            security_schemes: schemes(wire.security_schemes),
            security_requirements: Up::up(wire.security)?,
            default_input_modes: wire.default_input_modes,
            default_output_modes: wire.default_output_modes,
            skills: at("skills", Up::up(wire.skills))?,
            signatures: at("signatures", Up::up(wire.signatures))?,
            icon_url: text(wire.icon_url),
        })
    }
}

impl Down<AgentSkill> for v03::AgentSkill {
    fn down(model: AgentSkill) -> Self {
        let AgentSkill { id, name, description, tags, examples, input_modes, output_modes, security_requirements } =
            model;
        let security = Down::down(security_requirements);
        Self { id, name, description, tags, examples, input_modes, output_modes, security }
    }
}

impl Up<v03::AgentSkill> for AgentSkill {
    fn up(wire: v03::AgentSkill) -> Result<Self, DecodeError> {
        let v03::AgentSkill { id, name, description, tags, examples, input_modes, output_modes, security } = wire;
        let security_requirements = Up::up(security)?;
        Ok(Self { id, name, description, tags, examples, input_modes, output_modes, security_requirements })
    }
}
