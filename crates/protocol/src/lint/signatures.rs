//! Whether signatures can be verified at all; by whom, only keys can tell.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{EMPTY, Findings, MIXED, SIGNATURE, SIGNED_EMPTY, SIGNED_MORE, UNKNOWN_MEMBER};
use crate::card::AgentCard;
use crate::codec::{self, Value};
use crate::sign::Algorithm;

pub(super) fn check(card: &AgentCard, value: &Value, found: &mut Findings) {
    for (i, signature) in card.signatures.iter().enumerate() {
        let at = format!("signatures[{i}]");
        if let Some(message) = fault(&signature.protected) {
            found.add(SIGNATURE, format!("{at}.protected"), message);
        }
        if URL_SAFE_NO_PAD.decode(&signature.signature).is_ok_and(|bytes| !bytes.is_empty()) {
            continue;
        }
        found.add(SIGNATURE, format!("{at}.signature"), "is not base64url without padding");
    }
    if card.signatures.is_empty() {
        return;
    }
    let has = |rule: &str| found.0.iter().any(|finding| finding.rule == rule);
    let more = has(UNKNOWN_MEMBER.name) || has(MIXED.name);
    let empty = has(EMPTY.name) || value.get("skills").and_then(Value::as_array).is_some_and(Vec::is_empty);
    if more {
        found.add(SIGNED_MORE, "signatures", "the card has members that its signatures may not cover");
    }
    if empty {
        found.add(
            SIGNED_EMPTY,
            "signatures",
            "the card has empty required members: sign it in the form of the SDKs, too",
        );
    }
}

/// What is wrong with a protected header.
fn fault(protected: &str) -> Option<String> {
    let Ok(header) = URL_SAFE_NO_PAD.decode(protected) else {
        return Some("is not base64url without padding".into());
    };
    let Ok(Value::Object(header)) = codec::decode::<Value>(&header) else { return Some("is not a JSON object".into()) };
    let text = |name: &str| header.get(name).and_then(Value::as_str).unwrap_or_default();
    let (alg, kid) = (text("alg"), text("kid"));
    if alg.eq_ignore_ascii_case("none") {
        return Some("algorithm none signs nothing".into());
    }
    if alg.is_empty() || kid.is_empty() {
        return Some("has no alg or no kid".into());
    }
    if Algorithm::from_name(alg).is_none() && !matches!(alg, "ES384" | "ES512" | "RS384" | "RS512" | "PS256") {
        return Some(format!("\"{alg}\" is no algorithm for signatures"));
    }
    let jku = text("jku");
    (!jku.is_empty() && !jku.starts_with("https://")).then(|| "its jku is no https URL".into())
}
