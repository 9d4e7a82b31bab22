//! Lists of simple values.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value as Json, json};

use super::choice::Choice;
use super::kind::{Kind, Text, fail};
use super::node::{Node, Value};
use super::problem::{Origin, Problem, Spot};
use super::types::Thinking;

/// The items of a list; anything else is a problem.
pub(super) fn items<'a>(
    node: &'a Node,
    expected: &str,
    spot: &Spot<'_>,
    problems: &mut Vec<Problem>,
) -> Option<&'a [Node]> {
    match &node.value {
        Value::List(items) => Some(items),
        _ => fail(problems, spot.wrong(node, expected)),
    }
}

/// The words of a list, or of one text with commas or semicolons, each with its place.
pub(super) fn words<'s>(node: &Node, spot: &Spot<'s>) -> Option<Vec<(String, Spot<'s>)>> {
    let split = |text: &str, spot: &Spot<'s>| -> Vec<(String, Spot<'s>)> {
        text.split([',', ';'])
            .map(|word| (word.trim().to_lowercase(), spot.clone()))
            .filter(|(word, _)| !word.is_empty())
            .collect()
    };
    match &node.value {
        Value::Text(text) | Value::Loose(text) => Some(split(text, spot)),
        Value::List(items) => {
            let mut all = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let spot = match spot.origin {
                    Origin::Flag => spot.clone(),
                    _ => spot.item(index, item.line),
                };
                all.extend(split(item.text()?, &spot));
            }
            Some(all)
        }
        _ => None,
    }
}

/// What clients see of the agent's thinking.
pub(crate) struct Exposure;

const THINKING: Choice<Thinking> = Choice {
    what: "thinking exposure type",
    names: &[("raw-thinking", Thinking::Raw), ("tool-trace", Thinking::ToolTrace)],
};

impl Kind for Exposure {
    type Value = Vec<Thinking>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        if matches!(node.value, Value::Bool(false) | Value::Int(0)) {
            return Some(Vec::new());
        }
        let supported = THINKING.list();
        let Some(words) = words(node, spot) else {
            let message = format!(
                "A2A thinking exposure must be a string or list of strings. \
                 Supported values: {supported}."
            );
            return fail(problems, spot.problem(message));
        };
        let before = problems.len();
        let mut exposed = Vec::new();
        let mut nothing = false;
        for (word, spot) in words {
            match word.replace('_', "-").as_str() {
                "all" | "*" => exposed.extend(THINKING.names.iter().map(|(_, value)| *value)),
                "none" | "off" | "false" | "0" => nothing = true,
                name => match THINKING.names.iter().find(|(known, _)| *known == name) {
                    Some((_, value)) => exposed.push(*value),
                    None => problems.push(spot.problem(format_args!(
                        "Unsupported A2A thinking exposure type '{word}'. \
                         Supported values: {supported}."
                    ))),
                },
            }
        }
        if nothing && !exposed.is_empty() {
            problems.push(spot.problem("`none` cannot stand beside other values"));
        }
        exposed.sort_unstable();
        exposed.dedup();
        (problems.len() == before).then_some(exposed)
    }

    fn show(&self, value: &Self::Value) -> Json {
        value.iter().map(|item| THINKING.name(*item)).collect()
    }

    fn schema(&self) -> Json {
        let names = ["raw-thinking", "tool-trace", "all", "none"];
        let one = json!({"type": "string", "examples": names});
        json!({"anyOf": [one, {"type": "array", "items": one}, {"enum": [false, 0]}]})
    }
}

/// Names of tenants.
pub(crate) struct Tenants;

impl Kind for Tenants {
    type Value = Vec<String>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let items = items(node, "a list of names", spot, problems)?;
        if items.is_empty() {
            let message = "the list is empty; name at least one tenant, or remove the key";
            return fail(problems, spot.problem(message));
        }
        let mut tenants = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let spot = spot.item(index, item.line);
            let Some(name) = Text.read(item, &spot, problems) else {
                continue;
            };
            if name.contains('/') {
                problems.push(spot.problem("a tenant's name is part of a path: no `/` in it"));
            } else if tenants.contains(&name) {
                problems.push(spot.problem(format_args!("`{name}` is already in the list")));
            } else {
                tenants.push(name);
            }
        }
        (tenants.len() == items.len()).then_some(tenants)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|name| name.as_str().into()).collect())
    }

    fn schema(&self) -> Json {
        json!({
            "type": "array",
            "items": {"type": "string", "pattern": "^[^/]+$"},
            "minItems": 1,
            "uniqueItems": true,
        })
    }
}

/// Addresses and networks.
pub(crate) struct Networks;

impl Kind for Networks {
    type Value = Vec<IpNet>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let items = items(node, "a list of IP addresses and networks", spot, problems)?;
        let mut networks = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let network = item.text().map(str::trim).and_then(|text| {
                let address = text.parse::<IpAddr>().map(IpNet::from);
                address.ok().or_else(|| text.parse().ok())
            });
            match network {
                Some(network) => networks.push(network),
                None => problems
                    .push(spot.item(index, item.line).wrong(item, "an IP address or a network such as `10.0.0.0/8`")),
            }
        }
        (networks.len() == items.len()).then_some(networks)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|net| net.to_string().into()).collect())
    }

    fn schema(&self) -> Json {
        json!({"type": "array", "items": {"type": "string"}})
    }
}

/// Names of hosts: a list, or one text with commas.
pub(crate) struct Hosts;

impl Kind for Hosts {
    type Value = Vec<String>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let Some(words) = words(node, spot) else {
            return fail(problems, spot.wrong(node, "a list of host names"));
        };
        let before = problems.len();
        for (word, spot) in &words {
            if word.contains(['/', '@']) || word.contains(char::is_whitespace) {
                problems.push(spot.problem(format_args!("`{word}` is not a host: no scheme, path or user in it")));
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
        let one = json!({"type": "string"});
        json!({"anyOf": [one, {"type": "array", "items": one}]})
    }
}

/// Blocks of addresses: a list, or one text with commas.
pub(crate) struct Blocks;

impl Kind for Blocks {
    type Value = Vec<IpNet>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let Some(words) = words(node, spot) else {
            return fail(problems, spot.wrong(node, "a list of IP addresses and networks"));
        };
        let mut networks = Vec::new();
        for (word, spot) in &words {
            match word.parse::<IpAddr>().map(IpNet::from).or_else(|_| word.parse()) {
                Ok(network) => networks.push(network),
                Err(_) => problems.push(
                    spot.problem(format_args!("`{word}` is not an IP address or a network such as `10.0.0.0/8`")),
                ),
            }
        }
        (networks.len() == words.len()).then_some(networks)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        Networks.show(value)
    }

    fn schema(&self) -> Json {
        Hosts.schema()
    }
}

/// An empty list is the same as no list, and is shown as such.
pub(super) fn list_or_null(items: Vec<Json>) -> Json {
    if items.is_empty() { Json::Null } else { Json::Array(items) }
}
