//! Registering, reading and deleting webhooks, in every binding and version.

use std::fmt::Write as _;

use nuncio_tests::raw::{Answer, V1, Wire, request};
use nuncio_tests::{Server, Value, answer, client, id, json, message};

use crate::delivery::{ON, with_hook};

/// Every exchange as it was, with stable names for the ids.
struct Transcript<'a> {
    wire: &'a Wire,
    names: Vec<(String, &'static str)>,
    text: String,
}

impl Transcript<'_> {
    fn ask(&mut self, title: &str, request: &str) -> Answer {
        let answer = self.wire.ask(request);
        let first = request.lines().next().unwrap_or_default();
        let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let kind = answer.header("content-type").unwrap_or_default();
        let text = format!("\n## {title}\n\n> {first}\n> {body}\n< {} {kind}\n< {}\n", answer.status, answer.text());
        let stable = self.names.iter().fold(text, |text, (id, name)| text.replace(id, name));
        let _ = write!(self.text, "{stable}");
        answer
    }

    fn rpc(&mut self, method: &str, params: &Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
        let version = if method.contains('/') { "" } else { V1 };
        self.ask(method, &request("POST", "/", &format!("Content-Type: application/json\r\n{version}"), &body)).json()
    }

    fn rest(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Value {
        let headers = format!("Content-Type: application/json\r\n{headers}");
        self.ask(&format!("{method} {path}"), &request(method, path, &headers, body)).json()
    }

    fn check(self, name: &str) {
        self.wire.assert_sound();
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, self.text.trim()));
    }
}

/// A server and a task that waits, with the names of its ids.
fn start(yaml: &str) -> (Wire, String) {
    let wire = Wire::start(yaml);
    let task = wire.rpc("SendMessage", &message("ask which?"));
    let task = task["result"]["task"]["id"].as_str().expect("a task").to_owned();
    (wire, task)
}

fn secret() -> Value {
    json!({ "url": "https://hook.test/x", "token": "t0ken",
            "authentication": { "scheme": "Bearer", "credentials": "s3cret" } })
}

fn old_secret() -> Value {
    json!({ "url": "https://hook.test/x", "token": "t0ken",
            "authentication": { "schemes": ["Bearer"], "credentials": "s3cret" } })
}

#[test]
fn every_operation_of_1_0() {
    let (wire, task) = start(ON);
    let mut t = Transcript { wire: &wire, names: vec![(task.clone(), "<task>")], text: String::new() };
    let with = |mut config: Value, id: &str| {
        config["taskId"] = json!(task);
        config["id"] = json!(id);
        config
    };
    t.rpc("CreateTaskPushNotificationConfig", &with(secret(), "a"));
    t.rpc("CreateTaskPushNotificationConfig", &with(json!({ "url": "https://hook.test/y" }), "b"));
    t.rpc("GetTaskPushNotificationConfig", &json!({ "taskId": task, "id": "a" }));
    t.rpc("ListTaskPushNotificationConfigs", &json!({ "taskId": task }));
    t.rpc("DeleteTaskPushNotificationConfig", &json!({ "taskId": task, "id": "a" }));
    t.rpc("DeleteTaskPushNotificationConfig", &json!({ "taskId": task, "id": "a" }));
    t.rpc("GetTaskPushNotificationConfig", &json!({ "taskId": task, "id": "a" }));
    t.rpc("GetTaskPushNotificationConfig", &json!({ "taskId": task }));
    t.rpc("CreateTaskPushNotificationConfig", &json!({ "taskId": "nobody", "url": "https://hook.test/" }));
    t.rpc("CreateTaskPushNotificationConfig", &json!({ "taskId": task }));
    t.rpc(
        "CreateTaskPushNotificationConfig",
        &json!({ "taskId": task, "url": "https://hook.test/", "token": "a\r\nb" }),
    );
    let path = format!("/tasks/{task}/pushNotificationConfigs");
    let mut named = secret();
    named["id"] = json!("c");
    t.rest("POST", &path, V1, &named.to_string());
    t.rest("GET", &format!("{path}/c"), V1, "");
    t.rest("GET", &path, V1, "");
    t.rest("DELETE", &format!("{path}/c"), V1, "");
    t.rest("DELETE", &format!("{path}/c"), V1, "");
    t.rest("GET", &format!("{path}/c"), V1, "");
    t.rest("POST", "/tasks/nobody/pushNotificationConfigs", V1, &named.to_string());
    assert!(!t.text.lines().any(|line| line.starts_with("< ") && (line.contains("s3cret") || line.contains("t0ken"))));
    t.check("push-1.0");
}

#[test]
fn every_operation_of_0_3() {
    let (wire, task) = start(ON);
    let mut t = Transcript { wire: &wire, names: vec![(task.clone(), "<task>")], text: String::new() };
    let set = json!({ "taskId": task, "pushNotificationConfig": old_secret() });
    t.rpc("tasks/pushNotificationConfig/set", &set);
    t.rpc("tasks/pushNotificationConfig/set", &set);
    t.rpc("tasks/pushNotificationConfig/get", &json!({ "id": task }));
    t.rpc("tasks/pushNotificationConfig/get", &json!({ "id": task, "pushNotificationConfigId": "nothing" }));
    t.rpc("tasks/pushNotificationConfig/list", &json!({ "id": task }));
    t.rpc("tasks/pushNotificationConfig/delete", &json!({ "id": task, "pushNotificationConfigId": task }));
    t.rpc("tasks/pushNotificationConfig/delete", &json!({ "id": task, "pushNotificationConfigId": task }));
    t.rpc("tasks/pushNotificationConfig/set", &json!({ "taskId": task, "pushNotificationConfig": {} }));
    t.rpc("tasks/pushNotificationConfig/list", &json!({ "id": "nobody" }));
    let path = format!("/v1/tasks/{task}/pushNotificationConfigs");
    let create = json!({ "parent": format!("tasks/{task}"), "config_id": "c",
                         "config": { "push_notification_config": old_secret() } });
    t.rest("POST", &path, "", &create.to_string());
    t.rest("GET", &format!("{path}/c"), "", "");
    t.rest("GET", &path, "", "");
    t.rest("DELETE", &format!("{path}/c"), "", "");
    t.rest("GET", &format!("{path}/c"), "", "");
    assert!(!t.text.lines().any(|line| line.starts_with("< ") && (line.contains("s3cret") || line.contains("t0ken"))));
    t.check("push-0.3");
}

#[test]
fn the_paths_of_earlier_agents() {
    let (wire, task) = start(ON);
    let mut t = Transcript { wire: &wire, names: vec![(task.clone(), "<task>")], text: String::new() };
    let path = format!("/a2a/tasks/{task}/pushNotificationConfig");
    t.rest("POST", &path, "", &old_secret().to_string());
    t.rest("GET", &path, "", "");
    t.rest("DELETE", &path, "", "");
    t.rest("POST", "/a2a/tasks/nobody/pushNotificationConfig", "", &old_secret().to_string());
    t.rest("GET", "/a2a/tasks/nobody", "", "");
    let found = wire.get(&format!("/a2a/tasks/{task}"), "").json();
    assert_eq!((&found["kind"], &found["id"]), (&json!("task"), &json!(task)));
    t.check("push-aliases");
}

/// Where there are no webhooks, that is the answer to whatever is asked about them.
#[test]
fn without_the_capability_every_question_has_the_same_answer() {
    let wire = Wire::start("");
    let card = wire.get("/.well-known/agent-card.json", V1).json();
    assert_eq!(card["capabilities"]["pushNotifications"], false);
    for method in ["Create", "Get", "Delete"] {
        let method = format!("{method}TaskPushNotificationConfig");
        assert_eq!(wire.rpc(&method, &json!({ "taskId": 5 }))["error"]["code"], -32003, "{method}");
    }
    assert_eq!(wire.rpc("ListTaskPushNotificationConfigs", &json!([]))["error"]["code"], -32003);
    for method in ["set", "get", "list", "delete"] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": format!("tasks/pushNotificationConfig/{method}") });
        assert_eq!(wire.post("/", "", &body.to_string()).json()["error"]["code"], -32003, "{method}");
    }
    for (path, headers) in [
        ("/tasks/x/pushNotificationConfigs", V1),
        ("/v1/tasks/x/pushNotificationConfigs", ""),
        ("/a2a/tasks/x/pushNotificationConfig", ""),
    ] {
        for refused in [wire.get(path, headers), wire.post(path, headers, "{")] {
            assert_eq!(refused.status, 400, "{path}");
            assert!(refused.text().contains("does not send push notifications"), "{path}: {}", refused.text());
        }
    }
    let mut params = message("hello");
    params["configuration"] = json!({ "taskPushNotificationConfig": { "url": "" } });
    assert_eq!(wire.rpc("SendMessage", &params)["error"]["code"], -32003);
    assert_eq!(wire.tasks(), 0, "and nothing was begun");
}

#[tokio::test]
async fn a_foreign_task_is_a_missing_one() {
    let tokens = "tokens:\n  - {name: ann, token: aaaa}\n  - {name: bob, token: bbbb}\n";
    let server = Server::configured(&format!("{ON}{tokens}"));
    let call = async |who: &str, method: &str, params: Value| {
        answer(server.rpc_request(method, &params).bearer_auth(who)).await.1
    };
    let hook = json!({ "url": "https://hook.test/", "id": "p" });
    let sent = call("aaaa", "SendMessage", with_hook(message("hello"), hook.clone())).await;
    let task = id(&sent["result"]["task"]).to_owned();
    let get = json!({ "taskId": task, "id": "p" });
    assert_eq!(call("aaaa", "GetTaskPushNotificationConfig", get.clone()).await["result"]["id"], "p");
    let mut create = hook;
    create["taskId"] = json!(task);
    for (method, params) in [
        ("CreateTaskPushNotificationConfig", create),
        ("GetTaskPushNotificationConfig", get.clone()),
        ("ListTaskPushNotificationConfigs", json!({ "taskId": task })),
        ("DeleteTaskPushNotificationConfig", get.clone()),
    ] {
        let mut missing = params.clone();
        missing["taskId"] = json!("nobody");
        let foreign = call("bbbb", method, params).await;
        let missing = call("bbbb", method, missing).await;
        assert_eq!(foreign["error"]["code"], -32001, "{method}: {foreign}");
        assert_eq!(foreign.to_string().replace(&task, "nobody"), missing.to_string(), "{method}");
    }
    assert_eq!(call("aaaa", "GetTaskPushNotificationConfig", get).await["result"]["id"], "p", "still there");
}

#[tokio::test]
async fn what_a_caller_may_choose_has_limits() {
    let server = Server::configured(ON);
    let task = server.send("ask which?").await;
    let put = async |config: Value| {
        let mut config = config;
        config["taskId"] = json!(id(&task));
        server.rpc("CreateTaskPushNotificationConfig", config).await
    };
    let url = "https://hook.test/";
    let long = "x".repeat(10_000);
    for config in [
        json!({ "url": format!("{url}{long}") }),
        json!({ "url": "ftp://hook.test/" }),
        json!({ "url": "not a url" }),
        json!({ "url": "http://10.0.0.1/" }),
        json!({ "url": "http://localhost/" }),
        json!({ "url": url, "id": long }),
        json!({ "url": url, "token": long }),
        json!({ "url": url, "authentication": { "scheme": long, "credentials": "c" } }),
        json!({ "url": url, "authentication": { "scheme": "two words", "credentials": "c" } }),
        json!({ "url": url, "authentication": { "scheme": "Bearer", "credentials": long } }),
        json!({ "url": url, "authentication": { "scheme": "Bearer", "credentials": "a\nX-Evil: 1" } }),
    ] {
        assert_eq!(put(config).await["error"]["code"], -32602);
    }
    for n in 0..32 {
        assert!(put(json!({ "url": url, "id": n.to_string() })).await["result"].is_object(), "{n}");
    }
    assert_eq!(put(json!({ "url": url, "id": "one more" })).await["error"]["code"], -32602);
    assert!(put(json!({ "url": url, "id": "7" })).await["result"].is_object(), "a replacement is no further one");
    let unsafe_url = with_hook(message("hello"), json!({ "url": "http://169.254.169.254/latest" }));
    let before = server.count("COMPLETED").await;
    let refused = server.rpc("SendMessage", unsafe_url).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(server.count("COMPLETED").await, before, "nothing is begun with a webhook that cannot be");
}

#[tokio::test]
async fn a_token_registered_the_old_way_is_a_bearer_token() {
    let (server, receiver) = (Server::configured(ON), crate::receiver::Receiver::start().await);
    let task = server.send("hello").await;
    let both = json!({ "url": receiver.url(""), "token": "A", "authentication": { "schemes": ["Bearer"], "credentials": "B" } });
    let url = format!("{}/a2a/tasks/{}/pushNotificationConfig", server.url, id(&task));
    let put = answer(client().post(url).json(&both)).await;
    assert_eq!((put.0, &put.1["pushNotificationConfig"]["token"]), (200, &Value::Null), "{put:?}");
    let posts = receiver.until_over().await;
    assert_eq!(posts[0].headers["authorization"], "Bearer A", "the plain token wins");
    assert_eq!(posts[0].headers["x-a2a-notification-token"], "A");
}
