//! What clients of the draft are told. The tree of 1.0 is turned into that of the draft.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::STATES;
use crate::codec::{self, Object, Value, encode_base64, json};
use crate::{
    Artifact, ListTasksResponse, SendMessageResponse, StreamResponse, Task, TaskId, TaskPushNotificationConfig,
    TaskState, TaskStatus, v03,
};

/// Writes a task.
pub fn write_task(value: &Task, out: &mut Vec<u8>) {
    codec::encode_into(&task(value), out);
}

/// Writes the answer to a send: the task under both names that the draft has for its id, or a message.
pub fn write_sent(sent: &SendMessageResponse, out: &mut Vec<u8>) {
    let tree = match sent {
        SendMessageResponse::Task(sent) => {
            let mut tree = task(sent);
            tree["taskId"] = sent.id.as_str().into();
            tree
        }
        SendMessageResponse::Message(sent) => message(codec::to_value(sent)),
    };
    codec::encode_into(&tree, out);
}

/// Writes a frame of a stream. The status that ends one is `final`.
pub fn write_event(event: &StreamResponse, out: &mut Vec<u8>) {
    let frame = match event {
        StreamResponse::Task(task) => {
            let mut frame = json!({ "taskId": task.id, "contextId": task.context_id, "status": status(&task.status) });
            if !task.artifacts.is_empty() {
                frame["artifacts"] = task.artifacts.iter().map(artifact).collect();
            }
            frame
        }
        StreamResponse::Message(said) => message(codec::to_value(said)),
        StreamResponse::StatusUpdate(update) => {
            let mut frame = json!({
                "type": "status",
                "taskId": update.task_id,
                "contextId": update.context_id,
                "status": status(&update.status),
            });
            if update.status.state.is_terminal() || update.status.state == TaskState::InputRequired {
                frame["final"] = true.into();
            }
            with_metadata(frame, &update.metadata)
        }
        StreamResponse::ArtifactUpdate(update) => {
            let mut frame = json!({
                "type": "artifact",
                "taskId": update.task_id,
                "contextId": update.context_id,
                "artifact": artifact(&update.artifact),
            });
            for (name, is_so) in [("append", update.append), ("lastChunk", update.last_chunk)] {
                if is_so {
                    frame[name] = true.into();
                }
            }
            with_metadata(frame, &update.metadata)
        }
    };
    codec::encode_into(&frame, out);
}

fn with_metadata(mut frame: Value, metadata: &Object) -> Value {
    if !metadata.is_empty() {
        frame["metadata"] = Value::Object(metadata.clone());
    }
    frame
}

/// Writes a page of tasks. `next` is the cursor for the one after it, if there is one.
pub fn write_list(page: &ListTasksResponse, next: Option<&str>, out: &mut Vec<u8>) {
    let mut tree = json!({ "tasks": page.tasks.iter().map(task).collect::<Vec<_>>() });
    if let Some(next) = next {
        tree["nextCursor"] = next.into();
    }
    codec::encode_into(&tree, out);
}

/// The cursor behind a task whose status is of this time.
pub fn cursor(micros: i64, task: &TaskId) -> String {
    encode_base64(format!("{}:{task}", micros.div_euclid(1000)).as_bytes())
}

/// Writes a webhook.
pub fn write_push_config(config: &TaskPushNotificationConfig, out: &mut Vec<u8>) {
    v03::json::write_push_config(config, out);
}

/// Writes the webhooks of a task.
pub fn write_push_configs(configs: &[TaskPushNotificationConfig], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"configs\":");
    v03::json::write_push_configs(configs, out);
    out.push(b'}');
}

/// Writes what a webhook is told: where the task stands, and at its end what it has made.
pub fn write_notification(task: &TaskId, now: &TaskStatus, made: Option<&Artifact>, out: &mut Vec<u8>) {
    let mut tree = json!({ "taskId": task, "status": status(now) });
    if let Some(made) = made {
        tree["artifact"] = artifact(made);
    }
    codec::encode_into(&tree, out);
}

fn task(value: &Task) -> Value {
    let mut tree = codec::to_value(value);
    tree["status"] = status(&value.status);
    if let Some(artifacts) = tree.get_mut("artifacts") {
        *artifacts = value.artifacts.iter().map(artifact).collect();
    }
    if let Some(Value::Array(history)) = tree.get_mut("history") {
        history.iter_mut().for_each(|said| *said = message(said.take()));
    }
    tree
}

fn status(value: &TaskStatus) -> Value {
    let mut tree = codec::to_value(value);
    let name = STATES.iter().find(|(_, state)| *state == value.state).map_or("unknown", |(name, _)| name);
    tree["state"] = name.into();
    if let Some(said) = tree.get_mut("message") {
        *said = message(said.take());
    }
    tree
}

fn message(mut tree: Value) -> Value {
    tree["role"] = if tree["role"] == "ROLE_AGENT" { "agent".into() } else { "user".into() };
    parts(&mut tree);
    tree
}

fn artifact(value: &Artifact) -> Value {
    let mut tree = codec::to_value(value);
    parts(&mut tree);
    tree
}

fn parts(tree: &mut Value) {
    if let Some(parts) = tree.get_mut("parts").and_then(Value::as_array_mut) {
        parts.iter_mut().filter_map(Value::as_object_mut).for_each(part);
    }
}

fn part(part: &mut Object) {
    if let Some(data) = part.get_mut("data").map(Value::take) {
        part.insert("data".into(), json!({ "data": data }));
    }
    for (name, outer, inner) in [("url", "fileWithUri", "uri"), ("raw", "fileWithBytes", "bytes")] {
        let Some(content) = part.shift_remove(name) else { continue };
        let mut file = json!({ outer: { inner: content } });
        if let Some(media_type) = part.shift_remove("mediaType") {
            file[outer]["mimeType"] = media_type.clone();
            file["mediaType"] = media_type;
        }
        part.insert("file".into(), file);
    }
}

/// An error about an extension that the client must name: which ones it must, and which it did.
pub struct ExtensionRequired<'a> {
    /// Those that the agent requires.
    pub required: Vec<&'a str>,
    /// Those that the client named.
    pub provided: Vec<&'a str>,
}

impl Serialize for ExtensionRequired<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(3))?;
        map.serialize_entry("code", &crate::ErrorKind::ExtensionSupportRequired.code())?;
        map.serialize_entry("message", "Extension support required")?;
        map.serialize_entry("data", &json!({ "required": self.required, "provided": self.provided }))?;
        map.end()
    }
}
