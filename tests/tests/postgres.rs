//! The commands on a PostgreSQL database.

use std::process::Command;

use nuncio_tests::{Postgres, Server, binary, id, message, nuncio, state};
use serde_json::{Value, json};

fn text(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn tasks_survive_the_server_and_the_password_is_shown_nowhere() {
    let mut postgres = Postgres::down(&[]);
    postgres.put("pg_hba.conf", "host all nuncio 127.0.0.1/32 trust\nhost all guarded 127.0.0.1/32 scram-sha-256\n");
    postgres.up();
    let url = postgres.database();
    postgres.ask("postgres", "CREATE ROLE guarded SUPERUSER LOGIN PASSWORD 'hunter2'");
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("password");
    std::fs::write(&secret, "hunter2\n").expect("written");
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("ours");
    let (plain, file) = (url.replace("nuncio@", "guarded:hunter2@"), secret.display().to_string());
    let without = url.replace("nuncio@", "guarded@");

    let mut server = Server::start(&["--store", &plain]);
    let task = server.send("stream 3").await;
    assert_eq!(state(&task), "COMPLETED");
    server.kill();
    // The same database by another server, with the password from a file.
    let other = Server::start_in(&["--store", &without], &[("NUNCIO_STORE_PASSWORD_FILE", &file)]);
    let again: Value =
        other.get(&format!("/tasks/{}", id(&task))).send().await.expect("sent").json().await.expect("a task");
    assert_eq!((id(&again), state(&again)), (id(&task), "COMPLETED"));

    for args in [&["config", "show", "--store", &plain][..], &["doctor", "--store", &plain, "--port", "0"]] {
        let output = text(&nuncio(args));
        assert!(output.contains("postgres://***@127.0.0.1") || output.contains("PostgreSQL"), "{output}");
        assert!(!output.contains("hunter2"), "{output}");
    }
    let wrong = nuncio(&["serve", "--store", &plain.replace("hunter2", "hunter3"), "--port", "0"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong).contains("check user and password") && !text(&wrong).contains("hunter3"), "{}", text(&wrong));
}

#[tokio::test]
async fn webhooks_are_seen_and_servers_with_other_keys_refused() {
    let postgres = Postgres::shared();
    let url = postgres.database();
    let keys = tempfile::tempdir().expect("a folder");
    let keys = keys.path().display().to_string();
    let yaml =
        format!("store: {url}\nkeyring-dir: {keys}\npush-notifications: true\npush-allowed-hosts: [127.0.0.1]\n");
    let server = Server::configured(&yaml);
    let mut params = message("ask Which?");
    params["configuration"] = json!({
        "taskPushNotificationConfig": { "id": "hook", "url": "http://127.0.0.1:65000/", "token": "s3cret" },
    });
    let task = server.send_params(params).await;
    let task = id(&task).to_owned();
    let file = server.data_dir().join("push.yaml");
    std::fs::write(&file, &yaml).expect("written");
    let config = file.display().to_string();
    let listed = nuncio(&["push", "list", "--config", &config, "--output", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!((&listed[0]["taskId"], &listed[0]["id"]), (&json!(task), &json!("hook")), "{listed}");
    let rotated = nuncio(&["push", "rotate-key", "--config", &config]);
    assert!(rotated.status.success() && text(&rotated).contains("1 webhook(s) changed"), "{}", text(&rotated));

    // One with keys of its own cannot read these secrets, and says what to do.
    let own = server.data_dir().join("other").display().to_string();
    std::fs::write(&file, yaml.replace(&keys, &own)).expect("written");
    // It would serve for ever if it started.
    let mut stranger = Command::new("timeout");
    stranger.arg("60").arg(binary());
    let stranger =
        stranger.args(["serve", "--port", "0", "--data-dir", &own, "--config", &config]).output().expect("started");
    assert_eq!(stranger.status.code(), Some(2), "{}", text(&stranger));
    assert!(text(&stranger).contains("keyring-dir"), "{}", text(&stranger));
    // One with the same keys may join, also after their rotation.
    let _second = Server::configured(&yaml);
}
