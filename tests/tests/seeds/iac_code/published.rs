//! The published client of iac-code (`iac-code` 0.13.1 with `a2a-sdk` 1.1.0) against the profile.

use std::process::{Command, Stdio};

use nuncio_tests::{Server, Value, id, installed, json, state};

/// Runs `iac-code a2a-client` with these arguments; what it printed.
fn run(server: &Server, home: &std::path::Path, args: &[&str]) -> String {
    let folder = installed("iac-code");
    let done = Command::new("timeout")
        .arg("120")
        .arg(folder.join("bin/iac-code"))
        .arg("a2a-client")
        .args(args)
        .args(["--url", &format!("{}/", server.url)])
        .env("HOME", home)
        .env("DISABLE_TELEMETRY", "1")
        .current_dir(home)
        .stdin(Stdio::null())
        .output()
        .expect("the client can be started");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{args:?}: {out}{err}");
    out.into_owned()
}

#[tokio::test]
async fn the_published_client_is_served() {
    let yaml = "profile: iac-code\ntoken: t\npush-notifications: true\nsigning-secret: local-card-signing-secret";
    let server = Server::configured(yaml);
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| run(&server, home.path(), &[args, &["--token", "t"]].concat());
    let reply = |args: &[&str]| -> Value {
        let said = run(args);
        serde_json::from_str(&said).unwrap_or_else(|_| json!({ "said": said }))
    };
    let card = reply(&["discover", "--verify-card-secret", "local-card-signing-secret", "--require-card-signature"]);
    assert_eq!(card["name"], "iac-code", "{card}");
    assert_eq!(run(&["call", "--prompt", "Create a VPC"]).trim(), "Create a VPC");
    let streamed = run(&["call", "--prompt", "stream 3", "--stream"]);
    assert!((0..3).all(|n| streamed.contains(&format!("chunk {n}"))), "{streamed}");
    let listed = reply(&["task-list", "--output", "json"]);
    let tasks = listed.pointer("/result/tasks").or_else(|| listed.get("tasks")).cloned().unwrap_or_default();
    assert_eq!(tasks.as_array().map(Vec::len), Some(2), "{listed}");
    let task = tasks[1]["id"].as_str().unwrap().to_owned();
    assert!(run(&["task-list"]).contains("input-required"));
    let got = reply(&["task-get", "--task-id", &task, "--history-length", "5"]);
    assert_eq!(state(&got["result"]), "INPUT_REQUIRED", "{got}");
    let refused = reply(&["task-cancel", "--task-id", &task]);
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    let holding = nuncio_tests::at_once(nuncio_tests::message("hold"));
    let request = server.rpc_request("SendMessage", &holding).bearer_auth("t");
    let holding = nuncio_tests::answer(request).await.1["result"]["task"].clone();
    let canceled = reply(&["task-cancel", "--task-id", id(&holding)]);
    assert_eq!(state(&canceled["result"]), "CANCELED", "{canceled}");
    let hook = ["--task-id", &task, "--config-id", "webhook-1"];
    let made =
        reply(&[&["push-config-create"], &hook[..], &["--callback-url", "https://hooks.example.com/a2a"]].concat());
    assert_eq!(made["result"]["id"], "webhook-1", "{made}");
    let got = reply(&[&["push-config-get"], &hook[..]].concat());
    assert_eq!(got["result"]["url"], "https://hooks.example.com/a2a", "{got}");
    let listed = reply(&["push-config-list", "--task-id", &task]);
    assert_eq!(listed["result"]["configs"].as_array().map(Vec::len), Some(1), "{listed}");
    let deleted = reply(&[&["push-config-delete"], &hook[..]].concat());
    assert!(deleted.get("error").is_none(), "{deleted}");
    let extended = reply(&["extended-card"]);
    assert_eq!(extended["result"]["name"], "iac-code", "{extended}");
}
