//! Where an agent listens.

use std::collections::HashSet;

use super::{BINDING, Findings, INSECURE, LOCAL, NO_INTERFACE, OLD_ONLY, SAME_INTERFACE, URL, URL_SECRET, VERSION};
use crate::card::{AgentCard, AgentInterface};

pub(super) fn check(card: &AgentCard, found: &mut Findings) {
    if card.supported_interfaces.is_empty() {
        found.add(NO_INTERFACE, "supportedInterfaces", "is empty: nobody can call this agent");
        return;
    }
    let mut seen = HashSet::new();
    for (i, interface) in card.supported_interfaces.iter().enumerate() {
        let at = format!("supportedInterfaces[{i}]");
        check_url(interface, &at, found);
        check_binding(interface, &at, found);
        check_version(interface, &at, found);
        let AgentInterface { url, protocol_binding, tenant, protocol_version } = interface;
        if !seen.insert((url, protocol_binding, tenant, protocol_version)) {
            found.add(SAME_INTERFACE, at, "is the same as an earlier one");
        }
    }
    let is_current = |interface: &AgentInterface| interface.protocol_version.starts_with("1.");
    if !card.supported_interfaces.iter().any(is_current) {
        found.add(OLD_ONLY, "supportedInterfaces", "no interface speaks A2A 1.0");
    }
}

fn check_version(interface: &AgentInterface, at: &str, found: &mut Findings) {
    let version = &interface.protocol_version;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let good = version.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor));
    if !good {
        let message = format!("\"{version}\" is not of the form Major.Minor, such as 1.0");
        found.add(VERSION, format!("{at}.protocolVersion"), message);
    }
}

fn check_binding(interface: &AgentInterface, at: &str, found: &mut Findings) {
    let binding = interface.protocol_binding.as_str();
    let is_uri = |text: &str| text.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    if !matches!(binding, "JSONRPC" | "GRPC" | "HTTP+JSON") && !is_uri(binding) {
        let message = format!("\"{binding}\" is not JSONRPC, GRPC, HTTP+JSON or a URI: clients pass it over");
        found.add(BINDING, format!("{at}.protocolBinding"), message);
    }
}

fn check_url(interface: &AgentInterface, at: &str, found: &mut Findings) {
    let at = format!("{at}.url");
    let url = interface.url.as_str();
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        // gRPC clients take a host and a port as well.
        None if interface.protocol_binding == "GRPC" && host(url).is_some() => (String::new(), url),
        None => return found.add(URL, at, format!("\"{url}\" is no absolute URL")),
    };
    let of_http = matches!(scheme.as_str(), "http" | "https" | "ws" | "wss");
    let standard = matches!(interface.protocol_binding.as_str(), "JSONRPC" | "HTTP+JSON");
    if standard && !matches!(scheme.as_str(), "http" | "https") {
        return found.add(URL, at, format!("{} is reached by http or https", interface.protocol_binding));
    }
    if rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
        found.add(URL_SECRET, at.clone(), "holds a user or password: everybody who reads the card has it");
    }
    let Some(host) = host(rest) else {
        if of_http || scheme.is_empty() {
            found.add(URL, at, format!("\"{url}\" has no host"));
        }
        return;
    };
    if matches!(host, "0.0.0.0" | "[::]") {
        return found.add(URL, at, format!("{host} is no address that a client can call"));
    }
    if is_local(host) {
        found.add(LOCAL, at, format!("{host} is the client\'s own machine"));
    } else if matches!(scheme.as_str(), "http" | "ws") {
        found.add(INSECURE, at, format!("{scheme} is not encrypted: use {scheme}s"));
    }
}

/// The host of what follows the scheme.
pub(super) fn host(rest: &str) -> Option<&str> {
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let host = match authority.strip_prefix('[') {
        Some(v6) => authority.get(..v6.find(']')? + 2)?,
        None => authority.split(':').next()?,
    };
    (!host.is_empty() && !host.contains(char::is_whitespace)).then_some(host)
}

pub(super) fn is_local(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost") || host == "[::1]" || host.starts_with("127.")
}
