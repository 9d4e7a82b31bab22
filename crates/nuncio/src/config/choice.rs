//! Values that are one of a few names.

use serde_json::{Value as Json, json};

use super::kind::{Kind, fail};
use super::node::{Node, Value};
use super::problem::{Problem, Spot};

/// One of a few names.
pub(crate) struct Choice<T: 'static> {
    pub(crate) what: &'static str,
    pub(crate) names: &'static [(&'static str, T)],
}

impl<T: Copy + PartialEq> Choice<T> {
    /// The name of a value.
    pub(crate) fn name(&self, value: T) -> &'static str {
        self.names.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
    }

    /// All names, for messages.
    pub(crate) fn list(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

impl<T: Copy + PartialEq> Kind for Choice<T> {
    type Value = T;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<T> {
        let text = match &node.value {
            Value::Text(text) | Value::Loose(text) => text.clone(),
            // `1.0` without quotes is a number to YAML and a version to people.
            Value::Float(number) => format!("{number:?}"),
            _ => {
                let expected = format!("one of: {}", self.list());
                return fail(problems, spot.wrong(node, expected));
            }
        };
        match self.names.iter().find(|(name, _)| *name == text) {
            Some((_, value)) => Some(*value),
            None => {
                let what = self.what;
                let message = format!("unknown {what} `{text}`; supported values: {}", self.list());
                fail(problems, spot.problem(message))
            }
        }
    }

    fn show(&self, value: &T) -> Json {
        self.name(*value).into()
    }

    fn schema(&self) -> Json {
        let mut names: Vec<Json> = self.names.iter().map(|(name, _)| (*name).into()).collect();
        // A version in an unquoted file is a number.
        for (name, _) in self.names {
            if let Ok(number) = name.parse::<f64>() {
                names.push(number.into());
            }
        }
        json!({"enum": names})
    }
}
