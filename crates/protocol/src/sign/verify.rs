//! Who signed a card, as far as that can be known.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::form::{Candidate, candidates};
use super::{Algorithm, Form, KeySet, VerifyingKey};
use crate::card::AgentCardSignature;
use crate::codec::{self, Value};

/// More signatures than this are not looked at: each costs time.
const MOST_SIGNATURES: usize = 16;
/// So much of a foreign name is repeated.
const SHOWN: usize = 200;

/// What the signatures of a card are worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One of them is by a key that counts.
    Verified {
        /// The name of the key, as the signature says it; empty if it names none.
        kid: String,
        /// How it was made.
        alg: Algorithm,
        /// What it covers.
        form: Form,
        /// Members of the card that nobody vouches for, as A2A 1.0 does not know them.
        uncovered: Vec<String>,
    },
    /// There are some, but nothing to check them with.
    Unverifiable(Reason),
    /// There is none.
    Absent,
    /// There are some, and they do not hold.
    Wrong(Reason),
}

impl Verdict {
    /// Whether the card is from whom it should be.
    pub fn is_verified(&self) -> bool {
        matches!(self, Self::Verified { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verified { kid, alg, .. } => write!(f, "verified (key \"{}\", {alg})", shown(kid)),
            Self::Unverifiable(reason) => write!(f, "unverifiable ({reason})"),
            Self::Absent => f.write_str("absent"),
            Self::Wrong(reason) => write!(f, "wrong ({reason})"),
        }
    }
}

/// Why a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Nobody said whose signatures count.
    #[error("no keys are given to check it with")]
    NoKeys,
    /// The keys could not be had.
    #[error("the keys to check it with cannot be had: {0}")]
    KeysUnavailable(String),
    /// None of the keys is the one that it names.
    #[error("no key for kid \"{}\"", shown(.0))]
    UnknownKey(String),
    /// None of the keys is the one that it names; it says itself where to find that one, as any forger could.
    #[error("no key for kid \"{}\"; the card names its own keys at {}, which proves nothing", shown(.kid), shown(.jku))]
    ForeignKeys {
        /// The name of the key.
        kid: String,
        /// Where the card says it is.
        jku: String,
    },
    /// It is made in a way that is not supported.
    #[error("algorithm {} is not supported", shown(.0))]
    UnsupportedAlgorithm(String),
    /// It demands something that is not supported.
    #[error("its header has critical parameters that are not supported")]
    Critical,
    /// It is none: it says so itself.
    #[error("algorithm none signs nothing")]
    NoAlgorithm,
    /// The key is for another algorithm. A public key taken for a secret would let everybody sign.
    #[error("kid \"{}\" is a key for {key}, but the signature says {says}", shown(.kid))]
    KeyConfusion {
        /// The name of the key.
        kid: String,
        /// What the key is for.
        key: Algorithm,
        /// What the signature says.
        says: Algorithm,
    },
    /// The key does not count any more.
    #[error("the key \"{}\" has expired", shown(.0))]
    Expired(String),
    /// The key does not count yet.
    #[error("the key \"{}\" is not valid yet", shown(.0))]
    NotYetValid(String),
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Malformed(&'static str),
    /// It is by another key, or of another card.
    #[error("it does not fit the card and the key \"{}\": the card was changed, or somebody else signed it", shown(.0))]
    Mismatch(String),
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    jku: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

/// Checks the signatures of a card, given as it came: every one, in every form that is in use. One that holds is
/// enough. `now` is in seconds since 1970.
///
/// A `jku` in a signature changes nothing: the keys that are given are the ones that count.
pub fn verify(card: &[u8], keys: &KeySet, now: u64) -> Verdict {
    let Ok(value @ Value::Object(_)) = codec::decode::<Value>(card) else {
        return Verdict::Wrong(Reason::Malformed("the card is not a JSON object"));
    };
    let signatures = match value.get("signatures") {
        None | Some(Value::Null) => return Verdict::Absent,
        Some(Value::Array(list)) if list.is_empty() => return Verdict::Absent,
        Some(Value::Array(list)) => list.iter().take(MOST_SIGNATURES).cloned().collect::<Vec<_>>(),
        Some(_) => return Verdict::Wrong(Reason::Malformed("`signatures` is not a list")),
    };
    let names: Vec<String> = value.as_object().into_iter().flat_map(|members| members.keys().cloned()).collect();
    let payloads = candidates(card, value);
    let mut best: Option<Verdict> = None;
    for signature in signatures {
        let verdict = match codec::from_value(signature) {
            Ok(signature) => check(&signature, &payloads, &names, keys, now),
            Err(_) => Verdict::Wrong(Reason::Malformed("it is not an object with `protected` and `signature`")),
        };
        match (&verdict, &best) {
            (Verdict::Verified { .. }, _) => return verdict,
            // One that is wrong says more than one that nobody can judge.
            (Verdict::Wrong(_), Some(Verdict::Unverifiable(_))) | (_, None) => best = Some(verdict),
            _ => {}
        }
    }
    best.unwrap_or(Verdict::Absent)
}

fn check(signature: &AgentCardSignature, payloads: &[Candidate], names: &[String], keys: &KeySet, now: u64) -> Verdict {
    let malformed = |what| Verdict::Wrong(Reason::Malformed(what));
    let Ok(header) = URL_SAFE_NO_PAD.decode(&signature.protected) else {
        return malformed("`protected` is not base64url");
    };
    let Ok(header) = codec::decode::<Header>(&header) else {
        return malformed("`protected` is not a header with `alg`");
    };
    if header.alg.eq_ignore_ascii_case("none") {
        return Verdict::Wrong(Reason::NoAlgorithm);
    }
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(&signature.signature) else {
        return malformed("`signature` is not base64url");
    };
    let Some(alg) = Algorithm::from_name(&header.alg) else {
        return Verdict::Unverifiable(Reason::UnsupportedAlgorithm(header.alg));
    };
    if header.crit.is_some() {
        return Verdict::Unverifiable(Reason::Critical);
    }
    let kid = header.kid.unwrap_or_default();
    let candidates = match pick(keys, &kid, alg, now) {
        Ok(candidates) => candidates,
        Err(Verdict::Unverifiable(_)) if !keys.is_empty() || header.jku.is_some() => {
            let reason = match header.jku {
                Some(jku) => Reason::ForeignKeys { kid, jku },
                None => Reason::UnknownKey(kid),
            };
            return Verdict::Unverifiable(reason);
        }
        Err(verdict) => return verdict,
    };
    for payload in payloads {
        let input = format!("{}.{}", signature.protected, URL_SAFE_NO_PAD.encode(&payload.bytes));
        if candidates.iter().any(|key| key.verifies(input.as_bytes(), &bytes)) {
            let mut uncovered = if payload.whole { Vec::new() } else { unknown(names) };
            if payload.without_schemes && !payload.whole {
                uncovered.push("securitySchemes".into());
            }
            return Verdict::Verified { kid, alg, form: payload.form, uncovered };
        }
    }
    Verdict::Wrong(Reason::Mismatch(kid))
}

/// The keys that may have made a signature.
fn pick<'a>(keys: &'a KeySet, kid: &str, alg: Algorithm, now: u64) -> Result<Vec<&'a VerifyingKey>, Verdict> {
    let named = |key: &&VerifyingKey| kid.is_empty() || key.kid().is_none_or(|name| name == kid);
    let named: Vec<&VerifyingKey> = keys.keys().iter().filter(named).collect();
    let Some(first) = named.first() else { return Err(Verdict::Unverifiable(Reason::NoKeys)) };
    let fitting: Vec<&VerifyingKey> = named.iter().copied().filter(|key| key.algorithm() == alg).collect();
    if fitting.is_empty() {
        // A key that is tried for any name says nothing about this one.
        if named.iter().all(|key| key.kid() != Some(kid)) {
            return Err(Verdict::Unverifiable(Reason::NoKeys));
        }
        let reason = Reason::KeyConfusion { kid: kid.to_owned(), key: first.algorithm(), says: alg };
        return Err(Verdict::Wrong(reason));
    }
    let in_time = |key: &&&VerifyingKey| {
        key.not_before().is_none_or(|from| from <= now) && key.expires().is_none_or(|until| now < until)
    };
    let valid: Vec<&VerifyingKey> = fitting.iter().filter(in_time).copied().collect();
    if valid.is_empty() {
        let expired = fitting.iter().any(|key| key.expires().is_some_and(|until| until <= now));
        let kid = kid.to_owned();
        return Err(Verdict::Wrong(if expired { Reason::Expired(kid) } else { Reason::NotYetValid(kid) }));
    }
    Ok(valid)
}

/// Members at the top of a card that A2A 1.0 does not know.
fn unknown(names: &[String]) -> Vec<String> {
    const KNOWN: [&str; 14] = [
        "name",
        "description",
        "supportedinterfaces",
        "provider",
        "version",
        "documentationurl",
        "capabilities",
        "securityschemes",
        "securityrequirements",
        "defaultinputmodes",
        "defaultoutputmodes",
        "skills",
        "signatures",
        "iconurl",
    ];
    let is_known = |name: &str| KNOWN.contains(&name.replace('_', "").to_ascii_lowercase().as_str());
    names.iter().filter(|name| !is_known(name)).cloned().collect()
}
