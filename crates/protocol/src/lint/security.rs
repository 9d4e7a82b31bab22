//! How callers are asked to prove who they are.

use std::collections::HashSet;

use super::interfaces::{host, is_local};
use super::{AUTH_URL, EXTENDED, Findings, OLD_FLOW, OPEN, SCHEME, UNDECLARED, UNUSED};
use crate::card::AgentCard;
use crate::security::{OAuthFlows, SecurityRequirement, SecurityScheme};

pub(super) fn check(card: &AgentCard, found: &mut Findings) {
    for (name, scheme) in &card.security_schemes {
        check_scheme(scheme, &format!("securitySchemes.{name}"), found);
    }
    let mut used = HashSet::new();
    let mut lists = vec![("securityRequirements".to_owned(), &card.security_requirements)];
    for (i, skill) in card.skills.iter().enumerate() {
        lists.push((format!("skills[{i}].securityRequirements"), &skill.security_requirements));
    }
    for (at, requirements) in lists {
        for (i, SecurityRequirement { schemes }) in requirements.iter().enumerate() {
            let at = format!("{at}[{i}]");
            if schemes.is_empty() {
                found.add(OPEN, at.clone(), "names no scheme, so that no credentials are needed");
            }
            for name in schemes.keys() {
                used.insert(name);
                if !card.security_schemes.contains_key(name) {
                    found.add(UNDECLARED, at.clone(), format!("\"{name}\" is not in securitySchemes"));
                }
            }
        }
    }
    for name in card.security_schemes.keys().filter(|name| !used.contains(name)) {
        found.add(UNUSED, format!("securitySchemes.{name}"), "is required nowhere: clients do not use it");
    }
    if card.capabilities.extended_agent_card == Some(true) && card.security_requirements.is_empty() {
        let message = "there is an extended card, but the card names no way to authenticate";
        found.add(EXTENDED, "capabilities.extendedAgentCard", message);
    }
}

fn check_scheme(scheme: &SecurityScheme, at: &str, found: &mut Findings) {
    match scheme {
        SecurityScheme::ApiKey(key) => {
            if !matches!(key.location.as_str(), "query" | "header" | "cookie") {
                let message = format!("\"{}\" is not query, header or cookie", key.location);
                found.add(SCHEME, format!("{at}.apiKeySecurityScheme.location"), message);
            }
            if key.name.is_empty() {
                found.add(SCHEME, format!("{at}.apiKeySecurityScheme.name"), "is missing");
            }
        }
        SecurityScheme::HttpAuth(http) => {
            if http.scheme.is_empty() {
                found.add(SCHEME, format!("{at}.httpAuthSecurityScheme.scheme"), "is missing");
            }
        }
        SecurityScheme::OpenIdConnect(oidc) => {
            let at = format!("{at}.openIdConnectSecurityScheme.openIdConnectUrl");
            check_url(&oidc.open_id_connect_url, &at, found);
        }
        SecurityScheme::Oauth2(oauth2) => check_flows(&oauth2.flows, &format!("{at}.oauth2SecurityScheme"), found),
        SecurityScheme::Mtls(_) => {}
    }
}

fn check_flows(flows: &OAuthFlows, at: &str, found: &mut Findings) {
    let at = format!("{at}.flows");
    match flows {
        OAuthFlows::AuthorizationCode(flow) => {
            check_url(&flow.authorization_url, &format!("{at}.authorizationCode.authorizationUrl"), found);
            check_url(&flow.token_url, &format!("{at}.authorizationCode.tokenUrl"), found);
        }
        OAuthFlows::ClientCredentials(flow) => {
            check_url(&flow.token_url, &format!("{at}.clientCredentials.tokenUrl"), found);
        }
        OAuthFlows::DeviceCode(flow) => {
            check_url(&flow.device_authorization_url, &format!("{at}.deviceCode.deviceAuthorizationUrl"), found);
            check_url(&flow.token_url, &format!("{at}.deviceCode.tokenUrl"), found);
        }
        OAuthFlows::Implicit(_) => found.add(OLD_FLOW, format!("{at}.implicit"), "use authorizationCode instead"),
        OAuthFlows::Password(_) => found.add(OLD_FLOW, format!("{at}.password"), "use clientCredentials instead"),
    }
}

fn check_url(url: &str, at: &str, found: &mut Findings) {
    let good = match url.split_once("://") {
        Some(("https", rest)) => host(rest).is_some(),
        Some(("http", rest)) => host(rest).is_some_and(is_local),
        _ => false,
    };
    if !good {
        found.add(AUTH_URL, at, format!("\"{url}\" is no absolute https URL"));
    }
}
