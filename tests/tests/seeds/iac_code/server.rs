//! Document 002, lines 57 to 169 and 316 to 327: the server command, its options, keys and variables.

use nuncio_tests::{Value, binary, client};
use serde_json::json;

use crate::run::{Done, Shell};

/// Runs a line of the binary.
pub(super) fn nuncio(shell: &Shell, line: &str) -> Done {
    shell.line(&format!("{} {line}", binary().display()))
}

fn shown(shell: &Shell, more: &str) -> Value {
    let text = nuncio(shell, &format!("config show --profile iac-code --output json {more}")).ok();
    serde_json::from_str(&text).unwrap()
}

/// 002:59-69, 002:100-125, 002:150-160, 002:168: every key and its default.
#[test]
fn keys_have_their_defaults() {
    let shell = Shell::new();
    let home = shell.path().display();
    let all = shown(&shell, "");
    for (key, default) in [
        ("host", json!("127.0.0.1")),
        ("port", json!(41242)),
        ("transport", json!(["http"])),
        ("thinking-exposure", json!(["tool-trace"])),
        ("data-dir", json!(format!("{home}/.iac-code/a2a"))),
        ("artifact-dir", Value::Null),
        ("signing-secret", Value::Null),
        ("push-notifications", json!(false)),
        ("push-backend", json!("local")),
        ("push-redis-url", Value::Null),
        ("push-stream", json!("iac-code:a2a:push")),
        ("push-retry-key", json!("iac-code:a2a:push:retry")),
        ("push-dead-stream", json!("iac-code:a2a:push:dead")),
        ("push-consumer-group", json!("iac-code-push")),
        ("push-consumer-name", Value::Null),
        ("push-lease-timeout-ms", json!(300_000)),
        ("socket-path", Value::Null),
        ("ws-path", json!("/a2a")),
        ("redis-url", Value::Null),
        ("request-stream", json!("iac-code:a2a:requests")),
        ("response-stream", json!("iac-code:a2a:responses")),
        ("consumer-group", json!("iac-code")),
        ("auto-approve-permissions", json!(false)),
    ] {
        assert_eq!(all[key]["value"], default, "{key}");
    }
}

/// 002:72-82, 002:106-107, 002:126-138, 002:162-164: keys with hyphens or underscores; flags win over the file.
#[test]
fn a_file_sets_keys_and_flags_win() {
    let shell = Shell::new();
    shell.write(
        "a2a-server.yml",
        "host: 127.0.0.1\nport: 41242\ntransport: http\ntoken: local-dev-token\n\
         persistence-dir: .iac-code-a2a/state\nartifact_dir: .iac-code-a2a/artifacts\npush_notifications: true\n",
    );
    let all = shown(&shell, "--config a2a-server.yml --port 41243");
    assert_eq!((&all["port"]["value"], &all["port"]["source"]), (&json!(41243), &json!("flag")));
    assert_eq!(
        (&all["push-notifications"]["value"], &all["push-notifications"]["source"]),
        (&json!(true), &json!("file"))
    );
    assert!(all["data-dir"]["value"].as_str().unwrap().ends_with(".iac-code-a2a/state"));
    assert!(all["artifact-dir"]["value"].as_str().unwrap().ends_with(".iac-code-a2a/artifacts"));
    shell.write("home.yml", "persistence-dir: ~/.iac-code/a2a\nartifact-dir: ~/.iac-code/a2a/artifacts\n");
    let all = shown(&shell, "--config home.yml");
    assert_eq!(all["artifact-dir"]["value"], format!("{}/.iac-code/a2a/artifacts", shell.path().display()));
    for exposure in ["[tool-trace, raw-thinking]", "tool-trace,raw-thinking", "\n- tool-trace\n- raw-thinking"] {
        shell.write("thinking.yml", &format!("thinking-exposure: {exposure}\n"));
        let all = shown(&shell, "--config thinking.yml");
        assert_eq!(all["thinking-exposure"]["value"], json!(["raw-thinking", "tool-trace"]), "{exposure}");
    }
    let all = shown(&shell, "--thinking-exposure raw-thinking --thinking-exposure tool-trace");
    assert_eq!(all["thinking-exposure"]["value"], json!(["raw-thinking", "tool-trace"]));
    let wrong = nuncio(&shell, "config check --profile iac-code --thinking-exposure thought-summary").failed(2);
    assert!(wrong.contains("Supported values: raw-thinking, tool-trace."), "{wrong}");
}

/// 002:66-67, 002:140-156: every transport by its name, and what each needs.
#[test]
fn transports_have_their_names() {
    let shell = Shell::new();
    shell.write("a2a-server.yml", "socket-path: a2a.sock\nredis-url: redis://localhost:6379/0\nws-path: /a2a\ngrpc-host: 127.0.0.1\ngrpc-port: 50051\n");
    for transport in ["http", "stdio", "unix", "websocket", "grpc", "grpc-jsonrpc", "redis-streams"] {
        let line =
            format!("config show --profile iac-code --output json --config a2a-server.yml --transport {transport}");
        let all: Value = serde_json::from_str(&nuncio(&shell, &line).ok()).unwrap();
        assert_eq!(all["transport"]["value"], json!([transport]));
    }
    for (transport, key) in [("unix", "socket-path"), ("redis-streams", "redis-url")] {
        let said = nuncio(&shell, &format!("config check --profile iac-code --transport {transport}")).failed(2);
        assert!(said.contains(key), "{said}");
    }
    let said = nuncio(&shell, "config check --profile iac-code --transport carrier-pigeon").failed(2);
    assert!(said.contains("redis-streams") && said.contains("websocket"), "{said}");
}

/// 002:84-91, 002:319-326.
#[test]
fn variables_set_keys() {
    let shell = Shell::new()
        .set("IACCODE_A2A_HTTP_TOKEN", "t")
        .set("IACCODE_A2A_BASIC_USERNAME", "u")
        .set("IACCODE_A2A_BASIC_PASSWORD", "p")
        .set("IACCODE_A2A_API_KEY", "k")
        .set("IACCODE_A2A_API_KEY_HEADER", "X-K")
        .set("IACCODE_A2A_ALLOWED_CWDS", "/tmp:/var/tmp")
        .set("IACCODE_A2A_TEXT_MIME_TYPES", "text/x-hcl;text/x-rego")
        .set("IACCODE_A2A_MULTIMODAL_MIME_TYPES", "video/mp4,application/pdf");
    let all = shown(&shell, "");
    for (key, value) in [
        ("basic-username", json!("u")),
        ("api-key-header", json!("X-K")),
        ("workspace-roots", json!(["/tmp", "/var/tmp"])),
        ("text-types", json!(["text/x-hcl", "text/x-rego"])),
        ("binary-types", json!(["video/mp4", "application/pdf"])),
    ] {
        assert_eq!((&all[key]["value"], &all[key]["source"]), (&value, &json!("environment")), "{key}");
    }
    for secret in ["token", "basic-password", "api-key"] {
        assert_eq!(all[secret]["source"], "environment", "{secret}");
    }
}

/// 002:6, 002:58-71: `a2a` serves, on the address and with the detail that it is told.
#[tokio::test]
async fn the_command_serves() {
    let shell = Shell::new();
    let line = format!(
        "{} a2a --profile iac-code --store memory --host 127.0.0.1 --port 0 --debug & pid=$!; \
         for _ in $(seq 300); do sleep 0.1; card=$(grep -o 'http://127.0.0.1:[0-9]*/.well-known/agent-card.json' log | head -1); \
         [ -n \"$card\" ] && break; done; echo \"$card\"; ",
        binary().display()
    );
    let script = format!("exec 2>log; {line} curl -s \"$card\"; kill $pid; wait $pid");
    let out = shell.line(&script).ok();
    let (card, body) = out.split_once('\n').unwrap();
    assert!(card.starts_with("http://127.0.0.1:"), "{out}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["name"], "iac-code");
    drop(client());
}

/// 002:103-105: what was stored is there after a crash; what ran is not run again by itself.
#[tokio::test]
async fn tasks_survive_a_crash() {
    let mut server = nuncio_tests::Server::configured("profile: iac-code");
    let done = server.send("file notes.txt 10").await;
    let running = server.send_async("hold").await;
    server.until(nuncio_tests::id(&running), "WORKING").await;
    server.kill();
    server.restart();
    let again = server.task(nuncio_tests::id(&done)).await;
    assert_eq!(again["artifacts"], done["artifacts"]);
    assert_eq!(again["history"], done["history"]);
    server.until(nuncio_tests::id(&running), "FAILED").await;
}
