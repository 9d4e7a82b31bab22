//! Security schemes: flat objects with a `type` in 0.3, and several OAuth flows in one of them.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Members, Word};
use crate::codec::{self, Object, Value, or_default};
use crate::{
    ApiKeySecurityScheme, AuthorizationCodeFlow, ClientCredentialsFlow, HttpAuthSecurityScheme, ImplicitFlow,
    MutualTlsSecurityScheme, OAuthFlows, Oauth2SecurityScheme, OpenIdConnectSecurityScheme, PasswordFlow,
    SecurityRequirement, SecurityScheme, SecuritySchemes, StringList,
};

/// A scheme: flat as 0.3 has it, or under a name as ProtoJSON and 1.0 do.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Scheme {
    #[serde(rename = "type", deserialize_with = "or_default")]
    kind: String,
    #[serde(deserialize_with = "or_default")]
    description: String,
    #[serde(rename = "in", deserialize_with = "or_default")]
    location: String,
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    scheme: String,
    #[serde(alias = "bearer_format", deserialize_with = "or_default")]
    bearer_format: String,
    #[serde(deserialize_with = "or_default")]
    flows: Flows,
    #[serde(alias = "oauth2_metadata_url", deserialize_with = "or_default")]
    oauth2_metadata_url: String,
    #[serde(alias = "open_id_connect_url", deserialize_with = "or_default")]
    open_id_connect_url: String,
    #[serde(alias = "api_key_security_scheme")]
    api_key_security_scheme: Option<ApiKeySecurityScheme>,
    #[serde(alias = "http_auth_security_scheme")]
    http_auth_security_scheme: Option<HttpAuthSecurityScheme>,
    #[serde(alias = "oauth2_security_scheme")]
    oauth2_security_scheme: Option<Oauth2SecurityScheme>,
    #[serde(alias = "open_id_connect_security_scheme")]
    open_id_connect_security_scheme: Option<OpenIdConnectSecurityScheme>,
    #[serde(alias = "mtls_security_scheme")]
    mtls_security_scheme: Option<MutualTlsSecurityScheme>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Flows {
    #[serde(alias = "authorization_code")]
    authorization_code: Option<AuthorizationCodeFlow>,
    #[serde(alias = "client_credentials")]
    client_credentials: Option<ClientCredentialsFlow>,
    implicit: Option<ImplicitFlow>,
    password: Option<PasswordFlow>,
}

impl Flows {
    /// Each flow with the name that tells its scheme from the others.
    fn split(self) -> impl Iterator<Item = (&'static str, OAuthFlows)> {
        let flows = [
            self.authorization_code.map(|flow| ("authorizationCode", OAuthFlows::AuthorizationCode(flow))),
            self.client_credentials.map(|flow| ("clientCredentials", OAuthFlows::ClientCredentials(flow))),
            self.implicit.map(|flow| ("implicit", OAuthFlows::Implicit(flow))),
            self.password.map(|flow| ("password", OAuthFlows::Password(flow))),
        ];
        flows.into_iter().flatten()
    }
}

impl Scheme {
    /// The scheme under its 1.0 name, if it came so.
    fn named(&mut self) -> Option<SecurityScheme> {
        let api_key = self.api_key_security_scheme.take().map(SecurityScheme::ApiKey);
        api_key
            .or_else(|| self.http_auth_security_scheme.take().map(SecurityScheme::HttpAuth))
            .or_else(|| self.oauth2_security_scheme.take().map(SecurityScheme::Oauth2))
            .or_else(|| self.open_id_connect_security_scheme.take().map(SecurityScheme::OpenIdConnect))
            .or_else(|| self.mtls_security_scheme.take().map(SecurityScheme::Mtls))
    }

    /// What it is in 1.0: one scheme per OAuth flow, and nothing for a type that nobody knows.
    fn model(mut self) -> Vec<(&'static str, SecurityScheme)> {
        if let Some(named) = self.named() {
            return vec![("", named)];
        }
        let description = self.description;
        let one = match self.kind.as_str() {
            "apiKey" => {
                SecurityScheme::ApiKey(ApiKeySecurityScheme { description, location: self.location, name: self.name })
            }
            "http" => SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
                description,
                scheme: self.scheme,
                bearer_format: self.bearer_format,
            }),
            "openIdConnect" => SecurityScheme::OpenIdConnect(OpenIdConnectSecurityScheme {
                description,
                open_id_connect_url: self.open_id_connect_url,
            }),
            "mutualTLS" => SecurityScheme::Mtls(MutualTlsSecurityScheme { description }),
            "oauth2" => {
                let scheme = |flows| {
                    SecurityScheme::Oauth2(Oauth2SecurityScheme {
                        description: description.clone(),
                        flows,
                        oauth2_metadata_url: self.oauth2_metadata_url.clone(),
                    })
                };
                return self.flows.split().map(|(name, flow)| (name, scheme(flow))).collect();
            }
            _ => return Vec::new(),
        };
        vec![("", one)]
    }
}

/// All names that one scheme of 0.3 has in 1.0.
pub(super) type Names = BTreeMap<String, Vec<String>>;

/// The schemes of a card, and what became of those that had several flows.
pub(super) fn schemes(schemes: BTreeMap<String, Scheme>) -> (SecuritySchemes, Names) {
    let taken: Vec<String> = schemes.keys().cloned().collect();
    let (mut found, mut names) = (SecuritySchemes::new(), Names::new());
    for (name, scheme) in schemes {
        let mut split = Vec::new();
        for (flow, scheme) in scheme.model() {
            let mut own = if split.is_empty() { name.clone() } else { format!("{name}-{flow}") };
            while !split.is_empty() && (taken.contains(&own) || found.contains_key(&own)) {
                own.push('-');
            }
            split.push(own.clone());
            found.insert(own, scheme);
        }
        if split.len() > 1 {
            names.insert(name, split);
        }
    }
    (found, names)
}

/// What is needed together: scopes by scheme, bare or under `schemes`.
pub(super) struct Security(BTreeMap<String, StringList>);

impl<'de> Deserialize<'de> for Security {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut map = Object::deserialize(from)?;
        let schemes = match map.get_mut("schemes") {
            Some(schemes @ Value::Object(_)) => codec::from_value(schemes.take()),
            _ => codec::from_value::<BTreeMap<String, Vec<String>>>(map.into())
                .map(|bare| bare.into_iter().map(|(name, list)| (name, StringList { list })).collect()),
        };
        schemes.map(Self).map_err(D::Error::custom)
    }
}

/// The requirements of a card or a skill. A scheme that was split is satisfied by any of its pieces.
pub(super) fn requirements(security: Vec<Security>, names: &Names) -> Vec<SecurityRequirement> {
    let mut found = Vec::new();
    for Security(schemes) in security {
        let mut alternatives = vec![SecurityRequirement { schemes: BTreeMap::new() }];
        for (name, scopes) in schemes {
            let own = std::slice::from_ref(&name);
            let choices = names.get(&name).map_or(own, Vec::as_slice);
            alternatives = alternatives
                .iter()
                .flat_map(|base| {
                    choices.iter().map(|choice| {
                        let mut next = base.clone();
                        next.schemes.insert(choice.clone(), scopes.clone());
                        next
                    })
                })
                .take(MOST_ALTERNATIVES)
                .collect();
        }
        found.append(&mut alternatives);
    }
    found
}

/// A hostile card must not multiply its schemes without end.
const MOST_ALTERNATIVES: usize = 64;

/// A scheme that serializes as 0.3.
pub(super) struct SchemeOut<'a>(pub(super) &'a SecurityScheme);

impl Serialize for SchemeOut<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        match self.0 {
            SecurityScheme::ApiKey(scheme) => {
                map.serialize_field("type", &Word("apiKey"))?;
                map.text("description", &scheme.description)?;
                map.serialize_field("in", &scheme.location)?;
                map.serialize_field("name", &scheme.name)?;
            }
            SecurityScheme::HttpAuth(scheme) => {
                map.serialize_field("type", &Word("http"))?;
                map.text("description", &scheme.description)?;
                map.serialize_field("scheme", &scheme.scheme)?;
                map.text("bearerFormat", &scheme.bearer_format)?;
            }
            SecurityScheme::Oauth2(scheme) => {
                map.serialize_field("type", &Word("oauth2"))?;
                map.text("description", &scheme.description)?;
                map.serialize_field("flows", &FlowsOut(&scheme.flows))?;
                map.text("oauth2MetadataUrl", &scheme.oauth2_metadata_url)?;
            }
            SecurityScheme::OpenIdConnect(scheme) => {
                map.serialize_field("type", &Word("openIdConnect"))?;
                map.text("description", &scheme.description)?;
                map.serialize_field("openIdConnectUrl", &scheme.open_id_connect_url)?;
            }
            SecurityScheme::Mtls(scheme) => {
                map.serialize_field("type", &Word("mutualTLS"))?;
                map.text("description", &scheme.description)?;
            }
        }
        map.end()
    }
}

struct FlowsOut<'a>(&'a OAuthFlows);

impl Serialize for FlowsOut<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("", 1)?;
        match self.0 {
            OAuthFlows::AuthorizationCode(flow) => {
                let flow = AuthorizationCodeFlow { pkce_required: false, ..flow.clone() };
                map.serialize_field("authorizationCode", &flow)?;
            }
            OAuthFlows::ClientCredentials(flow) => map.serialize_field("clientCredentials", flow)?,
            OAuthFlows::Implicit(flow) => map.serialize_field("implicit", flow)?,
            OAuthFlows::Password(flow) => map.serialize_field("password", flow)?,
            OAuthFlows::DeviceCode(_) => {}
        }
        map.end()
    }
}

/// Requirements that serialize as 0.3.
pub(super) struct SecurityOut<'a>(pub(super) &'a [SecurityRequirement]);

impl Serialize for SecurityOut<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|one| {
            let scopes = one.schemes.iter().map(|(name, scopes)| (name.as_str(), scopes.list.as_slice()));
            scopes.collect::<BTreeMap<_, _>>()
        }))
    }
}
