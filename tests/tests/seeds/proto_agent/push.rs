//! Lines 55 to 84: webhooks, the paths that stand for their methods, and which addresses are refused.

use std::time::Duration;

use nuncio_tests::{Server, Stage, Value, answer, client, json};

use super::{call, sent, serve_in};
use crate::receiver::{Post, Receiver, Reply};

/// Webhooks may lead to this machine.
const HERE: [(&str, &str); 1] = [("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8")];

async fn set(server: &Server, task: &Value, config: Value) -> Value {
    let params = json!({ "taskId": task["id"], "pushNotificationConfig": config });
    call(server, "tasks/pushNotificationConfig/set", params).await
}

#[tokio::test]
async fn a_webhook_is_set_found_listed_and_deleted() {
    let server = serve_in("", &HERE);
    let task = sent(&server, "ask what?").await;
    let (url, id) = ("http://127.0.0.1:8999/callback/abc", &task["id"]);
    let set = set(&server, &task, json!({ "url": url, "token": "shared-secret" })).await;
    assert_eq!((&set["result"]["taskId"], &set["result"]["pushNotificationConfig"]["url"]), (id, &json!(url)));
    assert!(!set.to_string().contains("shared-secret"), "the token is never shown");
    let found = call(&server, "tasks/pushNotificationConfig/get", json!({ "id": id })).await;
    assert_eq!(found["result"], set["result"]);
    let listed = call(&server, "tasks/pushNotificationConfig/list", json!({ "id": id })).await;
    assert_eq!(listed["result"], json!([set["result"]]));
    let params = json!({ "id": id, "pushNotificationConfigId": set["result"]["pushNotificationConfig"]["id"] });
    for _ in 0..2 {
        let gone = call(&server, "tasks/pushNotificationConfig/delete", params.clone()).await;
        assert_eq!(gone["result"], Value::Null, "{gone}");
    }
    let listed = call(&server, "tasks/pushNotificationConfig/list", json!({ "id": id })).await;
    assert_eq!(listed["result"], json!([]));
}

/// There is one place for a webhook, which may be empty.
#[tokio::test]
async fn a_webhook_is_found_and_deleted_by_its_task_alone() {
    let server = serve_in("", &HERE);
    let task = sent(&server, "ask what?").await;
    let (named, url) = (json!({ "id": task["id"] }), "http://127.0.0.1:8999/callback/abc");
    for config in [json!({ "url": url }), json!({ "url": url, "id": "mine" })] {
        let set = set(&server, &task, config).await["result"].clone();
        let found = call(&server, "tasks/pushNotificationConfig/get", named.clone()).await;
        assert_eq!(found["result"], set);
        for _ in 0..2 {
            let gone = call(&server, "tasks/pushNotificationConfig/delete", named.clone()).await;
            assert_eq!(gone.get("result"), Some(&Value::Null), "{gone}");
            let none = call(&server, "tasks/pushNotificationConfig/get", named.clone()).await;
            assert_eq!(none.get("result"), Some(&Value::Null), "{none}");
        }
    }
    for method in ["get", "delete"] {
        let method = format!("tasks/pushNotificationConfig/{method}");
        let missing = call(&server, &method, json!({ "id": "nobody" })).await;
        assert_eq!(missing["error"]["message"], "Task not found: nobody");
    }
}

#[tokio::test]
async fn both_shapes_of_tokens_become_bearer_tokens_and_the_plain_one_wins() {
    let (server, receiver) = (serve_in("", &HERE), Receiver::start().await);
    let structured = json!({ "schemes": ["Bearer"], "credentials": "B" });
    for (path, mut config, bearer) in [
        ("plain", json!({ "token": "A" }), Some("Bearer A")),
        ("structured", json!({ "authentication": structured }), Some("Bearer B")),
        ("both", json!({ "token": "A", "authentication": structured }), Some("Bearer A")),
        ("others", json!({ "authentication": { "schemes": ["Basic"], "credentials": "B" } }), Some("Bearer B")),
        ("neither", json!({}), None),
    ] {
        config["url"] = receiver.url(path).into();
        let done = sent(&server, "hello").await;
        let set = set(&server, &done, config).await;
        assert!(set["result"].is_object(), "{set}");
        let posts = receiver.until(path, |posts| posts.iter().any(|post| post.path == path)).await;
        let post = posts.iter().find(|post| post.path == path).unwrap();
        assert_eq!(post.headers.get("authorization").map(String::as_str), bearer, "{path}");
        let plain = bearer.and_then(|bearer| bearer.strip_prefix("Bearer "));
        assert_eq!(post.headers.get("x-a2a-notification-token").map(String::as_str), plain, "{path}");
    }
}

#[tokio::test]
async fn a_task_that_is_over_is_told_at_once_with_what_it_made() {
    let (server, receiver) = (serve_in("", &HERE), Receiver::start().await);
    let done = sent(&server, "usage").await;
    set(&server, &done, json!({ "url": receiver.url("late") })).await;
    let posts = receiver.until_over().await;
    let body = &posts[0].body;
    assert_eq!((&body["kind"], &body["taskId"]), (&json!("status-update"), &done["id"]));
    assert_eq!((&body["status"]["state"], &body["final"]), (&json!("completed"), &json!(true)));
    let artifact = &body["artifact"];
    assert_eq!((&artifact["append"], &artifact["lastChunk"]), (&json!(false), &json!(true)));
    assert_eq!(artifact["parts"], done["artifacts"][0]["parts"]);
}

/// One artifact tells of all: the answer, the files, the bill.
#[tokio::test]
async fn what_a_turn_made_beside_its_answer_is_told_with_it() {
    let command = json!([nuncio_tests::fake("acp.py"), ""]);
    let stage = Stage::new_in("acp", &command, "profile: proto-agent\nstore: memory", &HERE);
    let (server, receiver) = (&stage.server, Receiver::start().await);
    let done = sent(server, "tools").await;
    set(server, &done, json!({ "url": receiver.url("x") })).await;
    let posts = receiver.until_over().await;
    let (told, made) = (&posts[0].body["artifact"], done["artifacts"].as_array().unwrap());
    let answer = made.iter().find(|one| one["parts"][0]["kind"] == "text").unwrap();
    assert_eq!(told["artifactId"], answer["artifactId"], "{told}");
    assert!(told["parts"][0]["text"].as_str().unwrap().ends_with("All done"), "{told}");
    let kinds: Vec<&Value> = told["parts"].as_array().unwrap().iter().map(|part| &part["kind"]).collect();
    assert_eq!(kinds, ["text", "data", "file", "data"], "the answer, what was changed, the file, the bill: {told}");
    assert_eq!(told["parts"][3]["data"]["usage"]["total_tokens"], 12, "{told}");
}

fn is_final(post: &Post) -> bool {
    post.body["final"] == true
}

#[tokio::test]
async fn what_happens_on_the_way_is_told_at_a_distance_and_the_end_at_once() {
    let receiver = Receiver::start().await;
    let lines = r#"i=0; while [ $i -lt 20 ]; do
        echo "{\"type\":\"tool_use\",\"id\":\"u$i\",\"name\":\"tool-$i\",\"input\":{}}"; sleep 0.1; i=$((i+1)); done;
        echo '{"type":"result"}'"#;
    let command = json!(["sh", "-c", lines]);
    let stage = Stage::new_in("generic", &command, "profile: proto-agent\nstore: memory", &HERE);
    let mut params = super::message("go");
    params["configuration"] = json!({ "pushNotificationConfig": { "url": receiver.url("x") } });
    let done = call(&stage.server, "message/send", params).await["result"].clone();
    assert_eq!(done["status"]["state"], "completed", "{done}");
    let posts = receiver.until("the end", |posts| posts.iter().any(is_final)).await;
    let (end, way) = posts.split_last().unwrap();
    assert!(is_final(end) && !way.iter().any(is_final), "the end comes once, and last: {posts:?}");
    assert!(!way.is_empty() && way.len() < 20, "{} posts for twenty tools", way.len());
    for pair in way.windows(2) {
        // A little less than what is promised: clocks and wires are not exact.
        assert!(pair[1].at - pair[0].at > Duration::from_millis(1400), "{:?}", pair[1].at - pair[0].at);
    }
}

#[tokio::test]
async fn what_fails_for_now_is_tried_three_times_and_what_is_refused_once() {
    let flaky = Receiver::with(|_, before| Reply::Status(if before < 2 { 500 } else { 200 })).await;
    let server = serve_in("push-retry-delay: 50ms", &HERE);
    let done = sent(&server, "hello").await;
    set(&server, &done, json!({ "url": flaky.url("x"), "id": "flaky" })).await;
    flaky.until("the third try", |posts| posts.len() == 3).await;
    let refusing = Receiver::with(|_, _| Reply::Status(404)).await;
    set(&server, &done, json!({ "url": refusing.url("x"), "id": "refusing" })).await;
    refusing.until("the only try", |posts| !posts.is_empty()).await;
    // Long enough for several more.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((flaky.count(), refusing.count()), (3, 1));
}

#[tokio::test]
async fn paths_stand_for_methods() {
    let server = serve_in("", &HERE);
    let task = sent(&server, "usage").await;
    let path = format!("{}/a2a/tasks/{}", server.url, task["id"].as_str().unwrap());
    let (status, found) = answer(client().get(&path)).await;
    assert_eq!((status, &found), (200, &call(&server, "tasks/get", json!({ "id": task["id"] })).await["result"]));
    let hooks = format!("{path}/pushNotificationConfig");
    let config = json!({ "url": "http://127.0.0.1:8999/x", "authentication": { "credentials": "s3cret" } });
    let (status, set) = answer(client().post(&hooks).json(&config)).await;
    assert_eq!((status, &set["taskId"]), (200, &task["id"]), "{set}");
    let (_, listed) = answer(client().get(&hooks)).await;
    assert_eq!(listed, call(&server, "tasks/pushNotificationConfig/list", json!({ "id": task["id"] })).await["result"]);
    assert!(!listed.to_string().contains("s3cret"));
    let inside = json!({ "url": "http://192.168.1.5/x" });
    assert_eq!(answer(client().post(&hooks).json(&inside)).await.0, 400, "the same guard");
    assert_eq!(answer(client().get(format!("{}/a2a/tasks/none", server.url))).await.0, 404);
}

#[tokio::test]
async fn addresses_of_the_inside_are_refused() {
    let server = serve_in("", &[]);
    let task = sent(&server, "ask what?").await;
    for url in [
        "http://127.0.0.1/x",
        "http://localhost/x",
        "http://10.0.0.1/x",
        "http://192.168.1.5/x",
        "http://172.16.0.9/x",
        "http://169.254.169.254/x",
        "http://[::1]/x",
        "ftp://8.8.8.8/x",
        "garbage",
    ] {
        let refused = set(&server, &task, json!({ "url": url })).await;
        assert_eq!(refused["error"]["code"], -32602, "{url}: {refused}");
    }
    let taken = set(&server, &task, json!({ "url": "https://8.8.8.8/hook" })).await;
    assert!(taken["result"].is_object(), "{taken}");
}

#[tokio::test]
async fn named_hosts_and_networks_are_let_through() {
    let variables = [
        ("PUSH_NOTIFICATION_ALLOWED_HOSTS", "workstacean,automaker-server"),
        ("PUSH_NOTIFICATION_ALLOWED_CIDRS", "10.0.0.0/8,172.16.0.0/12"),
    ];
    let server = serve_in("", &variables);
    let task = sent(&server, "ask what?").await;
    for (url, taken) in [
        ("http://automaker-server:7860/hook", true),
        ("http://workstacean/hook", true),
        ("http://10.0.0.1/hook", true),
        ("http://172.20.1.1/hook", true),
        ("http://192.168.1.5/hook", false),
    ] {
        let answer = set(&server, &task, json!({ "url": url })).await;
        assert_eq!(answer["result"].is_object(), taken, "{url}: {answer}");
    }
}
