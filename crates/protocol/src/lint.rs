//! Mistakes in a card, each with the section of the specification that it goes against.

use std::fmt;

use serde::Serialize;

use crate::card::AgentCard;
use crate::codec::{self, Value};

mod interfaces;
mod security;
mod shape;
mod signatures;
#[cfg(test)]
mod tests;
mod words;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Clients may manage, or it may be meant.
    Warning,
    /// The card is wrong.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Something that a card is checked for.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Names it.
    pub name: &'static str,
    /// How bad it is.
    pub level: Level,
    /// The section of the specification of A2A 1.0.
    pub section: &'static str,
    /// What is asked for.
    pub asks: &'static str,
}

macro_rules! rules {
    ($($id:ident $name:literal $level:ident $section:literal $asks:literal;)*) => {
        $(const $id: Rule = Rule { name: $name, level: Level::$level, section: $section, asks: $asks };)*
        /// Every rule.
        pub const RULES: &[Rule] = &[$($id),*];
    };
}

rules! {
    NOT_A_CARD "not-a-card" Error "4.4.1" "A card is a JSON object whose members have the types of the specification";
    OLD_SHAPE "old-shape" Error "8.3.1" "A card of 1.0 names its addresses in supportedInterfaces";
    MIXED "mixed-versions" Warning "3.6.2" "Members of 0.3 beside those of 1.0 are for clients that ignore what they do not know";
    SNAKE_CASE "snake-case" Error "5.5" "Names of members are in lowerCamelCase";
    UNKNOWN_MEMBER "unknown-member" Warning "5.7" "Members that the specification does not know are ignored by clients, or refused";
    MISSING "missing-member" Error "4.4.1" "Required members are there";
    EMPTY "empty-member" Warning "5.7" "Required members say something";
    NO_INTERFACE "no-interface" Error "8.3.1" "There is at least one interface";
    URL "interface-url" Error "8.3.1" "An interface has an absolute URL that clients can reach";
    INSECURE "insecure-url" Warning "7.1" "In production, everything is encrypted";
    LOCAL "local-url" Warning "8.3.1" "Clients on other machines need another address than one of this machine";
    URL_SECRET "url-with-secret" Error "13.3" "A public card holds no secrets";
    BINDING "unknown-binding" Warning "4.4.6" "A binding is JSONRPC, GRPC, HTTP+JSON, or a URI that names another";
    VERSION "interface-version" Error "3.6" "An interface has a version of the form Major.Minor";
    OLD_ONLY "no-current-version" Warning "3.6" "An interface speaks 1.0";
    SAME_INTERFACE "duplicate-interface" Warning "8.3.1" "No interface is listed twice";
    PROVIDER "provider" Error "4.4.2" "A provider has an organization and a URL";
    SKILL "skill-member" Error "4.4.5" "A skill has an id, a name, a description and tags";
    SAME_SKILL "duplicate-skill" Error "4.4.5" "The ids of skills differ";
    NO_SKILL "no-skill" Warning "4.4.1" "An agent says what it can do";
    MEDIA_TYPE "media-type" Warning "4.4.1" "Modes are media types such as text/plain";
    EXTENSION "extension-uri" Error "4.4.4" "An extension has a URI, and is declared once";
    SCHEME "security-scheme" Error "4.5.1" "A security scheme is of one kind and complete";
    UNDECLARED "undeclared-scheme" Error "4.4.1" "What securityRequirements names is declared in securitySchemes";
    UNUSED "unused-scheme" Warning "4.4.1" "A declared scheme is required somewhere";
    OPEN "open-requirement" Warning "7.2" "An empty requirement lets everybody in";
    OLD_FLOW "deprecated-flow" Warning "4.5.7" "The flows implicit and password are deprecated";
    AUTH_URL "authorization-url" Error "7.1" "Credentials are fetched from absolute https URLs";
    EXTENDED "open-extended-card" Warning "13.3" "An extended card is for authenticated callers, so the card says how to authenticate";
    SIGNATURE "signature" Error "8.4.2" "A signature has a protected header with alg and kid, and is not none";
    SIGNED_EMPTY "signed-empty-member" Warning "8.4.1" "SDKs leave empty required members out of what they verify";
    SIGNED_MORE "signed-unknown-member" Warning "8.4.1" "A signature does not cover members that the specification does not know";
    HIDDEN "hidden-characters" Warning "13.4" "Texts hold no control characters and none that change the direction of writing";
    LONG "long-text" Warning "13.4" "Texts that clients hand to models are short";
}

/// A mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// How bad it is.
    pub level: Level,
    /// The section of the specification of A2A 1.0.
    pub section: &'static str,
    /// Where, as a path of members.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

/// Collects mistakes.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, rule: Rule, at: impl Into<String>, message: impl Into<String>) {
        let Rule { name, level, section, .. } = rule;
        self.0.push(Finding { rule: name, level, section, at: at.into(), message: message.into() });
    }
}

/// Looks for mistakes in a card, given as its JSON; the worst come first.
pub fn lint(json: &[u8]) -> Vec<Finding> {
    let mut found = Findings::default();
    match codec::decode::<Value>(json) {
        Ok(value @ Value::Object(_)) => {
            let is_current = shape::check(&value, &mut found);
            match codec::decode::<AgentCard>(json) {
                Ok(card) if is_current => check(&card, &value, &mut found),
                Ok(_) => {}
                Err(error) => found.add(NOT_A_CARD, "", error.to_string()),
            }
        }
        Ok(_) => found.add(NOT_A_CARD, "", "this is not a JSON object"),
        Err(error) => found.add(NOT_A_CARD, "", error.to_string()),
    }
    found.0.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    found.0
}

fn check(card: &AgentCard, value: &Value, found: &mut Findings) {
    interfaces::check(card, found);
    words::check(card, found);
    security::check(card, found);
    signatures::check(card, value, found);
}
