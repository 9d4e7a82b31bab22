//! What one caller may take of the server, and that others do not notice.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::time::{Duration, Instant};

use nuncio_tests::{
    PATIENCE, RequestBuilder, Server, Sse, Value, Wire, answer, at_once, client, follow_up, id, json, message, state,
};

const TWO: &str = "store: memory\ntokens:\n  - {name: alice, token: a}\n  - {name: bob, token: b}\n";

fn server(more: &str) -> Server {
    Server::configured(&format!("{TWO}{more}\n"))
}

async fn rpc(server: &Server, token: &str, method: &str, params: &Value) -> (u16, Value) {
    answer(server.rpc_request(method, params).bearer_auth(token)).await
}

async fn start(server: &Server, token: &str, text: &str) -> Value {
    let (status, body) = rpc(server, token, "SendMessage", &at_once(message(text))).await;
    assert_eq!(status, 200, "{body}");
    body["result"]["task"].clone()
}

async fn task(server: &Server, token: &str, task: &Value) -> Value {
    rpc(server, token, "GetTask", &json!({ "id": id(task) })).await.1["result"].clone()
}

async fn until(server: &Server, token: &str, wanted: &Value, reached: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = task(server, token, wanted).await;
        if state(&now) == reached {
            return;
        }
        assert!(Instant::now() < until, "{reached} is not reached: {now}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A read, on any wire.
fn read(wire: Wire, server: &Server) -> RequestBuilder {
    match wire {
        Wire::Rpc => server.rpc_request("GetTask", &json!({ "id": "none" })),
        Wire::Rest => server.get("/tasks/none"),
        Wire::OldRpc => server.rpc_request("tasks/get", &json!({ "id": "none" })),
        Wire::OldRest => client().get(format!("{}/v1/tasks/none", server.url)),
    }
}

/// Calls until the server has enough. A machine would have to be very slow never to be told so.
async fn until_refused(request: impl Fn() -> RequestBuilder) -> (Option<String>, Value) {
    for _ in 0..200 {
        let response = request().send().await.unwrap();
        if response.status() == 429 {
            let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
            return (retry_after.map(str::to_owned), response.json().await.unwrap());
        }
    }
    panic!("two hundred calls and no refusal");
}

#[tokio::test]
async fn a_caller_who_calls_too_often_is_told_to_wait_and_others_are_served() {
    for wire in Wire::ALL {
        let server = server("rate-limit: 1\nrate-burst: 3");
        let (retry_after, body) = until_refused(|| read(wire, &server).bearer_auth("a")).await;
        assert_eq!(retry_after.as_deref(), Some("1"), "{wire:?}");
        match wire {
            Wire::Rpc => {
                assert_eq!((&body["id"], &body["error"]["code"]), (&json!(1), &json!(-31429)), "{body}");
                assert_eq!(body["error"]["data"][0]["reason"], "RATE_LIMITED", "{body}");
            }
            Wire::Rest => {
                assert_eq!(body["error"]["status"], "RESOURCE_EXHAUSTED", "{body}");
                assert_eq!(body["error"]["details"][0]["reason"], "RATE_LIMITED", "{body}");
            }
            Wire::OldRpc => assert_eq!(body["error"]["code"], -31429, "{body}"),
            Wire::OldRest => assert!(body.to_string().contains("wait a second"), "{body}"),
        }
        let (status, _) = answer(read(wire, &server).bearer_auth("b")).await;
        assert_ne!(status, 429, "{wire:?}: another caller");
        let health = client().get(format!("{}/health", server.url)).send().await.unwrap();
        assert_eq!(health.status(), 200);
    }
}

#[tokio::test]
async fn every_request_counts_whatever_it_is() {
    let limits = "rate-limit: 1\nrate-burst: 3";
    let body = |server: &Server, path: &str, body: &str| {
        let request = client().post(format!("{}{path}", server.url)).body(body.to_owned());
        request.header("Content-Type", "application/json").header("A2A-Version", "1.0")
    };
    for (what, request) in [
        ("what is not JSON", &(|server: &Server| body(server, "/", "{")) as &dyn Fn(&Server) -> RequestBuilder),
        ("what is no request", &|server| body(server, "/", "{}")),
        ("wrong parameters", &|server| server.rpc_request("SendMessage", &json!({ "message": 1 }))),
        ("no such method", &|server| server.rpc_request("NoSuchMethod", &json!({}))),
        ("another method of HTTP", &|server| server.get("/")),
        ("a wrong body", &|server| body(server, "/message:send", "{")),
        ("no such path", &|server| server.get("/nothing/at/all/here")),
        ("no such artifact", &|server| server.get("/artifacts/a/b")),
        ("the numbers", &|server| server.get("/metrics")),
    ] {
        let server = server(limits);
        let (retry_after, refused) = until_refused(|| request(&server).bearer_auth("a")).await;
        assert_eq!(retry_after.as_deref(), Some("1"), "{what}");
        assert!(refused.to_string().contains("RATE_LIMITED"), "{what}: {refused}");
        let other = request(&server).bearer_auth("b").send().await.unwrap();
        assert_ne!(other.status(), 429, "{what}: another caller");
    }
}

#[tokio::test]
async fn a_request_counts_once_and_what_everybody_may_see_not_at_all() {
    let server = server("rate-limit: 1\nrate-burst: 20");
    let began = Instant::now();
    for path in ["/.well-known/agent-card.json", "/health", "/ready"] {
        for _ in 0..30 {
            assert_eq!(client().get(format!("{}{path}", server.url)).send().await.unwrap().status(), 200, "{path}");
        }
    }
    for n in 0..20 {
        let (status, body) = answer(read(Wire::Rest, &server).bearer_auth("a")).await;
        assert_eq!(status, 404, "{n}: {body}");
    }
    let took = began.elapsed().as_secs();
    let (refused, most) = (async || answer(read(Wire::Rest, &server).bearer_auth("a")).await.0 == 429, took + 2);
    let mut more = 0;
    while !refused().await {
        more += 1;
        assert!(more <= most, "{more} more than twenty in {took} seconds");
    }
}

#[tokio::test]
async fn without_names_an_address_is_a_caller() {
    let server = Server::configured("store: memory\nrate-limit: 1\ntrusted-proxies: [127.0.0.1]\n");
    let from = |address: &str| read(Wire::Rest, &server).header("X-Forwarded-For", address);
    let (_, body) = until_refused(|| from("203.0.113.1")).await;
    assert_eq!(body["error"]["details"][0]["reason"], "RATE_LIMITED");
    let (status, _) = answer(from("203.0.113.2")).await;
    assert_eq!(status, 404, "another address");
}

#[tokio::test]
async fn a_caller_with_enough_running_waits_while_others_run() {
    let server = server("max-running-turns-per-caller: 1");
    let first = start(&server, "a", "hold").await;
    until(&server, "a", &first, "WORKING").await;
    let second = start(&server, "a", "hold").await;
    let third = start(&server, "a", "hold").await;
    let others = start(&server, "b", "hold").await;
    until(&server, "b", &others, "WORKING").await;
    assert_eq!(state(&task(&server, "a", &second).await), "SUBMITTED");
    rpc(&server, "a", "CancelTask", &json!({ "id": id(&first) })).await;
    until(&server, "a", &second, "WORKING").await;
    assert_eq!(state(&task(&server, "a", &third).await), "SUBMITTED", "one at a time");
    rpc(&server, "a", "CancelTask", &json!({ "id": id(&third) })).await;
    until(&server, "a", &third, "CANCELED").await;
    rpc(&server, "a", "CancelTask", &json!({ "id": id(&second) })).await;
    let last = start(&server, "a", "hold").await;
    until(&server, "a", &last, "WORKING").await;
}

#[tokio::test]
async fn a_caller_with_enough_waiting_is_refused_and_nothing_is_stored() {
    let server = server("max-running-turns-per-caller: 1\nmax-queued-turns-per-caller: 1");
    let first = start(&server, "a", "hold").await;
    start(&server, "a", "hold").await;
    for wire in [Wire::Rpc, Wire::Rest] {
        let response = wire.stream(&server, "hold").bearer_auth("a").send().await.unwrap();
        assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"1".parse().unwrap()));
        let body: Value = response.json().await.unwrap();
        assert!(body.to_string().contains("RATE_LIMITED"), "{body}");
    }
    let (_, list) = rpc(&server, "a", "ListTasks", &json!({})).await;
    assert_eq!(list["result"]["totalSize"], 2, "{list}");
    start(&server, "b", "hold").await;
    start(&server, "b", "hold").await;
    rpc(&server, "a", "CancelTask", &json!({ "id": id(&first) })).await;
    let until = Instant::now() + PATIENCE;
    while rpc(&server, "a", "SendMessage", &at_once(message("hold"))).await.0 == 429 {
        assert!(Instant::now() < until, "the place that became free is not given again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn streams_of_one_caller_are_counted() {
    let server = server("max-streams-per-caller: 1");
    let stream = |token: &str| server.post("/message:stream", &message("hold")).bearer_auth(token);
    let mut first = Sse::open(stream("a")).await;
    first.next().await.expect("an event");
    let refused = stream("a").send().await.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    let (_, list) = rpc(&server, "a", "ListTasks", &json!({})).await;
    assert_eq!(list["result"]["totalSize"], 1, "the one that was refused began nothing: {list}");
    let mut other = Sse::open(stream("b")).await;
    other.next().await.expect("an event");
    drop(first);
    let until = Instant::now() + PATIENCE;
    while stream("a").send().await.unwrap().status() == 429 {
        assert!(Instant::now() < until, "the place of a closed stream is not given again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Long messages fill a task sooner than many, and a page of a list holds few such tasks.
#[tokio::test]
async fn bytes_of_a_task_and_of_a_page_have_their_measure() {
    let server = server("max-body: 6MiB");
    let long = "x".repeat(5 << 20);
    let (_, body) = rpc(&server, "a", "SendMessage", &message("auth please")).await;
    let task = body["result"]["task"].clone();
    let mut taken = 0;
    let refused = loop {
        let (_, body) = rpc(&server, "a", "SendMessage", &follow_up(&task, &format!("auth {long}"))).await;
        if body.get("error").is_some() {
            break body;
        }
        taken += 1;
        assert!(taken < 20, "a history without end");
    };
    assert_eq!(refused["error"]["code"], -32004, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("contextId"), "{refused}");
    assert!((2..=5).contains(&taken), "24 MiB are about so many: {taken}");

    for _ in 0..4 {
        rpc(&server, "a", "SendMessage", &message(&format!("auth {long}"))).await;
    }
    let (mut token, mut seen, mut pages) = (String::new(), 0, 0);
    loop {
        let params = json!({ "pageSize": 100, "pageToken": token, "historyLength": 0 });
        let (_, list) = rpc(&server, "a", "ListTasks", &params).await;
        assert_eq!(list["result"]["totalSize"], 5);
        seen += list["result"]["tasks"].as_array().unwrap().len();
        pages += 1;
        token = list["result"]["nextPageToken"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() || pages > 5 {
            break;
        }
    }
    assert_eq!(seen, 5);
    assert!((3..=5).contains(&pages), "{pages} pages");
}

#[tokio::test]
async fn messages_tasks_and_webhooks_have_their_measure() {
    let more = "max-parts: 2\nmax-history: 3\nmax-webhooks: 1\npush-notifications: true\n\
                push-allowed-cidrs: [127.0.0.0/8]";
    let server = server(more);
    let mut params = message("hello");
    params["message"]["parts"] = json!([{ "text": "a" }, { "text": "b" }, { "text": "c" }]);
    let (_, body) = rpc(&server, "a", "SendMessage", &params).await;
    assert_eq!(body["error"]["code"], -32602, "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("more than 2 parts"), "{body}");

    let (_, body) = rpc(&server, "a", "SendMessage", &message("auth please")).await;
    let mut task = body["result"]["task"].clone();
    let mut refused = None;
    for _ in 0..10 {
        let (_, body) = rpc(&server, "a", "SendMessage", &follow_up(&task, "auth again")).await;
        if body.get("error").is_some() {
            refused = Some(body);
            break;
        }
        task = body["result"]["task"].clone();
    }
    let refused = refused.expect("a history without end");
    assert_eq!(refused["error"]["code"], -32004, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("contextId"), "{refused}");

    // Nobody listens there any more.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let webhook = |name: &str| json!({ "taskId": id(&task), "id": name, "url": format!("http://{closed}/hook") });
    let create = "CreateTaskPushNotificationConfig";
    let (_, body) = rpc(&server, "a", create, &webhook("one")).await;
    assert!(body["result"].is_object(), "{body}");
    let (_, body) = rpc(&server, "a", create, &webhook("two")).await;
    assert_eq!(body["error"]["code"], -32602, "{body}");
    let (_, body) = rpc(&server, "a", create, &webhook("one")).await;
    assert!(body["result"].is_object(), "it can be replaced: {body}");
}
