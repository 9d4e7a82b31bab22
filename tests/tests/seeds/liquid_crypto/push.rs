//! Lines 91 to 98 and 417 to 451: webhooks.

use nuncio_tests::{Stage, Value, json};

use super::{call, sent, serve_in};
use crate::receiver::Receiver;

const HERE: [(&str, &str); 1] = [("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8")];

#[tokio::test]
async fn a_webhook_is_set_found_listed_and_deleted() {
    let server = serve_in("", &HERE);
    let task = sent(&server, "ask what?").await["id"].clone();
    let config = json!({
        "url": "http://127.0.0.1:8999/hook",
        "id": "cfg-1",
        "token": "t0ken",
        "authentication": { "schemes": ["bearer"], "credentials": "s3cret" },
    });
    let params = json!({ "taskId": task, "pushNotificationConfig": config });
    let set = call(&server, "SetTaskPushNotificationConfig", params).await["result"].clone();
    assert_eq!((&set["taskId"], &set["pushNotificationConfig"]["id"]), (&task, &json!("cfg-1")));
    assert_eq!(set["pushNotificationConfig"]["authentication"]["schemes"], json!(["bearer"]));
    let named = json!({ "taskId": task, "id": "cfg-1" });
    assert_eq!(call(&server, "GetTaskPushNotificationConfig", named.clone()).await["result"], set);
    let listed = call(&server, "ListTaskPushNotificationConfigs", json!({ "taskId": task })).await["result"].clone();
    assert_eq!(listed["configs"], json!([set]));
    assert_eq!(call(&server, "DeleteTaskPushNotificationConfig", named).await["result"], Value::Null);
    let listed = call(&server, "ListTaskPushNotificationConfigs", json!({ "taskId": task })).await["result"].clone();
    assert_eq!(listed["configs"], json!([]));
}

#[tokio::test]
async fn a_webhook_gets_the_body_of_the_document() {
    let (server, receiver) = (serve_in("", &HERE), Receiver::start().await);
    let done = sent(&server, "hello").await;
    let params = json!({ "taskId": done["id"], "pushNotificationConfig": { "url": receiver.url("x"), "token": "t" } });
    call(&server, "SetTaskPushNotificationConfig", params).await;
    let posts = receiver.until_over().await;
    assert_eq!(
        posts[0].body,
        json!({ "taskId": done["id"], "status": done["status"], "artifact": done["artifacts"][0] })
    );
    assert_eq!(posts[0].headers["content-type"], "application/json");
    assert_eq!(posts[0].headers["x-a2a-notification-token"], "t");
}

/// One artifact tells of all: the answer and the files.
#[tokio::test]
async fn what_a_turn_made_beside_its_answer_is_told_with_it() {
    let command = json!([nuncio_tests::fake("acp.py"), ""]);
    let stage = Stage::new_in("acp", &command, "profile: liquid-crypto\nstore: memory", &HERE);
    let receiver = Receiver::start().await;
    let done = sent(&stage.server, "tools").await;
    let params = json!({ "taskId": done["id"], "pushNotificationConfig": { "url": receiver.url("x") } });
    call(&stage.server, "SetTaskPushNotificationConfig", params).await;
    let posts = receiver.until_over().await;
    let (told, made) = (&posts[0].body["artifact"], done["artifacts"].as_array().unwrap());
    let parts: Vec<&Value> = made.iter().flat_map(|one| one["parts"].as_array().unwrap()).collect();
    assert!(made.len() > 1, "an answer and a picture: {done}");
    assert_eq!((&told["artifactId"], &told["parts"]), (&made[0]["artifactId"], &json!(parts)));
}

#[tokio::test]
async fn a_webhook_can_come_with_the_message() {
    let (server, receiver) = (serve_in("", &HERE), Receiver::start().await);
    let mut params = super::message("hello");
    params["configuration"] = json!({ "pushNotificationConfig": { "url": receiver.url("x") } });
    let done = call(&server, "SendMessage", params).await["result"].clone();
    let posts = receiver.until_over().await;
    let states: Vec<&Value> = posts.iter().map(|post| &post.body["status"]["state"]).collect();
    assert_eq!(states, ["submitted", "working", "completed"]);
    assert!(posts.iter().all(|post| post.body["taskId"] == done["id"]));
    // Whoever speaks 1.0 gets what 1.0 says.
    let official = Receiver::start().await;
    let mut params = nuncio_tests::message("hello");
    params["configuration"] = json!({ "taskPushNotificationConfig": { "url": official.url("x") } });
    server.send_params(params).await;
    let posts = official.until_over().await;
    assert_eq!(posts.last().unwrap().state(), "COMPLETED");
}
