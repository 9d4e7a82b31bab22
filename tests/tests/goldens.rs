//! What goes over the wire, word by word: every operation and every error, over both bindings and in both
//! versions. The snapshots are the manual; ids and times in them are replaced by stable names.

#![allow(clippy::panic)] // that is how tests fail

use std::fmt::Write as _;

use nuncio_tests::raw::{Answer, V1, Wire, request, until};
use nuncio_tests::{Value, json};

/// Requests and answers as they were, with stable names for what differs from run to run.
struct Transcript<'a> {
    wire: &'a Wire,
    text: String,
    ids: Vec<String>,
}

impl<'a> Transcript<'a> {
    fn of(wire: &'a Wire) -> Self {
        Self { wire, text: String::new(), ids: Vec::new() }
    }

    /// One exchange under a title.
    fn ask(&mut self, title: &str, request: &str) -> Answer {
        let answer = self.wire.ask(request);
        let _ = write!(self.text, "\n## {title}\n\n");
        for line in request.trim_end().lines().filter(|line| !line.is_empty()) {
            if !line.starts_with("Host: ") && !line.starts_with("Connection: ") && !line.starts_with("Content-Length: ")
            {
                let line = self.stable(line);
                let _ = writeln!(self.text, "> {line}");
            }
        }
        let _ = writeln!(self.text, "< {}", answer.status);
        for (name, value) in &answer.headers {
            // Lengths are checked by reading the body; the others are those of any HTTP server.
            if !matches!(name.as_str(), "date" | "content-length" | "connection" | "transfer-encoding") {
                let value = self.stable(value);
                let _ = writeln!(self.text, "< {name}: {value}");
            }
        }
        for line in answer.text().lines() {
            let line = self.stable(line);
            let _ = writeln!(self.text, "{}", format!("< {line}").trim_end());
        }
        answer
    }

    fn get(&mut self, title: &str, path: &str, headers: &str) -> Answer {
        self.ask(title, &request("GET", path, headers, ""))
    }

    fn post(&mut self, title: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.ask(title, &request("POST", path, &format!("Content-Type: application/json\r\n{headers}"), body))
    }

    /// JSON-RPC of 1.0, or of 0.3 where the name has a slash.
    fn rpc(&mut self, title: &str, method: &str, params: &Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let answer = self.post(title, "/", if method.contains('/') { "" } else { V1 }, &body.to_string());
        let streams = answer.header("content-type") == Some("text/event-stream");
        let answers = if streams { answer.events() } else { vec![answer.json()] };
        for one in answers {
            assert_eq!((&one["jsonrpc"], &one["id"]), (&json!("2.0"), &json!(7)), "{title}");
        }
        answer
    }

    /// Replaces ids by the order in which they were seen first, and times.
    fn stable(&mut self, line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            if let Some(id) = rest.get(..36).filter(|text| is_uuid(text)) {
                let seen = self.ids.iter().position(|known| known == id);
                let n = seen.unwrap_or_else(|| {
                    self.ids.push(id.to_owned());
                    self.ids.len() - 1
                });
                let _ = write!(out, "<id {}>", n + 1);
                rest = &rest[36..];
            } else if let Some(time) = rest.get(..24).filter(|text| is_time(text) && !text.contains("T00:00")) {
                out.push_str("<time>");
                rest = &rest[time.len()..];
            } else {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        let out = out.replace(&self.wire.address.to_string(), "<address>");
        // A page token begins with a time.
        match out.split_once("\"nextPageToken\":\"") {
            Some((before, after)) if !after.starts_with('"') => {
                let (_, after) = after.split_once('"').expect("a token ends");
                format!("{before}\"nextPageToken\":\"<token>\"{after}")
            }
            _ => out,
        }
    }

    #[track_caller]
    fn check(self, name: &str) {
        self.wire.assert_sound();
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, self.text.trim()));
    }
}

fn is_uuid(text: &str) -> bool {
    let good = |(i, b): (usize, u8)| if [8, 13, 18, 23].contains(&i) { b == b'-' } else { b.is_ascii_hexdigit() };
    text.len() == 36 && text.bytes().enumerate().all(good)
}

/// `2026-01-02T03:04:05.678Z`
fn is_time(text: &str) -> bool {
    let shape = |(b, like): (u8, u8)| if like == b'0' { b.is_ascii_digit() } else { b == like };
    text.len() == 24 && text.bytes().zip(*b"0000-00-00T00:00:00.000Z").all(shape)
}

fn text_v1(text: &str) -> Value {
    json!({ "message": { "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

fn text_v03(text: &str) -> Value {
    json!({ "message": { "kind": "message", "messageId": "m-1", "role": "user",
                         "parts": [{ "kind": "text", "text": text }] } })
}

fn on_task(mut params: Value, task: &str) -> Value {
    params["message"]["taskId"] = task.into();
    params
}

fn id_of(task: &Value) -> String {
    task["id"].as_str().unwrap_or_else(|| panic!("no id in {task}")).to_owned()
}

/// A task that has completed.
fn finished(wire: &Wire) -> String {
    id_of(&wire.rpc("SendMessage", &text_v1("done"))["result"]["task"])
}

/// A task that works until it is canceled.
fn held(wire: &Wire) -> String {
    let mut params = text_v1("hold");
    params["configuration"] = json!({ "returnImmediately": true });
    let id = id_of(&wire.rpc("SendMessage", &params)["result"]["task"]);
    until("the task works", || {
        wire.rpc("GetTask", &json!({ "id": id }))["result"]["status"]["state"] == "TASK_STATE_WORKING"
    });
    id
}

/// A task that waits for input.
fn asking(wire: &Wire) -> String {
    id_of(&wire.rpc("SendMessage", &text_v1("ask Which colour?"))["result"]["task"])
}

const PUSH_V1: &str = "http://127.0.0.1:9/hook";

#[test]
fn jsonrpc_v1() {
    let wire = Wire::start("");
    let mut t = Transcript::of(&wire);
    let task = id_of(&t.rpc("SendMessage", "SendMessage", &text_v1("hello")).json()["result"]["task"]);
    t.rpc("SendMessage, answered with a message", "SendMessage", &text_v1("message hi"));
    let params = json!({ "message": text_v1("hello")["message"], "configuration": { "historyLength": 0 } });
    t.rpc("SendMessage without history", "SendMessage", &params);
    t.rpc("SendStreamingMessage", "SendStreamingMessage", &text_v1("stream 3"));
    t.rpc("SendStreamingMessage, answered with a message", "SendStreamingMessage", &text_v1("message hi"));
    t.rpc("SendStreamingMessage that asks", "SendStreamingMessage", &text_v1("ask Which colour?"));
    t.rpc("SendStreamingMessage that fails", "SendStreamingMessage", &text_v1("fail on purpose"));
    t.rpc("GetTask", "GetTask", &json!({ "id": task }));
    t.rpc("GetTask without history", "GetTask", &json!({ "id": task, "historyLength": 0 }));
    t.rpc("ListTasks", "ListTasks", &json!({ "pageSize": 1 }));
    t.rpc("ListTasks, nothing found", "ListTasks", &json!({ "contextId": "none" }));
    let held = held(&wire);
    t.rpc("CancelTask", "CancelTask", &json!({ "id": held }));
    t.rpc("CancelTask again", "CancelTask", &json!({ "id": held }));
    let asking = asking(&wire);
    subscribed(&mut t, &wire, "SubscribeToTask", &asking, |t, title| {
        t.rpc(title, "SubscribeToTask", &json!({ "id": asking }));
    });
    t.rpc(
        "CreateTaskPushNotificationConfig",
        "CreateTaskPushNotificationConfig",
        &json!({ "taskId": task, "url": PUSH_V1 }),
    );
    t.rpc("GetTaskPushNotificationConfig", "GetTaskPushNotificationConfig", &json!({ "taskId": task, "id": "p" }));
    t.rpc("ListTaskPushNotificationConfigs", "ListTaskPushNotificationConfigs", &json!({ "taskId": task }));
    t.rpc(
        "DeleteTaskPushNotificationConfig",
        "DeleteTaskPushNotificationConfig",
        &json!({ "taskId": task, "id": "p" }),
    );
    t.rpc("GetExtendedAgentCard", "GetExtendedAgentCard", &json!({}));
    t.check("jsonrpc-1.0");
}

/// Shows a subscription to a task that asks, whose end another caller brings about meanwhile.
fn subscribed(
    t: &mut Transcript<'_>,
    wire: &Wire,
    title: &str,
    task: &str,
    subscribe: impl Fn(&mut Transcript<'_>, &str),
) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("someone follows", || wire.metric("nuncio_subscribers") > 0.0);
            wire.rpc("SendMessage", &on_task(text_v1("blue"), task));
        });
        subscribe(t, title);
    });
}

#[test]
fn jsonrpc_v1_errors() {
    let wire = Wire::start("");
    let mut t = Transcript::of(&wire);
    let (task, missing) = (finished(&wire), json!({ "id": "missing" }));
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        t.rpc(&format!("Task not found: {method}"), method, &missing);
    }
    t.rpc("Task not found: SendMessage", "SendMessage", &on_task(text_v1("more"), "missing"));
    t.rpc("Task not cancelable", "CancelTask", &json!({ "id": task }));
    let mut params = text_v1("hello");
    params["configuration"] = json!({ "taskPushNotificationConfig": { "url": PUSH_V1 } });
    t.rpc("Push notifications not supported: inline", "SendMessage", &params);
    t.rpc("Unsupported operation: a message to a finished task", "SendMessage", &on_task(text_v1("more"), &task));
    t.rpc("Unsupported operation: the same as a stream", "SendStreamingMessage", &on_task(text_v1("more"), &task));
    t.rpc("Unsupported operation: to follow a finished task", "SubscribeToTask", &json!({ "id": task }));
    t.ask("Content type", &request("POST", "/", "Content-Type: text/plain\r\nA2A-Version: 1.0\r\n", "{}"));
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}"#;
    t.post("Version not supported", "/", "A2A-Version: 99.0\r\n", call);
    t.post("Version missing", "/", "", call);
    t.post("Parse error", "/", V1, r#"{"jsonrpc":"2.0","id":7,"#);
    t.post("Invalid request: no version", "/", V1, r#"{"id":7,"method":"GetTask"}"#);
    t.post("Invalid request: no method", "/", V1, r#"{"jsonrpc":"2.0","id":7}"#);
    t.post("Invalid request: an id of the wrong type", "/", V1, r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#);
    t.post("Invalid request: a batch", "/", V1, r#"[{"jsonrpc":"2.0","id":7,"method":"GetTask"}]"#);
    t.rpc("Method not found", "NoSuchMethod", &json!({}));
    t.rpc("Invalid params: several fields", "SendMessage", &json!({ "message": { "parts": [] } }));
    t.rpc(
        "Invalid params: a wrong type",
        "SendMessage",
        &json!({ "message": { "messageId": "m", "role": 1, "parts": 5 } }),
    );
    t.rpc("Invalid params: no object", "GetTask", &json!([1]));
    t.rpc("Invalid params: page size", "ListTasks", &json!({ "pageSize": 101 }));
    t.rpc("Invalid params: page token", "ListTasks", &json!({ "pageToken": "x" }));
    t.check("jsonrpc-1.0-errors");
}

#[test]
fn jsonrpc_v03() {
    let wire = Wire::start("");
    let mut t = Transcript::of(&wire);
    let task = id_of(&t.rpc("message/send", "message/send", &text_v03("hello")).json()["result"]);
    t.rpc("message/send, answered with a message", "message/send", &text_v03("message hi"));
    t.rpc("message/stream", "message/stream", &text_v03("stream 3"));
    t.rpc("message/stream, answered with a message", "message/stream", &text_v03("message hi"));
    t.rpc("message/stream that asks", "message/stream", &text_v03("ask Which colour?"));
    t.rpc("tasks/get", "tasks/get", &json!({ "id": task }));
    t.rpc("tasks/get without history", "tasks/get", &json!({ "id": task, "historyLength": 0 }));
    let held = held(&wire);
    t.rpc("tasks/cancel", "tasks/cancel", &json!({ "id": held }));
    t.rpc("tasks/resubscribe to a finished task", "tasks/resubscribe", &json!({ "id": task }));
    let asking = asking(&wire);
    t.rpc("tasks/resubscribe to one that waits for input", "tasks/resubscribe", &json!({ "id": asking }));
    let push = json!({ "taskId": task, "pushNotificationConfig": { "url": PUSH_V1 } });
    t.rpc("tasks/pushNotificationConfig/set", "tasks/pushNotificationConfig/set", &push);
    t.rpc("tasks/pushNotificationConfig/get", "tasks/pushNotificationConfig/get", &json!({ "id": task }));
    t.rpc("tasks/pushNotificationConfig/list", "tasks/pushNotificationConfig/list", &json!({ "id": task }));
    let push = json!({ "id": task, "pushNotificationConfigId": "p" });
    t.rpc("tasks/pushNotificationConfig/delete", "tasks/pushNotificationConfig/delete", &push);
    t.rpc("agent/getAuthenticatedExtendedCard", "agent/getAuthenticatedExtendedCard", &json!({}));
    t.check("jsonrpc-0.3");
}

#[test]
fn jsonrpc_v03_errors() {
    let wire = Wire::start("");
    let mut t = Transcript::of(&wire);
    let (task, missing) = (finished(&wire), json!({ "id": "missing" }));
    for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
        t.rpc(&format!("Task not found: {method}"), method, &missing);
    }
    t.rpc("Task not cancelable", "tasks/cancel", &json!({ "id": task }));
    let mut params = text_v03("hello");
    params["configuration"] = json!({ "pushNotificationConfig": { "url": PUSH_V1 } });
    t.rpc("Push notifications not supported: inline", "message/send", &params);
    t.rpc("Unsupported operation: a message to a finished task", "message/send", &on_task(text_v03("more"), &task));
    t.ask("Content type", &request("POST", "/", "Content-Type: text/plain\r\n", "{}"));
    let call = r#"{"jsonrpc":"2.0","id":"q","method":"tasks/get","params":{"id":"x"}}"#;
    t.post("Version not supported", "/", "A2A-Version: 99.0\r\n", call);
    t.post("Version of the header and of the method differ", "/", V1, call);
    t.post("Parse error", "/", "", r#"{"jsonrpc":"2.0","id":7,"#);
    t.post("Invalid request", "/", "", r#"{"jsonrpc":"1.0","id":7,"method":"tasks/get"}"#);
    t.rpc("Method not found", "tasks/list", &json!({}));
    t.rpc("Invalid params: no id", "tasks/get", &json!({}));
    t.rpc(
        "Invalid params: no parts",
        "message/send",
        &json!({ "message": { "messageId": "m", "role": "user", "parts": [] } }),
    );
    t.rpc(
        "Invalid params: an unknown role",
        "message/send",
        &json!({ "message": { "messageId": "m", "role": "king", "parts": [{ "kind": "text", "text": "x" }] } }),
    );
    t.check("jsonrpc-0.3-errors");
}

#[test]
fn rest_v1() {
    let wire = Wire::start("");
    let mut t = Transcript::of(&wire);
    let hello = text_v1("hello").to_string();
    let task = id_of(&t.post("Send", "/message:send", V1, &hello).json()["task"]);
    t.post("Send, answered with a message", "/message:send", V1, &text_v1("message hi").to_string());
    t.post("Stream", "/message:stream", V1, &text_v1("stream 3").to_string());
    t.post("Stream, answered with a message", "/message:stream", V1, &text_v1("message hi").to_string());
    t.get("Get", &format!("/tasks/{task}"), V1);
    t.get("Get without history", &format!("/tasks/{task}?historyLength=0"), V1);
    t.get(
        "Get as application/a2a+json",
        &format!("/tasks/{task}"),
        "A2A-Version: 1.0\r\nAccept: application/a2a+json\r\n",
    );
    t.get("List", "/tasks?pageSize=1&status=TASK_STATE_COMPLETED&includeArtifacts=true", V1);
    t.get("List, nothing found", "/tasks?contextId=none", V1);
    let held = held(&wire);
    t.post("Cancel", &format!("/tasks/{held}:cancel"), V1, "");
    let asking = asking(&wire);
    subscribed(&mut t, &wire, "Subscribe", &asking, |t, title| {
        t.post(title, &format!("/tasks/{asking}:subscribe"), V1, "");
    });
    let path = format!("/tasks/{task}/pushNotificationConfigs");
    t.post("Push create", &path, V1, &json!({ "url": PUSH_V1 }).to_string());
    t.get("Push list", &path, V1);
    t.get("Push get", &format!("{path}/p"), V1);
    t.ask("Push delete", &request("DELETE", &format!("{path}/p"), V1, ""));
    t.get("Extended card", "/extendedAgentCard", V1);
    t.check("rest-1.0");
}

#[test]
fn rest_v1_errors() {
    let wire = Wire::start("");
    let mut t = Transcript::of(&wire);
    let task = finished(&wire);
    t.get("Task not found: get", "/tasks/missing", V1);
    t.post("Task not found: cancel", "/tasks/missing:cancel", V1, "");
    t.post("Task not found: subscribe", "/tasks/missing:subscribe", V1, "");
    t.post("Task not found: send", "/message:send", V1, &on_task(text_v1("more"), "missing").to_string());
    t.post("Task not cancelable", &format!("/tasks/{task}:cancel"), V1, "");
    let mut params = text_v1("hello");
    params["configuration"] = json!({ "taskPushNotificationConfig": { "url": PUSH_V1 } });
    t.post("Push notifications not supported: inline", "/message:send", V1, &params.to_string());
    let more = on_task(text_v1("more"), &task).to_string();
    t.post("Unsupported operation: a message to a finished task", "/message:send", V1, &more);
    t.post("Unsupported operation: to follow a finished task", &format!("/tasks/{task}:subscribe"), V1, "");
    t.ask("Content type", &request("POST", "/message:send", "Content-Type: text/plain\r\nA2A-Version: 1.0\r\n", "{}"));
    t.get("Version not supported", "/tasks", "A2A-Version: 99.0\r\n");
    t.get("Version missing", "/tasks", "");
    t.post("Parse error", "/message:send", V1, "{");
    t.post("Parse error: no body", "/message:send", V1, "");
    t.get("No such path", "/nothing/at/all", V1);
    t.ask("Wrong method", &request("PUT", "/message:send", V1, "{}"));
    t.get("Wrong method on the JSON-RPC path", "/", V1);
    t.post("Invalid params: several fields", "/message:send", V1, r#"{"message":{"parts":[]}}"#);
    t.post("Invalid params: a wrong type", "/message:send", V1, r#"{"message":{"messageId":"m","role":1,"parts":5}}"#);
    t.get("Invalid params: page size", "/tasks?pageSize=0", V1);
    t.get("Invalid params: no number", "/tasks?pageSize=many", V1);
    t.get("Invalid params: state", "/tasks?status=working", V1);
    t.get("Invalid params: time", "/tasks?statusTimestampAfter=yesterday", V1);
    t.get("Error as application/a2a+json", "/tasks/missing", "A2A-Version: 1.0\r\nAccept: application/a2a+json\r\n");
    t.check("rest-1.0-errors");
}

#[test]
fn rest_v03() {
    let wire = Wire::start("");
    let mut t = Transcript::of(&wire);
    let hello = |text: &str| {
        json!({ "request": { "message_id": "m-1", "role": "ROLE_USER", "content": [{ "text": text }] },
                "configuration": { "blocking": true } })
        .to_string()
    };
    let task = id_of(&t.post("Send", "/v1/message:send", "", &hello("hello")).json()["task"]);
    t.post("Send, answered with a message", "/v1/message:send", "", &hello("message hi"));
    t.post("Send in the words of JSON-RPC", "/v1/message:send", "", &text_v03("hello").to_string());
    t.post("Stream", "/v1/message:stream", "", &hello("stream 3"));
    t.get("Get", &format!("/v1/tasks/{task}"), "");
    t.get("List", "/v1/tasks?pageSize=1", "");
    let held = held(&wire);
    t.post("Cancel", &format!("/v1/tasks/{held}:cancel"), "", "");
    t.get("Subscribe to a finished task", &format!("/v1/tasks/{task}:subscribe"), "");
    let path = format!("/v1/tasks/{task}/pushNotificationConfigs");
    t.post(
        "Push create",
        &path,
        "",
        &json!({ "config": { "pushNotificationConfig": { "url": PUSH_V1 } } }).to_string(),
    );
    t.get("Push list", &path, "");
    t.get("Push get", &format!("{path}/p"), "");
    t.ask("Push delete", &request("DELETE", &format!("{path}/p"), "", ""));
    t.get("Extended card", "/v1/card", "");
    t.check("rest-0.3");
}

#[test]
fn rest_v03_errors() {
    let wire = Wire::start("");
    let mut t = Transcript::of(&wire);
    let task = finished(&wire);
    t.get("Task not found: get", "/v1/tasks/missing", "");
    t.post("Task not found: cancel", "/v1/tasks/missing:cancel", "", "");
    t.get("Task not found: subscribe", "/v1/tasks/missing:subscribe", "");
    t.post("Task not cancelable", &format!("/v1/tasks/{task}:cancel"), "", "");
    let more =
        json!({ "request": { "messageId": "m", "role": "ROLE_USER", "taskId": task, "content": [{ "text": "x" }] } });
    t.post("Unsupported operation: a message to a finished task", "/v1/message:send", "", &more.to_string());
    let push = json!({ "request": { "messageId": "m", "role": "ROLE_USER", "content": [{ "text": "x" }] },
                       "configuration": { "pushNotification": { "url": PUSH_V1 } } });
    t.post("Push notifications not supported: inline", "/v1/message:send", "", &push.to_string());
    t.ask("Content type", &request("POST", "/v1/message:send", "Content-Type: text/plain\r\n", "{}"));
    t.get("Version not supported", "/v1/tasks", "A2A-Version: 99.0\r\n");
    t.post("Parse error", "/v1/message:send", "", "{");
    t.get("No such path", "/v1/nothing", "");
    t.ask("Wrong method", &request("PUT", "/v1/message:send", "", "{}"));
    t.post(
        "Invalid params",
        "/v1/message:send",
        "",
        r#"{"request":{"messageId":"m","role":"ROLE_USER","content":[]}}"#,
    );
    t.check("rest-0.3-errors");
}

#[test]
fn required_extension() {
    let wire = Wire::start("extensions:\n  - uri: urn:test:needed\n    required: true\n");
    let mut t = Transcript::of(&wire);
    t.rpc("JSON-RPC 1.0", "SendMessage", &text_v1("hello"));
    t.rpc("JSON-RPC 1.0, stream", "SendStreamingMessage", &text_v1("hello"));
    t.rpc("JSON-RPC 0.3", "message/send", &text_v03("hello"));
    t.post("REST 1.0", "/message:send", V1, &text_v1("hello").to_string());
    t.post("REST 0.3", "/v1/message:send", "", &text_v03("hello").to_string());
    let named = "A2A-Version: 1.0\r\nA2A-Extensions: urn:other, urn:test:needed\r\n";
    t.post("Named, REST 1.0", "/message:send", named, &text_v1("hello").to_string());
    let old = "X-A2A-Extensions: urn:test:needed\r\n";
    t.post("Named, REST 0.3", "/v1/message:send", old, &text_v03("hello").to_string());
    t.rpc("Not needed to read", "ListTasks", &json!({ "contextId": "none" }));
    t.check("required-extension");
}

/// The samples of the protocol's description, as they stand there.
#[test]
fn samples() {
    let wire = Wire::start("");
    let mut t = Transcript::of(&wire);
    let parts = r#"[{"text":"sum this"},{"raw":"AQID","mediaType":"application/octet-stream","filename":"a.bin"},{"url":"https://files.test/b.pdf","mediaType":"application/pdf"},{"data":[1,2,null]}]"#;
    let send = |push: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{{"tenant":"blue","message":{{"messageId":"m-1","role":"ROLE_USER","parts":{parts}}},"configuration":{{"acceptedOutputModes":["text/plain"],"historyLength":0{push}}},"metadata":{{"k":1}}}}}}"#
        )
    };
    let push = r#","returnImmediately":true,"taskPushNotificationConfig":{"url":"https://hook.test/x","token":"t-1","authentication":{"scheme":"Bearer","credentials":"s3cret"}}"#;
    t.post("12.1 with a webhook", "/", V1, &send(push));
    let task = t.post("12.1 without", "/", V1, &send("")).json()["result"]["task"].clone();
    let context = task["contextId"].as_str().expect("a context").to_owned();
    let list = format!(
        "/blue/tasks?contextId={context}&status=TASK_STATE_COMPLETED&pageSize=2&includeArtifacts=true&statusTimestampAfter=2026-01-02T00%3A00%3A00Z"
    );
    let page = t.get("12.5", &list, V1).json();
    assert_eq!(page["totalSize"], 1, "one task of the tenant");
    t.post("12.6", &format!("/blue/tasks/{}:cancel", id_of(&task)), V1, "");
    let old = |push: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"q1","method":"message/send","params":{{"message":{{"kind":"message","messageId":"m-1","role":"user","parts":[{{"kind":"text","text":"hi"}},{{"kind":"file","file":{{"name":"a.bin","mimeType":"application/octet-stream","bytes":"AQID"}}}},{{"kind":"data","data":{{"a":1}}}}]}},"configuration":{{"blocking":true{push}}}}}}}"#
        )
    };
    let push = r#","pushNotificationConfig":{"url":"https://hook.test/x","token":"t","authentication":{"schemes":["Bearer"],"credentials":"c"}}"#;
    t.post("12.11 with a webhook", "/", "", &old(push));
    t.post("12.11 without", "/", "", &old(""));
    let rest = r#"{"request":{"message_id":"m-1","role":"ROLE_USER","content":[{"text":"hi"}]},"configuration":{"blocking":true}}"#;
    t.post("12.13", "/v1/message:send", "", rest);
    t.check("samples");
}
