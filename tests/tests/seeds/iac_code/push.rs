//! Document 000, lines 56 to 70 and 177 to 201, and document 002, lines 114 to 139: webhooks.

use nuncio_tests::{Server, Value, id, json};

use super::{post, serve};
use crate::receiver::Receiver;
use crate::run::Shell;

fn pushing() -> Server {
    Server::configured("profile: iac-code\npush-notifications: true")
}

async fn create(server: &Server, task: &Value, url: &str) -> Value {
    let body = json!({
        "jsonrpc": "2.0",
        "id": "7",
        "method": "CreateTaskPushNotificationConfig",
        "params": {
            "taskId": task["id"],
            "id": "webhook-1",
            "url": url,
            "token": "notification-token",
            "authentication": { "scheme": "bearer", "credentials": "callback-token" },
        },
    });
    post(server, &body).await
}

/// 000:53, 000:177-200.
#[tokio::test]
async fn configs_are_made_found_listed_and_deleted() {
    let server = pushing();
    let task = server.send("hello").await;
    let made = create(&server, &task, "https://hooks.example.com/a2a").await;
    assert_eq!((&made["result"]["id"], &made["result"]["taskId"]), (&json!("webhook-1"), &task["id"]), "{made}");
    let one = json!({ "taskId": task["id"], "id": "webhook-1" });
    let got = server.rpc("GetTaskPushNotificationConfig", one.clone()).await;
    assert_eq!(got["result"]["url"], "https://hooks.example.com/a2a");
    let list = server.rpc("ListTaskPushNotificationConfigs", json!({ "taskId": task["id"] })).await;
    assert_eq!(list["result"]["configs"].as_array().unwrap().len(), 1);
    let gone = server.rpc("DeleteTaskPushNotificationConfig", one.clone()).await;
    assert!(gone.get("error").is_none(), "{gone}");
    assert_eq!(server.rpc("GetTaskPushNotificationConfig", one).await["error"]["code"], -32001);
    let without = serve("");
    let task = without.send("hello").await;
    let refused = create(&without, &task, "https://hooks.example.com/a2a").await;
    assert_eq!(refused["error"]["code"], -32003, "{refused}");
}

/// 000:70, 002:273.
#[tokio::test]
async fn callback_urls_are_checked() {
    let server = pushing();
    let task = server.send("hello").await;
    for url in [
        "ftp://hooks.example.com/a2a",
        "file:///etc/passwd",
        "http://localhost/a2a",
        "http://hooks.localhost/a2a",
        "http://127.0.0.1/a2a",
        "http://10.0.0.1/a2a",
        "http://192.168.1.1/a2a",
        "http://169.254.169.254/latest",
        "http://[::1]/a2a",
    ] {
        let refused = create(&server, &task, url).await;
        assert_eq!(refused["error"]["code"], -32602, "{url}: {refused}");
    }
}

/// The schemes are those of HTTP, in any case; name and password are encoded here.
#[tokio::test]
async fn credentials_go_out_in_the_form_of_their_scheme() {
    let here = "profile: iac-code\npush-notifications: true\npush-allowed-cidrs: [127.0.0.0/8]";
    let (server, receiver) = (Server::configured(here), Receiver::start().await);
    for (path, scheme, credentials, sent) in [
        ("bearer", "bearer", "callback-token", "Bearer callback-token"),
        ("plain", "basic", "user:pass", "Basic dXNlcjpwYXNz"),
        ("encoded", "Basic", "dXNlcjpwYXNz", "Basic dXNlcjpwYXNz"),
        ("other", "custom", "a:b", "custom a:b"),
    ] {
        let task = server.send("hello").await;
        let authentication = json!({ "scheme": scheme, "credentials": credentials });
        let hook = json!({ "taskId": task["id"], "url": receiver.url(path), "authentication": authentication });
        let made = server.rpc("CreateTaskPushNotificationConfig", hook).await;
        assert_eq!(made["result"]["authentication"]["scheme"], scheme, "{made}");
        let posts = receiver.until(path, |posts| posts.iter().any(|post| post.path == path)).await;
        let post = posts.iter().find(|post| post.path == path).unwrap();
        assert_eq!(post.headers["authorization"], sent);
    }
}

/// 000:201.
#[tokio::test]
async fn secrets_are_encrypted_where_they_are_kept() {
    let mut server = pushing();
    let task = server.send("hello").await;
    create(&server, &task, "https://hooks.example.com/a2a").await;
    server.terminate();
    let files: Vec<_> = std::fs::read_dir(server.data_dir()).unwrap().filter_map(Result::ok).collect();
    assert!(!files.is_empty());
    for file in files.iter().filter(|file| file.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        for secret in ["notification-token", "callback-token"] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} in {:?}", file.path());
        }
    }
    server.restart();
    let one = json!({ "taskId": id(&task), "id": "webhook-1" });
    let got = server.rpc("GetTaskPushNotificationConfig", one).await;
    assert_eq!(got["result"]["id"], "webhook-1", "and can be read again: {got}");
}

/// 000:57-69, 002:114-139.
#[test]
fn both_queues_can_be_configured() {
    let shell = Shell::new();
    shell.write("local.yml", "push-notifications: true\npersistence-dir: ~/.iac-code/a2a\npush-queue: local-file\n");
    let redis = "push-notifications: true\npush-queue: redis-streams\npush-redis-url: redis://localhost:6379/0\n\
                 push-stream: iac-code:a2a:push\npush-retry-key: iac-code:a2a:push:retry\n\
                 push-dead-stream: iac-code:a2a:push:dead\npush-consumer-group: iac-code-push\n\
                 push-consumer-name: worker-1\npush-lease-timeout-ms: 300000\n";
    shell.write("redis.yml", redis);
    for file in ["local.yml", "redis.yml"] {
        super::server::nuncio(&shell, &format!("config check --profile iac-code --config {file}")).ok();
    }
    shell.write("wrong.yml", "push-queue: redis-streams\n");
    let wrong = super::server::nuncio(&shell, "config check --profile iac-code --config wrong.yml").failed(2);
    assert!(wrong.contains("push-redis-url"), "{wrong}");
}

/// 002:327.
#[tokio::test]
async fn the_keyring_can_come_from_the_environment() {
    let key = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE, [7_u8; 32]);
    let keyring = json!({ "activeKeyId": "k", "keys": [{ "id": "k", "fernetKey": key, "createdAt": 0 }] }).to_string();
    let yaml = "profile: iac-code\npush-notifications: true";
    let server = Server::configured_in(yaml, &[("IAC_CODE_A2A_PUSH_KEYRING", &keyring)]);
    let task = server.send("hello").await;
    let made = create(&server, &task, "https://hooks.example.com/a2a").await;
    assert_eq!(made["result"]["id"], "webhook-1", "{made}");
    let bytes = std::fs::read(server.data_dir().join("nuncio.db-wal")).unwrap_or_default();
    assert!(!bytes.windows(18).any(|window| window == b"notification-token"));
}
