//! The members of a card, before anything is known of their contents.

use super::{EMPTY, Findings, MISSING, MIXED, OLD_SHAPE, SNAKE_CASE, UNKNOWN_MEMBER};
use crate::codec::Value;

/// Members of an object: those that must be there, and those that may.
struct Members {
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const CARD: Members = Members {
    required: &[
        "name",
        "description",
        "supportedInterfaces",
        "version",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ],
    optional: &["provider", "documentationUrl", "securitySchemes", "securityRequirements", "signatures", "iconUrl"],
};

const CAPABILITIES: Members =
    Members { required: &[], optional: &["streaming", "pushNotifications", "extensions", "extendedAgentCard"] };

/// What a card of 0.3 has, and one of 1.0 has not.
const OLD: [&str; 6] = [
    "protocolVersion",
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "security",
    "supportsAuthenticatedExtendedCard",
];

/// Says whether it is a card of 1.0 at all.
pub(super) fn check(card: &Value, found: &mut Findings) -> bool {
    let is_current = card.get("supportedInterfaces").or_else(|| card.get("supported_interfaces")).is_some();
    let old: Vec<&str> = OLD.into_iter().filter(|name| card.get(name).is_some()).collect();
    if !is_current && card.get("url").is_some() {
        found.add(OLD_SHAPE, "", "this is a card of A2A 0.3: clients of 1.0 find no address in it");
        return false;
    }
    if !old.is_empty() {
        found.add(MIXED, "", format!("{} belong to A2A 0.3: strict clients of 1.0 refuse them", old.join(", ")));
    }
    members(card, "", &CARD, found);
    if let Some(capabilities) = card.get("capabilities") {
        members(capabilities, "capabilities", &CAPABILITIES, found);
    }
    for name in ["name", "description", "version"] {
        if card.get(name).and_then(Value::as_str).is_some_and(|text| text.trim().is_empty()) {
            found.add(EMPTY, name, "is empty");
        }
    }
    for name in ["defaultInputModes", "defaultOutputModes"] {
        if card.get(name).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            found.add(EMPTY, name, "names no media type");
        }
    }
    is_current
}

fn members(value: &Value, at: &str, known: &Members, found: &mut Findings) {
    let Value::Object(members) = value else { return };
    let path = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    for name in known.required {
        let there = members.contains_key(*name) || members.contains_key(&snake(name));
        if !there {
            found.add(MISSING, path(name), "is missing");
        }
    }
    for name in members.keys() {
        let all = || known.required.iter().chain(known.optional);
        if all().any(|known| known == name) || (at.is_empty() && OLD.contains(&name.as_str())) {
            continue;
        }
        match all().find(|known| snake(known) == *name) {
            Some(right) => found.add(SNAKE_CASE, path(name), format!("is written {right}")),
            None => found.add(UNKNOWN_MEMBER, path(name), "is no member of a card of A2A 1.0"),
        }
    }
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
