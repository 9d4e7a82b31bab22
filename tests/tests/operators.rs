//! What operators see: health, readiness, numbers, the log, and who gets in.

#![allow(clippy::panic)] // that is how tests fail

use nuncio_tests::raw::{V1, Wire, request, until};
use nuncio_tests::{Value, json};

fn send(text: &str) -> String {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] } }).to_string()
}

#[test]
fn readiness_ends_with_the_signal_to_stop() {
    for store in ["memory", "sqlite"] {
        let mut wire = Wire::start(&format!("store: {store}\ndrain-timeout: 20s\n"));
        assert_eq!(wire.get("/health", "").json(), json!({ "status": "healthy" }));
        let ready = wire.get("/ready", "");
        assert_eq!((ready.status, ready.json()), (200, json!({ "status": "ready", "store": "ok" })));
        let mut held = wire.connect();
        held.send(request("POST", "/message:send", V1, &send("hold")));
        until("the turn runs", || wire.metric("nuncio_turns_running") == 1.0);
        wire.signal("TERM");
        until("it drains", || wire.get("/ready", "").status == 503);
        assert_eq!(wire.get("/ready", "").json(), json!({ "status": "draining" }));
        assert_eq!(wire.get("/health", "").status, 200, "it still lives");
        let refused = wire.post("/message:send", V1, &send("hello"));
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text());
        let rpc = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}}"#, send("hello"));
        assert_eq!(wire.post("/", V1, &rpc).reason(), "UNAVAILABLE");
        let tasks = wire.rpc("ListTasks", &json!({}));
        let id = &tasks["result"]["tasks"][0]["id"];
        assert_eq!(tasks["result"]["totalSize"], 1, "reading goes on");
        let canceled = wire.rpc("CancelTask", &json!({ "id": id }));
        assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED", "so does canceling");
        assert_eq!(held.answer().json()["task"]["status"]["state"], "TASK_STATE_CANCELED");
        assert_eq!(wire.ended(), Some(0));
    }
}

#[test]
fn finished_tasks_go_when_their_time_is_over() {
    for store in ["memory", "sqlite"] {
        let wire = Wire::start(&format!("store: {store}\nretention: 1s\n"));
        assert_eq!(wire.post("/message:send", V1, &send("hello")).status, 200);
        until("it is gone", || wire.rpc("ListTasks", &json!({}))["result"]["totalSize"] == 0);
    }
}

#[test]
fn where_every_turn_ends_with_a_rest_tasks_at_rest_go_too() {
    for store in ["memory", "sqlite"] {
        let wire = Wire::start(&format!("profile: iac-code\nstore: {store}\nretention: 1s\n"));
        let answer = wire.rpc("SendMessage", &send("hello").parse().expect("JSON"));
        assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{answer}");
        until("it is gone", || wire.rpc("ListTasks", &json!({}))["result"]["totalSize"] == 0);
    }
}

#[test]
fn calls_are_counted_by_operation_binding_and_version() {
    let wire = Wire::start("");
    let (new, old) = (send("hello"), send("hello").replace("ROLE_USER", "user"));
    let id = wire.post("/message:send", V1, &new).json()["task"]["id"].as_str().expect("a task").to_owned();
    let by_id = json!({ "id": id }).to_string();
    // name, 1.0 method, 0.3 method, params of both, REST method, path, body
    let push = format!("tasks/{id}/pushNotificationConfigs");
    let table = [
        ("SendMessage", "SendMessage", "message/send", (&new, &old), "POST", "message:send".to_owned(), &new),
        (
            "SendStreamingMessage",
            "SendStreamingMessage",
            "message/stream",
            (&new, &old),
            "POST",
            "message:stream".into(),
            &new,
        ),
        ("GetTask", "GetTask", "tasks/get", (&by_id, &by_id), "GET", format!("tasks/{id}"), &String::new()),
        (
            "CancelTask",
            "CancelTask",
            "tasks/cancel",
            (&by_id, &by_id),
            "POST",
            format!("tasks/{id}:cancel"),
            &String::new(),
        ),
        (
            "SubscribeToTask",
            "SubscribeToTask",
            "tasks/resubscribe",
            (&by_id, &by_id),
            "POST",
            format!("tasks/{id}:subscribe"),
            &String::new(),
        ),
        (
            "CreateTaskPushNotificationConfig",
            "CreateTaskPushNotificationConfig",
            "tasks/pushNotificationConfig/set",
            (&by_id, &by_id),
            "POST",
            push.clone(),
            &by_id,
        ),
        (
            "GetTaskPushNotificationConfig",
            "GetTaskPushNotificationConfig",
            "tasks/pushNotificationConfig/get",
            (&by_id, &by_id),
            "GET",
            format!("{push}/p"),
            &String::new(),
        ),
        (
            "ListTaskPushNotificationConfigs",
            "ListTaskPushNotificationConfigs",
            "tasks/pushNotificationConfig/list",
            (&by_id, &by_id),
            "GET",
            push.clone(),
            &String::new(),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            "DeleteTaskPushNotificationConfig",
            "tasks/pushNotificationConfig/delete",
            (&by_id, &by_id),
            "DELETE",
            format!("{push}/p"),
            &String::new(),
        ),
    ];
    let count = |operation: &str, binding: &str, version: &str| {
        let labels =
            format!(r#"nuncio_calls_total{{operation="{operation}",binding="{binding}",version="{version}"}} "#);
        let text = wire.get("/metrics", "").text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&labels))
            .unwrap_or_else(|| panic!("no {labels} in\n{text}"));
        line.parse::<u64>().expect("a number")
    };
    for (operation, new_method, old_method, (new_params, old_params), verb, path, body) in table {
        let before = |binding, version| count(operation, binding, version);
        let counts = [("jsonrpc", "1.0"), ("jsonrpc", "0.3"), ("rest", "1.0"), ("rest", "0.3")];
        let then = counts.map(|(binding, version)| before(binding, version));
        let rpc =
            |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        wire.post("/", V1, &rpc(new_method, new_params));
        wire.post("/", "", &rpc(old_method, old_params));
        wire.ask(request(verb, &format!("/{path}"), &format!("{V1}Content-Type: application/json\r\n"), body));
        wire.ask(request(verb, &format!("/v1/{path}"), "Content-Type: application/json\r\n", body));
        let now = counts.map(|(binding, version)| before(binding, version));
        assert_eq!(now, then.map(|n| n + 1), "{operation}: {counts:?}");
    }
    wire.get("/tasks", V1);
    wire.get("/extendedAgentCard", V1);
    wire.get("/v1/card", "");
    wire.post("/", V1, r#"{"jsonrpc":"2.0","id":1,"method":"Nothing"}"#);
    assert_eq!(count("ListTasks", "rest", "1.0"), 1);
    assert_eq!(count("GetExtendedAgentCard", "rest", "1.0"), 1);
    assert_eq!(count("GetExtendedAgentCard", "rest", "0.3"), 1);
    assert_eq!(count("unknown", "jsonrpc", "1.0"), 1);
    wire.assert_sound();
}

#[test]
fn work_is_counted() {
    let wire = Wire::start("store: sqlite\nmax-running-turns: 1\n");
    let kind = wire.get("/metrics", "");
    assert!(kind.header("content-type").is_some_and(|kind| kind.starts_with("application/openmetrics-text")));
    assert!(kind.text().ends_with("# EOF\n"), "the text form has an end");
    let mut first = wire.connect();
    first.send(request("POST", "/message:stream", V1, &send("hold")));
    first.head();
    let id = first.chunks_until("TASK_STATE_WORKING");
    let id = id.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an id").to_owned();
    let mut second = wire.connect();
    second.send(request("POST", "/message:send", V1, &send("hello")));
    until("one runs and one waits", || {
        wire.metric("nuncio_turns_running") == 1.0 && wire.metric("nuncio_turns_queued") == 1.0
    });
    assert_eq!(wire.metric("nuncio_subscribers"), 1.0);
    until("both are in memory", || wire.metric("nuncio_tasks_in_memory") == 2.0);
    // The two connections of the work, and the one that asks.
    until("three are open", || wire.metric("nuncio_connections") == 3.0);
    let errors = wire.metric("nuncio_call_errors_total");
    wire.rpc("GetTask", &json!({ "id": "missing" }));
    assert_eq!(wire.metric("nuncio_call_errors_total"), errors + 1.0);
    wire.rpc("CancelTask", &json!({ "id": id }));
    assert_eq!(second.answer().json()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    until("nothing runs", || wire.metric("nuncio_turns_running") + wire.metric("nuncio_turns_queued") == 0.0);
    until("nobody follows", || wire.metric("nuncio_subscribers") == 0.0);
    // Submitted, working, canceled; submitted, working, artifact, completed.
    let events = wire.metric("nuncio_events_total");
    assert_eq!(events, 7.0);
    assert_eq!(wire.metric("nuncio_commit_events_sum"), events, "every event is in some commit");
    let commits = wire.metric("nuncio_commit_events_count");
    assert!(commits >= 2.0, "each task was committed by itself: {commits}");
    assert_eq!(wire.metric("nuncio_commit_seconds_count"), commits);
    assert!(wire.metric("nuncio_commit_seconds_sum") > 0.0);
    wire.assert_sound();
}

#[test]
fn the_log_is_json_where_nobody_watches() {
    let mut wire = Wire::start("");
    wire.post("/message:send", V1, &send("crash"));
    wire.signal("TERM");
    assert_eq!(wire.ended(), Some(0));
    let log = wire.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json_line(line, &log)).collect();
    for line in &lines {
        for name in ["timestamp", "level", "message", "target"] {
            assert!(line[name].is_string(), "no {name} in {line}");
        }
    }
    let message = |text: &str| lines.iter().find(|line| line["message"].as_str().is_some_and(|m| m.contains(text)));
    let listening = message("listening").expect("where it listens");
    assert_eq!(listening["address"], json!(wire.address.to_string()));
    assert_eq!(listening["card"], json!(format!("{}/.well-known/agent-card.json", wire.url())));
    assert!(message("shutting down").is_some());
    let panicked = message("something panicked").expect("the crash of the agent");
    assert!(panicked["place"].as_str().is_some_and(|place| place.contains("demo.rs")), "{panicked}");
}

#[tokio::test]
async fn the_log_tells_which_call_made_which_task() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut server = std::process::Command::new(nuncio_tests::binary())
        .args(["serve", "--debug", "--store", "memory", "--port", "0"])
        .env("NUNCIO_LOG", "json")
        .stdout(std::process::Stdio::null())
        .stderr(std::fs::File::create(&path).expect("a file"))
        .spawn()
        .expect("the binary can be started");
    let lines = || -> Vec<Value> {
        let log = std::fs::read_to_string(&path).unwrap_or_default();
        log.lines().filter_map(|line| line.parse().ok()).collect()
    };
    let mut found = None;
    for _ in 0..600 {
        if let Some(url) = lines().iter().find_map(|line| line["card"].as_str().map(str::to_owned)) {
            let url = url.replace(".well-known/agent-card.json", "message:send");
            let body = nuncio_tests::message("hello");
            let sent = nuncio_tests::client().post(url).header("A2A-Version", "1.0").json(&body).send().await;
            sent.expect("an answer");
            found = lines().into_iter().find(|line| line["message"] == "a task was accepted");
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let _ = server.kill();
    let _ = server.wait();
    let line = found.expect("a line about the task");
    assert!(line["task"].is_string() && line["span"]["call"].is_number(), "{line}");
}

fn serde_json_line(line: &str, log: &str) -> Value {
    line.parse().unwrap_or_else(|error| panic!("{error} in {line:?} of\n{log}"))
}

const TOKENS: &str =
    "tokens:\n  - {name: anna, token: aaaaaaaaaaaaaaaaaaaaaaaa}\n  - {name: ben, token: bbbbbbbbbbbbbbbbbbbbbbbb}\n";

#[test]
fn a_token_opens_what_is_protected() {
    let wire = Wire::start(TOKENS);
    for path in ["/health", "/ready", "/.well-known/agent-card.json", "/.well-known/agent.json"] {
        assert_eq!(wire.get(path, "").status, 200, "{path} is for everyone");
    }
    let wrong = [
        "",
        "Authorization: \r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer wrong\r\n",
        "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaa\r\n",
        "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        "Authorization: Bearer AAAAAAAAAAAAAAAAAAAAAAAA\r\n",
        "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbb\r\n",
        "Authorization: aaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        "Authorization: Token aaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        "Authorization: Basic YW5uYTphYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=\r\n",
        "Authorization: Bearer \u{e9}\r\n",
        "X-Api-Key: aaaaaaaaaaaaaaaaaaaaaaaa\r\n",
    ];
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;
    for headers in wrong {
        let headers = format!("{V1}{headers}");
        let answers = [
            wire.post("/", &headers, list),
            wire.post("/", &headers, "no JSON"),
            wire.post("/message:send", &headers, &send("hello")),
            wire.post("/message:stream", &headers, &send("hello")),
            wire.get("/tasks", &headers),
            wire.get("/v1/tasks", &headers),
            wire.get("/metrics", &headers),
            wire.get("/extendedAgentCard", &headers),
            wire.get("/no/such/path", &headers),
            wire.ask(request("PUT", "/", &headers, "{}")),
        ];
        for (n, answer) in answers.iter().enumerate() {
            assert_eq!(
                (answer.status, answer.text().as_str()),
                (401, r#"{"error":"Unauthorized"}"#),
                "{n}: {headers:?}"
            );
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            assert!(challenge.starts_with("Bearer realm="), "{n}: {headers:?}: {challenge}");
            assert_eq!(answer.header("content-type"), Some("application/json"), "{n}: {headers:?}");
        }
    }
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer "] {
        let headers = format!("{V1}Authorization: {scheme} aaaaaaaaaaaaaaaaaaaaaaaa\r\n");
        assert_eq!(wire.post("/", &headers, list).json()["result"]["totalSize"], 0, "{scheme}");
        let metrics = wire.get("/metrics", &headers);
        assert_eq!(metrics.status, 200, "{scheme}");
        let refused = format!("nuncio_call_errors_total {}\n", wrong.len() * 10);
        assert!(metrics.text().contains(&refused), "whoever is refused is counted: {}", metrics.text());
    }
    assert!(!wire.log().contains("aaaaaaaa"), "a token is in the log");
}

#[test]
fn tasks_belong_to_whoever_started_them() {
    let wire = Wire::start(TOKENS);
    let anna = format!("{V1}Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaa\r\n");
    let ben = format!("{V1}Authorization: Bearer bbbbbbbbbbbbbbbbbbbbbbbb\r\n");
    let id =
        wire.post("/message:send", &anna, &send("ask why?")).json()["task"]["id"].as_str().expect("a task").to_owned();
    assert_eq!(wire.get(&format!("/tasks/{id}"), &anna).status, 200);
    assert_eq!(wire.get("/tasks", &ben).json()["totalSize"], 0);
    let missing = id.replace(|c: char| c.is_ascii_digit(), "0");
    for (path, method) in [("", "GET"), (":cancel", "POST"), (":subscribe", "POST")] {
        let foreign = wire.ask(request(method, &format!("/tasks/{id}{path}"), &ben, ""));
        let none = wire.ask(request(method, &format!("/tasks/{missing}{path}"), &ben, ""));
        assert_eq!((foreign.status, foreign.text()), (404, none.text().replace(&missing, &id)), "both look the same");
        let names = |answer: &nuncio_tests::raw::Answer| {
            answer.headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&foreign), names(&none));
    }
}
