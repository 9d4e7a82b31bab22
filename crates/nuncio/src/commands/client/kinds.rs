//! Kinds of values that only the client's settings have.

use std::time::Duration;

use nuncio_protocol::{Metadata, TaskState, Value as Json, json};

use super::routes::{self, Route};
use crate::config::Secret;
use crate::config::kind::{Kind, Text, fail};
use crate::config::node::{Node, Value};
use crate::config::problem::{Origin, Problem, Spot};

/// Longer waits are mistakes, and would overflow the clock.
const LONGEST: f64 = 100.0 * 365.0 * 24.0 * 3600.0;

/// Text of any characters that no message may show.
pub(super) struct Password;

impl Kind for Password {
    type Value = Secret;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Secret> {
        match node.text() {
            Some("") => fail(problems, spot.problem("it is empty; give it a value or leave it out")),
            Some(text) => Some(Secret(text.to_owned())),
            None => fail(problems, spot.problem(format!("expected text in quotes, found {}", node.found_secret()))),
        }
    }

    fn show(&self, value: &Secret) -> Json {
        value.to_string().into()
    }

    fn schema(&self) -> Json {
        Text.schema()
    }
}

/// Seconds, also broken ones; a unit is fine too.
pub(super) struct Seconds;

impl Kind for Seconds {
    type Value = Duration;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Duration> {
        let seconds = match &node.value {
            Value::Int(value) => value.to_string().parse().ok(),
            Value::Float(value) => Some(*value),
            Value::Text(text) | Value::Loose(text) => seconds(text.trim()),
            _ => None,
        };
        match seconds.filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST) {
            Some(seconds) => Some(Duration::from_secs_f64(seconds)),
            None => fail(problems, spot.wrong(node, "seconds, such as 30 or 2.5, or a duration such as `10m`")),
        }
    }

    fn show(&self, value: &Duration) -> Json {
        value.as_secs_f64().into()
    }

    fn schema(&self) -> Json {
        json!({"type": ["number", "string"]})
    }
}

fn seconds(text: &str) -> Option<f64> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0), ("", 1.0)];
    let (number, scale) = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    Some(number.trim().parse::<f64>().ok()? * scale)
}

/// A whole number between two limits.
pub(super) struct Number {
    pub(super) min: i32,
    pub(super) max: i32,
}

impl Kind for Number {
    type Value = i32;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<i32> {
        let number = match &node.value {
            Value::Int(value) => i32::try_from(*value).ok(),
            Value::Loose(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number.filter(|number| (self.min..=self.max).contains(number)) {
            Some(number) => Some(number),
            None => fail(problems, spot.wrong(node, format!("a number from {} to {}", self.min, self.max))),
        }
    }

    fn show(&self, value: &i32) -> Json {
        (*value).into()
    }

    fn schema(&self) -> Json {
        json!({"type": "integer", "minimum": self.min, "maximum": self.max})
    }
}

/// The state of a task, by its name on the wire or the short form of it.
pub(super) struct State;

const STATES: [TaskState; 8] = [
    TaskState::Submitted,
    TaskState::Working,
    TaskState::InputRequired,
    TaskState::AuthRequired,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::Rejected,
];

impl Kind for State {
    type Value = TaskState;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<TaskState> {
        let text = Text.read(node, spot, problems)?;
        let short = text.trim().to_lowercase().replace('_', "-");
        let short = short.strip_prefix("task-state-").unwrap_or(&short);
        let found = STATES.into_iter().find(|state| state_name(*state) == short);
        found.or_else(|| {
            let names: Vec<String> = STATES.into_iter().map(state_name).collect();
            fail(problems, spot.problem(format!("unknown state `{text}`; supported values: {}", names.join(", "))))
        })
    }

    fn show(&self, value: &TaskState) -> Json {
        value.name().into()
    }

    fn schema(&self) -> Json {
        Text.schema()
    }
}

/// `input-required` for `TASK_STATE_INPUT_REQUIRED`.
pub(crate) fn state_name(state: TaskState) -> String {
    state.name().trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}

/// How a task ended that did not end well; nothing for one that did, or goes on.
pub(crate) fn bad_end(state: TaskState) -> Option<&'static str> {
    match state {
        TaskState::Failed => Some("the task failed"),
        TaskState::Rejected => Some("the agent rejected the task"),
        TaskState::Canceled => Some("the task was canceled"),
        _ => None,
    }
}

/// A list of words, or one.
pub(super) struct Words;

impl Kind for Words {
    type Value = Vec<String>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Vec<String>> {
        match &node.value {
            Value::List(items) => items.iter().map(|item| Text.read(item, spot, problems)).collect(),
            _ => Text.read(node, spot, problems).map(|text| routes::words(&text)),
        }
    }

    fn absent(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn show(&self, value: &Vec<String>) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        json!({"type": ["array", "string"], "items": {"type": "string"}})
    }
}

/// A mapping, or the text of a JSON object.
pub(super) struct JsonObject;

impl Kind for JsonObject {
    type Value = Metadata;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Metadata> {
        let value = match node.text() {
            Some(text) => nuncio_protocol::codec::decode::<Json>(text.as_bytes()).ok(),
            None => Some(node.to_json()),
        };
        match value {
            Some(Json::Object(object)) => Some(object.into_iter().collect()),
            _ => fail(problems, spot.wrong(node, "a JSON object such as `{\"key\": \"value\"}`")),
        }
    }

    fn absent(&self) -> Option<Metadata> {
        Some(Metadata::new())
    }

    fn show(&self, value: &Metadata) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        json!({"type": "object"})
    }
}

/// Routes: texts in the form of `--route`, or mappings.
pub(super) struct RouteList;

impl Kind for RouteList {
    type Value = Vec<Route>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Vec<Route>> {
        let items = match &node.value {
            Value::List(items) => items.as_slice(),
            Value::Null => &[],
            _ => std::slice::from_ref(node),
        };
        let mut known: Vec<Route> = Vec::new();
        let before = problems.len();
        for (index, item) in items.iter().enumerate() {
            let spot = match spot.origin {
                Origin::Flag => Spot { key: "route".into(), ..spot.clone() },
                _ => spot.item(index, item.line),
            };
            let read = match &item.value {
                Value::Map(_) => routes::from_json(&item.to_json()),
                _ => Text.read(item, &spot, problems).map_or_else(|| Err(String::new()), |text| routes::parse(&text)),
            };
            match read {
                Ok(route) if known.iter().any(|other| other.name == route.name) => {
                    problems
                        .push(spot.problem(format!("there are two routes named `{}`; names must differ", route.name)));
                }
                Ok(route) => known.push(route),
                Err(message) if message.is_empty() => {}
                Err(message) => problems.push(spot.problem(message)),
            }
        }
        (problems.len() == before).then_some(known)
    }

    fn absent(&self) -> Option<Vec<Route>> {
        Some(Vec::new())
    }

    fn show(&self, value: &Vec<Route>) -> Json {
        json!(value)
    }

    fn schema(&self) -> Json {
        json!({"type": "array", "items": {"type": ["string", "object"]}})
    }
}
