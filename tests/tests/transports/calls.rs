//! Every operation, both versions, streams, resume and cancel.

use nuncio_tests::{at_once, follow_up, id, json, message, state};

use crate::kit::{ALL, By, House, Talk, until};

#[tokio::test]
async fn every_operation_is_answered_without_a_version_header() {
    let house = House::open("push-notifications: true\npush-allowed-cidrs: [127.0.0.0/8]");
    for by in [By::WebSocket, By::Unix] {
        let mut talk = Talk::open(&house, by).await;
        let task = talk.send("hello").await;
        assert_eq!(state(&task), "COMPLETED", "{by:?}");
        let got = talk.call("GetTask", json!({ "id": id(&task) })).await;
        assert_eq!(got["result"]["id"], task["id"]);
        let list = talk.call("ListTasks", json!({})).await;
        assert_eq!(list["result"]["tasks"][0]["id"], task["id"], "{list}");
        let held = talk.call("SendMessage", at_once(message("hold"))).await["result"]["task"].clone();
        let hook = json!({ "taskId": id(&held), "url": "http://127.0.0.1:80/x" });
        let hook = talk.call("CreateTaskPushNotificationConfig", hook).await;
        assert!(hook["result"]["id"].is_string(), "{by:?}: {hook}");
        let hook = hook["result"].clone();
        let named = json!({ "taskId": id(&held), "id": hook["id"] });
        assert_eq!(talk.call("GetTaskPushNotificationConfig", named.clone()).await["result"]["id"], hook["id"]);
        let hooks = talk.call("ListTaskPushNotificationConfigs", json!({ "taskId": id(&held) })).await;
        assert_eq!(hooks["result"]["configs"][0]["id"], hook["id"], "{hooks}");
        let deleted = talk.call("DeleteTaskPushNotificationConfig", named).await;
        assert!(deleted.get("result").is_some(), "{by:?}: {deleted}");
        let canceled = talk.call("CancelTask", json!({ "id": id(&held) })).await;
        assert_eq!(state(&canceled["result"]), "CANCELED");
        let asked = talk.send("ask which?").await;
        assert_eq!(state(&asked), "INPUT_REQUIRED");
        let answered = talk.call("SendMessage", follow_up(&asked, "that")).await;
        assert_eq!(state(&answered["result"]["task"]), "COMPLETED");
        assert_eq!(talk.call("NoSuchMethod", json!({})).await["error"]["code"], -32601);
        assert_eq!(talk.call("GetTask", json!({ "id": "nobody" })).await["error"]["code"], -32001);
    }
}

#[tokio::test]
async fn streams_are_numbered_and_go_on_after_any_event() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let all = talk.stream("SendStreamingMessage", message("stream 5"), &json!({})).await;
        let numbers: Vec<u64> = all.iter().filter_map(|frame| frame.event).collect();
        assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>(), "{by:?}");
        let task = all[0].body["result"]["task"].clone();
        for after in [0, 3, all.len() as u64] {
            let headers = json!({ "Last-Event-ID": after.to_string() });
            let rest = talk.stream("SubscribeToTask", json!({ "id": id(&task) }), &headers).await;
            let expected: Vec<_> = all.iter().skip(after as usize).map(|frame| &frame.body["result"]).collect();
            assert_eq!(rest.iter().map(|frame| &frame.body["result"]).collect::<Vec<_>>(), expected, "{by:?} {after}");
        }
        let over = talk.call("SubscribeToTask", json!({ "id": id(&task) })).await;
        assert_eq!(over["error"]["code"], -32004, "{over}");
    }
}

#[tokio::test]
async fn a_running_task_is_canceled_on_the_connection_that_streams_it() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let stream = talk.ask("SendStreamingMessage", &message("hold")).await;
        let task = talk.next_of(stream).await.body["result"]["task"].clone();
        let canceled = talk.call("CancelTask", json!({ "id": id(&task) })).await;
        assert_eq!(state(&canceled["result"]), "CANCELED", "{by:?}");
        let mut last = talk.next_of(stream).await;
        while let Some(next) = Some(talk.next_of(stream).await).filter(|next| !next.last) {
            last = next;
        }
        assert_eq!(state(&last.body["result"]["statusUpdate"]), "CANCELED", "{by:?}: {last:?}");
    }
}

#[tokio::test]
async fn a_stream_is_ended_by_its_reader_while_the_connection_and_the_task_go_on() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let (one, other) = (
            talk.ask("SendStreamingMessage", &message("hold")).await,
            talk.ask("SendStreamingMessage", &message("hold")).await,
        );
        let task = talk.next_of(one).await.body["result"]["task"].clone();
        let second = talk.next_of(other).await.body["result"]["task"].clone();
        talk.say(&json!({ "jsonrpc": "2.0", "id": one, "final": true }).to_string()).await;
        let mut end = talk.next_of(one).await;
        while !end.last {
            end = talk.next_of(one).await;
        }
        assert!(end.body.get("error").is_none() && end.body.get("result").is_none(), "{by:?}: {end:?}");
        if by != By::Stdio {
            until("one stream is left", async || house.server.metric("nuncio_subscribers").await == 1.0).await;
        }
        // Nothing is there to end: nobody is told anything.
        talk.say(&json!({ "jsonrpc": "2.0", "id": 4711, "final": true }).to_string()).await;
        talk.say(&json!({ "jsonrpc": "2.0", "id": one, "final": true }).to_string()).await;
        let working = talk.call("GetTask", json!({ "id": id(&task) })).await;
        assert_eq!(state(&working["result"]), "WORKING", "{by:?}");
        for task in [&task, &second] {
            talk.call("CancelTask", json!({ "id": id(task) })).await;
        }
        let mut last = talk.next_of(other).await;
        while !last.last {
            last = talk.next_of(other).await;
        }
        // The stream that was ended has said nothing since.
        talk.finish().await;
        while let Some(frame) = talk.next().await {
            assert_ne!(frame.id, json!(one), "{by:?}: {frame:?}");
        }
    }
}

#[tokio::test]
async fn both_versions_are_spoken_on_one_connection() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let old = json!({ "message": { "kind": "message", "messageId": "m", "role": "user",
                                       "parts": [{ "kind": "text", "text": "old" }] } });
        let task = talk.call("message/send", old.clone()).await["result"].clone();
        assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")), "{by:?}");
        let events = talk.stream("message/stream", old, &json!({})).await;
        assert_eq!(events.last().expect("events").body["result"]["final"], true, "{by:?}");
        let new = talk.call("GetTask", json!({ "id": task["id"] })).await;
        assert_eq!(state(&new["result"]), "COMPLETED", "{by:?}");
        let id = talk.ask_with("GetTask", &json!({ "id": "x" }), &json!({ "A2A-Version": "9.9" })).await;
        assert_eq!(talk.next_of(id).await.body["error"]["code"], -32009, "{by:?}");
    }
}

#[tokio::test]
async fn a_send_with_a_key_runs_once_and_a_direct_answer_is_a_stream_of_one() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let key = json!({ "Idempotency-Key": "k-1" });
        let mut tasks = Vec::new();
        for _ in 0..2 {
            let id = talk.ask_with("SendMessage", &message("once"), &key).await;
            tasks.push(talk.next_of(id).await.body["result"]["task"]["id"].clone());
        }
        assert_eq!(tasks[0], tasks[1], "{by:?}");
        let events = talk.stream("SendStreamingMessage", message("message hi"), &json!({})).await;
        assert_eq!(events.len(), 1, "{by:?}");
        assert!(events[0].body["result"]["message"].is_object() && events[0].event.is_none());
    }
}

#[tokio::test]
async fn activated_extensions_are_named_beside_the_answer() {
    let house = House::open("extensions: [{uri: 'urn:x'}]");
    let mut talk = Talk::open(&house, By::Unix).await;
    let id = talk.ask_with("SendMessage", &message("a"), &json!({ "A2A-Extensions": "urn:x, urn:y" })).await;
    assert_eq!(talk.next_of(id).await.body["headers"], json!({ "a2a-extensions": "urn:x" }));
    let id = talk.ask("SendMessage", &message("a")).await;
    assert!(talk.next_of(id).await.body.get("headers").is_none());
}

#[tokio::test]
async fn the_card_lists_what_is_open_and_is_had_over_every_connection() {
    let house = House::open("");
    let bindings = |card: &nuncio_tests::Value| -> Vec<String> {
        let all = card["supportedInterfaces"].as_array().expect("interfaces").iter();
        let new = all.filter(|interface| interface["protocolVersion"] == "1.0");
        new.map(|interface| interface["protocolBinding"].as_str().expect("a name").to_owned()).collect()
    };
    let card = nuncio_tests::answer(house.server.get("/.well-known/agent-card.json")).await.1;
    for expected in ["JSONRPC", "HTTP+JSON", "websocket", "unix"] {
        assert!(bindings(&card).iter().any(|name| name == expected), "{expected}: {:?}", bindings(&card));
    }
    let socket = format!("unix://{}", house.socket().display());
    let urls: Vec<_> = card["supportedInterfaces"].as_array().expect("all").iter().map(|i| &i["url"]).collect();
    assert!(urls.contains(&&json!(socket)), "{urls:?}");
    assert!(urls.contains(&&json!(format!("ws://{}/ws", house.address()))), "{urls:?}");
    for by in [By::WebSocket, By::Unix] {
        let shown = Talk::open(&house, by).await.call("GetAgentCard", json!({})).await["result"].clone();
        assert_eq!(bindings(&shown), bindings(&card), "{by:?}");
    }
    let alone = Talk::open(&house, By::Stdio).await.call("GetAgentCard", json!({})).await["result"].clone();
    assert_eq!(bindings(&alone), ["stdio"]);
}
