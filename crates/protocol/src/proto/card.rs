//! The card of 1.0, and the security schemes, which 0.3 has as well.

use super::{Down, Up, at, required, same, v1, v03};
use crate::codec::DecodeError;
use crate::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    ApiKeySecurityScheme, AuthorizationCodeFlow, ClientCredentialsFlow, DeviceCodeFlow, HttpAuthSecurityScheme,
    ImplicitFlow, MutualTlsSecurityScheme, OAuthFlows, Oauth2SecurityScheme, OpenIdConnectSecurityScheme, PasswordFlow,
    SecurityRequirement, SecurityScheme, SecuritySchemes, StringList,
};

same! {
    AgentInterface = v1::AgentInterface { url, protocol_binding, tenant, protocol_version }
    AgentProvider = v1::AgentProvider, v03::AgentProvider { url, organization }
    AgentCapabilities = v1::AgentCapabilities { streaming, push_notifications, extensions, extended_agent_card }
    AgentExtension = v1::AgentExtension, v03::AgentExtension { uri, description, required, params }
    AgentSkill = v1::AgentSkill {
        id, name, description, tags, examples, input_modes, output_modes, security_requirements,
    }
    AgentCardSignature = v1::AgentCardSignature, v03::AgentCardSignature { protected, signature, header }
    StringList = v1::StringList, v03::StringList { list }
    SecurityRequirement = v1::SecurityRequirement, v03::Security { schemes }
    ApiKeySecurityScheme = v1::ApiKeySecurityScheme, v03::ApiKeySecurityScheme { description, location, name }
    HttpAuthSecurityScheme = v1::HttpAuthSecurityScheme, v03::HttpAuthSecurityScheme {
        description, scheme, bearer_format,
    }
    OpenIdConnectSecurityScheme = v1::OpenIdConnectSecurityScheme, v03::OpenIdConnectSecurityScheme {
        description, open_id_connect_url,
    }
    MutualTlsSecurityScheme = v1::MutualTlsSecurityScheme, v03::MutualTlsSecurityScheme { description }
    AuthorizationCodeFlow = v1::AuthorizationCodeOAuthFlow {
        authorization_url, token_url, refresh_url, scopes, pkce_required,
    }
    ClientCredentialsFlow = v1::ClientCredentialsOAuthFlow, v03::ClientCredentialsOAuthFlow {
        token_url, refresh_url, scopes,
    }
    ImplicitFlow = v1::ImplicitOAuthFlow, v03::ImplicitOAuthFlow { authorization_url, refresh_url, scopes }
    PasswordFlow = v1::PasswordOAuthFlow, v03::PasswordOAuthFlow { token_url, refresh_url, scopes }
    DeviceCodeFlow = v1::DeviceCodeOAuthFlow { device_authorization_url, token_url, refresh_url, scopes }
}

required! {
    AgentCapabilities = v1::AgentCapabilities;
}

impl Down<AgentCard> for v1::AgentCard {
    fn down(model: AgentCard) -> Self {
        Self {
            name: model.name,
            description: model.description,
            supported_interfaces: Down::down(model.supported_interfaces),
            provider: Down::down(model.provider),
            version: model.version,
            documentation_url: model.documentation_url,
            capabilities: Down::down(model.capabilities),
            security_schemes: model.security_schemes.into_iter().map(|(n, s)| (n, Down::down(s))).collect(),
            security_requirements: Down::down(model.security_requirements),
            default_input_modes: model.default_input_modes,
            default_output_modes: model.default_output_modes,
            skills: Down::down(model.skills),
            signatures: Down::down(model.signatures),
            icon_url: model.icon_url,
        }
    }
}

impl Up<v1::AgentCard> for AgentCard {
    fn up(wire: v1::AgentCard) -> Result<Self, DecodeError> {
        Ok(Self {
            name: wire.name,
            description: wire.description,
            supported_interfaces: at("supported_interfaces", Up::up(wire.supported_interfaces))?,
            provider: Up::up(wire.provider)?,
            version: wire.version,
            documentation_url: wire.documentation_url,
            capabilities: at("capabilities", Up::up(wire.capabilities))?,
            security_schemes: schemes(wire.security_schemes),
            security_requirements: Up::up(wire.security_requirements)?,
            default_input_modes: wire.default_input_modes,
            default_output_modes: wire.default_output_modes,
            skills: at("skills", Up::up(wire.skills))?,
            signatures: at("signatures", Up::up(wire.signatures))?,
            icon_url: wire.icon_url,
        })
    }
}

/// The schemes that are known; newer ones do not stand in the way of the rest of the card.
pub(super) fn schemes<W>(wire: std::collections::BTreeMap<String, W>) -> SecuritySchemes
where
    SecurityScheme: Up<W>,
{
    wire.into_iter().filter_map(|(name, scheme)| Some((name, SecurityScheme::up(scheme).ok()?))).collect()
}

/// Both versions have the same choice of schemes and, but for one, of flows.
macro_rules! security {
    ($version:ident, $device_down:expr, { $($device:tt)* }) => {
        impl Down<SecurityScheme> for $version::SecurityScheme {
            fn down(model: SecurityScheme) -> Self {
                use $version::security_scheme::Scheme;
                let scheme = match model {
                    SecurityScheme::ApiKey(scheme) => Scheme::ApiKeySecurityScheme(Down::down(scheme)),
                    SecurityScheme::HttpAuth(scheme) => Scheme::HttpAuthSecurityScheme(Down::down(scheme)),
                    SecurityScheme::Oauth2(scheme) => Scheme::Oauth2SecurityScheme(Down::down(scheme)),
                    SecurityScheme::OpenIdConnect(scheme) => Scheme::OpenIdConnectSecurityScheme(Down::down(scheme)),
                    SecurityScheme::Mtls(scheme) => Scheme::MtlsSecurityScheme(Down::down(scheme)),
                };
                Self { scheme: Some(scheme) }
            }
        }

        impl Up<$version::SecurityScheme> for SecurityScheme {
            fn up(wire: $version::SecurityScheme) -> Result<Self, DecodeError> {
                use $version::security_scheme::Scheme;
                Ok(match wire.scheme {
                    Some(Scheme::ApiKeySecurityScheme(scheme)) => Self::ApiKey(Up::up(scheme)?),
                    Some(Scheme::HttpAuthSecurityScheme(scheme)) => Self::HttpAuth(Up::up(scheme)?),
                    Some(Scheme::Oauth2SecurityScheme(scheme)) => Self::Oauth2(Up::up(scheme)?),
                    Some(Scheme::OpenIdConnectSecurityScheme(scheme)) => Self::OpenIdConnect(Up::up(scheme)?),
                    Some(Scheme::MtlsSecurityScheme(scheme)) => Self::Mtls(Up::up(scheme)?),
                    None => return Err(super::wrong("is no security scheme")),
                })
            }
        }

        impl Down<Oauth2SecurityScheme> for $version::OAuth2SecurityScheme {
            fn down(model: Oauth2SecurityScheme) -> Self {
                use $version::o_auth_flows::Flow;
                let flow = match model.flows {
                    OAuthFlows::AuthorizationCode(flow) => Some(Flow::AuthorizationCode(Down::down(flow))),
                    OAuthFlows::ClientCredentials(flow) => Some(Flow::ClientCredentials(Down::down(flow))),
                    OAuthFlows::Implicit(flow) => Some(Flow::Implicit(Down::down(flow))),
                    OAuthFlows::Password(flow) => Some(Flow::Password(Down::down(flow))),
                    OAuthFlows::DeviceCode(flow) => $device_down(flow),
                };
                Self {
                    description: model.description,
                    flows: Some($version::OAuthFlows { flow }),
                    oauth2_metadata_url: model.oauth2_metadata_url,
                }
            }
        }

        impl Up<$version::OAuth2SecurityScheme> for Oauth2SecurityScheme {
            fn up(wire: $version::OAuth2SecurityScheme) -> Result<Self, DecodeError> {
                use $version::o_auth_flows::Flow;
                let flows = match wire.flows.and_then(|flows| flows.flow) {
                    Some(Flow::AuthorizationCode(flow)) => OAuthFlows::AuthorizationCode(Up::up(flow)?),
                    Some(Flow::ClientCredentials(flow)) => OAuthFlows::ClientCredentials(Up::up(flow)?),
                    Some(Flow::Implicit(flow)) => OAuthFlows::Implicit(Up::up(flow)?),
                    Some(Flow::Password(flow)) => OAuthFlows::Password(Up::up(flow)?),
                    $($device)*
                    None => return Err(super::wrong("has no flow")),
                };
                Ok(Self { description: wire.description, flows, oauth2_metadata_url: wire.oauth2_metadata_url })
            }
        }
    };
}

security!(v1, |flow| Some(Flow::DeviceCode(Down::down(flow))), {
    Some(Flow::DeviceCode(flow)) => OAuthFlows::DeviceCode(Up::up(flow)?),
});
security!(v03, |_: DeviceCodeFlow| None, {});

impl Down<AuthorizationCodeFlow> for v03::AuthorizationCodeOAuthFlow {
    fn down(model: AuthorizationCodeFlow) -> Self {
        let AuthorizationCodeFlow { authorization_url, token_url, refresh_url, scopes, .. } = model;
        Self { authorization_url, token_url, refresh_url, scopes }
    }
}

impl Up<v03::AuthorizationCodeOAuthFlow> for AuthorizationCodeFlow {
    fn up(wire: v03::AuthorizationCodeOAuthFlow) -> Result<Self, DecodeError> {
        let v03::AuthorizationCodeOAuthFlow { authorization_url, token_url, refresh_url, scopes } = wire;
        Ok(Self { authorization_url, token_url, refresh_url, scopes, pkce_required: false })
    }
}
