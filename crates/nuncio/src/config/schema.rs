//! The JSON Schema of the configuration file.

use serde_json::{Map, Value as Json, json};

use super::keys::KEYS;
use super::layers::variable;

/// The schema with `${VAR}` wherever it has a value: files are read after variables were put in.
fn or_variable(mut schema: Json) -> Json {
    if let Some(choices) = schema["anyOf"].as_array_mut() {
        choices.iter_mut().for_each(|choice| *choice = or_variable(choice.take()));
        return schema;
    }
    match schema["type"].as_str() {
        Some("object") => {
            for property in schema["properties"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
                *property = or_variable(property.take());
            }
            schema
        }
        Some("array") => {
            if let Some(items) = schema.get_mut("items") {
                *items = or_variable(items.take());
            }
            schema
        }
        Some("string") if schema.get("pattern").is_none() => schema,
        _ if schema.get("$ref").is_some() => schema,
        _ => json!({"anyOf": [schema, {"type": "string", "pattern": r"\$\{[A-Za-z0-9_]+\}"}]}),
    }
}

/// The schema, made from the table of keys.
pub(crate) fn schema() -> Json {
    let mut properties = Map::new();
    let mut spellings = Map::new();
    for key in KEYS {
        let name = key.name();
        let mut property = or_variable((key.schema)());
        property["description"] = key.doc.into();
        if let Some(default) = (key.default_json)() {
            property["default"] = default;
        }
        if key.in_environment {
            property["x-environment"] = variable(name).into();
        }
        properties.insert(name.to_owned(), property);
        let pointer = json!({"$ref": format!("#/properties/{name}")});
        for other in key.names.iter().filter(|other| **other != name || name.contains('-')) {
            let pattern = format!("^{}$", other.replace('-', "[-_]"));
            spellings.insert(pattern, pointer.clone());
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Nuncio configuration",
        "type": ["object", "null"],
        "properties": properties,
        "patternProperties": spellings,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable() -> Json {
        json!({"type": "string", "pattern": r"\$\{[A-Za-z0-9_]+\}"})
    }

    #[test]
    fn a_variable_may_stand_for_every_value() {
        let schema = schema();
        let of = |pointer: &str| schema.pointer(&format!("/properties/{pointer}")).cloned().unwrap_or_default();
        for pointer in ["port", "allow-open", "max-body", "agents/items/properties/kind", "tokens/items/properties/x"] {
            let choices = of(pointer)["anyOf"].clone();
            assert_eq!(choices.as_array().is_some_and(|all| all.contains(&variable())), !pointer.ends_with("/x"));
        }
        assert_eq!(of("port")["default"], 41242);
        assert_eq!(of("data-dir")["type"], "string");
        // A list may not be one.
        assert_eq!(of("agents")["type"], "array");
    }

    #[test]
    fn it_takes_what_is_read_and_nothing_else() {
        let schema = schema();
        let of = |key: &str| &schema["properties"][key];
        for key in ["workspace-roots", "allow-tools", "deny-tools"] {
            assert_eq!(of(key)["anyOf"][0]["type"], "string", "{key}");
        }
        let oidc = &of("oidc")["anyOf"][0];
        assert_eq!(oidc["additionalProperties"], false);
        assert!(oidc["properties"]["jwks_url"].is_object() && oidc["properties"]["jwks-url"].is_object());
        assert_eq!(of("max-body")["anyOf"][0]["pattern"], "^[0-9]+ *(([KMGTkmgt][Ii]?)?[Bb])?$");
        assert_eq!(of("retention")["anyOf"][0]["pattern"], "^[0-9]*[1-9][0-9]* *(ms|s|m|h|d)$");
    }
}
