//! The examples do what they say.

#![allow(clippy::panic, reason = "a test without its example is over")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nuncio_tests::{Value, binary, client, json};

/// An example that runs, and is ended with the test.
struct Example(Child, String);

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn path(name: &str) -> PathBuf {
    let path = binary().parent().expect("a folder").join("examples").join(name);
    if !path.exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let build = ["build", "--quiet", "--package", "nuncio-server", "--example", name];
        assert!(Command::new("cargo").current_dir(root).args(build).status().expect("cargo").success());
    }
    path
}

async fn conformance(env: &[(&str, &str)]) -> Example {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let mut command = Command::new(path("conformance_agent"));
    command.env("PORT", port.to_string()).envs(env.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null());
    let example = Example(command.spawn().expect("it starts"), format!("http://127.0.0.1:{port}"));
    for _ in 0..300 {
        if client().get(format!("{}/health", example.1)).send().await.is_ok() {
            return example;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the example does not answer");
}

async fn send(example: &Example, message_id: &str) -> Value {
    let message = json!({ "messageId": message_id, "role": "ROLE_USER", "parts": [{ "text": "x" }] });
    let request = client().post(format!("{}/message:send", example.1)).header("A2A-Version", "1.0");
    request.json(&json!({ "message": message })).send().await.expect("an answer").json().await.expect("JSON")
}

#[tokio::test]
async fn the_prefix_of_the_message_id_drives_the_conformance_agent() {
    let example = conformance(&[]).await;
    let state = |answer: &Value| answer["task"]["status"]["state"].as_str().unwrap_or_default().to_owned();
    let done = send(&example, "tck-complete-task-1").await;
    assert_eq!(done["task"]["status"]["message"]["parts"][0]["text"], "Hello from TCK");
    let part = async |id: &str| send(&example, id).await["task"]["artifacts"][0]["parts"][0].clone();
    assert_eq!(part("tck-artifact-text-1").await, json!({ "text": "Generated text content" }));
    let file = json!({ "raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain" });
    assert_eq!(part("tck-artifact-file-1").await, file);
    assert_eq!(part("tck-artifact-file-url-1").await["url"], "https://example.com/output.txt");
    assert_eq!(part("tck-artifact-data-1").await["data"], json!({ "key": "value", "count": 42 }));
    assert_eq!(part("tck-stream-001-x").await["text"], "Stream hello from TCK");
    assert_eq!(part("tck-stream-003-x").await["text"], "Stream task lifecycle");
    assert_eq!(part("tck-stream-ordering-001-x").await["text"], "Ordered output");
    assert_eq!(part("tck-stream-artifact-text-1").await["text"], "Streamed text content");
    let chunked = send(&example, "tck-stream-artifact-chunked-1").await;
    assert_eq!(chunked["task"]["artifacts"][0]["parts"], json!([{ "text": "chunk-1 " }, { "text": "chunk-2" }]));
    assert_eq!(
        send(&example, "tck-message-response-1").await["message"]["parts"][0]["text"],
        "Direct message response"
    );
    assert_eq!(state(&send(&example, "tck-input-required-1").await), "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(state(&send(&example, "tck-reject-task-1").await), "TASK_STATE_REJECTED");
    assert_eq!(state(&send(&example, "test-anything").await), "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(state(&send(&example, "whatever").await), "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn the_conformance_agent_takes_webhooks_if_it_is_told_to() {
    let example = conformance(&[("PUSH", "1"), ("ALLOW_LOOPBACK_PUSH", "1")]).await;
    let card = client().get(format!("{}/.well-known/agent-card.json", example.1)).send().await.expect("a card");
    let card: Value = card.json().await.expect("JSON");
    assert_eq!(card["capabilities"]["pushNotifications"], true);
    let done = send(&example, "tck-complete-task-1").await;
    let path = format!("{}/tasks/{}/pushNotificationConfigs", example.1, done["task"]["id"].as_str().expect("an id"));
    let receiver = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/hook", receiver.local_addr().expect("an address"));
    let create = client().post(&path).header("A2A-Version", "1.0").json(&json!({ "url": url }));
    let created: Value = create.send().await.expect("an answer").json().await.expect("JSON");
    assert!(created["id"].is_string(), "{created}");
    let listed = client().get(&path).header("A2A-Version", "1.0").send().await.expect("an answer");
    assert_eq!(listed.json::<Value>().await.expect("JSON")["configs"], json!([created]));
}

#[tokio::test]
async fn the_environment_decides_what_the_conformance_agent_declares() {
    let env = [("CARD_FORMAT", "1.0"), ("STREAMING", "0"), ("REQUIRED_EXTENSION", "urn:test:needed")];
    let example = conformance(&env).await;
    let card = client().get(format!("{}/.well-known/agent-card.json", example.1)).send().await.expect("a card");
    let card: Value = card.json().await.expect("JSON");
    assert_eq!(card["capabilities"]["streaming"], false);
    assert_eq!(card.get("protocolVersion"), None, "a pure 1.0 card");
    let refused = send(&example, "tck-complete-task-1").await;
    assert_eq!(refused["error"]["details"][0]["reason"], "EXTENSION_SUPPORT_REQUIRED");
}
