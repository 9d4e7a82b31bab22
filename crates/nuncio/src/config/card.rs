//! Keys about what the card says.

use serde_json::{Value as Json, json};

use super::agents::skills;
use super::kind::{Kind, fail};
use super::list::{list_or_null, words};
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

/// Media types: a list, or one text with commas.
pub(crate) struct MediaTypes;

impl Kind for MediaTypes {
    type Value = Vec<String>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let Some(words) = words(node, spot) else {
            return fail(problems, spot.wrong(node, "a list of media types"));
        };
        for (word, spot) in &words {
            if !word.contains('/') {
                return fail(problems, spot.problem(format_args!("`{word}` is no media type such as `text/plain`")));
            }
        }
        Some(words.into_iter().map(|(word, _)| word).collect())
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|name| name.as_str().into()).collect())
    }

    fn schema(&self) -> Json {
        let one = json!({"type": "string", "pattern": "/"});
        json!({"anyOf": [one, {"type": "array", "items": one}]})
    }
}
