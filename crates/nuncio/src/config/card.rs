//! Keys about what the card says.

use serde_json::{Value as Json, json};

use super::agents::skills;
use super::kind::{Kind, Text, fail};
use super::list::{items, list_or_null};
use super::node::Node;
use super::problem::{Problem, Spot};
use super::types::Skill;

/// Skills of the agent: ids, or mappings.
pub(crate) struct Skills;

impl Kind for Skills {
    type Value = Vec<Skill>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        skills(node, spot, problems)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|skill| json!(skill)).collect())
    }

    fn schema(&self) -> Json {
        let texts = json!({"type": "array", "items": {"type": "string"}});
        let whole = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string"}, "name": {"type": "string"}, "description": {"type": "string"},
                "tags": texts, "examples": texts,
            },
            "required": ["id"],
            "additionalProperties": false,
        });
        json!({"type": "array", "items": {"anyOf": [{"type": "string"}, whole]}})
    }
}

/// Media types.
pub(crate) struct MediaTypes;

impl Kind for MediaTypes {
    type Value = Vec<String>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let items = items(node, "a list of media types", spot, problems)?;
        let mut all = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let spot = spot.item(index, item.line);
            let text = Text.read(item, &spot, problems)?;
            if !text.contains('/') {
                return fail(problems, spot.problem(format_args!("`{text}` is no media type such as `text/plain`")));
            }
            all.push(text);
        }
        Some(all)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|name| name.as_str().into()).collect())
    }

    fn schema(&self) -> Json {
        json!({"type": "array", "items": {"type": "string", "pattern": "/"}})
    }
}
