//! The ways in, as they are named in the configuration.

use serde_json::{Value as Json, json};

use super::choice::Choice;
use super::kind::{Kind, Text, fail};
use super::list::{list_or_null, words};
use super::node::{Node, Value};
use super::problem::{Problem, Spot};
use super::types::Transport;

/// The ways in. Names are read without regard to case, `_` as `-`.
pub(crate) struct Transports;

const TRANSPORTS: Choice<Transport> = Choice {
    what: "transport",
    names: &[
        ("http", Transport::Http),
        ("websocket", Transport::WebSocket),
        ("stdio", Transport::Stdio),
        ("unix", Transport::Unix),
        ("grpc", Transport::Grpc),
        ("grpc-jsonrpc", Transport::GrpcJsonRpc),
        ("redis-streams", Transport::RedisStreams),
    ],
};

const TRANSPORT_ALIASES: [(&str, Transport); 12] = [
    ("jsonrpc", Transport::Http),
    ("json-rpc", Transport::Http),
    ("http+jsonrpc", Transport::Http),
    ("http-jsonrpc", Transport::Http),
    ("https", Transport::Http),
    ("ws", Transport::WebSocket),
    ("wss", Transport::WebSocket),
    ("unix-socket", Transport::Unix),
    ("grpcs", Transport::Grpc),
    ("grpc+jsonrpc", Transport::GrpcJsonRpc),
    ("redis", Transport::RedisStreams),
    ("redis-stream", Transport::RedisStreams),
];

impl Kind for Transports {
    type Value = Vec<Transport>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let supported = TRANSPORTS.list();
        let Some(words) = words(node, spot).filter(|words| !words.is_empty()) else {
            let expected = format!("one transport or a list of them (supported: {supported})");
            return fail(problems, spot.wrong(node, expected));
        };
        let mut transports = Vec::new();
        for (word, spot) in words {
            let name = word.replace('_', "-");
            let mut known = TRANSPORTS.names.iter().chain(&TRANSPORT_ALIASES);
            match known.find(|(known, _)| *known == name) {
                Some((_, transport)) if transports.contains(transport) => {}
                Some((_, transport)) => transports.push(*transport),
                None => problems
                    .push(spot.problem(format_args!("unsupported transport `{word}`; supported values: {supported}"))),
            }
        }
        (!transports.is_empty()).then_some(transports)
    }

    fn show(&self, value: &Self::Value) -> Json {
        value.iter().map(|item| TRANSPORTS.name(*item)).collect()
    }

    fn schema(&self) -> Json {
        let names = TRANSPORTS.names.iter().chain(&TRANSPORT_ALIASES);
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        let one = json!({"type": "string", "examples": names});
        json!({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})
    }
}

/// A path of the HTTP port that is not the root.
pub(crate) struct UrlPath;

impl Kind for UrlPath {
    type Value = String;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<String> {
        let text = Text.read(node, spot, problems)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        if text.len() > 1 && text.starts_with('/') && !text.contains("//") && text.bytes().all(plain) {
            return Some(text.trim_end_matches('/').to_owned());
        }
        fail(problems, spot.wrong(node, "a path such as `/ws`"))
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }

    fn schema(&self) -> Json {
        json!({"type": "string", "pattern": "^(/[A-Za-z0-9._~-]+)+/?$"})
    }
}

/// Users of this machine, by name or number: a list, or one text with commas.
pub(crate) struct Users;

impl Kind for Users {
    type Value = Vec<String>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let one = |node: &Node| match &node.value {
            Value::Int(number) => Some(vec![number.to_string()]),
            _ => Some(node.text()?.split(',').map(|name| name.trim().to_owned()).collect()),
        };
        let users: Option<Vec<Vec<String>>> = match &node.value {
            Value::List(items) => items.iter().map(one).collect(),
            _ => one(node).map(|users| vec![users]),
        };
        let users = users.map(|users| users.concat());
        match users.filter(|users| !users.iter().any(|user| user.is_empty() || user.contains(char::is_whitespace))) {
            Some(users) => Some(users),
            None => fail(problems, spot.wrong(node, "a list of users, by name or number")),
        }
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|name| name.as_str().into()).collect())
    }

    fn schema(&self) -> Json {
        let one = json!({"type": ["string", "integer"]});
        json!({"anyOf": [one, {"type": "array", "items": one}]})
    }
}
