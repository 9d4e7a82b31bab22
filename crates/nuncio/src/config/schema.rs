//! The JSON Schema of the configuration file.

use serde_json::{Map, Value as Json, json};

use super::keys::KEYS;
use super::layers::variable;

/// The schema, made from the table of keys.
pub(crate) fn schema() -> Json {
    let mut properties = Map::new();
    let mut spellings = Map::new();
    for key in KEYS {
        let name = key.name();
        let mut property = (key.schema)();
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
