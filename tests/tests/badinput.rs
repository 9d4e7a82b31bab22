//! Whatever arrives, the answer is clear, nothing is left behind, and the server goes on.

use std::fmt::Write as _;

use nuncio_tests::raw::{Answer, Connection, V1, Wire, request, until};
use nuncio_tests::{Value, json};

/// How much memory may stay after everything is over, for what allocators keep.
const SLACK_KIB: u64 = 48 << 10;
/// The same after bodies of the largest size, of which each thread of the server may keep a few.
const SLACK_AFTER_BODIES_KIB: u64 = 192 << 10;

/// A server that must be the same after a test as before it.
struct Unharmed {
    wire: Wire,
    tasks: i64,
    most_memory: u64,
}

impl Unharmed {
    fn start(yaml: &str) -> Self {
        let wire = Wire::start(yaml);
        // A task and a stream, so that what is loaded late is loaded.
        assert_eq!(wire.post("/message:stream", V1, &message().to_string()).status, 200);
        let (tasks, most_memory) = (wire.tasks(), wire.resident_kib() + SLACK_KIB);
        Self { wire, tasks, most_memory }
    }

    /// Nothing panicked, nothing was made, nothing is open, and the server answers.
    fn check(self) {
        let wire = &self.wire;
        wire.assert_sound();
        assert_eq!(wire.tasks(), self.tasks, "tasks came into being");
        until("streams are closed", || wire.metric("nuncio_subscribers") == 0.0);
        until("connections are closed", || wire.metric("nuncio_connections") <= 1.0);
        assert_eq!(wire.metric("nuncio_turns_running") + wire.metric("nuncio_turns_queued"), 0.0);
        let memory = wire.resident_kib();
        assert!(memory <= self.most_memory, "{memory} KiB of memory, and not {}", self.most_memory);
        let sent = wire.post("/message:send", V1, &message().to_string()).json();
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    }
}

fn message() -> Value {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] } })
}

fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// An error of the caller, in a shape that clients read.
#[track_caller]
fn refused(answer: &Answer, what: &str) -> String {
    assert!(answer.status < 500, "{what}: {} {}", answer.status, answer.text());
    let reason = answer.reason();
    assert_ne!(reason, "INTERNAL_ERROR", "{what}");
    reason
}

#[test]
fn what_is_not_json() {
    let server = Unharmed::start("");
    let wire = &server.wire;
    let good = call("SendMessage", &message().to_string());
    let mut bad: Vec<Vec<u8>> = [
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "nul",
        "tru",
        "01",
        "1.",
        "{]",
        "[}",
        "{\"a\"}",
        "{\"a\":}",
        "{,}",
        "{\"a\":1,}",
        "'x'",
        "{a:1}",
        "NaN",
        "Infinity",
        "\u{feff}{}",
        "{}{}",
        "{} x",
        "//",
        "<xml/>",
        "\u{0}",
        "{\"a\":\"\u{1}\"}",
        "\"\\x\"",
        "\"\\u12\"",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    // Every place where it may break off.
    bad.extend((0..good.len()).map(|end| good.as_bytes()[..end].to_vec()));
    bad.extend([b"\xff\xfe".to_vec(), b"{\"message\":\"\xff\"}".to_vec(), b"\xed\xa0\x80".to_vec()]);
    let mut connection = wire.connect();
    for body in bad {
        let shown = String::from_utf8_lossy(&body).into_owned();
        for path in ["/", "/message:send", "/message:stream"] {
            let mut bytes = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{V1}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
            bytes.extend(&body);
            connection.send(bytes);
            let answer = connection.answer();
            let reason = refused(&answer, &shown);
            assert_eq!(reason, "PARSE_ERROR", "{path}: {shown:?}");
            let status = if path == "/" { 200 } else { 400 };
            assert_eq!(answer.status, status, "{path}: {shown:?}");
        }
    }
    drop(connection);
    server.check();
}

#[test]
fn json_that_is_no_request() {
    let server = Unharmed::start("");
    let wire = &server.wire;
    for body in [
        "null",
        "1",
        "\"x\"",
        "true",
        "[]",
        "[1]",
        "{}",
        r#"{"jsonrpc":2.0,"id":1,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}"#,
    ] {
        let answer = wire.post("/", V1, body);
        assert_eq!((answer.status, refused(&answer, body).as_str()), (200, "INVALID_REQUEST"), "{body}");
        assert!(answer.json()["id"].is_null() || answer.json()["id"].is_number(), "{body}");
    }
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ListTasks"}}"#, "x".repeat(1 << 20));
    let answer = wire.post("/", V1, &long);
    assert_eq!(refused(&answer, "a long id"), "INVALID_REQUEST");
    assert!(answer.json()["id"].is_null() && answer.text().len() < 1000, "{}", answer.text());
    let batch = format!("[{}]", vec![call("SendMessage", &message().to_string()); 100].join(","));
    let answer = wire.post("/", V1, &batch);
    assert_eq!(refused(&answer, "a batch"), "INVALID_REQUEST");
    assert!(answer.text().contains("batches"), "{}", answer.text());
    for params in ["[]", "5", "\"x\"", "true", "[{}]"] {
        for method in ["SendMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"] {
            assert_eq!(
                refused(&wire.post("/", V1, &call(method, params)), params),
                "INVALID_PARAMS",
                "{method} {params}"
            );
        }
        for method in ["message/send", "message/stream", "tasks/get", "tasks/cancel"] {
            assert_eq!(
                refused(&wire.post("/", "", &call(method, params)), params),
                "INVALID_PARAMS",
                "{method} {params}"
            );
        }
        let answer = wire.post("/message:send", V1, params);
        assert_eq!((answer.status, refused(&answer, params).as_str()), (400, "INVALID_PARAMS"), "REST {params}");
    }
    server.check();
}

/// Puts a value at a path like `message.parts.0.text` and takes `-` for "remove".
fn with(mut params: Value, path: &str, value: Option<&Value>) -> Value {
    let mut at = &mut params;
    let mut names = path.split('.').peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            match (value, at) {
                (Some(value), Value::Array(all)) => all[name.parse::<usize>().expect("an index")] = value.clone(),
                (Some(value), at) => at[name] = value.clone(),
                (None, at) => _ = at.as_object_mut().expect("an object").shift_remove(name),
            }
            break;
        }
        at = match name.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[name],
        };
    }
    params
}

#[test]
fn wrong_types_for_every_field_of_a_message() {
    let server = Unharmed::start("");
    let wire = &server.wire;
    let full = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "contextId": "", "parts": [{ "text": "hello" }],
                                    "metadata": {}, "extensions": [], "referenceTaskIds": [] },
                       "configuration": { "acceptedOutputModes": [], "historyLength": 1, "returnImmediately": false },
                       "metadata": {} });
    let (text, number, truth, list, object) = (json!("x"), json!(5), json!(true), json!([5]), json!({ "x": 1 }));
    let none: [&Value; 0] = [];
    // Every field with what it must not be; what is left out of a row is legal there.
    let table: Vec<(&str, Vec<&Value>)> = vec![
        ("message", vec![&text, &number, &truth, &list]),
        ("message.messageId", vec![&number, &truth, &list, &object]),
        ("message.contextId", vec![&number, &truth, &list, &object]),
        ("message.taskId", vec![&number, &truth, &list, &object]),
        ("message.role", vec![&text, &number, &truth, &list, &object]),
        ("message.parts", vec![&text, &number, &truth, &list, &object]),
        ("message.parts.0", vec![&text, &number, &truth, &list, &object]),
        ("message.parts.0.text", vec![&number, &truth, &list, &object]),
        ("message.parts.0.raw", vec![&text, &number, &truth, &list, &object]),
        ("message.parts.0.url", vec![&text, &number, &truth, &list, &object]),
        ("message.parts.0.data", vec![&text, &number, &truth, &list, &object]),
        ("message.parts.0.metadata", vec![&text, &number, &truth, &list]),
        ("message.parts.0.filename", vec![&number, &truth, &list, &object]),
        ("message.parts.0.mediaType", vec![&number, &truth, &list, &object]),
        ("message.metadata", vec![&text, &number, &truth, &list]),
        ("message.extensions", vec![&text, &number, &truth, &list, &object]),
        ("message.referenceTaskIds", vec![&text, &number, &truth, &list, &object]),
        ("configuration", vec![&text, &number, &truth, &list]),
        ("configuration.acceptedOutputModes", vec![&text, &number, &truth, &list, &object]),
        ("configuration.historyLength", vec![&text, &truth, &list, &object]),
        ("configuration.returnImmediately", vec![&text, &number, &list, &object]),
        ("configuration.taskPushNotificationConfig", vec![&text, &number, &truth, &list]),
        ("metadata", vec![&text, &number, &truth, &list]),
        ("tenant", vec![&number, &truth, &list, &object]),
        ("unknown", none.to_vec()),
    ];
    let mut asked = 0;
    for (field, values) in &table {
        for value in values {
            let params = with(full.clone(), field, Some(value)).to_string();
            let what = format!("{field} = {value}");
            for method in ["SendMessage", "SendStreamingMessage"] {
                let answer = wire.post("/", V1, &call(method, &params));
                assert_eq!((answer.code(), refused(&answer, &what).as_str()), (-32602, "INVALID_PARAMS"), "{what}");
            }
            let answer = wire.post("/message:send", V1, &params);
            assert_eq!((answer.status, refused(&answer, &what).as_str()), (400, "INVALID_PARAMS"), "{what}");
            let top = field.split('.').next().unwrap_or_default();
            let named = answer.json()["error"]["message"].as_str().is_some_and(|message| message.contains(top));
            assert!(named, "{what} is named: {}", answer.text());
            asked += 1;
        }
    }
    assert!(asked > 90, "{asked}");
    for (field, value) in [
        ("configuration.historyLength", json!(-1)),
        ("configuration.historyLength", json!(1.5)),
        ("configuration.historyLength", json!(2_147_483_648_i64)),
        ("configuration.historyLength", json!("1x")),
        ("message.role", json!("ROLE_AGENT")),
        ("message.role", json!("user")),
        ("message.role", json!("")),
        ("message.messageId", json!("")),
        ("message.messageId", json!("x".repeat(513))),
        ("message.contextId", json!("x".repeat(513))),
        ("message.taskId", json!("x".repeat(513))),
        ("tenant", json!("x".repeat(513))),
        ("message.parts", json!([])),
        ("message.parts.0", json!({})),
        ("message.parts.0", json!({ "text": "a", "url": "b" })),
        ("message.parts.0", json!({ "raw": "***" })),
    ] {
        let params = with(full.clone(), field, Some(&value)).to_string();
        let answer = wire.post("/", V1, &call("SendMessage", &params));
        assert_eq!((answer.code(), refused(&answer, field).as_str()), (-32602, "INVALID_PARAMS"), "{field} = {value}");
    }
    for field in ["message", "message.messageId", "message.role", "message.parts"] {
        let params = with(full.clone(), field, None).to_string();
        assert_eq!(wire.post("/", V1, &call("SendMessage", &params)).code(), -32602, "without {field}");
    }
    server.check();
}

#[test]
fn the_same_for_0_3() {
    let server = Unharmed::start("");
    let wire = &server.wire;
    let full = json!({ "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "hello" }] },
                       "configuration": { "blocking": true }, "metadata": {} });
    let values = [json!(5), json!([5]), json!(true), json!({ "x": 1 })];
    for field in [
        "message",
        "message.messageId",
        "message.contextId",
        "message.taskId",
        "message.role",
        "message.parts",
        "message.parts.0",
        "message.parts.0.text",
        "message.parts.0.kind",
        "message.metadata",
        "message.extensions",
        "configuration",
        "configuration.blocking",
        "configuration.historyLength",
        "metadata",
    ] {
        for value in &values {
            let legal = matches!(
                (field, value),
                ("configuration.blocking", Value::Bool(_)) | ("configuration.historyLength", Value::Number(_))
            ) || (value.is_object() && (field.ends_with("metadata") || field == "configuration"));
            if legal {
                continue;
            }
            let params = with(full.clone(), field, Some(value)).to_string();
            let what = format!("{field} = {value}");
            assert_eq!(refused(&wire.post("/", "", &call("message/send", &params)), &what), "INVALID_PARAMS", "{what}");
            let answer = wire.post("/v1/message:send", "", &params);
            assert_eq!((answer.status, refused(&answer, &what).as_str()), (400, "INVALID_PARAMS"), "REST {what}");
        }
    }
    server.check();
}

#[test]
fn a_message_refers_to_a_hundred_tasks_at_most() {
    let server = Unharmed::start("");
    let refers = |count: usize| {
        let ids: Vec<String> = (0..count).map(|n| format!("t{n}")).collect();
        with(message(), "message.referenceTaskIds", Some(&json!(ids))).to_string()
    };
    let answer = server.wire.post("/message:send", V1, &refers(101));
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("names more than 100 tasks"), "{}", answer.text());
    let answer = server.wire.post("/message:send", V1, &refers(100));
    assert_eq!(answer.status, 200, "{}", answer.text());
    Unharmed { tasks: server.tasks + 1, ..server }.check();
}

fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

#[test]
fn deep_nesting_is_refused_before_it_does_harm() {
    let server = Unharmed::start("");
    let wire = &server.wire;
    for levels in [101, 110, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 1000, 100_000] {
        let deep = nested(levels);
        let objects = "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels);
        for (place, params) in [
            (
                "data",
                format!(
                    r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"x"}},{{"data":{deep}}}]}}}}"#
                ),
            ),
            (
                "metadata",
                format!(
                    r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"x"}}],"metadata":{objects}}}}}"#
                ),
            ),
            (
                "part metadata",
                format!(
                    r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"x","metadata":{objects}}}]}}}}"#
                ),
            ),
        ] {
            let what = format!("{levels} levels of {place}");
            let reason = refused(&wire.post("/", V1, &call("SendMessage", &params)), &what);
            assert_eq!(reason, "INVALID_PARAMS", "{what}");
            assert_eq!(wire.post("/message:send", V1, &params).status, 400, "{what}");
            assert_eq!(wire.post("/message:stream", V1, &params).status, 400, "{what}");
            let old = params.replace("ROLE_USER", "user");
            refused(&wire.post("/", "", &call("message/send", &old)), &what);
        }
        for body in [
            deep.clone(),
            objects,
            "[".repeat(levels),
            call("NoSuchMethod", &deep),
            format!(r#"{{"jsonrpc":"2.0","id":{deep},"method":"GetTask"}}"#),
        ] {
            refused(&wire.post("/", V1, &body), &format!("{levels} levels"));
        }
    }
    server.check();
}

/// What is accepted can also be read: by all operations, in both versions, and after a restart of the task.
#[test]
fn nesting_that_is_accepted_can_be_read_again() {
    for store in ["memory", "sqlite"] {
        let wire = Wire::start(&format!("store: {store}\n"));
        for levels in [1, 50, 99, 100] {
            let params = format!(
                r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"ask why?"}},{{"data":{}}}]}}}}"#,
                nested(levels)
            );
            let sent = wire.post("/message:send", V1, &params);
            assert_eq!(sent.status, 200, "{levels} levels: {}", sent.text());
            let id = sent.json_unbounded_id();
            assert_eq!(wire.get(&format!("/tasks/{id}"), V1).status, 200, "{levels}");
            assert_eq!(wire.get(&format!("/tasks/{id}?historyLength=1"), V1).status, 200, "{levels}");
            assert_eq!(wire.get("/tasks?includeArtifacts=true", V1).status, 200, "{levels}");
            assert_eq!(wire.get(&format!("/v1/tasks/{id}"), "").status, 200, "{levels}");
            assert_eq!(wire.get(&format!("/v1/tasks/{id}:subscribe"), "").status, 200, "{levels}");
            let old = wire.post("/", "", &call("tasks/resubscribe", &format!(r#"{{"id":"{id}"}}"#))).text();
            assert!(old.contains("\"result\"") && !old.contains("\"error\""), "{levels}: {old}");
            let more = format!(
                r#"{{"message":{{"messageId":"m","taskId":"{id}","role":"ROLE_USER","parts":[{{"data":{}}}]}}}}"#,
                nested(levels)
            );
            assert_eq!(wire.post("/message:send", V1, &more).status, 200, "{levels}");
        }
        wire.assert_sound();
    }
}

trait IdOf {
    fn json_unbounded_id(&self) -> String;
}

impl IdOf for Answer {
    /// The first id, without reading the rest, which our own reader might find too deep.
    fn json_unbounded_id(&self) -> String {
        let text = self.text();
        text.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an id").to_owned()
    }
}

#[test]
fn odd_but_valid_json() {
    let wire = Wire::start("");
    let send = |message: &str| wire.post("/", V1, &call("SendMessage", message));
    // Keys that are special elsewhere, unknown members, and numbers at the edge go through or are refused clearly.
    for data in [
        r#"{"__proto__":{"x":1}}"#,
        r#"{"constructor":{"prototype":1}}"#,
        r#"{"":1}"#,
        r#"{"a":1,"a":2}"#,
        "1e308",
        "-1e308",
        "9007199254740993",
        "18446744073709551615",
        "0.1",
        "-0.0",
        "\"\\u0000\"",
        "\"\\ud83d\\ude00\"",
        "null",
    ] {
        let params = format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{data}}}]}},"__proto__":{{"tenant":"x"}}}}"#
        );
        let answer = send(&params);
        assert!(answer.json()["result"]["task"]["id"].is_string(), "{data}: {}", answer.text());
    }
    for data in ["1e309", "-1e999", "1e-", "1".repeat(400).as_str(), "\"\\ud800\""] {
        let params = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{data}}}]}}}}"#);
        let answer = send(&params);
        let body = answer.json();
        let fine =
            body["result"]["task"]["id"].is_string() || matches!(body["error"]["code"].as_i64(), Some(-32700 | -32602));
        assert!(fine, "{data}: {body}");
    }
    // The same member twice is no message.
    let twice = send(r#"{"message":{"messageId":"m","messageId":"n","role":"ROLE_USER","parts":[{"text":"x"}]}}"#);
    assert_eq!(refused(&twice, "a member twice"), "INVALID_PARAMS");
    let twice = send(r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x","text":"y"}]}}"#);
    assert_eq!(refused(&twice, "a member twice"), "INVALID_PARAMS");
    for number in ["99999999999999999999", "1e99", "-99999999999", "2147483648", "0.5"] {
        for params in [
            format!(r#"{{"pageSize":{number}}}"#),
            format!(r#"{{"historyLength":{number}}}"#),
            format!(r#"{{"status":{number}}}"#),
        ] {
            assert_eq!(
                refused(&wire.post("/", V1, &call("ListTasks", &params)), &params),
                "INVALID_PARAMS",
                "{params}"
            );
        }
        for name in ["pageSize", "historyLength", "status"] {
            assert_eq!(wire.get(&format!("/tasks?{name}={number}"), V1).status, 400, "{name}={number}");
        }
    }
    let tokens =
        ["x", ".", "1.", ".x", "-1.x", "99999999999999999999999.x", "1.x.y", "%00", "' OR 1=1 --", "\u{1F980}"];
    for token in tokens {
        let answer = wire.rpc("ListTasks", &json!({ "pageToken": token }));
        let fine = answer["error"]["code"] == -32602 || answer["result"]["tasks"].is_array();
        assert!(fine, "{token}: {answer}");
    }
    let long = "x".repeat(1 << 20);
    assert_eq!(
        refused(&wire.post("/", V1, &call("GetTask", &json!({ "id": long }).to_string())), "a long id"),
        "TASK_NOT_FOUND"
    );
    assert_eq!(refused(&wire.post("/", V1, &call(&long, "{}")), "a long method"), "METHOD_NOT_FOUND");
    wire.assert_sound();
}

#[test]
fn bodies_of_100_megabytes() {
    const SIZE: usize = 100 << 20;
    let server = Unharmed::start("body-timeout: 2s\n");
    let wire = &server.wire;
    let head = |path: &str, how: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{V1}Content-Type: application/json\r\n{how}\r\n")
    };
    for path in ["/", "/message:send"] {
        // Announced: refused at once, without a byte of it.
        let mut announced = wire.connect();
        announced.send(head(path, &format!("Content-Length: {SIZE}\r\n")));
        assert_eq!(announced.answer().status, 413, "{path}");
        announced.closed();
        // Announced and sent all the same, as far as anyone takes it.
        let mut honest = wire.connect();
        honest.send(head(path, &format!("Content-Length: {SIZE}\r\n")));
        let piece = vec![b' '; 1 << 20];
        for _ in 0..100 {
            if honest.try_send(&piece).is_err() {
                break;
            }
        }
        drop(honest);
        // In chunks: refused as soon as it is too much.
        let mut chunked = wire.connect();
        chunked.send(head(path, "Transfer-Encoding: chunked\r\n"));
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend(&piece);
        chunk.extend(b"\r\n");
        let sent = (0..100).take_while(|_| chunked.try_send(&chunk).is_ok()).count();
        assert!(sent < 100, "{path}: all of it was taken");
        // Announced more than is sent: the rest never comes.
        let mut lie = wire.connect();
        lie.send(head(path, "Content-Length: 1000\r\n"));
        lie.send("{}");
        lie.finish();
        let answer = lie.try_answer();
        assert!(answer.as_ref().map_or(true, |answer| answer.status < 500), "{path}: {answer:?}");
        // Announced less than is sent: the rest is no request.
        let mut lie = wire.connect();
        lie.send(head(path, "Content-Length: 2\r\n") + "{}garbage garbage\r\n\r\n");
        assert!(lie.answer().status < 500, "{path}");
        lie.closed();
        for length in ["-1", "x", "99999999999999999999999", "1, 2", "0x10", "1.5"] {
            let answer = wire.ask(head(path, &format!("Content-Length: {length}\r\n")));
            assert_eq!(answer.status, 400, "{path} {length}");
        }
        let both =
            wire.connect_and_try(&(head(path, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n"));
        assert!(both.is_none_or(|answer| answer.status < 500), "{path}: two lengths");
        for chunks in ["x\r\n", "ffffffffffffffffffff\r\n", "-1\r\n", "5\r\nabc", "5;ext=\"\r\n"] {
            let mut bad = wire.connect();
            bad.send(head(path, "Transfer-Encoding: chunked\r\n") + chunks);
            bad.finish();
            let answer = bad.try_answer();
            assert!(answer.as_ref().map_or(true, |answer| answer.status < 500), "{path} {chunks:?}: {answer:?}");
        }
    }
    let most_memory = server.most_memory + SLACK_AFTER_BODIES_KIB;
    Unharmed { most_memory, ..server }.check();
}

trait TryAsk {
    fn connect_and_try(&self, request: &str) -> Option<Answer>;
}

impl TryAsk for Wire {
    fn connect_and_try(&self, request: &str) -> Option<Answer> {
        let mut connection = self.connect();
        connection.send(request);
        connection.finish();
        connection.try_answer().ok()
    }
}

#[test]
fn bytes_that_no_request_may_hold() {
    let server = Unharmed::start("");
    let wire = &server.wire;
    let ask = |bytes: &[u8]| {
        let mut connection = wire.connect();
        connection.send(bytes);
        connection.try_answer()
    };
    for (what, bytes) in [
        ("NUL in the path", &b"GET /tasks/\0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"[..]),
        ("NUL in a header", b"GET /tasks HTTP/1.1\r\nHost: localhost\r\nX: \0\r\nConnection: close\r\n\r\n"),
        (
            "a space in a header's name",
            b"GET /tasks HTTP/1.1\r\nHost: localhost\r\nX Y: 1\r\nConnection: close\r\n\r\n",
        ),
        ("no version", b"GET /tasks\r\n\r\n"),
        ("HTTP/9.9", b"GET /tasks HTTP/9.9\r\nHost: localhost\r\n\r\n"),
        ("a folded header", b"GET /tasks HTTP/1.1\r\nHost: localhost\r\nX: 1\r\n 2\r\nConnection: close\r\n\r\n"),
        ("nothing but line ends", b"\r\n\r\n\r\n\r\nx\r\n\r\n"),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    ] {
        let answer = ask(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(answer.status, 400, "{what}");
    }
    // Not UTF-8, but HTTP lets it through: the path is unknown, the rest does not count.
    for (what, bytes, statuses) in [
        ("the path", &b"GET /tasks/\xff HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nConnection: close\r\n\r\n"[..], &[400_u16, 404][..]),
        ("the query", b"GET /tasks?contextId=\xff HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nConnection: close\r\n\r\n", &[200, 400]),
        ("an encoded query", b"GET /tasks?contextId=%ff&%ff=%00 HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nConnection: close\r\n\r\n", &[200]),
        ("the version", b"GET /tasks HTTP/1.1\r\nHost: localhost\r\nA2A-Version: \xff\r\nConnection: close\r\n\r\n", &[400]),
        ("other headers", b"GET /tasks HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nA2A-Extensions: \xff\r\nIdempotency-Key: \xff\r\nLast-Event-ID: \xff\r\nAccept: \xff\r\nConnection: close\r\n\r\n", &[200]),
    ] {
        let answer = ask(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(statuses.contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
    }
    // HTTP/2 that is none.
    for bytes in
        [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage garbage garbage garbage"[..], b"PRI * HTTP/2.0\r\n\r\n", b"PRI"]
    {
        let mut connection = wire.connect();
        connection.send(bytes);
        connection.finish();
        connection.closed();
    }
    server.check();
}

#[test]
fn header_bombs() {
    let server = Unharmed::start("");
    let wire = &server.wire;
    let one = format!("X: {}\r\n", "x".repeat(70 << 10));
    let name = format!("{}: x\r\n", "X".repeat(70 << 10));
    let many: String = (0..5000).fold(String::new(), |mut all, n| {
        let _ = write!(all, "X-{n}: {n}\r\n");
        all
    });
    for (what, headers) in [("one value", one), ("one name", name), ("many", many)] {
        let mut connection = wire.connect();
        let _ = connection.try_send(request("GET", "/health", &headers, ""));
        let answer = connection.try_answer();
        assert!(answer.as_ref().is_ok_and(|answer| matches!(answer.status, 400 | 431)), "{what}: {answer:?}");
        connection.closed();
    }
    let mut connection = wire.connect();
    let _ = connection.try_send(format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70 << 10)));
    assert!(connection.try_answer().is_ok_and(|answer| matches!(answer.status, 414 | 431)));
    // Without an end: cut off at the limit, not when memory is full.
    let mut endless = wire.connect();
    let piece = vec![b'x'; 64 << 10];
    let sent = (0..1000).take_while(|_| endless.try_send(&piece).is_ok()).count();
    assert!(sent < 1000, "64 MiB of head were taken");
    server.check();
}

#[test]
fn ten_thousand_unknown_methods_on_one_connection() {
    let server = Unharmed::start("");
    let mut connection = server.wire.connect();
    for n in 0..10_000 {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"Method{n}"}}"#);
        connection.send(request("POST", "/", V1, &body).replace("Connection: close\r\n", ""));
        let answer = connection.answer();
        assert_eq!((answer.code(), &answer.json()["id"]), (-32601, &json!(n)));
    }
    drop(connection);
    assert_eq!(server.wire.metric("nuncio_call_errors_total"), 10_000.0);
    server.check();
}

/// A small generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides
    }
}

#[test]
fn ten_thousand_requests_of_garbage() {
    let server = Unharmed::start("header-timeout: 2s\nbody-timeout: 2s\n");
    let address = server.wire.address;
    let valid = [
        request(
            "POST",
            "/",
            "A2A-Version: 1.0\r\nContent-Type: application/json\r\n",
            &call("GetTask", r#"{"id":"x"}"#),
        ),
        request("GET", "/tasks?pageSize=5&status=TASK_STATE_WORKING", V1, ""),
        request("POST", "/tasks/x:subscribe", V1, ""),
        request("GET", "/.well-known/agent-card.json", "If-None-Match: \"x\"\r\n", ""),
        request("POST", "/v1/tasks/x:cancel", "", "{}"),
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_owned(),
    ];
    let tokens: [&[u8]; 14] = [
        b"\r\n",
        b"\r\n\r\n",
        b": ",
        b"HTTP/1.1",
        b"\0",
        b"\xff",
        b"%",
        b"{",
        b"}",
        b"\"",
        b"Content-Length: 5\r\n",
        b"A2A-Version: 1.0\r\n",
        b"GET / ",
        b"99999999999",
    ];
    // Four at a time; each has its own seed.
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let valid = &valid;
            scope.spawn(move || {
                let mut dice = Dice(seed);
                for round in 0..2500 {
                    let mut bytes = match dice.roll(4) {
                        0 => (0..dice.roll(400)).map(|_| u8::try_from(dice.roll(256)).unwrap_or_default()).collect(),
                        n => valid[(dice.roll(valid.len()) + n) % valid.len()].clone().into_bytes(),
                    };
                    for _ in 0..dice.roll(6) {
                        let at = dice.roll(bytes.len() + 1);
                        match dice.roll(4) {
                            0 if at < bytes.len() => bytes[at] = u8::try_from(dice.roll(256)).unwrap_or_default(),
                            1 => bytes.truncate(at),
                            2 => _ = bytes.splice(at..at, tokens[dice.roll(tokens.len())].iter().copied()),
                            _ => {
                                let end = at + dice.roll(bytes.len() - at + 1);
                                let copy = bytes[at..end].to_vec();
                                bytes.splice(at..at, copy);
                            }
                        }
                    }
                    let mut connection = Connection::to(address);
                    let _ = connection.try_send(&bytes);
                    connection.finish();
                    if let Ok(answer) = connection.try_answer() {
                        let shown = String::from_utf8_lossy(&bytes);
                        assert!(
                            answer.status < 500,
                            "seed {seed}, round {round}: {} {}\n{shown}",
                            answer.status,
                            answer.text()
                        );
                    }
                }
            });
        }
    });
    server.check();
}

#[test]
fn clients_that_vanish_free_their_places() {
    let server = Unharmed::start("keep-alive: 100ms\n");
    let wire = &server.wire;
    let id = {
        let mut params = message();
        params["message"]["parts"][0]["text"] = json!("hold");
        params["configuration"] = json!({ "returnImmediately": true });
        wire.rpc("SendMessage", &params)["result"]["task"]["id"].as_str().expect("a task").to_owned()
    };
    let mut all: Vec<Connection> = (0..50).map(|_| wire.connect()).collect();
    for connection in &mut all {
        connection.send(request("POST", &format!("/tasks/{id}:subscribe"), V1, ""));
        assert_eq!(connection.head().status, 200);
    }
    assert_eq!(wire.metric("nuncio_subscribers"), 50.0);
    // Blocking calls whose callers go away do not end the task either.
    let mut blocking = wire.connect();
    let more =
        json!({ "message": { "messageId": "m", "taskId": id, "role": "ROLE_USER", "parts": [{ "text": "more" }] } });
    blocking.send(request("POST", "/message:send", V1, &more.to_string()));
    drop(blocking);
    drop(all);
    until("the places are free", || wire.metric("nuncio_subscribers") == 0.0);
    let task = wire.rpc("GetTask", &json!({ "id": id }));
    assert_eq!(task["result"]["status"]["state"], "TASK_STATE_WORKING", "the task goes on");
    assert_eq!(wire.rpc("CancelTask", &json!({ "id": id }))["result"]["status"]["state"], "TASK_STATE_CANCELED");
    Unharmed { tasks: server.tasks + 1, ..server }.check();
}

/// Many at once that send slowly keep nobody else from being served.
#[test]
fn slow_clients_keep_nobody_waiting() {
    let server = Unharmed::start("header-timeout: 10m\nbody-timeout: 10m\n");
    let wire = &server.wire;
    let mut slow: Vec<Connection> = (0..200).map(|_| wire.connect()).collect();
    for (n, connection) in slow.iter_mut().enumerate() {
        match n % 2 {
            0 => connection.send("POST / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "),
            _ => connection.send(format!("POST / HTTP/1.1\r\nHost: localhost\r\n{V1}Content-Length: 500\r\n\r\n{{")),
        }
    }
    for _ in 0..20 {
        assert_eq!(wire.get("/health", "").status, 200);
        assert_eq!(wire.post("/", V1, &call("ListTasks", "{}")).status, 200);
    }
    assert!(wire.metric("nuncio_connections") > 200.0, "all of them still wait");
    drop(slow);
    server.check();
}
