//! New keys: what was registered before still arrives, and the old keys are gone.

use std::path::Path;

use nuncio_tests::{Server, Value, follow_up, id, json, message};

use crate::delivery::{ON, with_hook};
use crate::failures::push;
use crate::receiver::{Post, Receiver};

fn keys(server: &Server, file: &str) -> Value {
    let text = std::fs::read(Path::new(server.data_dir()).join(file)).expect("the file is there");
    serde_json::from_slice(&text).expect("JSON")
}

fn ids(server: &Server) -> Vec<String> {
    let ring = keys(server, "push-keyring.json");
    ring["keys"].as_array().expect("keys").iter().map(|key| key["id"].as_str().expect("an id").to_owned()).collect()
}

/// The id of the key that signed a post.
fn signed_by(post: &Post) -> String {
    use base64::Engine;
    let head = post.headers["a2a-notification-signature"].split('.').next().expect("a head");
    let head = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(head).expect("base64");
    serde_json::from_slice::<Value>(&head).expect("JSON")["kid"].as_str().expect("an id").to_owned()
}

async fn waiting(server: &Server, receiver: &Receiver, token: &str) -> Value {
    let hook = json!({ "url": receiver.url(token), "token": token });
    let task = server.send_params(with_hook(message("ask which?"), hook)).await;
    let asked = |posts: &[Post]| posts.iter().any(|post| post.path == token && post.state() == "INPUT_REQUIRED");
    receiver.until("the question", asked).await;
    task
}

async fn goes_on(server: &Server, receiver: &Receiver, task: &Value, token: &str) {
    server.send_params(follow_up(task, "this")).await;
    let over = |posts: &[Post]| posts.iter().any(|post| post.path == token && post.state() == "COMPLETED");
    let posts = receiver.until("the end", over).await;
    assert!(posts.iter().filter(|post| post.path == token).all(|post| post.headers["a2a-notification-token"] == token));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_and_signatures_get_new_keys_beside_a_server_that_runs_and_one_that_does_not() {
    let (mut server, receiver) = (Server::configured(ON), Receiver::start().await);
    let one = waiting(&server, &receiver, "token-1").await;
    let (first, signing) = (ids(&server), keys(&server, "push-signing-keys.json"));
    assert_eq!(first.len(), 1);

    let (code, _, talk) = push(&server, &["rotate-key"]);
    assert_eq!(code, 0, "{talk}");
    let second = ids(&server);
    assert!(second.len() == 1 && second != first, "the old key is gone: {second:?}");
    assert!(talk.contains(&second[0]) && talk.contains("1 webhook(s) changed"), "{talk}");
    // Registered with the new key, at once.
    let two = waiting(&server, &receiver, "token-2").await;
    assert_eq!(ids(&server), second);
    goes_on(&server, &receiver, &one, "token-1").await;

    let new_signing = keys(&server, "push-signing-keys.json");
    let of = |key: &Value| key["publicKey"].clone();
    assert_ne!(of(&new_signing["keys"][0]), of(&signing["keys"][0]));
    assert_eq!(of(&new_signing["keys"][1]), of(&signing["keys"][0]), "its public half is shown on");
    assert!(new_signing["keys"][1]["privateKey"].is_null() && new_signing["keys"][1]["retiredAt"].is_u64());

    server.terminate();
    let (code, _, talk) = push(&server, &["rotate-key", "--only", "secrets"]);
    assert_eq!(code, 0, "{talk}");
    let third = ids(&server);
    assert!(third.len() == 1 && third != second, "{third:?}");
    assert_eq!(keys(&server, "push-signing-keys.json"), new_signing, "that was not asked for");
    server.restart();
    goes_on(&server, &receiver, &two, "token-2").await;
    let kid = signed_by(receiver.posts().last().expect("posts"));
    let shown = nuncio_tests::answer(server.get("/.well-known/jwks.json")).await.1;
    assert_eq!(shown["keys"][0]["kid"], kid.as_str(), "signed with the new key");
    assert_eq!(shown["keys"].as_array().map(Vec::len), Some(2));
    assert_ne!(id(&one), id(&two));
}
