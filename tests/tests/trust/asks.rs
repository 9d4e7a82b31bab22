//! How JSON-RPC, REST and WebSocket ask for each operation of the matrix, in both versions and in the draft.

use nuncio_tests::raw::{Answer, V1, Wire, request};
use nuncio_tests::{Value, json};

use crate::matrix::{Op, Things};

pub(crate) const HOOK: &str = "http://127.0.0.1:4999/hook";

fn message(op: Op, things: &Things, parts: &Value) -> Value {
    let mut message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": parts });
    match op {
        Op::Continue | Op::Stream => message["taskId"] = json!(things.task),
        Op::Converse => message["contextId"] = json!(things.context),
        _ => message["referenceTaskIds"] = json!([things.task]),
    }
    message
}

pub(crate) fn rpc(wire: &Wire, who: &str, op: Op, things: &Things) -> Option<Answer> {
    Some(wire.post("/", &format!("{V1}{who}"), &call(op, things)?))
}

/// The JSON-RPC request of an operation.
pub(crate) fn call(op: Op, things: &Things) -> Option<String> {
    let (task, tenant) = (&things.task, things.tenant);
    let hook = json!({ "tenant": tenant, "taskId": task, "id": things.hook });
    let send = json!({ "tenant": tenant, "message": message(op, things, &json!([{ "text": "so" }])) });
    let (method, params) = match op {
        Op::Continue | Op::Converse | Op::Refer => ("SendMessage", send),
        Op::Stream => ("SendStreamingMessage", send),
        Op::Get => ("GetTask", json!({ "tenant": tenant, "id": task })),
        Op::List => ("ListTasks", json!({ "tenant": tenant, "contextId": things.context })),
        Op::Subscribe => ("SubscribeToTask", json!({ "tenant": tenant, "id": task })),
        Op::Cancel => ("CancelTask", json!({ "tenant": tenant, "id": task })),
        Op::PushCreate => {
            let config = json!({ "tenant": tenant, "taskId": task, "id": things.hook, "url": HOOK });
            ("CreateTaskPushNotificationConfig", config)
        }
        Op::PushGet => ("GetTaskPushNotificationConfig", hook),
        Op::PushDelete => ("DeleteTaskPushNotificationConfig", hook),
        Op::PushList => ("ListTaskPushNotificationConfigs", json!({ "tenant": tenant, "taskId": task })),
        Op::ExtendedCard => ("GetExtendedAgentCard", json!({ "tenant": tenant })),
        Op::Artifact | Op::ArtifactHead => return None,
    };
    Some(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

/// Sends one request in a frame of WebSocket. Its answers have no status and no headers.
pub(crate) fn socket(wire: &Wire, who: &str, call: String) -> Option<Answer> {
    let mut connection = wire.connect();
    connection.send(format!(
        "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{who}\r\n"
    ));
    let opened = connection.head();
    if opened.status != 101 {
        connection.finish();
        return Some(Answer { body: connection.rest(), ..opened });
    }
    // A whole text, its length in two bytes, masked with nothing.
    let length = u16::try_from(call.len()).expect("a short one").to_be_bytes();
    let mut frame = vec![0x81, 0x80 | 126, length[0], length[1], 0, 0, 0, 0];
    frame.extend(call.into_bytes());
    connection.send(frame);
    // Whoever has not said who he is by then is shown out.
    let mut body = if who.is_empty() { connection.rest() } else { connection.through("\"final\":true") };
    body.drain(..body.iter().position(|byte| *byte == b'{').unwrap_or_default());
    let text = String::from_utf8_lossy(&body).into_owned();
    Some(Answer { status: 200, headers: Vec::new(), body: text.into_bytes() })
}

pub(crate) fn rest(wire: &Wire, who: &str, op: Op, things: &Things) -> Option<Answer> {
    let (task, hook) = (&things.task, &things.hook);
    let send = json!({ "message": message(op, things, &json!([{ "text": "so" }])) }).to_string();
    let hooks = format!("/tasks/{task}/pushNotificationConfigs");
    let (method, path, body) = match op {
        Op::Continue | Op::Converse | Op::Refer => ("POST", "/message:send".into(), send),
        Op::Stream => ("POST", "/message:stream".into(), send),
        Op::Get => ("GET", format!("/tasks/{task}"), String::new()),
        Op::List => ("GET", format!("/tasks?contextId={}", things.context), String::new()),
        Op::Subscribe => ("POST", format!("/tasks/{task}:subscribe"), String::new()),
        Op::Cancel => ("POST", format!("/tasks/{task}:cancel"), String::new()),
        Op::PushCreate => ("POST", hooks, json!({ "id": hook, "url": HOOK }).to_string()),
        Op::PushGet => ("GET", format!("{hooks}/{hook}"), String::new()),
        Op::PushDelete => ("DELETE", format!("{hooks}/{hook}"), String::new()),
        Op::PushList => ("GET", hooks, String::new()),
        Op::Artifact => ("GET", format!("/artifacts/{}/{}", things.filed, things.artifact), String::new()),
        Op::ArtifactHead => ("HEAD", format!("/artifacts/{}/{}", things.filed, things.artifact), String::new()),
        Op::ExtendedCard => ("GET", "/extendedAgentCard".into(), String::new()),
    };
    let tenant = if things.tenant.is_empty() { String::new() } else { format!("/{}", things.tenant) };
    let mut connection = wire.connect();
    connection.send(request(method, &format!("{tenant}{path}"), &format!("{V1}{who}"), &body));
    Some(if method == "HEAD" { connection.head() } else { connection.answer() })
}

pub(crate) fn old_rpc(wire: &Wire, who: &str, op: Op, things: &Things) -> Option<Answer> {
    Some(wire.post("/", who, &old_call(op, things)?))
}

/// The JSON-RPC request of 0.3.
pub(crate) fn old_call(op: Op, things: &Things) -> Option<String> {
    let task = json!({ "id": things.task });
    let mut send = json!({ "message": message(op, things, &json!([{ "kind": "text", "text": "so" }])) });
    send["message"]["kind"] = json!("message");
    send["message"]["role"] = json!("user");
    let hook = json!({ "id": things.task, "pushNotificationConfigId": things.hook });
    let (method, params) = match op {
        Op::Continue | Op::Converse | Op::Refer => ("message/send", send),
        Op::Stream => ("message/stream", send),
        Op::Get => ("tasks/get", task),
        Op::Subscribe => ("tasks/resubscribe", task),
        Op::Cancel => ("tasks/cancel", task),
        Op::PushCreate => {
            let config = json!({ "id": things.hook, "url": HOOK });
            ("tasks/pushNotificationConfig/set", json!({ "taskId": things.task, "pushNotificationConfig": config }))
        }
        Op::PushGet => ("tasks/pushNotificationConfig/get", hook),
        Op::PushDelete => ("tasks/pushNotificationConfig/delete", hook),
        Op::PushList => ("tasks/pushNotificationConfig/list", task),
        Op::ExtendedCard => ("agent/getAuthenticatedExtendedCard", json!({})),
        Op::List | Op::Artifact | Op::ArtifactHead => return None,
    };
    Some(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

pub(crate) fn old_rest(wire: &Wire, who: &str, op: Op, things: &Things) -> Option<Answer> {
    let (task, hook) = (&things.task, &things.hook);
    let mut send = message(op, things, &json!([]));
    send["content"] = json!([{ "text": "so" }]);
    send.as_object_mut()?.remove("parts");
    let send = json!({ "request": send }).to_string();
    let hooks = format!("/v1/tasks/{task}/pushNotificationConfigs");
    let (method, path, body) = match op {
        Op::Continue | Op::Converse => ("POST", "/v1/message:send".into(), send),
        Op::Stream => ("POST", "/v1/message:stream".into(), send),
        Op::Get => ("GET", format!("/v1/tasks/{task}"), String::new()),
        Op::List => ("GET", format!("/v1/tasks?contextId={}", things.context), String::new()),
        Op::Subscribe => ("POST", format!("/v1/tasks/{task}:subscribe"), String::new()),
        Op::Cancel => ("POST", format!("/v1/tasks/{task}:cancel"), String::new()),
        Op::PushGet => ("GET", format!("{hooks}/{hook}"), String::new()),
        Op::PushDelete => ("DELETE", format!("{hooks}/{hook}"), String::new()),
        Op::PushList => ("GET", hooks, String::new()),
        Op::ExtendedCard => ("GET", "/v1/card".into(), String::new()),
        Op::Refer | Op::PushCreate | Op::Artifact | Op::ArtifactHead => return None,
    };
    Some(wire.ask(request(method, &path, who, &body)))
}

/// The draft of 1.0 that one profile speaks at its own paths.
pub(crate) fn draft(wire: &Wire, who: &str, op: Op, things: &Things) -> Option<Answer> {
    let mut request: Value = call(op, things)?.parse().expect("JSON");
    let params = &mut request["params"];
    params.as_object_mut()?.remove("tenant");
    if let Some(message) = params.get_mut("message") {
        message["role"] = json!("user");
    }
    let path = if matches!(op, Op::Stream | Op::Subscribe) { "/a2a/stream" } else { "/a2a" };
    match op {
        // Nobody says there which one it is.
        Op::ExtendedCard => return None,
        Op::PushCreate => {
            request["method"] = json!("SetTaskPushNotificationConfig");
            let config = json!({ "id": things.hook, "url": HOOK });
            request["params"] = json!({ "taskId": things.task, "pushNotificationConfig": config });
        }
        _ => {}
    }
    Some(wire.post(path, who, &request.to_string()))
}
