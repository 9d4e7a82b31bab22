//! How a server says which credentials it takes: on its card, and to those whom it turns away.

use http::HeaderValue;
use nuncio_protocol::{
    AgentCard, ApiKeySecurityScheme, HttpAuthSecurityScheme, MutualTlsSecurityScheme, OpenIdConnectSecurityScheme,
    SecurityRequirement, SecurityScheme, SecuritySchemes, StringList,
};

use super::{ApiKey, AuthOptions, Issuer};

/// The schemes that are enforced.
#[derive(Debug, Default)]
pub(crate) struct Security {
    pub(super) schemes: SecuritySchemes,
    /// For `WWW-Authenticate`.
    pub(super) challenges: Vec<HeaderValue>,
    /// The same for somebody whose bearer token was not good.
    pub(super) challenges_after_token: Vec<HeaderValue>,
}

impl Security {
    pub(super) fn of(options: &AuthOptions) -> Self {
        let mut all = Self::default();
        if !options.tokens.is_empty() {
            all.add("bearerAuth", http_auth("Bearer", ""));
        }
        for issuer in &options.issuers {
            all.add(issuer.scheme_name(), of_issuer(issuer));
        }
        if !options.tokens.is_empty() || !options.issuers.is_empty() {
            all.challenge("Bearer realm=\"nuncio\"");
            let after = "Bearer realm=\"nuncio\", error=\"invalid_token\"";
            all.challenges_after_token = vec![HeaderValue::from_static(after)];
        }
        if !options.passwords.is_empty() {
            all.add("basicAuth", http_auth("Basic", ""));
            all.challenge("Basic realm=\"nuncio\", charset=\"UTF-8\"");
        }
        for key in &options.api_keys {
            all.add_key(key);
        }
        if !options.api_keys.is_empty() {
            all.challenge("ApiKey realm=\"nuncio\"");
        }
        if options.certificates {
            all.add("mutualTls", SecurityScheme::Mtls(MutualTlsSecurityScheme::default()));
            all.challenge("ClientCertificate realm=\"nuncio\"");
        }
        let (challenges, after) = (&all.challenges, &mut all.challenges_after_token);
        let others = challenges.iter().skip(after.len());
        after.extend(others.cloned());
        all
    }

    /// Declares the schemes on a card: any one of them suffices.
    pub(crate) fn declare(&self, card: &mut AgentCard) {
        for (name, scheme) in &self.schemes {
            card.security_schemes.insert(name.clone(), scheme.clone());
            let schemes = [(name.clone(), StringList::default())].into();
            card.security_requirements.push(SecurityRequirement { schemes });
        }
    }

    fn add(&mut self, name: &str, scheme: SecurityScheme) {
        self.schemes.insert(name.to_owned(), scheme);
    }

    fn challenge(&mut self, challenge: &'static str) {
        self.challenges.push(HeaderValue::from_static(challenge));
    }

    fn add_key(&mut self, key: &ApiKey) {
        let scheme = |location: &str, name: &str| {
            let (location, name) = (location.to_owned(), name.to_owned());
            SecurityScheme::ApiKey(ApiKeySecurityScheme { location, name, ..ApiKeySecurityScheme::default() })
        };
        self.add("apiKeyAuth", scheme("header", &canonical(key.header.as_str())));
        if let Some(name) = &key.query {
            self.add("apiKeyQuery", scheme("query", name));
        }
        if let Some(name) = &key.cookie {
            self.add("apiKeyCookie", scheme("cookie", name));
        }
    }
}

fn http_auth(scheme: &str, bearer_format: &str) -> SecurityScheme {
    SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
        scheme: scheme.into(),
        bearer_format: bearer_format.into(),
        ..HttpAuthSecurityScheme::default()
    })
}

/// Providers that describe themselves are named by where they do; of others, only the form of the token is known.
fn of_issuer(issuer: &Issuer) -> SecurityScheme {
    match issuer.discovery_url() {
        Some(url) => SecurityScheme::OpenIdConnect(OpenIdConnectSecurityScheme {
            open_id_connect_url: url,
            ..OpenIdConnectSecurityScheme::default()
        }),
        None => http_auth("Bearer", "JWT"),
    }
}

/// `x-api-key` as people write it.
fn canonical(name: &str) -> String {
    let word = |word: &str| match word {
        "api" => "API".to_owned(),
        word => word[..1.min(word.len())].to_uppercase() + &word[1.min(word.len())..],
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::auth::Password;

    #[test]
    fn exactly_what_is_enforced_is_declared() {
        let key = ApiKey::new("k", HeaderName::from_static("x-api-key"), Some("key".into()), None);
        let options = AuthOptions {
            passwords: vec![Password::new("a", "b")],
            api_keys: vec![key],
            certificates: true,
            ..AuthOptions::default()
        };
        let mut card = AgentCard::default();
        let security = Security::of(&options);
        security.declare(&mut card);
        let names: Vec<_> = card.security_schemes.keys().map(String::as_str).collect();
        assert_eq!(names, ["apiKeyAuth", "apiKeyQuery", "basicAuth", "mutualTls"]);
        assert_eq!(card.security_requirements.len(), 4, "any of them suffices");
        let SecurityScheme::ApiKey(key) = &card.security_schemes["apiKeyAuth"] else { panic!("an API key") };
        assert_eq!((key.location.as_str(), key.name.as_str()), ("header", "X-API-Key"));
        assert_eq!(security.challenges.len(), 3);
        assert_eq!(security.challenges, security.challenges_after_token);
        let mut open = AgentCard::default();
        Security::of(&AuthOptions::default()).declare(&mut open);
        assert_eq!(open, AgentCard::default());
    }
}
