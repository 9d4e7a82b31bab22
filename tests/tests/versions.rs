//! Which version, path, tenant and media type a request means.

use nuncio_tests::raw::{Answer, V1, Wire, request};
use nuncio_tests::{Value, json};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;
const OLD_GET: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}"#;
const NOT_FOUND: i64 = -32001;
const WRONG_VERSION: i64 = -32009;

fn send(text: &str) -> Value {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

#[test]
fn the_version_comes_from_header_or_query() {
    let wire = Wire::start("");
    for version in ["1.0", "1.0.3", "1.0.0", " 1.0 "] {
        let header = format!("A2A-Version: {version}\r\n");
        assert_eq!(wire.post("/", &header, LIST).json()["result"]["totalSize"], 0, "JSON-RPC {version:?}");
        assert_eq!(wire.get("/tasks", &header).json()["totalSize"], 0, "REST {version:?}");
        assert_eq!(wire.post("/", &header, OLD_GET).code(), WRONG_VERSION, "0.3 method with {version:?}");
    }
    for name in ["A2A-Version", "a2a-version", "A2A-VERSION"] {
        assert_eq!(wire.get(&format!("/tasks?{name}=1.0"), "").json()["totalSize"], 0, "REST ?{name}");
        assert_eq!(wire.post(&format!("/?{name}=1.0"), "", LIST).json()["result"]["totalSize"], 0, "JSON-RPC ?{name}");
        assert_eq!(wire.get("/tasks", &format!("{name}: 1.0\r\n")).status, 200, "header {name}");
    }
    // The header counts before the query, and an empty one is none.
    assert_eq!(wire.get("/tasks?A2A-Version=0.3", V1).status, 200);
    assert_eq!(wire.get("/tasks?A2A-Version=1.0", "A2A-Version: 0.3\r\n").reason(), "VERSION_NOT_SUPPORTED");
    assert_eq!(wire.get("/tasks?A2A-Version=1.0", "A2A-Version:  \r\n").status, 200);
    for version in ["0.3", "0.3.0", "0.3.26"] {
        let header = format!("A2A-Version: {version}\r\n");
        assert_eq!(wire.post("/", &header, OLD_GET).code(), NOT_FOUND, "{version}");
        assert_eq!(wire.get("/v1/tasks/x", &header).reason(), "TASK_NOT_FOUND", "{version}");
    }
    wire.assert_sound();
}

#[test]
fn other_versions_are_refused_in_the_words_of_the_method() {
    let wire = Wire::start("");
    let all = [
        "99.0", "1.1", "2.0", "0.2", "1", "1.", ".0", "1.0.", "1.0.x", "1.0.0.0", "v1.0", "one", "1,0", "-1.0",
        "1.0 0.3", "\u{e4}", "\u{1}1.0", "٣.٠",
    ];
    for version in all {
        let header = format!("A2A-Version: {version}\r\n");
        let answer = wire.ask(request("POST", "/", &format!("Content-Type: application/json\r\n{header}"), LIST));
        if version.contains('\u{1}') {
            assert_eq!(answer.status, 400, "a header that HTTP forbids");
            continue;
        }
        assert_eq!(answer.code(), WRONG_VERSION, "{version:?}");
        assert!(answer.json()["error"]["data"].is_array(), "1.0 details for {version:?}");
        let answer = wire.post("/", &header, OLD_GET);
        assert_eq!(answer.code(), WRONG_VERSION, "{version:?}");
        assert!(answer.json()["error"]["data"].is_object(), "0.3 details for {version:?}");
        let answer = wire.get("/tasks", &header);
        assert_eq!((answer.status, answer.reason().as_str()), (400, "VERSION_NOT_SUPPORTED"), "{version:?}");
        assert_eq!(wire.get("/v1/tasks", &header).json()["type"], "VersionNotSupportedError", "{version:?}");
    }
    wire.assert_sound();
}

#[test]
fn a_missing_version_means_0_3_unless_the_server_is_lenient() {
    let strict = Wire::start("");
    let calls = |wire: &Wire| -> Vec<Answer> {
        let send = send("hello").to_string();
        vec![wire.post("/", "", LIST), wire.get("/tasks", ""), wire.post("/message:send", "", &send)]
    };
    for answer in calls(&strict) {
        assert_eq!(answer.reason(), "VERSION_NOT_SUPPORTED", "{}", answer.text());
    }
    assert_eq!(strict.tasks(), 0, "nothing was done");
    let lenient = Wire::start("lenient-version: true\n");
    for answer in calls(&lenient) {
        assert!(answer.json().get("error").is_none() && answer.status == 200, "{}", answer.text());
    }
    assert_eq!(lenient.tasks(), 1);
    // An explicit wrong version stays wrong, and 0.3 stays 0.3.
    assert_eq!(lenient.post("/", "A2A-Version: 0.3\r\n", LIST).code(), WRONG_VERSION);
    assert_eq!(lenient.post("/", "A2A-Version: 1.1\r\n", LIST).code(), WRONG_VERSION);
    assert_eq!(lenient.post("/", "", OLD_GET).code(), NOT_FOUND);
    strict.assert_sound();
    lenient.assert_sound();
}

#[test]
fn v1_is_a_tenant_for_whoever_speaks_1_0() {
    let wire = Wire::start("");
    let sent = wire.post("/v1/message:send", V1, &send("hello").to_string()).json();
    let id = sent["task"]["id"].as_str().expect("a task").to_owned();
    assert!(sent["task"]["history"][0]["parts"].is_array(), "1.0 words: {sent}");
    assert_eq!(wire.get(&format!("/v1/tasks/{id}"), V1).status, 200);
    assert_eq!(wire.get(&format!("/tasks/{id}"), V1).status, 404, "without a tenant it does not exist");
    assert_eq!(wire.get(&format!("/v1/tasks/{id}"), "").status, 404, "0.3 has no tenant");
    assert_eq!(wire.rpc("GetTask", &json!({ "tenant": "v1", "id": id }))["result"]["id"], json!(id));
    let old = wire.post("/v1/message:send", "", &send("hello").to_string()).json();
    assert!(old["task"]["history"][0]["content"].is_array(), "0.3 words: {old}");
}

#[test]
fn paths_work_with_and_without_a_slash_at_the_end() {
    let wire = Wire::start("");
    for path in ["/", "/a2a", "/a2a/", "/a2a/jsonrpc", "/a2a/jsonrpc/", "/?x=1", "/a2a?x=1", "/a2a/?x"] {
        assert_eq!(wire.post(path, V1, LIST).json()["result"]["totalSize"], 0, "{path}");
        assert_eq!(wire.post(path, "", OLD_GET).code(), NOT_FOUND, "{path}");
        let answer = wire.get(path, V1);
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{path}");
    }
    let task = wire.rpc("SendMessage", &send("hello"))["result"]["task"]["id"].as_str().expect("a task").to_owned();
    for path in ["/tasks", "/tasks/", "/tasks/?pageSize=1"] {
        assert_eq!(wire.get(path, V1).json()["totalSize"], 1, "{path}");
    }
    assert_eq!(wire.get(&format!("/tasks/{task}/"), V1).json()["id"], json!(task));
    assert_eq!(wire.post("/message:send/", V1, &send("hello").to_string()).status, 200);
    assert_eq!(wire.post(&format!("/tasks/{task}:cancel/"), V1, "").reason(), "TASK_NOT_CANCELABLE");
    assert_eq!(wire.get("/v1/tasks/", "").json()["totalSize"], 2);
    for path in [
        "//",
        "//tasks",
        "/tasks//",
        "/a2a//",
        "/x/y/tasks",
        "/tasks/a/b",
        "/.well-known",
        "/v1",
        "/v1/",
        "/message",
        "/message:",
        "/message:sends",
    ] {
        let answer = wire.get(path, V1);
        assert_eq!((answer.status, answer.reason().as_str()), (404, "METHOD_NOT_FOUND"), "{path}");
    }
    // A whole URL and a star are requests, too.
    assert_eq!(wire.get(&format!("{}/tasks", wire.url()), V1).json()["totalSize"], 2);
    assert_eq!(wire.ask(request("OPTIONS", "*", V1, "")).status, 404);
    wire.assert_sound();
}

#[test]
fn tenants_are_apart_however_they_are_named() {
    let wire = Wire::start("");
    let blue = wire.post("/blue/message:send", V1, &send("ask why?").to_string()).json()["task"].clone();
    let id = blue["id"].as_str().expect("a task").to_owned();
    let red = json!({ "tenant": "red", "message": send("x")["message"] });
    assert_eq!(wire.rpc("SendMessage", &red)["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    for (tenant, count) in [("blue", 1), ("red", 1), ("green", 0), ("", 0), ("Blue", 0), ("blue ", 0)] {
        assert_eq!(wire.rpc("ListTasks", &json!({ "tenant": tenant }))["result"]["totalSize"], count, "{tenant:?}");
    }
    assert_eq!(wire.get("/tasks?tenant=blue", V1).json()["totalSize"], 1);
    assert_eq!(wire.get("/bl%75e/tasks", V1).json()["totalSize"], 1, "the path is decoded");
    assert_eq!(wire.get("/blue/tasks?tenant=red", V1).json()["tasks"][0]["id"], json!(id), "the path wins");
    // Nobody else sees, follows, cancels or continues it.
    for (prefix, query, body) in
        [("", "", ""), ("/red", "", ""), ("", "?tenant=red", ""), ("", "", r#"{"tenant":"red"}"#)]
    {
        for path in [format!("{prefix}/tasks/{id}:cancel{query}"), format!("{prefix}/tasks/{id}:subscribe{query}")] {
            let answer = wire.post(&path, V1, body);
            assert_eq!((answer.status, answer.reason().as_str()), (404, "TASK_NOT_FOUND"), "{path} {body}");
        }
        assert_eq!(wire.get(&format!("{prefix}/tasks/{id}{query}"), V1).status, 404, "{prefix} {query}");
        let mut more = send("because");
        more["message"]["taskId"] = json!(id);
        let answer = wire.post(&format!("{prefix}/message:send{query}"), V1, &more.to_string());
        assert_eq!(answer.reason(), "TASK_NOT_FOUND", "{prefix} {query}");
    }
    for tenant in ["", "red"] {
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            let answer = wire.rpc(method, &json!({ "tenant": tenant, "id": id }));
            assert_eq!(answer["error"]["code"], NOT_FOUND, "{method} as {tenant:?}");
        }
    }
    // Its own tenant does, by path, query and body.
    let follows = |path: &str, body: &str| {
        let mut connection = wire.connect();
        let headers = "A2A-Version: 1.0\r\nContent-Type: application/json\r\n";
        connection.send(request("POST", path, headers, body));
        assert_eq!(connection.head().header("content-type"), Some("text/event-stream"), "{path} {body}");
        assert!(connection.chunks_until("\n\n").contains(&id), "{path} {body}");
    };
    follows(&format!("/blue/tasks/{id}:subscribe"), "");
    follows(&format!("/tasks/{id}:subscribe?tenant=blue"), "");
    follows(&format!("/tasks/{id}:subscribe"), r#"{"tenant":"blue"}"#);
    let canceled = wire.post(&format!("/tasks/{id}:cancel"), V1, r#"{"tenant":"blue"}"#).json();
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    wire.assert_sound();
}

#[test]
fn only_listed_tenants_exist() {
    let wire = Wire::start("tenants: [blue, red]\n");
    assert_eq!(wire.post("/blue/message:send", V1, &send("x").to_string()).status, 200);
    assert_eq!(wire.get("/red/tasks", V1).json()["totalSize"], 0);
    for prefix in ["", "/green", "/BLUE", "/blue%20"] {
        let sent = wire.post(&format!("{prefix}/message:send"), V1, &send("x").to_string());
        let streamed = wire.post(&format!("{prefix}/message:stream"), V1, &send("x").to_string());
        for answer in
            [sent, streamed, wire.get(&format!("{prefix}/tasks"), V1), wire.get(&format!("{prefix}/tasks/x"), V1)]
        {
            assert_eq!((answer.status, answer.reason().as_str()), (404, "TASK_NOT_FOUND"), "{prefix:?}");
        }
    }
    let green = json!({ "tenant": "green", "message": send("x")["message"] });
    assert_eq!(wire.rpc("SendMessage", &green)["error"]["code"], NOT_FOUND);
    assert_eq!(wire.rpc("ListTasks", &json!({ "tenant": "green" }))["error"]["code"], NOT_FOUND);
    wire.assert_sound();
}

/// Writes every byte that is not a letter or digit as `%XX`.
fn encode(text: &str) -> String {
    let one = |b: u8| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(one).collect()
}

#[test]
fn any_text_can_be_an_id() {
    let wire = Wire::start("");
    let printable = (' '..='~').map(|c| format!("a{c}b"));
    let more = [
        ":cancel",
        "x:cancel",
        "x:subscribe",
        "a:b:c",
        ":",
        "/",
        "..",
        ".",
        "%",
        "%25",
        "%2F",
        "a b",
        "+",
        "é",
        "日本語",
        "🦀",
        "\u{0}",
        "\n",
        "\u{202e}x",
        "tasks",
        "a/pushNotificationConfigs",
    ];
    for id in printable.chain(more.map(str::to_owned)) {
        let clean = |path: String, expected: &str| {
            let answer = wire.get(&path, V1);
            assert_eq!((answer.status, answer.reason().as_str()), (404, "TASK_NOT_FOUND"), "{path}");
            let named = answer.json()["error"]["details"][0]["metadata"]["taskId"].clone();
            assert_eq!(named, json!(expected), "{path}");
        };
        clean(format!("/tasks/{}", encode(&id)), &id);
        clean(format!("/tenant/tasks/{}", encode(&id)), &id);
        clean(format!("/tasks/{}", encode(&encode(&id))), &encode(&id));
        let canceled = wire.post(&format!("/tasks/{}:cancel", encode(&id)), V1, "").json();
        assert_eq!(canceled["error"]["details"][0]["metadata"]["taskId"], json!(id), "cancel {id:?}");
        let got = wire.rpc("GetTask", &json!({ "id": id }));
        assert_eq!(got["error"]["data"][0]["metadata"]["taskId"], json!(id), "JSON-RPC {id:?}");
        assert_eq!(wire.get(&format!("/v1/tasks/{}", encode(&id)), "").json()["data"]["metadata"]["taskId"], json!(id));
    }
    for (path, id) in [
        ("/tasks/a:b", "a:b"),
        ("/tasks/:cancel", ":cancel"),
        ("/tasks/a%", "a%"),
        ("/tasks/a%zz", "a%zz"),
        ("/tasks/a+b", "a+b"),
    ] {
        assert_eq!(wire.get(path, V1).json()["error"]["details"][0]["metadata"]["taskId"], json!(id), "{path}");
    }
    // What is not UTF-8 cannot be an id.
    assert_eq!(wire.get("/tasks/%ff", V1).reason(), "METHOD_NOT_FOUND");
    assert_eq!(wire.tasks(), 0);
    wire.assert_sound();
}

#[test]
fn the_id_of_a_call_comes_back_as_it_was() {
    let wire = Wire::start("");
    let ids = [
        "1",
        "-1",
        "0",
        "1.5",
        "1e3",
        "123456789012345678901234567890",
        "\"1\"",
        "\"\"",
        "\"a\\\"b\\u00e9\\n\"",
        "\"é\"",
        "null",
        "1E400",
    ];
    for id in ids {
        let echoed = |answer: &Answer| {
            let text = answer.text();
            assert!(text.contains(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#)), "{id} in {text}");
        };
        let call = |method: &str, params: &Value| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
        };
        echoed(&wire.post("/", V1, &call("ListTasks", &json!({}))));
        echoed(&wire.post("/", V1, &call("GetTask", &json!({ "id": "x" }))));
        echoed(&wire.post("/", V1, &call("NoSuchMethod", &json!({}))));
        echoed(&wire.post("/", "", &call("tasks/resubscribe", &json!({ "id": "x" }))));
        let streamed = wire.post("/", V1, &call("SendStreamingMessage", &send("hello")));
        let data: Vec<String> =
            streamed.text().lines().filter(|line| line.starts_with("data")).map(str::to_owned).collect();
        assert_eq!(data.len(), 4, "task, working, artifact, completed");
        for line in data {
            assert!(line.starts_with(&format!(r#"data: {{"jsonrpc":"2.0","id":{id},"result":"#)), "{id} in {line}");
        }
    }
    for id in ["true", "[]", "{}", "[1]"] {
        let answer = wire.post("/", V1, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ListTasks"}}"#));
        assert_eq!((answer.code(), &answer.json()["id"]), (-32600, &Value::Null), "{id}");
    }
    let answer = wire.post("/", V1, r#"{"jsonrpc":"2.0","method":"ListTasks"}"#).json();
    assert_eq!((&answer["id"], &answer["result"]["tasks"].is_array()), (&Value::Null, &true), "no id at all");
    wire.assert_sound();
}

#[test]
fn content_types() {
    let wire = Wire::start("");
    let kind = |kind: &str| format!("A2A-Version: 1.0\r\nContent-Type: {kind}\r\n");
    let rest = send("hello").to_string();
    let good = [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "Application/JSON",
        "application/a2a+json",
        "application/a2a+json; x=y",
        " application/json ",
    ];
    for good in good {
        assert_eq!(wire.ask(request("POST", "/", &kind(good), LIST)).json()["result"]["pageSize"], 50, "{good}");
        assert_eq!(wire.ask(request("POST", "/message:send", &kind(good), &rest)).status, 200, "{good}");
    }
    assert_eq!(wire.ask(request("POST", "/", V1, LIST)).json()["result"]["pageSize"], 50, "none on JSON-RPC");
    assert_eq!(wire.ask(request("POST", "/message:send", V1, &rest)).status, 200, "none on REST");
    let before = wire.tasks();
    for bad in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "application",
        "*/*",
        "\"",
        ";",
        "\u{e9}",
    ] {
        let answer = wire.ask(request("POST", "/", &kind(bad), LIST));
        assert_eq!((answer.status, answer.code(), &answer.json()["id"]), (200, -32005, &Value::Null), "{bad}");
        let answer = wire.ask(request("POST", "/message:send", &kind(bad), &rest));
        assert_eq!((answer.status, answer.reason().as_str()), (415, "CONTENT_TYPE_NOT_SUPPORTED"), "{bad}");
        assert_eq!(answer.json()["error"]["code"], 415, "{bad}");
        let answer = wire.ask(request("POST", "/v1/message:send", &format!("Content-Type: {bad}\r\n"), &rest));
        assert_eq!(answer.json()["type"], "ContentTypeNotSupportedError", "{bad}");
    }
    assert_eq!(wire.tasks(), before, "nothing was done");
    wire.assert_sound();
}

#[test]
fn rest_answers_in_the_media_type_that_was_asked_for() {
    let wire = Wire::start("");
    let a2a = "application/a2a+json";
    for (accept, expected) in [
        ("application/a2a+json", a2a),
        ("Application/A2A+JSON", a2a),
        ("application/a2a+json;q=0.9, text/html", a2a),
        ("text/html, application/a2a+json", a2a),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("text/html", "application/json"),
        ("", "application/json"),
    ] {
        let headers = format!("A2A-Version: 1.0\r\nAccept: {accept}\r\n");
        for path in ["/tasks", "/tasks/missing", "/nothing", "/extendedAgentCard"] {
            assert_eq!(wire.get(path, &headers).header("content-type"), Some(expected), "{path} {accept}");
        }
        assert_eq!(
            wire.post("/", &headers, LIST).header("content-type"),
            Some("application/json"),
            "JSON-RPC {accept}"
        );
        let old = wire.get("/v1/tasks", &format!("Accept: {accept}\r\n"));
        assert_eq!(old.header("content-type"), Some("application/json"), "0.3 {accept}");
    }
    let sent = wire.post(
        "/message:send",
        "A2A-Version: 1.0\r\nContent-Type: application/a2a+json\r\n",
        &send("x").to_string(),
    );
    assert_eq!(sent.header("content-type"), Some(a2a), "as it was sent");
    let streamed = wire.post(
        "/message:stream",
        "A2A-Version: 1.0\r\nContent-Type: application/a2a+json\r\n",
        &send("x").to_string(),
    );
    assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
}

#[test]
fn wrong_methods_are_told_the_right_ones() {
    let wire = Wire::start("");
    let table = [
        ("/", "POST"),
        ("/a2a", "POST"),
        ("/message:send", "POST"),
        ("/message:stream", "POST"),
        ("/blue/message:send", "POST"),
        ("/v1/message:send", "POST"),
        ("/tasks", "GET"),
        ("/tasks/x", "GET"),
        ("/tasks/x:cancel", "POST"),
        ("/tasks/x:subscribe", "GET, POST"),
        ("/tasks/x/pushNotificationConfigs", "GET, POST"),
        ("/tasks/x/pushNotificationConfigs/p", "GET, DELETE"),
        ("/extendedAgentCard", "GET"),
        ("/health", "GET, HEAD"),
        ("/ready", "GET, HEAD"),
        ("/.well-known/agent-card.json", "GET, HEAD"),
        ("/metrics", "GET"),
    ];
    for (path, allow) in table {
        for method in ["OPTIONS", "PUT", "PATCH", "TRACE", "BREW", "DELETE", "POST", "GET"] {
            if allow.split(", ").any(|allowed| allowed == method) {
                continue;
            }
            let version = if path.starts_with("/v1") { "" } else { V1 };
            let answer = wire.ask(request(method, path, version, if method == "GET" { "" } else { "{}" }));
            assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {path}");
            assert_eq!(answer.json()["error"]["code"], 405, "{method} {path}");
        }
    }
    for path in ["/health", "/ready", "/.well-known/agent-card.json", "/tasks"] {
        let mut connection = wire.connect();
        connection.send(request("HEAD", path, V1, ""));
        let head = connection.head();
        assert_eq!(head.status, 200, "HEAD {path}");
        assert!(head.header("content-length").is_some_and(|n| n != "0"), "HEAD {path} tells the length");
        assert_eq!(connection.rest(), b"", "HEAD {path} has no body");
    }
    for path in ["/", "/message:send", "/tasks/x:cancel"] {
        let mut connection = wire.connect();
        connection.send(request("HEAD", path, V1, ""));
        assert_eq!((connection.head().status, connection.rest().len()), (405, 0), "HEAD {path}");
    }
    wire.assert_sound();
}
