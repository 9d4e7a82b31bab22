//! Limits and deadlines of connections, each set through the configuration.

use std::time::Duration;

use nuncio_tests::json;
use nuncio_tests::raw::{Answer, Connection, V1, Wire, request, until};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;

fn send(text: &str) -> String {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] } }).to_string()
}

/// A request on a connection that stays open.
fn kept(method: &str, path: &str, headers: &str, body: &str) -> String {
    request(method, path, headers, body).replace("Connection: close\r\n", "")
}

/// Opens a stream and reads its first event.
fn stream(wire: &Wire, text: &str) -> Connection {
    let mut connection = wire.connect();
    connection.send(kept("POST", "/message:stream", V1, &send(text)));
    let head = connection.head();
    assert_eq!(head.header("content-type"), Some("text/event-stream"), "{}", head.status);
    connection.chunks_until("TASK_STATE_WORKING");
    connection
}

fn assert_full(answer: &Answer) {
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{}", answer.text());
}

#[test]
fn bodies_beyond_max_body_are_refused() {
    let wire = Wire::start("max-body: 4KiB\n");
    let text = |size: usize| "x".repeat(size);
    assert_eq!(wire.post("/message:send", V1, &send(&text(3000))).status, 200);
    let before = wire.tasks();
    let big = send(&text(4096));
    let answer = wire.post("/message:send", V1, &big);
    assert_eq!((answer.status, answer.reason().as_str()), (413, "REQUEST_TOO_LARGE"));
    assert!(answer.json()["error"]["message"].as_str().is_some_and(|text| text.contains("4096")), "says the limit");
    let rpc = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{big}}}"#);
    let answer = wire.post("/", V1, &rpc);
    assert_eq!((answer.status, answer.reason().as_str()), (413, "REQUEST_TOO_LARGE"));
    // In chunks, the length is not known before.
    let chunked = format!("{V1}Transfer-Encoding: chunked\r\n");
    let head = format!("POST /message:send HTTP/1.1\r\nHost: localhost\r\n{chunked}\r\n");
    let chunks: String = big
        .as_bytes()
        .chunks(512)
        .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)))
        .collect();
    let answer = wire.ask(format!("{head}{chunks}0\r\n\r\n"));
    assert_eq!((answer.status, answer.reason().as_str()), (413, "REQUEST_TOO_LARGE"));
    assert_eq!(wire.tasks(), before, "nothing was done");
    wire.assert_sound();
}

#[test]
fn heads_beyond_max_header_are_refused() {
    let wire = Wire::start("max-header: 8KiB\n");
    let long = |size: usize| format!("X-Long: {}\r\n", "x".repeat(size));
    assert_eq!(wire.get("/health", &long(7000)).status, 200);
    // However it comes in pieces.
    for size in [8_200, 9_000, 12_000, 16_000, 20_000, 30_000, 60_000] {
        let mut connection = wire.connect();
        let _ = connection.try_send(request("GET", "/health", &long(size), ""));
        assert_eq!(connection.try_answer().map(|answer| answer.status), Ok(431), "{size} bytes");
    }
    let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert_eq!(wire.ask(request("GET", "/health", &many, "")).status, 431, "too many");
    let path = format!("/tasks/{}", "x".repeat(9000));
    assert!(matches!(wire.ask(request("GET", &path, "", "")).status, 414 | 431), "too long a path");
    wire.assert_sound();
}

#[test]
fn slow_heads_are_cut_off() {
    let wire = Wire::start("header-timeout: 500ms\nidle-timeout: 60s\n");
    for start in ["G", "GET /health HTTP/1.1\r\n", "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        let mut slow = wire.connect();
        slow.send(start);
        slow.closed();
    }
    // Byte by byte is no way around it.
    let mut slow = wire.connect();
    slow.send("GET /health HTTP/1.1\r\nX-Slow: ");
    let mut sent = 0;
    until("the trickle is cut off", || {
        sent += 1;
        slow.try_send("x").is_err()
    });
    // A second head on the same connection has the same time, and no less.
    let mut twice = wire.connect();
    twice.send(kept("GET", "/health", "", ""));
    assert_eq!(twice.answer().status, 200);
    twice.send("GET /hea");
    twice.closed();
    wire.assert_sound();
    until("no connection is left", || wire.metric("nuncio_connections") <= 1.0);
}

/// What is spoken shows in the first bytes, however few of them come at once.
#[test]
fn versions_of_http_are_told_apart_by_their_first_bytes() {
    let wire = Wire::start("");
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for first in [1, 2, 3, 4, 24, preface.len()] {
        let mut connection = wire.connect();
        connection.send(&preface[..first]);
        assert!(connection.is_silent_for(Duration::from_millis(50)) || first >= 24, "{first} bytes");
        connection.send(&preface[first..]);
        // The settings of the server: a frame of type 4 on stream 0.
        let settings = connection.through("\x04\0\0\0\0\0");
        assert!(settings.starts_with(b"\0\0"), "{first} bytes: {settings:?}");
    }
    for method in ["GET", "POST", "PUT", "PATCH"] {
        let request = kept(method, "/health", "", "");
        for first in [1, 2, 3, 4] {
            let mut connection = wire.connect();
            connection.send(&request[..first]);
            assert!(connection.is_silent_for(Duration::from_millis(20)));
            connection.send(&request[first..]);
            assert_eq!(connection.answer().status, if method == "GET" { 200 } else { 405 }, "{method} {first}");
        }
    }
    wire.assert_sound();
}

#[test]
fn slow_bodies_are_cut_off() {
    let wire = Wire::start("body-timeout: 300ms\n");
    for path in ["/", "/message:send", "/v1/message:send"] {
        let mut slow = wire.connect();
        let version = if path.starts_with("/v1") { "" } else { V1 };
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{version}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
        );
        slow.send(head);
        let answer = slow.answer();
        assert_eq!((answer.status, answer.reason().as_str()), (408, "REQUEST_TIMEOUT"), "{path}: {}", answer.text());
        assert!(answer.text().contains("did not arrive in time"), "{path}: {}", answer.text());
        slow.closed();
    }
    assert_eq!(wire.tasks(), 0);
    wire.assert_sound();
}

#[test]
fn idle_connections_are_closed_and_busy_ones_are_not() {
    let wire = Wire::start("idle-timeout: 500ms\nkeep-alive: 60s\n");
    // Both began before the idle ones, and both are silent longer than those may be.
    let mut streaming = stream(&wire, "hold");
    let mut blocking = wire.connect();
    blocking.send(kept("POST", "/message:send", V1, &send("hold")));
    until("both work", || wire.metric("nuncio_turns_running") == 2.0);
    wire.connect().closed();
    let mut used = wire.connect();
    used.send(kept("GET", "/health", "", ""));
    assert_eq!(used.answer().status, 200);
    used.closed();
    for task in wire.rpc("ListTasks", &json!({}))["result"]["tasks"].as_array().expect("tasks") {
        wire.rpc("CancelTask", &json!({ "id": task["id"] }));
    }
    assert_eq!(blocking.answer().json()["task"]["status"]["state"], "TASK_STATE_CANCELED");
    streaming.chunks_until("TASK_STATE_CANCELED");
    assert_eq!(streaming.chunk(), Ok(Vec::new()), "the stream ends as it should");
    // After its answer a connection is idle like any other.
    blocking.closed();
    streaming.closed();
    wire.assert_sound();
}

#[test]
fn the_stream_beyond_max_streams_is_told_to_come_back() {
    let wire = Wire::start("max-streams: 2\n");
    let (first, second) = (stream(&wire, "hold"), stream(&wire, "hold"));
    let before = wire.tasks();
    let task = wire.rpc("ListTasks", &json!({}))["result"]["tasks"][0]["id"].as_str().expect("a task").to_owned();
    let rpc =
        |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    for answer in [
        wire.post("/message:stream", V1, &send("hello")),
        wire.post("/", V1, &rpc("SendStreamingMessage", &send("hello"))),
        wire.post("/", "", &rpc("message/stream", &send("hello").replace("ROLE_USER", "user"))),
        wire.post(&format!("/tasks/{task}:subscribe"), V1, ""),
        wire.post("/", V1, &rpc("SubscribeToTask", &format!(r#"{{"id":"{task}"}}"#))),
        wire.post("/", "", &rpc("tasks/resubscribe", &format!(r#"{{"id":"{task}"}}"#))),
    ] {
        assert_full(&answer);
        assert_eq!(answer.reason(), "UNAVAILABLE");
    }
    assert_eq!(wire.tasks(), before, "whoever is sent away has started nothing");
    assert_eq!(wire.post("/message:send", V1, &send("hello")).status, 200, "other calls go on");
    assert_eq!(wire.metric("nuncio_subscribers"), 2.0);
    drop(first);
    until("the place of a client that vanished is free", || wire.metric("nuncio_subscribers") == 1.0);
    let third = stream(&wire, "hold");
    assert_full(&wire.post("/message:stream", V1, &send("hello")));
    drop((second, third));
    until("all places are free", || wire.metric("nuncio_subscribers") == 0.0);
    wire.assert_sound();
}

#[test]
fn a_stream_that_ends_frees_its_place() {
    let wire = Wire::start("max-streams: 1\n");
    for _ in 0..20 {
        let answer = wire.post("/message:stream", V1, &send("hello"));
        assert_eq!((answer.status, answer.events().len()), (200, 4));
        until("the place is free", || wire.metric("nuncio_subscribers") == 0.0);
    }
    for _ in 0..20 {
        assert_eq!(wire.post("/message:stream", V1, &send("message hi")).status, 200, "a direct answer");
        assert_eq!(wire.post("/tasks/missing:subscribe", V1, "").status, 404, "an error");
    }
    assert_eq!(wire.metric("nuncio_subscribers"), 0.0);
}

#[test]
fn connections_beyond_max_connections_are_told_to_come_back() {
    let wire = Wire::start("max-connections: 3\n");
    let mut all: Vec<Connection> = (0..3).map(|_| wire.connect()).collect();
    for connection in &mut all {
        connection.send(kept("GET", "/health", "", ""));
        assert_eq!(connection.answer().status, 200);
    }
    for _ in 0..20 {
        // The whole answer arrives, whether or not a request was on its way.
        let answer = wire.ask(request("POST", "/", V1, LIST));
        assert_full(&answer);
        assert!(answer.json()["error"].as_str().is_some_and(|text| text.contains("try again")), "{}", answer.text());
        let mut silent = wire.connect();
        assert_full(&silent.answer());
    }
    let big = "x".repeat(1 << 20);
    let mut connection = wire.connect();
    let _ = connection.try_send(request("POST", "/", V1, &big));
    assert_full(&connection.answer());
    for connection in &mut all {
        connection.send(kept("GET", "/health", "", ""));
        assert_eq!(connection.answer().status, 200, "those inside are not disturbed");
    }
    all.pop();
    until("there is room again", || wire.get("/health", "").status == 200);
    drop(all);
    until("all have gone", || wire.get("/metrics", "").text().contains("nuncio_connections 1\n"));
    assert!(wire.metric("nuncio_connections_refused_total") >= 41.0);
    wire.assert_sound();
}

#[test]
fn a_silent_stream_shows_that_it_lives() {
    let wire = Wire::start("keep-alive: 100ms\n");
    // Comments of one line each, without a blank one, as often as they come.
    const SIGNS: &str = ": keep-alive\n: keep-alive\n: keep-alive\n";
    let mut connection = stream(&wire, "hold");
    assert_eq!(connection.chunks_until(SIGNS), SIGNS);
    // JSON-RPC streams do the same.
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{}}}"#, send("hold"));
    let mut connection = wire.connect();
    connection.send(kept("POST", "/", V1, &body));
    connection.head();
    let text = connection.chunks_until(SIGNS);
    assert!(text.ends_with(&format!("\n\n{SIGNS}")), "{text:?}");
}

#[test]
fn a_pause_between_requests_is_no_slow_head() {
    let wire = Wire::start("header-timeout: 200ms\nidle-timeout: 30s\n");
    let mut connection = wire.connect();
    for _ in 0..3 {
        connection.send(kept("GET", "/health", "", ""));
        assert_eq!(connection.answer().status, 200);
        assert!(connection.is_silent_for(Duration::from_secs(1)), "still open");
    }
}
