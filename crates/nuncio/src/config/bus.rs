//! What carries hints between servers that share a store.

use serde_json::{Value as Json, json};

use super::kind::{Kind, fail};
use super::node::Node;
use super::problem::{Problem, Spot};
use super::secret::Secret;
use super::types::Bus;

/// `local`, `postgres`, or one or more Redis servers.
pub(crate) struct BusUrl;

const KNOWN: &str = "local, postgres, redis://… or rediss://… (several with commas between them)";

impl Kind for BusUrl {
    type Value = Bus;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Bus> {
        let Some(text) = node.text() else {
            return fail(problems, spot.wrong(node, format!("one of: {KNOWN}")));
        };
        match text.trim() {
            "local" => Some(Bus::Local),
            "postgres" => Some(Bus::Postgres),
            text => {
                let urls: Vec<&str> = text.split(',').map(str::trim).collect();
                let is_redis = |url: &&str| ["redis://", "rediss://"].iter().any(|scheme| url.starts_with(scheme));
                if !urls.iter().all(is_redis) {
                    // Nothing of it is repeated: it usually carries a password.
                    let message = format!("not the address of a bus; supported values: {KNOWN}");
                    return fail(problems, spot.problem(message));
                }
                Some(Bus::Redis(urls.into_iter().map(|url| Secret(url.to_owned())).collect()))
            }
        }
    }

    fn show(&self, value: &Bus) -> Json {
        match value {
            Bus::Local => "local".into(),
            Bus::Postgres => "postgres".into(),
            Bus::Redis(urls) => urls.iter().map(ToString::to_string).collect::<Vec<_>>().join(",").into(),
        }
    }

    fn schema(&self) -> Json {
        json!({"type": "string", "pattern": "^(local|postgres|rediss?://.+)$"})
    }
}
