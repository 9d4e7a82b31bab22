//! Marked secrets and paths are planted wherever the server has them, many things are made to fail, and the marks are
//! looked for in everything that leaves the server.

#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::fmt::Write as _;

use nuncio_tests::raw::{V1, Wire, until};
use nuncio_tests::{Value, json};

/// What nobody may read, neither on the wire nor in the log.
const SECRETS: [&str; 9] = [
    "MARK-token-alice",
    "MARK-token-wrong",
    "MARK-signing-secret",
    "MARK-upstream-token",
    "MARK-url-password",
    "MARK-hook-token",
    "MARK-hook-credentials",
    "MARK-hook-password",
    "MARK-variable",
];

/// What callers may not read; the operator's log may name it.
const PATHS: [&str; 2] = ["MARK-folder", "/home/"];

/// What whoever registered a webhook may read again, and nobody else.
const OF_CALLERS: [&str; 1] = ["MARK-query"];

/// Everything that came over the wire, and the log.
struct Seen {
    wire: String,
    log: String,
}

impl Seen {
    fn check(&self) {
        assert!(self.wire.len() > 1000, "nothing was looked at");
        for secret in SECRETS {
            let around = |text: &str| {
                text.find(secret).map(|at| text[at.saturating_sub(300)..].chars().take(600).collect::<String>())
            };
            assert_eq!(around(&self.wire), None, "{secret} is on the wire");
            assert_eq!(around(&self.log), None, "{secret} is in the log");
        }
        for secret in OF_CALLERS {
            assert!(!self.log.contains(secret), "{secret} is in the log: {}", self.log);
        }
        for path in PATHS {
            let at = self.wire.find(path);
            let around = at.map(|at| &self.wire[at.saturating_sub(300)..(at + 100).min(self.wire.len())]);
            assert_eq!(around, None, "{path} is on the wire");
        }
    }
}

/// Sends everything that goes wrong, and collects what comes back.
fn provoke(wire: &Wire, token: &str) -> String {
    let mut seen = String::new();
    let auth = format!("Authorization: Bearer {token}\r\n");
    let mut note = |answer: nuncio_tests::raw::Answer| {
        let _ = write!(seen, "{} {:?}\n{}\n", answer.status, answer.headers, answer.text());
        answer
    };
    let hook = |url: &str| {
        json!({
            "url": url, "token": "MARK-hook-token",
            "authentication": { "scheme": "Bearer", "credentials": "MARK-hook-credentials" },
        })
    };
    let rpc = |method: &str, params: &Value| {
        json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string()
    };
    let message =
        |text: &str| json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] } });
    // Turns that fail in every way that there is.
    let mut tasks = Vec::new();
    for text in
        ["hello", "crash", "fail words", "reject words", "auth words", "file a.txt 600000", "approve rm", "stream 2"]
    {
        for headers in [format!("{auth}{V1}"), auth.clone()] {
            let method = if headers.contains("A2A-Version") { "SendMessage" } else { "message/send" };
            let mut params = message(text);
            if method == "message/send" {
                params["message"]["role"] = json!("user");
                params["message"]["parts"] = json!([{ "kind": "text", "text": text }]);
            }
            let answer = note(wire.post("/", &headers, &rpc(method, &params)));
            if let Some(id) = answer.json()["result"]["task"]["id"].as_str() {
                tasks.push(id.to_owned());
            }
        }
    }
    // Webhooks, good and bad, and what is said of them afterwards.
    // Nobody listens there any more.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let urls = [
        format!("http://{closed}/hook?key=MARK-query"),
        format!("http://user:MARK-hook-password@{closed}/"),
        "https://user:MARK-hook-password@10.0.0.1/".to_owned(),
        "http://169.254.169.254/latest".to_owned(),
        "nonsense".to_owned(),
        "file:///etc/passwd".to_owned(),
    ];
    for (n, url) in urls.iter().enumerate() {
        let mut params = message("hello");
        params["configuration"] = json!({ "taskPushNotificationConfig": hook(url) });
        note(wire.post("/message:send", &format!("{auth}{V1}"), &params.to_string()));
        if let Some(task) = tasks.first() {
            let mut config = hook(url);
            config["id"] = json!(format!("hook-{n}"));
            let path = format!("/tasks/{task}/pushNotificationConfigs");
            note(wire.post(&path, &format!("{auth}{V1}"), &config.to_string()));
            note(wire.get(&path, &format!("{auth}{V1}")));
            note(wire.get(&format!("{path}/hook-{n}"), &format!("{auth}{V1}")));
            note(wire.get(&format!("/v1{path}"), &auth));
            let params = json!({ "taskId": task, "id": format!("hook-{n}") });
            note(wire.post("/", &format!("{auth}{V1}"), &rpc("GetTaskPushNotificationConfig", &params)));
        }
    }
    // Requests that are wrong.
    let bad = [
        "{",
        "[]",
        "null",
        "\u{1}",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{\"id\":[]}}",
    ];
    for body in bad {
        for (path, headers) in
            [("/", format!("{auth}{V1}")), ("/message:send", format!("{auth}{V1}")), ("/v1/message:send", auth.clone())]
        {
            note(wire.post(path, &headers, body));
        }
    }
    let paths = [
        "/tasks/none",
        "/tasks/none:cancel",
        "/tasks?pageSize=x",
        "/artifacts/none/none",
        "/extendedAgentCard",
        "/nothing",
        "/metrics",
        "/.well-known/agent-card.json",
        "/.well-known/jwks.json",
        "/ready",
        "/health",
        "/v1/card",
        "/..%2f..%2fetc/passwd",
        "/artifacts/..%2f..%2f/x",
    ];
    for path in paths {
        for headers in [
            format!("{auth}{V1}"),
            auth.clone(),
            String::new(),
            "Authorization: Bearer MARK-token-wrong\r\n".to_owned(),
        ] {
            note(wire.get(path, &headers));
        }
    }
    for (n, task) in tasks.iter().enumerate() {
        note(wire.get(&format!("/tasks/{task}"), &format!("{auth}{V1}")));
        note(wire.post(&format!("/tasks/{task}:cancel"), &format!("{auth}{V1}"), "{}"));
        if n == 0 {
            note(wire.get(&format!("/artifacts/{task}/none"), &auth));
        }
    }
    let workspace =
        json!({ "metadata": { "cwd": "/MARK-elsewhere", "iac_code": { "cwd": "/root" }, "workspace": "/root" } });
    let mut params = message("hello");
    params["metadata"] = workspace["metadata"].clone();
    params["message"]["metadata"] = workspace["metadata"].clone();
    note(wire.post("/", &format!("{auth}{V1}"), &rpc("SendMessage", &params)));
    seen
}

const DOOR: &str = "tokens:\n  - {name: alice, token: MARK-token-alice}\nsigning-secret: MARK-signing-secret\n\
                    push-notifications: true\npush-allowed-cidrs: [127.0.0.0/8]\npush-retry-delay: 1ms\n\
                    push-attempts: 2\n";

fn look(yaml: &str) -> Seen {
    let wire = Wire::start(&format!("{DOOR}{yaml}"));
    let seen = provoke(&wire, "MARK-token-alice");
    // Deliveries fail behind our back, and the log may tell of it.
    until("a webhook has failed", || {
        let metrics = wire.get("/metrics", "Authorization: Bearer MARK-token-alice\r\n").text();
        let failed = metrics.lines().find(|line| line.starts_with("nuncio_push_failed_attempts_total"));
        failed.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).is_some_and(|n| n > 0.0)
    });
    let health = wire.get("/health", "");
    assert_eq!(health.status, 200);
    Seen { wire: seen, log: wire.log() }
}

#[test]
fn no_secret_and_no_path_is_told_to_anybody() {
    let folder = tempfile::Builder::new().prefix("MARK-folder").tempdir().unwrap();
    let workspace = folder.path().display();
    let yaml = format!("store: sqlite\nextended-card: on\nworkspace: {workspace}\n");
    look(&yaml).check();
}

#[test]
fn an_agent_elsewhere_is_not_told_of() {
    // It does not take the token.
    let other = Wire::start("token: another\n");
    let yaml = format!("agent: upstream\nupstream: {}\nupstream-token: MARK-upstream-token\n", other.url());
    let wire = Wire::start(&format!("{DOOR}{yaml}"));
    let seen = provoke(&wire, "MARK-token-alice");
    assert!(seen.contains("The upstream agent"), "it was asked: {seen}");
    assert!(!seen.contains(&other.address.to_string()), "its address is not told");
    Seen { wire: seen, log: wire.log() }.check();
    let seen = Seen { wire: "x".repeat(2000), log: other.log() };
    seen.check();
}

#[test]
fn programs_do_not_tell_what_they_were_told() {
    let folder = tempfile::Builder::new().prefix("MARK-folder").tempdir().unwrap();
    let script = folder.path().join("agent.sh");
    let says = "echo \"cannot open $PWD/inside.txt and /srv/MARK-folder/key.pem\" >&2\n\
                echo \"key $API_KEY_OF_AGENT, see https://ada:MARK-url-password@api.example/x\" >&2\nexit 3\n";
    std::fs::write(&script, says).unwrap();
    let workspace = folder.path().display();
    let yaml = format!(
        "agent: generic\ncommand: [sh, {script}]\nworkspace: {workspace}\nenv: [API_KEY_OF_AGENT=MARK-variable]\n",
        script = script.display()
    );
    let wire = Wire::start(&format!("{DOOR}{yaml}"));
    let wire_bytes = provoke(&wire, "MARK-token-alice");
    assert!(wire_bytes.contains("agent exited with code 3"), "the program was run: {wire_bytes}");
    assert!(wire_bytes.contains("cannot open ./inside.txt"), "what is inside may be told");
    Seen { wire: wire_bytes, log: wire.log() }.check();
}

#[test]
fn mistakes_of_the_configuration_show_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("nuncio.yml");
    let broken = [
        "token: [MARK-token-alice]\n",
        "token: 'MARK-token-alice with spaces'\n",
        "tokens:\n  - {name: a, token: MARK-token-alice}\n  - {name: b, token: MARK-token-alice}\n",
        "signing-secret: {x: MARK-signing-secret}\n",
        "push-backend: redis-streams\npush-notifications: true\npush-redis-url: 'nonsense:MARK-url-password'\n",
        "upstream-token: [MARK-upstream-token]\n",
    ];
    for yaml in broken {
        std::fs::write(&config, format!("store: memory\nport: 0\n{yaml}")).unwrap();
        for command in [["config", "check"], ["config", "show"]] {
            let done = nuncio_tests::nuncio(&[command[0], command[1], "--config", config.to_str().unwrap()]);
            let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            for secret in SECRETS {
                assert!(!said.contains(secret), "{yaml}: {said}");
            }
        }
    }
}
