//! The keys that decide who may come in: providers of identities, scopes, certificates, web pages.

mod rules;

use std::path::PathBuf;
use std::time::Duration;

use nuncio_server::auth::{Algorithm, Grants, ScopeTable, algorithm};
use serde_json::{Value as Json, json};

use super::address::PublicUrl;
use super::entry::record;
use super::kind::{Flag, Kind, Path, SecretText, Text, Time, fail};
use super::list::{Hosts, items, list_or_null};
use super::node::{Node, Value};
use super::problem::{Problem, Spot};
use super::secret::Secret;
use super::units;

pub(crate) use rules::rules;

/// A provider of identities.
#[derive(Clone, Debug)]
pub(crate) struct Oidc {
    /// What the names of its callers begin with.
    pub(crate) name: String,
    pub(crate) issuer: String,
    pub(crate) audience: Vec<String>,
    pub(crate) jwks_url: Option<String>,
    pub(crate) jwks_file: Option<PathBuf>,
    pub(crate) secret: Option<Secret>,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) clock_skew: Duration,
    pub(crate) name_claim: String,
    pub(crate) groups_claim: String,
    pub(crate) require_scopes: bool,
}

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// Algorithms with public keys, which is what providers have.
const USUAL: [&str; 9] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
/// Names that other callers' names begin with.
const TAKEN: [&str; 5] = ["basic", "api-key", "cert", "group", "unix"];

/// Providers of identities: one, or a list.
pub(crate) struct Providers;

impl Kind for Providers {
    type Value = Vec<Oidc>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let before = problems.len();
        let mut all: Vec<Oidc> = Vec::new();
        let entries: Vec<(&Node, Spot<'_>)> = match &node.value {
            Value::List(items) => {
                items.iter().enumerate().map(|(index, item)| (item, spot.item(index, item.line))).collect()
            }
            _ => vec![(node, spot.clone())],
        };
        for (node, spot) in entries {
            let Some(provider) = provider(node, &spot, problems) else { continue };
            if all.iter().any(|known| known.name == provider.name) {
                let name = &provider.name;
                problems.push(spot.problem(format_args!("the name `{name}` is taken; give each provider its own")));
            }
            all.push(provider);
        }
        (problems.len() == before).then_some(all)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        let one = |oidc: &Oidc| {
            json!({
                "name": oidc.name,
                "issuer": oidc.issuer,
                "audience": oidc.audience,
                "jwks-url": oidc.jwks_url,
                "jwks-file": oidc.jwks_file,
                "secret": oidc.secret,
                "algorithms": oidc.algorithms.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>(),
                "clock-skew": units::show_duration(oidc.clock_skew),
                "name-claim": oidc.name_claim,
                "groups-claim": oidc.groups_claim,
                "require-scopes": oidc.require_scopes,
            })
        };
        list_or_null(value.iter().map(one).collect())
    }

    fn schema(&self) -> Json {
        let text = json!({"type": "string", "minLength": 1});
        let texts = json!({"anyOf": [text, {"type": "array", "items": text}]});
        let mut one = json!({
            "type": "object",
            "properties": {
                "name": text, "issuer": text, "audience": texts, "jwks-url": text, "jwks-file": text,
                "secret": text, "algorithms": texts, "clock-skew": Time { zero: true }.schema(),
                "name-claim": text, "groups-claim": text, "require-scopes": {"type": "boolean"},
            },
            "required": ["issuer", "audience"],
            "additionalProperties": false,
        });
        for field in FIELDS.iter().filter(|field| field.contains('-')) {
            one["properties"][field.replace('-', "_")] = one["properties"][*field].clone();
        }
        json!({"anyOf": [one, {"type": "array", "items": one}]})
    }
}

const FIELDS: [&str; 11] = [
    "name",
    "issuer",
    "audience",
    "jwks-url",
    "jwks-file",
    "secret",
    "algorithms",
    "clock-skew",
    "name-claim",
    "groups-claim",
    "require-scopes",
];

fn provider(node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Oidc> {
    let before = problems.len();
    let mut oidc = Oidc {
        name: "oidc".into(),
        issuer: String::new(),
        audience: Vec::new(),
        jwks_url: None,
        jwks_file: None,
        secret: None,
        algorithms: USUAL.into_iter().filter_map(algorithm).collect(),
        clock_skew: Duration::from_secs(60),
        name_claim: "sub".into(),
        groups_claim: "groups".into(),
        require_scopes: false,
    };
    for (name, field) in record(node, spot, &FIELDS, problems)? {
        let (node, spot) = (&field.node, spot.child(name, field.line));
        match name {
            "name" => oidc.name = Text.read(node, &spot, problems).unwrap_or_default(),
            // Its very text stands in every token.
            "issuer" => {
                PublicUrl.read(node, &spot, problems);
                oidc.issuer = node.text().unwrap_or_default().to_owned();
            }
            "audience" => oidc.audience = texts(node, &spot, problems),
            "jwks-url" => oidc.jwks_url = Text.read(node, &spot, problems),
            "jwks-file" => oidc.jwks_file = Path.read(node, &spot, problems),
            "secret" => oidc.secret = SecretText.read(node, &spot, problems),
            "algorithms" => {
                let named = texts(node, &spot, problems);
                oidc.algorithms = named.iter().filter_map(|name| known_algorithm(name, &spot, problems)).collect();
            }
            "clock-skew" => {
                oidc.clock_skew = Time { zero: true }.read(node, &spot, problems).unwrap_or_default();
            }
            "name-claim" => oidc.name_claim = Text.read(node, &spot, problems).unwrap_or_default(),
            "groups-claim" => oidc.groups_claim = Text.read(node, &spot, problems).unwrap_or_default(),
            _ => oidc.require_scopes = Flag.read(node, &spot, problems).unwrap_or_default(),
        }
    }
    check_provider(&oidc, spot, problems, before);
    (problems.len() == before).then_some(oidc)
}

fn check_provider(oidc: &Oidc, spot: &Spot<'_>, problems: &mut Vec<Problem>, before: usize) {
    if problems.len() > before {
        return;
    }
    if oidc.issuer.is_empty() {
        problems.push(spot.problem("`issuer` is missing"));
    }
    if oidc.audience.is_empty() {
        let text = "`audience` is missing: without it, tokens that were made for other services would be taken";
        problems.push(spot.problem(text));
    }
    let sources = [oidc.jwks_url.is_some(), oidc.jwks_file.is_some(), oidc.secret.is_some()];
    if sources.iter().filter(|given| **given).count() > 1 {
        problems.push(spot.problem("give one of `jwks-url`, `jwks-file` and `secret`"));
    }
    if oidc.name.contains(':') || TAKEN.contains(&&*oidc.name) {
        problems.push(spot.problem(format_args!("`{}` cannot be the name of a provider", oidc.name)));
    }
}

fn known_algorithm(name: &str, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Algorithm> {
    let found = algorithm(name);
    if found.is_none() {
        let known = USUAL.join(", ");
        problems.push(spot.problem(format_args!("`{name}` is not an algorithm that is taken; known are {known}")));
    }
    found
}

/// One text, or a list of them.
fn texts(node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Vec<String> {
    match &node.value {
        Value::List(items) => {
            let all = items.iter().enumerate();
            all.filter_map(|(index, item)| Text.read(item, &spot.item(index, item.line), problems)).collect()
        }
        _ => Text.read(node, spot, problems).into_iter().collect(),
    }
}

/// A list of plain names.
pub(crate) struct Names;

impl Kind for Names {
    type Value = Vec<String>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let before = problems.len();
        items(node, "a list of names", spot, problems)?;
        let names = texts(node, spot, problems);
        (problems.len() == before).then_some(names)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|name| name.as_str().into()).collect())
    }

    fn schema(&self) -> Json {
        json!({"type": "array", "items": Text.schema()})
    }
}

/// What each scope allows.
pub(crate) struct ScopeRows;

impl Kind for ScopeRows {
    type Value = Option<Vec<(String, Vec<String>)>>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let Value::Map(fields) = &node.value else {
            return fail(problems, spot.wrong(node, "a mapping of scopes to lists of operations"));
        };
        let before = problems.len();
        let mut rows = Vec::new();
        for field in fields {
            let spot = spot.child(&field.key, field.line);
            let operations = Names.read(&field.node, &spot, problems).unwrap_or_default();
            if let Err(error) = Grants::of(operations.iter().map(String::as_str)) {
                problems.push(spot.problem(error));
            }
            rows.push((field.key.clone(), operations));
        }
        (problems.len() == before).then_some(Some(rows))
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(None)
    }

    fn show(&self, value: &Self::Value) -> Json {
        let row = |(scope, operations): &(String, Vec<String>)| (scope.clone(), json!(operations));
        value.as_ref().map_or(Json::Null, |rows| Json::Object(rows.iter().map(row).collect()))
    }

    fn schema(&self) -> Json {
        json!({"type": "object", "additionalProperties": Names.schema()})
    }
}

/// The table that those rows make; without them, the usual one.
pub(crate) fn scope_table(rows: Option<&Vec<(String, Vec<String>)>>) -> ScopeTable {
    let Some(rows) = rows else { return ScopeTable::default() };
    let row = |(scope, operations): &(String, Vec<String>)| {
        let grants = Grants::of(operations.iter().map(String::as_str)).unwrap_or(Grants::NONE);
        (scope.clone(), grants)
    };
    ScopeTable::new(rows.iter().map(row).collect())
}

/// A certificate and its key.
pub(crate) struct Certificate;

impl Kind for Certificate {
    type Value = Option<TlsFiles>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let fields = record(node, spot, &["cert", "key"], problems)?;
        let mut read = |name| match fields.iter().find(|(known, _)| *known == name) {
            Some((_, field)) => Path.read(&field.node, &spot.child(name, field.line), problems),
            None => fail(problems, spot.problem(format_args!("`{name}` is missing"))),
        };
        let (cert, key) = (read("cert"), read("key"));
        Some(Some(TlsFiles { cert: cert?, key: key? }))
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(None)
    }

    fn show(&self, value: &Self::Value) -> Json {
        value.as_ref().map_or(Json::Null, |tls| json!({"cert": tls.cert, "key": tls.key}))
    }

    fn schema(&self) -> Json {
        json!({
            "type": "object",
            "properties": {
                "cert": {"type": "string", "description": "File with the certificate and those above it, in PEM."},
                "key": {"type": "string", "description": "File with its private key, in PEM."},
            },
            "required": ["cert", "key"],
            "additionalProperties": false,
        })
    }
}

/// Any text that is not shown.
pub(crate) struct PasswordText;

impl Kind for PasswordText {
    type Value = Secret;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Secret> {
        match node.text() {
            Some(text) if !text.is_empty() => Some(Secret(text.to_owned())),
            Some(_) => fail(problems, spot.problem("the password is empty; give it a value or remove the key")),
            None => {
                let message = format!("expected text in quotes, found {}", node.found_secret());
                fail(problems, spot.problem(message))
            }
        }
    }

    fn show(&self, value: &Secret) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        Text.schema()
    }
}

/// The name of a header.
pub(crate) struct HeaderText;

impl Kind for HeaderText {
    type Value = String;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<String> {
        let text = Text.read(node, spot, problems)?;
        if text.parse::<http::HeaderName>().is_ok() {
            return Some(text);
        }
        fail(problems, spot.wrong(node, "the name of a header"))
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }

    fn schema(&self) -> Json {
        Text.schema()
    }
}

/// Origins of web pages: `https://console.example`, or `*`.
pub(crate) struct Origins;

impl Kind for Origins {
    type Value = Vec<String>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let words = super::list::words(node, spot)
            .or_else(|| fail(problems, spot.wrong(node, "a list of origins such as `https://console.example`")))?;
        let before = problems.len();
        for (word, spot) in &words {
            let host = word.strip_prefix("http://").or_else(|| word.strip_prefix("https://"));
            if word != "*" && !host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '@', '?', '#'])) {
                let text = "is not an origin: write scheme, host and port, such as `https://console.example`";
                problems.push(spot.problem(format_args!("`{word}` {text}")));
            }
        }
        (problems.len() == before).then(|| words.into_iter().map(|(word, _)| word).collect())
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|name| name.as_str().into()).collect())
    }

    fn schema(&self) -> Json {
        Hosts.schema()
    }
}
