//! What clients of the draft ask for. The tree is turned into that of 1.0, and read as such.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::STATES;
use crate::codec::{self, Object, Value, decode_base64};
use crate::error::Error;
use crate::{ContextId, PushId, SendMessageRequest, TaskId, TaskPushNotificationConfig, TaskState, v03};

/// The size of a page when the client does not say.
const DEFAULT_PAGE: i64 = 20;
/// The largest page.
const LARGEST_PAGE: i64 = 100;

/// Which tasks are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Only of this conversation.
    pub context_id: ContextId,
    /// Only in one of these states; all, if there is none.
    pub states: Vec<TaskState>,
    /// At most so many.
    pub limit: i32,
    /// The last task of the page before: the time of its status in microseconds, and its id.
    pub after: Option<(i64, TaskId)>,
}

/// A task, and perhaps one of its webhooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// The task.
    pub task: TaskId,
    /// The webhook.
    pub config: PushId,
}

fn tree(json: &str) -> Result<Value, Error> {
    let tree: Value = codec::decode(json.as_bytes())?;
    if tree.is_object() { Ok(tree) } else { Err(Error::invalid("params", "must be an object")) }
}

/// Reads a tree again, so that a mistake is found with its place.
fn up<T: DeserializeOwned>(tree: &Value) -> Result<T, Error> {
    Ok(codec::decode(&codec::encode(tree))?)
}

/// Reads what a send asks for.
pub fn read_send(json: &str) -> Result<SendMessageRequest, Error> {
    let mut tree = tree(json)?;
    message(&mut tree["message"]);
    if let Some(configuration) = tree.get_mut("configuration").and_then(Value::as_object_mut) {
        // As 0.3 has it: whoever does not say so waits.
        if let Some(blocking) = configuration.get("blocking").and_then(Value::as_bool) {
            configuration.insert("returnImmediately".into(), (!blocking).into());
        }
        if let Some(push) = configuration.remove("pushNotificationConfig") {
            let config = v03::json::read_push_config(&codec::encode(&push)).map_err(Error::from)?;
            configuration.insert("taskPushNotificationConfig".into(), codec::to_value(&config));
        }
    }
    up(&tree)
}

fn message(message: &mut Value) {
    match message["role"].as_str() {
        Some("user") => message["role"] = "ROLE_USER".into(),
        Some("agent") => message["role"] = "ROLE_AGENT".into(),
        _ => {}
    }
    if let Some(parts) = message.get_mut("parts").and_then(Value::as_array_mut) {
        parts.iter_mut().filter_map(Value::as_object_mut).for_each(part);
    }
}

/// `file` becomes `url` or `raw`, `data` comes out of its object.
fn part(part: &mut Object) {
    if let Some(Value::Object(mut file)) = part.remove("file") {
        for (outer, inner, name) in [("fileWithUri", "uri", "url"), ("fileWithBytes", "bytes", "raw")] {
            let mut found = match file.remove(outer) {
                Some(Value::Object(found)) => found,
                Some(value) => Object::from_iter([(inner.to_owned(), value)]),
                None => Object::from_iter(file.remove(inner).map(|value| (inner.to_owned(), value))),
            };
            let Some(content) = found.remove(inner) else { continue };
            part.insert(name.into(), content);
            for (from, to) in [("mimeType", "mediaType"), ("name", "filename")] {
                if let Some(value) = found.remove(from).or_else(|| file.remove(from)) {
                    part.insert(to.into(), value);
                }
            }
        }
        if let Some(media_type) = file.remove("mediaType") {
            part.entry("mediaType").or_insert(media_type);
        }
    }
    if let Some(Value::Object(data)) = part.get_mut("data")
        && data.len() == 1
        && let Some(value) = data.get_mut("data").map(Value::take)
    {
        part.insert("data".into(), value);
    }
}

/// Reads which tasks are asked for.
pub fn read_list(json: &str) -> Result<Listing, Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Wire {
        context_id: ContextId,
        #[serde(alias = "status")]
        state: Option<OneOrMany>,
        #[serde(alias = "pageToken")]
        cursor: Option<String>,
        #[serde(alias = "pageSize")]
        limit: Option<i64>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    let wire: Wire = up(&tree(json)?)?;
    let limit = wire.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(Error::invalid("limit", "must be from 1 to 100"));
    }
    let names = match wire.state {
        None => Vec::new(),
        Some(OneOrMany::One(name)) => vec![name],
        Some(OneOrMany::Many(names)) => names,
    };
    let states: Option<Vec<TaskState>> = names.iter().map(|name| state(name)).collect();
    let states = states.ok_or_else(|| Error::invalid("state", "holds a name that is no state of a task"))?;
    let after = wire.cursor.filter(|cursor| !cursor.is_empty()).map(|cursor| {
        parse_cursor(&cursor).ok_or_else(|| Error::invalid("cursor", "is not one that this server made"))
    });
    let limit = i32::try_from(limit).unwrap_or_default();
    Ok(Listing { context_id: wire.context_id, states, limit, after: after.transpose()? })
}

fn state(name: &str) -> Option<TaskState> {
    let known = STATES.iter().find(|(known, _)| *known == name).map(|(_, state)| *state);
    known.or_else(|| (name == "canceled").then_some(TaskState::Canceled)).or_else(|| TaskState::from_name(name))
}

/// `base64(milliseconds:task)`.
fn parse_cursor(cursor: &str) -> Option<(i64, TaskId)> {
    let bytes = decode_base64(cursor)?;
    let (time, task) = str::from_utf8(&bytes).ok()?.split_once(':')?;
    let micros = time.parse::<i64>().ok()?.checked_mul(1000)?;
    (!task.is_empty()).then(|| (micros, task.into()))
}

/// Reads a request that only names something: `id` is the webhook beside a `taskId`, else the task.
pub fn read_names(json: &str) -> Result<Names, Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Wire {
        task_id: TaskId,
        id: String,
        #[serde(alias = "configId")]
        push_notification_config_id: PushId,
    }
    let wire: Wire = up(&tree(json)?)?;
    if wire.task_id.is_empty() {
        return Ok(Names { task: wire.id.into(), config: wire.push_notification_config_id });
    }
    let config = match wire.push_notification_config_id {
        id if id.is_empty() && wire.id != wire.task_id.as_str() => wire.id.into(),
        id => id,
    };
    Ok(Names { task: wire.task_id, config })
}

/// Reads a webhook to register: nested, with a list of schemes, as in 0.3.
pub fn read_push_config(json: &str) -> Result<TaskPushNotificationConfig, Error> {
    v03::json::read_push_set_params(json)
}
