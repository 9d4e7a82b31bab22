//! What arrives when all goes well.

use nuncio_client::NotificationVerifier;
use nuncio_tests::{Server, Value, answer, at_once, follow_up, id, json, message, state};

use crate::receiver::{Post, Receiver};

/// Webhooks on, to this machine, with quick retries.
pub(crate) const ON: &str = "push-notifications: true\npush-allowed-cidrs: 127.0.0.0/8\n\
                             push-retry-delay: 50ms\npush-retry-max-delay: 400ms\n";

/// Parameters of a send with a webhook.
pub(crate) fn with_hook(mut params: Value, hook: Value) -> Value {
    params["configuration"]["taskPushNotificationConfig"] = hook;
    params
}

fn numbers(posts: &[Post]) -> Vec<u64> {
    posts.iter().map(|post| post.event().1).collect()
}

#[tokio::test]
async fn changes_of_state_and_whole_artifacts_arrive_in_order() {
    let (server, receiver) = (Server::configured(ON), Receiver::start().await);
    let hook = json!({ "url": receiver.url("hook?x=1"), "token": "t-1",
                       "authentication": { "scheme": "Bearer", "credentials": "s3cret" } });
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let sent = server.rpc_request("SendMessage", &with_hook(message("stream 3"), hook)).header("traceparent", trace);
    let task = nuncio_tests::answer(sent).await.1["result"]["task"].clone();
    let posts = receiver.until_over().await;
    let kinds: Vec<_> = posts.iter().flat_map(|post| post.body.as_object().expect("an object").keys()).collect();
    assert_eq!(kinds, ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]);
    assert_eq!(posts.iter().map(Post::state).collect::<Vec<_>>(), ["SUBMITTED", "WORKING", "", "COMPLETED"]);
    assert!(numbers(&posts).is_sorted());
    let artifact = &posts[2].body["artifactUpdate"];
    assert_eq!(artifact["artifact"], task["artifacts"][0], "the whole of it");
    assert_eq!((&artifact["append"], &artifact["lastChunk"]), (&Value::Null, &json!(true)));
    for post in &posts {
        assert_eq!((post.path.as_str(), post.event().0.as_str()), ("hook?x=1", id(&task)));
        let header = |name: &str| post.headers[name].as_str();
        assert_eq!(header("authorization"), "Bearer s3cret");
        assert_eq!((header("x-a2a-notification-token"), header("a2a-notification-token")), ("t-1", "t-1"));
        assert_eq!((header("content-type"), header("traceparent")), ("application/a2a+json", trace));
    }
}

#[tokio::test]
async fn notifications_are_signed_and_secrets_are_sealed() {
    let (mut server, receiver) = (Server::configured(ON), Receiver::start().await);
    let hook = json!({ "url": receiver.url("hook"), "token": "plain-token",
                       "authentication": { "scheme": "Bearer", "credentials": "plain-credentials" } });
    let task = server.send_params(with_hook(message("hello"), hook)).await;
    let posts = receiver.until_over().await;
    let keys = format!("{}/.well-known/jwks.json", server.url);
    let verifier =
        NotificationVerifier::with_keys_at(&server.url, &receiver.url("hook"), &keys).expect("good addresses");
    for post in &posts {
        let signature = &post.headers["a2a-notification-signature"];
        let found = verifier.verify(signature, &post.raw).await.expect("a good signature");
        assert_eq!((found.task.as_str(), &found.event), (id(&task), &post.headers["a2a-event-id"]));
        let mut changed = post.raw.clone();
        changed[10] ^= 1;
        assert!(verifier.verify(signature, &changed).await.is_err(), "a body that was changed");
    }
    assert_eq!(server.terminate(), Some(0));
    for entry in std::fs::read_dir(server.data_dir()).expect("a folder").filter_map(Result::ok) {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        for secret in ["plain-token", "plain-credentials"] {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} in {}", entry.path().display());
        }
    }
}

#[tokio::test]
async fn every_event_arrives_if_that_is_asked_for() {
    let (server, receiver) = (Server::configured(&format!("{ON}push-events: all\n")), Receiver::start().await);
    let task = server.send_params(with_hook(message("stream 40"), json!({ "url": receiver.url("") }))).await;
    let posts = receiver.until_over().await;
    let log = server.log(id(&task)).await;
    assert_eq!(numbers(&posts), (1..=log.len() as u64).collect::<Vec<_>>());
    for (post, event) in posts.iter().zip(&log) {
        assert_eq!(&post.body, event.body(), "as on the stream");
    }
    assert!(posts.iter().all(|post| !post.headers.contains_key("authorization")));
}

#[tokio::test]
async fn only_the_end_arrives_if_that_is_asked_for() {
    let (server, receiver) = (Server::configured(&format!("{ON}push-events: terminal\n")), Receiver::start().await);
    let hook = json!({ "url": receiver.url("") });
    let task = server.send_params(with_hook(message("ask which?"), hook)).await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    server.send_params(follow_up(&task, "this")).await;
    let posts = receiver.until_over().await;
    assert_eq!(posts.iter().map(Post::state).collect::<Vec<_>>(), ["INPUT_REQUIRED", "COMPLETED"]);
}

#[tokio::test]
async fn receivers_of_0_3_get_objects_of_0_3() {
    let (server, receiver) = (Server::configured(ON), Receiver::start().await);
    let params = json!({
        "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "stream 2" }] },
        "configuration": { "blocking": true, "pushNotificationConfig": {
            "url": receiver.url(""), "token": "t", "authentication": { "schemes": ["Basic", "Bearer"], "credentials": "eDp5" } } },
    });
    let sent = server.rpc("message/send", params).await;
    assert_eq!(sent["result"]["kind"], "task", "{sent}");
    let posts = receiver.until_over().await;
    let kinds: Vec<_> = posts.iter().map(|post| post.body["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["task", "status-update", "artifact-update", "status-update"]);
    assert_eq!(posts[3].body["final"], true);
    assert!(posts.iter().all(|post| post.headers["content-type"] == "application/json"));
    assert!(posts.iter().all(|post| post.headers["authorization"] == "Basic eDp5"));
}

/// A message that is refused changes nothing, also not who is told.
#[tokio::test]
async fn a_webhook_of_a_message_that_is_refused_is_not_kept() {
    let server = Server::configured(&format!("{ON}max-running-turns: 1\nmax-queued-turns: 1\n"));
    let receiver = Receiver::start().await;
    let task = server.send("auth please").await;
    let put = json!({ "taskId": id(&task), "id": "known", "url": receiver.url("before") });
    server.rpc("CreateTaskPushNotificationConfig", put).await;
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    server.send_async("waits").await;
    for name in ["known", "other", ""] {
        let hook = json!({ "id": name, "url": receiver.url("after") });
        let params = with_hook(follow_up(&task, "auth again"), hook);
        let (_, refused) = answer(server.rpc_request("SendMessage", &params)).await;
        assert_eq!(refused["error"]["code"], -31503, "{refused}");
    }
    let list = server.rpc("ListTaskPushNotificationConfigs", json!({ "taskId": id(&task) })).await;
    let configs = list["result"]["configs"].as_array().expect("configs");
    assert_eq!(configs.len(), 1, "{list}");
    assert_eq!(configs[0]["url"], receiver.url("before"));
    let odd = json!({ "taskId": id(&task), "id": "a\nb", "url": receiver.url("") });
    let odd = answer(server.rpc_request("CreateTaskPushNotificationConfig", &odd)).await.1;
    assert_eq!(odd["error"]["code"], -32602, "no lines of the log in an id: {odd}");
}

#[tokio::test]
async fn a_webhook_can_come_later_or_with_the_next_message() {
    let (server, first, second) = (Server::configured(ON), Receiver::start().await, Receiver::start().await);
    let task = server.send("ask which?").await;
    let put = json!({ "taskId": id(&task), "url": first.url("") });
    let put = server.rpc("CreateTaskPushNotificationConfig", put).await;
    assert!(put["result"]["id"].is_string(), "{put}");
    let told = first.until("the state at rest", |posts| !posts.is_empty()).await;
    assert_eq!(told.iter().map(Post::state).collect::<Vec<_>>(), ["INPUT_REQUIRED"]);
    let hook = json!({ "url": second.url("") });
    server.send_params(with_hook(follow_up(&task, "this"), hook)).await;
    let states = |posts: &[Post]| posts.iter().map(|post| post.state().to_owned()).collect::<Vec<_>>();
    let first = states(&first.until_over().await);
    let second = states(&second.until_over().await);
    assert_eq!(first[1..], second, "from the message on, both are told the same");
    assert_eq!(second.last().map(String::as_str), Some("COMPLETED"));
}

#[tokio::test]
async fn a_finished_task_tells_its_end_to_a_new_webhook() {
    let (server, receiver) = (Server::configured(ON), Receiver::start().await);
    let task = server.send("hello").await;
    let put = json!({ "taskId": id(&task), "url": receiver.url("") });
    server.rpc("CreateTaskPushNotificationConfig", put).await;
    let posts = receiver.until_over().await;
    assert_eq!(posts.iter().map(Post::state).collect::<Vec<_>>(), ["COMPLETED"]);
}

#[tokio::test]
async fn nothing_arrives_after_a_webhook_is_deleted_and_only_the_new_address_after_it_is_replaced() {
    let (server, old, new) = (Server::configured(ON), Receiver::start().await, Receiver::start().await);
    let hook = json!({ "url": old.url(""), "id": "p" });
    let task = server.send_params(with_hook(at_once(message("ask which?")), hook)).await;
    server.until(id(&task), "INPUT_REQUIRED").await;
    let before = old.until("the question", |posts| posts.iter().any(|post| post.state() == "INPUT_REQUIRED")).await;
    let put = json!({ "taskId": id(&task), "url": new.url(""), "id": "p" });
    server.rpc("CreateTaskPushNotificationConfig", put).await;
    let listed = server.rpc("ListTaskPushNotificationConfigs", json!({ "taskId": id(&task) })).await;
    assert_eq!(listed["result"]["configs"].as_array().map(Vec::len), Some(1), "{listed}");
    server.send_params(follow_up(&task, "this")).await;
    new.until_over().await;
    assert_eq!(old.count(), before.len());

    let other = Receiver::start().await;
    let hook = json!({ "url": other.url(""), "id": "p" });
    let task = server.send_params(with_hook(message("ask which?"), hook)).await;
    let asked = |posts: &[Post]| posts.iter().any(|post| post.state() == "INPUT_REQUIRED");
    let before = other.until("the question", asked).await.len();
    server.rpc("DeleteTaskPushNotificationConfig", json!({ "taskId": id(&task), "id": "p" })).await;
    let again = with_hook(follow_up(&task, "this"), json!({ "url": new.url("again"), "id": "q" }));
    server.send_params(again).await;
    new.until("the end", |posts| posts.iter().any(|post| post.path == "again" && post.state() == "COMPLETED")).await;
    assert_eq!(other.count(), before, "a deleted webhook hears nothing more");
}
