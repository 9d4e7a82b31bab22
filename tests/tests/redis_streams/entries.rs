//! Entries as the reference has them, written by hand.

use nuncio_tests::{Redis, Server, Value, id, json};

use crate::kit::{Caller, RESPONSES, check_stream, request, said, serve, until_done};

#[tokio::test]
async fn a_request_is_answered_in_the_common_stream_if_it_names_no_other() {
    let redis = Redis::start();
    let _server = serve(&redis, "");
    let caller = Caller::new(&redis, RESPONSES).await;
    let payload = request("SendMessage", &said("m", "hello")).to_string();
    caller.add(&[("correlation_id", "c-1"), ("payload", &payload)]).await;
    let answer = caller.only("c-1").await;
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["result"]["task"]["artifacts"][0]["parts"][0]["text"], "hello");
    until_done(&redis);
}

#[tokio::test]
async fn a_stream_is_one_entry_per_event_and_an_end() {
    let redis = Redis::start();
    let server = serve(&redis, "");
    let caller = Caller::new(&redis, "out:mine").await;
    caller.ask("s", request("SendStreamingMessage", &said("m", "stream 5"))).await;
    let all = caller.answered(1).await;
    let replies = &all["s"];
    check_stream(replies);
    assert_eq!(replies.last().map(|last| &last.payload), Some(&json!({ "jsonrpc": "2.0", "id": 7 })));
    let task = &replies[0].payload["result"]["task"];
    let log = server.log(id(task)).await;
    let seen: Vec<&Value> = replies.iter().map(|reply| &reply.payload["result"]).filter(|r| !r.is_null()).collect();
    assert_eq!(seen, log.iter().map(|event| &event.data).collect::<Vec<_>>(), "the same as over HTTP");
    assert!(redis.ask(&["PTTL", "out:mine"]).parse::<u64>().is_ok_and(|left| left > 0), "replies do not stay for ever");
    until_done(&redis);
}

#[tokio::test]
async fn old_methods_are_old_and_new_ones_new_without_a_word_about_the_version() {
    let redis = Redis::start();
    let _server = serve(&redis, "");
    let caller = Caller::new(&redis, RESPONSES).await;
    let old = json!({ "message": { "kind": "message", "messageId": "m", "role": "user",
                                   "parts": [{ "kind": "text", "text": "hello" }] } });
    caller.ask("old", request("message/send", &old)).await;
    assert_eq!(caller.only("old").await["result"]["kind"], "task");
    caller.ask("new", request("ListTasks", &json!({}))).await;
    assert_eq!(caller.only("new").await["result"]["totalSize"], 1);
    let payload = request("ListTasks", &json!({})).to_string();
    let headers = json!({ "A2A-Version": "0.3" }).to_string();
    caller.add(&[("correlation_id", "wrong"), ("payload", &payload), ("headers", &headers)]).await;
    assert_eq!(caller.only("wrong").await["error"]["code"], -32009);
}

#[tokio::test]
async fn a_task_can_be_canceled_while_its_stream_runs_and_many_others_do() {
    let redis = Redis::start();
    let server = serve(&redis, "");
    let caller = Caller::new(&redis, "out:mine").await;
    let holds = (0..100).map(|n| (format!("s-{n}"), request("SendStreamingMessage", &said(&format!("m-{n}"), "hold"))));
    caller.ask_all(holds).await;
    let mut tasks = Vec::new();
    nuncio_tests::raw::until("all work", || redis.ask(&["XLEN", "out:mine"]).parse::<u64>().is_ok_and(|n| n >= 200));
    for (id, replies) in caller.replies().await {
        tasks.push((id, replies[0].payload["result"]["task"]["id"].clone()));
    }
    assert_eq!(tasks.len(), 100);
    let cancels =
        tasks.iter().map(|(id, task)| (format!("cancel-{id}"), request("CancelTask", &json!({ "id": task }))));
    caller.ask_all(cancels).await;
    for (id, replies) in caller.answered(200).await {
        if id.starts_with("cancel") {
            assert_eq!(replies[0].payload["result"]["status"]["state"], "TASK_STATE_CANCELED");
        } else {
            check_stream(&replies);
        }
    }
    assert_eq!(server.count("CANCELED").await, 100);
    until_done(&redis);
}

#[tokio::test]
async fn a_message_that_comes_twice_runs_once() {
    let redis = Redis::start();
    let server = serve(&redis, "");
    let caller = Caller::new(&redis, "out:mine").await;
    caller.ask_all((0..20).map(|n| (n.to_string(), request("SendMessage", &said("same", "sleep 0.3"))))).await;
    let all = caller.answered(20).await;
    let mut tasks: Vec<&Value> = all.values().map(|replies| &replies[0].payload["result"]["task"]["id"]).collect();
    tasks.dedup();
    assert!(tasks.len() == 1 && tasks[0].is_string(), "{tasks:?}");
    let found = server.rpc("ListTasks", json!({})).await;
    assert_eq!(found["result"]["totalSize"], 1);
}

#[tokio::test]
async fn whoever_follows_a_task_can_go_on_after_an_event() {
    let redis = Redis::start();
    let server = serve(&redis, "");
    let task = server.send("stream 5").await;
    let caller = Caller::new(&redis, "out:mine").await;
    let payload = request("SubscribeToTask", &json!({ "id": task["id"] })).to_string();
    let headers = json!({ "Last-Event-ID": "3" }).to_string();
    let to = ("reply_stream", "out:mine");
    caller.add(&[("correlation_id", "s"), to, ("payload", &payload), ("headers", &headers)]).await;
    let numbers: Vec<_> = caller.answered(1).await["s"].iter().map(|reply| reply.event).collect();
    let all = server.log(id(&task)).await.len() as u64;
    let expected: Vec<Option<u64>> = (4..=all).map(Some).chain([None]).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn entries_without_the_right_credentials_are_refused_one_by_one() {
    let redis = Redis::start();
    let _server: Server = serve(
        &redis,
        "tokens:\n  - {name: ann, token: token-of-ann-12345}\n  - {name: bob, token: token-of-bob-12345}\n",
    );
    let caller = Caller::new(&redis, "out:mine").await;
    let ask = async |id: &str, payload: Value, token: &str| {
        let headers = json!({ "Authorization": format!("Bearer {token}") }).to_string();
        let payload = payload.to_string();
        let to = ("reply_stream", "out:mine");
        caller.add(&[("correlation_id", id), to, ("payload", &payload), ("headers", &headers)]).await;
        caller.only(id).await
    };
    caller.ask("nobody", request("SendMessage", &said("m", "hello"))).await;
    assert_eq!(caller.only("nobody").await["error"]["code"], -31401);
    let wrong = ask("wrong", request("SendMessage", &said("m", "hello")), "guess").await;
    assert_eq!((&wrong["error"]["code"], &wrong["id"]), (&json!(-31401), &json!(7)));
    let task = ask("ann", request("SendMessage", &said("m", "hello")), "token-of-ann-12345").await;
    let task = task["result"]["task"]["id"].clone();
    assert!(task.is_string());
    let get = request("GetTask", &json!({ "id": task }));
    assert_eq!(ask("own", get.clone(), "token-of-ann-12345").await["result"]["id"], task);
    assert_eq!(ask("other", get, "token-of-bob-12345").await["error"]["code"], -32001, "tasks of others are not there");
    // The same message of somebody else is another message.
    let other = ask("bob", request("SendMessage", &said("m", "hello")), "token-of-bob-12345").await;
    assert_ne!(other["result"]["task"]["id"], task);
    until_done(&redis);
}
