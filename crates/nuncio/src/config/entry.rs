//! Lists of mappings: callers and extensions.

use serde_json::{Value as Json, json};

use super::door::Names;
use super::kind::{Flag, Kind, Path, SecretText, Text, fail};
use super::list::{items, list_or_null};
use super::node::{Field, Node, Value};
use super::problem::{Problem, Spot};
use super::record::{Named, check_fields};
use super::types::{Extension, NamedToken, TokenSource};

/// Tokens with the names of their callers.
pub(crate) struct Tokens;

impl Kind for Tokens {
    type Value = Vec<NamedToken>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let Value::List(items) = &node.value else {
            let found = node.found_secret();
            let message = format!("expected a list of `{{name, token}}`, found {found}");
            return fail(problems, spot.problem(message));
        };
        let before = problems.len();
        let tokens = items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| token(item, &spot.item(index, item.line), problems))
            .collect();
        (problems.len() == before).then_some(tokens)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        let one = |token: &NamedToken| {
            let mut entry = match &token.source {
                TokenSource::Value(secret) => json!({"name": token.name, "token": secret}),
                TokenSource::File(path) => {
                    json!({"name": token.name, "token-file": path.to_string_lossy()})
                }
            };
            if !token.groups.is_empty() {
                entry["groups"] = json!(token.groups);
            }
            if let Some(scopes) = &token.scopes {
                entry["scopes"] = json!(scopes);
            }
            entry
        };
        list_or_null(value.iter().map(one).collect())
    }

    fn schema(&self) -> Json {
        json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "Name of the caller."},
                "token": {"type": "string", "minLength": 1, "description": "The token itself."},
                "token-file": {"type": "string", "description": "File that holds the token."},
                "groups": {"type": "array", "items": {"type": "string"}, "description": "Groups of the caller."},
                "scopes": {"type": "array", "items": {"type": "string"}, "description": "What the caller may do."},
                "token_file": {"$ref": "#/properties/tokens/items/properties/token-file"},
            },
            "required": ["name"],
            "additionalProperties": false,
        }})
    }
}

fn token(node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<NamedToken> {
    let fields = record(node, spot, &["name", "token", "token-file", "groups", "scopes"], problems)?;
    let read = |name| fields.iter().find(|(known, _)| *known == name);
    let name = match read("name") {
        Some((_, field)) => Text.read(&field.node, &spot.child("name", field.line), problems),
        None => fail(problems, spot.problem("`name` is missing")),
    };
    let source = match (read("token"), read("token-file")) {
        (Some((_, field)), None) => {
            let spot = spot.child("token", field.line);
            let secret = SecretText.read(&field.node, &spot, problems);
            secret.map(TokenSource::Value)
        }
        (None, Some((_, field))) => {
            let spot = spot.child("token-file", field.line);
            Path.read(&field.node, &spot, problems).map(TokenSource::File)
        }
        _ => fail(problems, spot.problem("give either `token` or `token-file`")),
    };
    let mut names = |key| {
        let (_, field) = read(key)?;
        Names.read(&field.node, &spot.child(key, field.line), problems)
    };
    let (groups, scopes) = (names("groups").unwrap_or_default(), names("scopes"));
    let name = name.filter(|name| {
        // Those of other schemes have one, and must never be the same.
        let is_plain = !name.contains(':');
        if !is_plain {
            problems.push(spot.problem("`name`: a name has no `:` in it"));
        }
        is_plain
    });
    Some(NamedToken { name: name?, source: source?, groups, scopes })
}

/// Extensions that the card declares.
pub(crate) struct Extensions;

impl Kind for Extensions {
    type Value = Vec<Extension>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let items = items(node, "a list of extensions", spot, problems)?;
        let mut extensions: Vec<Extension> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let spot = spot.item(index, item.line);
            let Some(extension) = extension(item, &spot, problems) else {
                continue;
            };
            let uri = &extension.uri;
            if extensions.iter().any(|known| known.uri == *uri) {
                problems.push(spot.problem(format_args!("`{uri}` is already in the list")));
            } else {
                extensions.push(extension);
            }
        }
        (extensions.len() == items.len()).then_some(extensions)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|extension| json!(extension)).collect())
    }

    fn schema(&self) -> Json {
        json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "uri": {"type": "string", "minLength": 1, "description": "URI of the extension."},
                "required": {"type": "boolean", "description": "Whether clients must know it.", "default": false},
                "description": {"type": "string", "description": "What it is for."},
                "params": {"type": "object", "description": "Settings that the extension defines."},
            },
            "required": ["uri"],
            "additionalProperties": false,
        }})
    }
}

fn extension(node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Extension> {
    let names = ["uri", "required", "description", "params"];
    let fields = record(node, spot, &names, problems)?;
    let before = problems.len();
    let mut extension = Extension::default();
    for (name, field) in fields {
        let spot = spot.child(name, field.line);
        match name {
            "uri" => extension.uri = Text.read(&field.node, &spot, problems).unwrap_or_default(),
            "required" => {
                extension.required = Flag.read(&field.node, &spot, problems).unwrap_or_default();
            }
            "description" => extension.description = Text.read(&field.node, &spot, problems),
            _ => match field.node.to_json() {
                Json::Object(params) => extension.params = Some(params),
                _ => problems.push(spot.wrong(&field.node, "a mapping")),
            },
        }
    }
    if problems.len() == before && extension.uri.is_empty() {
        problems.push(spot.problem("`uri` is missing"));
    }
    (problems.len() == before).then_some(extension)
}

/// The fields of a mapping in a list.
pub(super) fn record<'n>(
    node: &'n Node,
    spot: &Spot<'_>,
    names: &[&'static str],
    problems: &mut Vec<Problem>,
) -> Option<Vec<(&'static str, &'n Field)>> {
    let Value::Map(fields) = &node.value else {
        let message = format!("expected a mapping, found {}", node.found_secret());
        return fail(problems, spot.problem(message));
    };
    let names: Vec<Named> = names.iter().map(|name| (*name, *name)).collect();
    Some(check_fields(fields, &names, spot, problems))
}
