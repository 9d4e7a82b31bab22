//! A send that is repeated under the same key runs once.

use nuncio_tests::{
    RequestBuilder, Server, Sse, Value, Wire, answer, at_once, follow_up, id, json, message, state, texts,
};
use tokio::task::JoinSet;

const TWO_CALLERS: &str =
    "tokens:\n  - {name: alice, token: alice-0123456789abcdef}\n  - {name: bob, token: bob-0123456789abcdef}\n";
const ALICE: &str = "alice-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";

fn rpc(server: &Server, params: &Value, key: &str) -> RequestBuilder {
    server.rpc_request("SendMessage", params).header("Idempotency-Key", key)
}

fn rest(server: &Server, params: &Value, key: &str) -> RequestBuilder {
    server.post("/message:send", params).header("Idempotency-Key", key)
}

/// The task in the answer to a send, over JSON-RPC or REST.
async fn sent(request: RequestBuilder) -> Value {
    let (_, answer) = answer(request).await;
    let task = answer.get("result").unwrap_or(&answer)["task"].clone();
    assert!(task.is_object(), "a task: {answer}");
    task
}

async fn how_many(server: &Server) -> Value {
    server.rpc("ListTasks", json!({})).await["result"]["totalSize"].clone()
}

#[tokio::test]
async fn a_repeated_send_returns_the_task_of_the_first_time() {
    let server = Server::start(&[]);
    let first = sent(rpc(&server, &message("stream 3"), "k")).await;
    assert_eq!(state(&first), "COMPLETED");
    assert_eq!(sent(rpc(&server, &message("stream 3"), "k")).await, first);
    assert_eq!(sent(rest(&server, &message("stream 3"), "k")).await, first);
    let old =
        json!({ "message": { "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "stream 3" }] } });
    let (_, again) = answer(server.rpc_request("message/send", &old).header("Idempotency-Key", "k")).await;
    assert_eq!(again["result"]["id"], first["id"]);
    assert_eq!(server.log(id(&first)).await.len(), 6, "it ran once");
    assert_eq!(how_many(&server).await, 1);
    assert_ne!(sent(rest(&server, &message("stream 3"), "another")).await["id"], first["id"]);
    assert_ne!(server.send("stream 3").await["id"], server.send("stream 3").await["id"], "without a key it runs again");
    assert_eq!(how_many(&server).await, 4);
}

#[tokio::test]
async fn a_repeated_stream_shows_the_events_of_the_first_time() {
    let server = Server::start(&[]);
    for wire in Wire::ALL {
        let request = || wire.stream(&server, "stream 20 10").header("Idempotency-Key", format!("{wire:?}"));
        let mut first = Sse::open(request()).await;
        let task = first.next().await.expect("the task");
        let meanwhile = Sse::open(request()).await.all().await;
        let rest = first.all().await;
        assert_eq!(meanwhile[0], task);
        assert_eq!(meanwhile[1..], rest);
        assert_eq!(meanwhile.len(), 23);
        assert_eq!(Sse::open(request()).await.all().await, meanwhile, "afterwards, too");
    }
    assert_eq!(how_many(&server).await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_at_once_run_once() {
    let server = Server::start(&[]);
    for round in 0..10 {
        let (key, mut calls) = (format!("k-{round}"), JoinSet::new());
        for n in 0..20 {
            let request = if n % 2 == 0 {
                rpc(&server, &message("stream 3"), &key)
            } else {
                rest(&server, &message("stream 3"), &key)
            };
            calls.spawn(sent(request));
        }
        let tasks = calls.join_all().await;
        assert!(tasks.iter().all(|task| *task == tasks[0]), "{tasks:?}");
        assert_eq!(texts(&tasks[0]), ["chunk 0chunk 1chunk 2"]);
    }
    let streams = (0..20).map(|n| {
        let request = Wire::ALL[n % 4].stream(&server, "stream 3 20").header("Idempotency-Key", "streamed");
        tokio::spawn(async move { Sse::open(request).await.all().await })
    });
    let mut counts = Vec::new();
    for stream in streams.collect::<Vec<_>>() {
        counts.push(stream.await.expect("no panic").len());
    }
    assert_eq!(counts, [6; 20]);
    assert_eq!(how_many(&server).await, 11);
}

#[tokio::test]
async fn a_repeated_send_waits_like_the_first_one_unless_told_otherwise() {
    let server = Server::start(&[]);
    let early = sent(rpc(&server, &at_once(message("sleep 0.5")), "k")).await;
    assert!(matches!(state(&early), "SUBMITTED" | "WORKING"));
    let early = sent(rpc(&server, &at_once(message("sleep 0.5")), "k")).await;
    assert!(matches!(state(&early), "SUBMITTED" | "WORKING"));
    let done = sent(rpc(&server, &message("sleep 0.5"), "k")).await;
    assert_eq!((state(&done), &done["id"]), ("COMPLETED", &early["id"]));
}

#[tokio::test]
async fn the_same_key_of_another_caller_or_tenant_is_another_key() {
    let server = Server::configured(TWO_CALLERS);
    let of_alice = sent(rpc(&server, &message("hers"), "k").bearer_auth(ALICE)).await;
    let of_bob = sent(rpc(&server, &message("his"), "k").bearer_auth(BOB)).await;
    assert_ne!(of_alice["id"], of_bob["id"]);
    assert_eq!(texts(&of_bob), ["his"]);
    assert_eq!(sent(rest(&server, &message("hers"), "k").bearer_auth(ALICE)).await, of_alice);
    let blue = server.post("/blue/message:send", &message("blue")).header("Idempotency-Key", "k");
    assert_eq!(texts(&sent(blue.bearer_auth(ALICE)).await), ["blue"]);
}

#[tokio::test]
async fn a_key_is_known_after_a_kill() {
    let mut server = Server::start(&[]);
    let done = sent(rpc(&server, &message("hello"), "done")).await;
    let asked = sent(rpc(&server, &message("ask colour?"), "asked")).await;
    let answered = sent(rpc(&server, &follow_up(&asked, "red"), "answered")).await;
    let running = sent(rpc(&server, &at_once(message("hold")), "running")).await;
    server.kill();
    server.restart();
    assert_eq!(sent(rest(&server, &message("hello"), "done")).await, done);
    assert_eq!(sent(rest(&server, &follow_up(&asked, "red"), "answered")).await, answered);
    assert_eq!(sent(rpc(&server, &message("ask colour?"), "asked")).await["id"], asked["id"]);
    let cut = sent(rpc(&server, &message("hold"), "running")).await;
    assert_eq!((state(&cut), &cut["id"]), ("FAILED", &running["id"]));
    assert_eq!(how_many(&server).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_follow_up_is_delivered_once() {
    let server = Server::start(&[]);
    let asked = server.send("ask colour?").await;
    let first = sent(rpc(&server, &follow_up(&asked, "red"), "k")).await;
    assert_eq!(state(&first), "COMPLETED");
    assert_eq!(sent(rest(&server, &follow_up(&asked, "red"), "k")).await, first, "although the task is over");
    let repeated = server.post("/message:stream", &follow_up(&asked, "red")).header("Idempotency-Key", "k");
    assert_eq!(Sse::open(repeated).await.all().await.last().expect("an event").state(), "TASK_STATE_COMPLETED");

    let working = server.send_async("sleep 0.5").await;
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        calls.spawn(sent(rest(&server, &follow_up(&working, "more"), "more")));
    }
    for task in calls.join_all().await {
        assert_eq!(texts(&task), ["slept 0.5 s", "more"]);
        assert_eq!(task["history"].as_array().map(Vec::len), Some(2));
    }
}

#[tokio::test]
async fn the_id_of_a_message_can_be_its_key() {
    let server = Server::configured("idempotent-send: message-id\n");
    let numbered = |n: &str, text: &str| {
        let mut params = message(text);
        params["message"]["messageId"] = json!(n);
        params
    };
    let first = server.send_params(numbered("a", "one")).await;
    assert_eq!(server.send_params(numbered("a", "one")).await, first);
    assert_ne!(server.send_params(numbered("b", "one")).await["id"], first["id"]);
    let keyed = sent(rpc(&server, &numbered("a", "two"), "k")).await;
    assert_eq!(texts(&keyed), ["two"], "a key has the last word");
    let odd = sent(rpc(&server, &numbered("c", "three"), "message-id:a")).await;
    assert_eq!(texts(&odd), ["three"], "a key is never taken for the id of a message");
    let long = numbered(&"x".repeat(512), "four");
    assert_eq!(server.send_params(long.clone()).await["id"], server.send_params(long).await["id"]);
    let asked = server.send_params(numbered("d", "ask colour?")).await;
    let mut reply = follow_up(&asked, "red");
    reply["message"]["messageId"] = json!("e");
    let done = server.send_params(reply.clone()).await;
    assert_eq!((state(&done), server.send_params(reply).await), ("COMPLETED", done.clone()));
}

#[tokio::test]
async fn a_key_that_is_none_is_refused() {
    let server = Server::start(&[]);
    for key in [String::new(), "x".repeat(513)] {
        let (status, error) = answer(rest(&server, &message("hello"), &key)).await;
        assert_eq!(status, 400, "{error}");
        assert!(error.to_string().contains("Idempotency-Key"), "{error}");
    }
    assert_eq!(how_many(&server).await, 0);
}
