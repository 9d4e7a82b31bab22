//! How a card says which credentials are needed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::codec::{is_false, one_of, or_default};

/// Ways to authenticate, by name.
pub type SecuritySchemes = BTreeMap<String, SecurityScheme>;

/// Scopes of an OAuth 2 flow and what they allow.
pub type Scopes = BTreeMap<String, String>;

/// Schemes that are needed together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecurityRequirement {
    /// The scopes needed of each scheme.
    #[serde(deserialize_with = "or_default")]
    pub schemes: BTreeMap<String, StringList>,
}

/// A list of strings, as a message of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StringList {
    /// The strings.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<String>,
}

one_of! {
    /// One way to authenticate.
    SecurityScheme {
        /// A key in a header, a query parameter or a cookie.
        ApiKey(ApiKeySecurityScheme) = "apiKeySecurityScheme" | "api_key_security_scheme",
        /// An `Authorization` header.
        HttpAuth(HttpAuthSecurityScheme) = "httpAuthSecurityScheme" | "http_auth_security_scheme",
        /// OAuth 2.
        Oauth2(Oauth2SecurityScheme) = "oauth2SecurityScheme" | "oauth2_security_scheme",
        /// OpenID Connect.
        OpenIdConnect(OpenIdConnectSecurityScheme) = "openIdConnectSecurityScheme" | "open_id_connect_security_scheme",
        /// A client certificate.
        Mtls(MutualTlsSecurityScheme) = "mtlsSecurityScheme" | "mtls_security_scheme",
    }
}

/// A key in a header, a query parameter or a cookie.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiKeySecurityScheme {
    /// For people.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// `query`, `header` or `cookie`.
    #[serde(deserialize_with = "or_default")]
    pub location: String,
    /// The name of the header, parameter or cookie.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// An `Authorization` header.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpAuthSecurityScheme {
    /// For people.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// `Bearer`, `Basic`, …
    #[serde(deserialize_with = "or_default")]
    pub scheme: String,
    /// What a bearer token looks like.
    #[serde(alias = "bearer_format", deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub bearer_format: String,
}

/// OAuth 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Oauth2SecurityScheme {
    /// For people.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How to get a token.
    pub flows: OAuthFlows,
    /// Where the authorization server describes itself.
    #[serde(
        default,
        alias = "oauth2_metadata_url",
        deserialize_with = "or_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub oauth2_metadata_url: String,
}

/// OpenID Connect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenIdConnectSecurityScheme {
    /// For people.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The discovery document.
    #[serde(alias = "open_id_connect_url", deserialize_with = "or_default")]
    pub open_id_connect_url: String,
}

/// A client certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MutualTlsSecurityScheme {
    /// For people.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
}

one_of! {
    /// How to get a token: one flow per scheme.
    OAuthFlows {
        /// With a browser.
        AuthorizationCode(AuthorizationCodeFlow) = "authorizationCode" | "authorization_code",
        /// Between machines.
        ClientCredentials(ClientCredentialsFlow) = "clientCredentials" | "client_credentials",
        /// Deprecated by OAuth itself.
        Implicit(ImplicitFlow) = "implicit",
        /// Deprecated by OAuth itself.
        Password(PasswordFlow) = "password",
        /// On a device without a browser.
        DeviceCode(DeviceCodeFlow) = "deviceCode" | "device_code",
    }
}

/// Declares a flow: required members first, then those that are left out when empty.
macro_rules! flows {
    ($($(#[$doc:meta])* $name:ident { $($field:ident $snake:literal,)* } $(pkce $pkce:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $(
                /// An address of the authorization server.
                #[serde(alias = $snake, deserialize_with = "or_default")]
                pub $field: String,
            )*
            /// Where to renew a token.
            #[serde(alias = "refresh_url", deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
            pub refresh_url: String,
            /// What can be asked for.
            #[serde(deserialize_with = "or_default")]
            pub scopes: Scopes,
            $(
                /// Whether proof of possession of the code is needed.
                #[serde(alias = "pkce_required", deserialize_with = "or_default", skip_serializing_if = "is_false")]
                pub $pkce: bool,
            )?
        }
    )*};
}

flows! {
    /// With a browser.
    AuthorizationCodeFlow { authorization_url "authorization_url", token_url "token_url", } pkce pkce_required;
    /// Between machines.
    ClientCredentialsFlow { token_url "token_url", };
    /// Deprecated by OAuth itself.
    ImplicitFlow { authorization_url "authorization_url", };
    /// Deprecated by OAuth itself.
    PasswordFlow { token_url "token_url", };
    /// On a device without a browser.
    DeviceCodeFlow { device_authorization_url "device_authorization_url", token_url "token_url", };
}
