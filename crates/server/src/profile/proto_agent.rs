//! The rules of protoAgent.

use http::StatusCode;
use nuncio_protocol::{
    Artifact, ContextId, Error, ErrorKind, MessageId, StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent,
    Value, codec, json, v03,
};

use crate::bind::dispatch::Request;
use crate::engine::Manners;
use crate::present::Style;
use crate::present::proto_agent::{COST, TOOL_CALL, media_type};

/// So much of what goes into a tool is put into words, in characters, and so much of what comes out.
const INPUT_SHOWN: usize = 200;
const OUTPUT_SHOWN: usize = 300;

pub(super) fn manners() -> Manners {
    Manners { style: Style::ProtoAgent, ..Manners::default() }
}

pub(super) fn finish_card(card: &mut Value) {
    card["capabilities"]["stateTransitionHistory"] = false.into();
}

/// Its clients name neither their messages nor, there, the conversation that these belong to.
pub(super) fn mend(request: &mut Request, params: &str) {
    let (Request::Send(request) | Request::Stream(request)) = request else { return };
    let Some(message) = &mut request.message else { return };
    if message.message_id.is_empty() {
        message.message_id = MessageId::fresh();
    }
    if message.context_id.is_empty()
        && message.task_id.is_empty()
        && let Ok(params) = codec::decode::<Value>(params.as_bytes())
        && let Some(context) = params["contextId"].as_str()
    {
        message.context_id = ContextId::from(context);
    }
}

/// What clients of 0.3 are shown instead of metadata: words, data parts, and the bill beside the task.
pub(crate) fn dress(frame: &mut Value) {
    match frame["kind"].as_str() {
        Some("task") => {
            dress_message(&mut frame["status"]["message"]);
            for key in ["history", "artifacts"] {
                let Some(all) = frame.get_mut(key).and_then(Value::as_array_mut) else { continue };
                all.iter_mut().for_each(if key == "history" { dress_message } else { dress_artifact });
            }
            let cost = &frame["metadata"][COST];
            let data: Value = ["usage", "durationMs", "costUsd"]
                .iter()
                .filter_map(|key| Some((*key, cost.get(key)?.clone())))
                .collect();
            if data.as_object().is_some_and(|data| !data.is_empty()) {
                frame["data"] = data;
            }
        }
        Some("message") => dress_message(frame),
        Some("status-update") => dress_message(&mut frame["status"]["message"]),
        Some("artifact-update") => {
            dress_artifact(&mut frame["artifact"]);
            // What is not the whole goes on, from the first piece.
            if frame["lastChunk"] == false {
                frame["append"] = true.into();
            }
        }
        _ => {}
    }
    // A status without a message has none, not an empty one.
    if frame["status"]["message"].is_null()
        && let Some(status) = frame.get_mut("status").and_then(Value::as_object_mut)
    {
        status.shift_remove("message");
    }
}

fn dress_message(message: &mut Value) {
    let call = &message["metadata"][TOOL_CALL];
    if call.is_null() {
        return;
    }
    let (name, id) = (call["name"].as_str().unwrap_or_default(), &call["toolCallId"]);
    let (words, about) = match call["phase"].as_str() {
        Some("started") => (
            format!("🔧 {name}: {}", words(&call["args"], INPUT_SHOWN)),
            json!({ "id": id, "name": name, "input": call["args"], "phase": "start" }),
        ),
        _ => {
            let output = if call["error"].is_null() { &call["result"] } else { &call["error"] };
            let data = json!({ "id": id, "name": name, "output": output, "phase": "end" });
            (format!("✅ {name} → {}", words(output, OUTPUT_SHOWN)), data)
        }
    };
    message["parts"] = json!([{ "kind": "text", "text": words }, data("tool-call-v1", &about)]);
}

fn dress_artifact(artifact: &mut Value) {
    let cost = &artifact["metadata"][COST];
    if cost["usage"].is_null() {
        return;
    }
    let mut bill = cost.clone();
    if let Some(bill) = bill.as_object_mut() {
        bill.shift_remove("success");
    }
    if let Some(parts) = artifact["parts"].as_array_mut() {
        parts.push(data("cost-v1", &bill));
    }
}

fn data(name: &str, value: &Value) -> Value {
    json!({ "kind": "data", "data": value, "metadata": { "mimeType": media_type(name) } })
}

fn words(value: &Value, most: usize) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => String::from_utf8_lossy(&codec::encode(other)).into_owned(),
    };
    text.chars().take(most).collect()
}

/// Writes what a webhook is told: the status, and at the end what was made.
pub(crate) fn write_notification(update: TaskStatusUpdateEvent, made: Option<&Artifact>, out: &mut Vec<u8>) {
    let dressed = |event: &StreamResponse| {
        let mut plain = Vec::new();
        v03::json::write_event(event, &mut plain);
        let mut tree: Value = codec::decode(&plain).unwrap_or_default();
        dress(&mut tree);
        tree
    };
    let mut frame = dressed(&StreamResponse::StatusUpdate(update));
    if let Some(made) = made {
        let whole = TaskArtifactUpdateEvent { artifact: made.clone(), last_chunk: true, ..Default::default() };
        let mut artifact = dressed(&StreamResponse::ArtifactUpdate(whole))["artifact"].take();
        artifact["append"] = false.into();
        artifact["lastChunk"] = true.into();
        frame["artifact"] = artifact;
    }
    codec::encode_into(&frame, out);
}

/// What a caller who is not let in is told.
pub(super) fn refusal(status: StatusCode) -> Value {
    let text = match status {
        StatusCode::UNAUTHORIZED => "Unauthorized: expected 'Authorization: Bearer <token>' or 'X-API-Key: <key>'",
        StatusCode::FORBIDDEN => "Forbidden: these credentials do not reach this far",
        StatusCode::TOO_MANY_REQUESTS => "Too many wrong credentials: try again later",
        _ => "Credentials cannot be checked now: try again later",
    };
    json!({ "detail": text })
}

/// Whether an error says that a task has no webhook, or not this one.
pub(crate) fn is_no_webhook(error: &Error) -> bool {
    error.kind == ErrorKind::TaskNotFound && error.facts.iter().any(|(name, _)| *name == "id")
}

/// A task that is not there is named.
pub(crate) fn error(error: &Error) -> Option<Value> {
    let id = error.facts.iter().find(|(name, _)| *name == "taskId").map(|(_, id)| id);
    match (error.kind, id) {
        (ErrorKind::TaskNotFound, Some(id)) => {
            Some(json!({ "code": error.kind.code(), "message": format!("Task not found: {id}") }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_becomes_a_part_of_the_answer_and_data_of_the_task() {
        let cost = json!({ "usage": { "total_tokens": 7 }, "durationMs": 5, "success": true });
        let mut task = json!({
            "kind": "task",
            "status": { "state": "completed" },
            "artifacts": [{ "parts": [{ "kind": "text", "text": "ab" }], "metadata": { COST: cost } }],
            "metadata": { COST: cost },
        });
        dress(&mut task);
        assert_eq!(task["data"], json!({ "usage": { "total_tokens": 7 }, "durationMs": 5 }));
        assert_eq!(
            task["artifacts"][0]["parts"][1],
            json!({
                "kind": "data",
                "data": { "usage": { "total_tokens": 7 }, "durationMs": 5 },
                "metadata": { "mimeType": "application/vnd.protolabs.cost-v1+json" },
            })
        );
        assert_eq!(task["status"], json!({ "state": "completed" }));
    }

    #[test]
    fn tools_are_put_into_words() {
        let frame = |call: Value| {
            let message = json!({ "kind": "message", "parts": [], "metadata": { TOOL_CALL: call } });
            let mut frame = json!({ "kind": "status-update", "status": { "state": "working", "message": message } });
            dress(&mut frame);
            frame["status"]["message"]["parts"].take()
        };
        let args = json!({ "q": "x".repeat(300) });
        let parts = frame(json!({ "toolCallId": "1", "name": "look", "phase": "started", "args": args }));
        assert!(parts[0]["text"].as_str().unwrap().starts_with("🔧 look: {\"q\":\"xxx"));
        assert_eq!(parts[0]["text"].as_str().unwrap().chars().count(), "🔧 look: ".chars().count() + 200);
        assert_eq!((&parts[1]["data"]["phase"], &parts[1]["data"]["input"]), (&json!("start"), &args));
        let parts = frame(json!({ "toolCallId": "1", "name": "look", "phase": "failed", "error": "no" }));
        assert_eq!((&parts[0]["text"], &parts[1]["data"]["output"]), (&json!("✅ look → no"), &json!("no")));
    }
}
