//! What scripts rely on: exit codes, where settings come from, what goes to stdout, how to go on.

use nuncio_tests::{Server, Value, json};

use crate::agent::Agent;
use crate::run::Shell;

#[tokio::test]
async fn exit_codes_say_what_happened() {
    let server = Server::start(&["--store", "memory"]);
    let shell = Shell::new();
    let call = |more: &[&str]| shell.client(&[&["call", "--url", &server.url], more].concat());
    call(&["-p", "hello"]).ok();
    assert!(call(&["-p", "fail on purpose"]).failed(1).contains("the task failed: on purpose"));
    assert!(call(&["-p", "reject this"]).failed(1).contains("rejected the task: this"));
    assert!(call(&[]).failed(2).contains("prompt is required"));
    assert!(call(&["-p", "x", "--timeout", "soon"]).failed(2).contains("`--timeout`"));
    assert!(call(&["-p", "x", "--nonsense"]).failed(2).contains("--nonsense"));
    assert!(shell.client(&["call", "-p", "x"]).failed(2).contains("url is required"));
    assert!(shell.client(&["--config", "missing.yml", "discover"]).failed(2).contains("missing.yml"));
    assert!(shell.client(&["task-get", "--url", &server.url]).failed(2).contains("task-id is required"));
    shell.client(&["discover", "--url", "http://127.0.0.1:1/"]).failed(3);
    let late = call(&["-p", "sleep 20", "--timeout", "0.5"]).failed(5);
    assert!(late.contains("nuncio client task-subscribe --url"), "{late}");

    let closed = Server::configured("store: memory\ntoken: secret-token\n");
    let refused = shell.client(&["task-list", "--url", &closed.url]).failed(4);
    assert!(refused.contains("Credentials are needed"), "{refused}");
    let wrong = shell.client(&["call", "--url", &closed.url, "-p", "x", "--token", "wrong-token"]).failed(4);
    assert!(!wrong.contains("wrong-token"), "{wrong}");
}

#[tokio::test]
async fn credentials_come_from_flag_environment_or_file() {
    let agent = Agent::with_webhooks();
    let shell = Shell::new().set("IACCODE_A2A_HTTP_TOKEN", "from-environment").set("IACCODE_A2A_API_KEY", "key");
    shell.write("c.yml", &format!("url: {}\ntoken: from-file\napi-key-header: X-Own\n", agent.url));
    let sent = |shell: &Shell, args: &[&str]| {
        shell.client(args).ok();
        agent.last("/").headers.to_lowercase()
    };
    let file = ["--config", "c.yml", "extended-card"];
    let headers = sent(&shell, &file);
    assert!(headers.contains("authorization: bearer from-environment"), "{headers}");
    assert!(headers.contains("x-own: key"), "{headers}");
    let headers = sent(&shell, &[&file[..], &["--token", "from-flag"]].concat());
    assert!(headers.contains("bearer from-flag"), "{headers}");
    let before = sent(&shell, &["--token", "before", "--config", "c.yml", "extended-card"]);
    assert!(before.contains("bearer before"), "{before}");
    // Set nearer to the person, a password beats a token.
    let basic = sent(&shell, &[&file[..], &["--basic-username", "me", "--basic-password", "pass word"]].concat());
    assert!(basic.contains("authorization: basic bwu6cgfzcyb3b3jk"), "{basic}");
    let bare = Shell::new();
    std::fs::copy(shell.path().join("c.yml"), bare.path().join("c.yml")).unwrap();
    assert!(sent(&bare, &file).contains("bearer from-file"));
    let ours = Shell::new().set("NUNCIO_TOKEN", "ours").set("NUNCIO_URL", &agent.url);
    assert!(sent(&ours, &["extended-card"]).contains("bearer ours"));
}

#[tokio::test]
async fn without_a_terminal_the_line_to_answer_is_told() {
    let server = Server::start(&["--store", "memory"]);
    let shell = Shell::new();
    let asks = shell.client(&["call", "--url", &server.url, "-p", "approve rm -rf build"]);
    assert_eq!((asks.code, asks.out.as_str()), (Some(0), ""));
    assert!(asks.err.contains("Approve? rm -rf build"), "{asks:?}");
    let line = asks.err.lines().find(|line| line.contains("nuncio client call")).expect("a line");
    let line = line.trim().replacen("nuncio", &nuncio_tests::binary().display().to_string(), 1);
    // What the line leaves open is the answer itself.
    assert_eq!(shell.line(&line.replace('…', "y")).ok(), "approved\n");

    shell.write("c.yml", &format!("url: {}\n", server.url));
    let asks = shell.client(&["--config", "c.yml", "call", "-p", "ask Which colour?"]);
    let line = asks.err.lines().find(|line| line.contains("nuncio client")).expect("a line");
    assert!(line.contains("--config c.yml call --task-id"), "{line}");
    let line = line.trim().replacen("nuncio", &nuncio_tests::binary().display().to_string(), 1);
    assert_eq!(shell.line(&line.replace('…', "blue")).ok(), "blue\n");
}

#[tokio::test]
async fn the_answer_is_on_stdout_and_talk_on_stderr() {
    let server = Server::start(&["--store", "memory", "--thinking-exposure", "all"]);
    let shell = Shell::new();
    let call = |prompt: &str| shell.client(&["call", "--url", &server.url, "-p", prompt]);
    for (prompt, out, err) in [
        ("tool search", "used search\n", "tool search: one two three"),
        ("think it over", "thought\n", "thinking: it over"),
        ("usage", "12 tokens in, 34 out\n", "12 tokens in, 34 out, demo"),
        ("message hi", "hi\n", ""),
        ("file x.bin 10", "[x.bin: application/octet-stream, 10 bytes]\n", "completed"),
    ] {
        let done = call(prompt);
        assert_eq!((done.code, done.out.as_str()), (Some(0), out), "{done:?}");
        assert!(done.err.contains(err), "{done:?}");
    }
    // Where nobody looks, nothing is changed: a program gets what the agent sent.
    assert_eq!(call("a\x1b[31mred\x07").ok(), "a\x1b[31mred\x07\n");
}

#[tokio::test]
async fn json_is_one_document_or_one_event_per_line() {
    let server = Server::start(&["--store", "memory"]);
    let shell = Shell::new();
    let call = |more: &[&str]| {
        let args = ["call", "--url", &server.url, "-p", "stream 3", "--output", "json"];
        shell.client(&[&args[..], more].concat()).ok()
    };
    let whole: Value = serde_json::from_str(&call(&[])).expect("one document");
    assert_eq!(nuncio_tests::texts(&whole["task"]), ["chunk 0chunk 1chunk 2"]);
    let lines: Vec<Value> = call(&["--stream"]).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines[0]["task"].is_object());
    assert_eq!(lines.iter().filter(|line| line["artifactUpdate"].is_object()).count(), 3);
    assert_eq!(lines.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    let direct = shell.client(&["call", "--url", &server.url, "-p", "message hi", "--output", "json"]).ok();
    let direct: Value = serde_json::from_str(&direct).expect("JSON");
    assert_eq!(direct["message"]["parts"][0]["text"], "hi");
}

#[tokio::test]
async fn pages_lead_to_the_next_one() {
    let server = Server::start(&["--store", "memory"]);
    for text in ["one", "two", "three"] {
        server.send(text).await;
    }
    let shell = Shell::new();
    let long = "a very long message ".repeat(20);
    server.send(&format!("ask {long}")).await;
    let mut seen = Vec::new();
    let mut line = format!("{} client task-list --url {} --page-size 2", nuncio_tests::binary().display(), server.url);
    for _ in 0..3 {
        let page = shell.line(&line);
        assert!(page.err.contains("of 4 tasks."), "{page:?}");
        seen.extend(page.out.lines().skip(2).map(|row| row.split("  ").next().unwrap_or_default().to_owned()));
        let next = page.err.lines().find_map(|line| line.strip_prefix("Next page: nuncio "));
        if seen.len() == 2 {
            assert!(page.out.contains(long.trim()), "nothing is cut in a pipe");
        }
        let Some(next) = next else { break };
        line = format!("{} {next}", nuncio_tests::binary().display());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4, "{seen:?}");
    let none = shell.client(&["task-list", "--url", &server.url, "--status", "rejected"]);
    assert_eq!((none.out.as_str(), none.err.as_str()), ("", "No A2A tasks found.\n"));
}

#[tokio::test]
async fn both_versions_and_bindings_can_be_asked_for() {
    let server = Server::start(&["--store", "memory"]);
    let shell = Shell::new();
    for version in ["1.0", "0.3"] {
        for transport in ["jsonrpc", "rest"] {
            let how = ["--a2a-version", version, "--transport", transport];
            let args = [&["call", "--url", &server.url, "-p", "stream 3 5"], &how[..]].concat();
            assert_eq!(shell.client(&args).ok(), "chunk 0chunk 1chunk 2\n", "{version} {transport}");
        }
    }
}

#[tokio::test]
async fn an_agent_without_streams_or_a_card_is_fine_too() {
    let task = |state: &str| {
        json!({
            "id": "t-1", "contextId": "c-1", "status": { "state": state },
            "artifacts": [{ "artifactId": "a", "parts": [{ "text": "polled" }] }],
        })
    };
    let agent = Agent::start(json!({}), move |method, _| match method {
        "SendMessage" => Ok(json!({ "task": task("TASK_STATE_WORKING") })),
        "GetTask" => Ok(task("TASK_STATE_COMPLETED")),
        _ => Err(-32601),
    });
    let shell = Shell::new();
    assert_eq!(shell.client(&["call", "--url", &agent.url, "-p", "x", "--stream"]).ok(), "polled\n");
    let message = agent.last("/");
    assert!(message.headers.to_lowercase().contains("a2a-version: 1.0"), "{message:?}");
}

#[tokio::test]
async fn only_whoever_asks_for_it_tells_the_agent_about_folders() {
    let agent = Agent::start(json!({}), |_, params| {
        Ok(
            json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": params["message"].to_string() }] } }),
        )
    });
    let shell = Shell::new();
    let sent = |more: &[&str]| -> Value {
        let args = [&["call", "--url", &agent.url, "-p", "x"], more].concat();
        serde_json::from_str(&shell.client(&args).ok()).expect("the message")
    };
    assert_eq!(sent(&[])["metadata"], Value::Null);
    let metadata = &sent(&["--cwd", ".", "--metadata", r#"{"iac_code": {"x": 1}, "y": 2}"#])["metadata"];
    let here = shell.path().canonicalize().unwrap();
    assert_eq!(metadata, &json!({ "iac_code": { "x": 1, "cwd": here.display().to_string() }, "y": 2 }));
}

#[tokio::test]
async fn nobody_has_to_listen() {
    let shell = Shell::new();
    let nuncio = nuncio_tests::binary().display();
    let deaf = |line: &str| shell.line(&format!("{nuncio} {line} 2>/dev/full"));
    assert_eq!(deaf("client discover --url http://127.0.0.1:1/").code, Some(3));
    assert_eq!(deaf("config check --port x").code, Some(2));
    // The server has written to its log before it answers, and does so again when stdin ends.
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}"#;
    for log in ["json", "text"] {
        let server = "serve --store memory --transport stdio --data-dir data";
        let done = shell.line(&format!("echo '{request}' | NUNCIO_LOG={log} {nuncio} {server} 2>/dev/full"));
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.out.contains("\"result\""), "{done:?}");
    }
}

#[tokio::test]
async fn a_reader_that_leaves_ends_the_command_and_not_the_task() {
    let server = Server::start(&["--store", "memory"]);
    let shell = Shell::new();
    let client = format!("{} client", nuncio_tests::binary().display());
    let url = &server.url;
    let left = |line: &str| {
        let begun = std::time::Instant::now();
        let done = shell.line(&format!("{client} {line} | head -c 5 >/dev/null; exit ${{PIPESTATUS[0]}}"));
        assert_eq!(done.code, Some(0), "{done:?}");
        // Far less than the task takes.
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{line}");
    };
    left(&format!("call --url {url} -p 'stream 6000 50'"));
    assert_eq!(server.count("WORKING").await, 1);
    let tasks = shell.client(&["task-list", "--url", url, "--output", "json"]).ok();
    let tasks: Value = serde_json::from_str(&tasks).unwrap();
    let id = tasks["tasks"][0]["id"].as_str().unwrap();
    left(&format!("task-subscribe --url {url} --task-id {id} --after 0"));
    assert_eq!(server.count("WORKING").await, 1);
}

#[tokio::test]
async fn whoever_has_seen_everything_sees_nothing_twice() {
    let server = Server::start(&["--store", "memory"]);
    let shell = Shell::new();
    let task = server.send("stream 3").await;
    let last = server.log(nuncio_tests::id(&task)).await.iter().filter_map(|event| event.id).max().unwrap();
    let (id, last) = (nuncio_tests::id(&task), last.to_string());
    let after =
        |after: &str| shell.client(&["task-subscribe", "--url", &server.url, "--task-id", id, "--after", after]);
    assert_eq!(after("0").ok(), "chunk 0chunk 1chunk 2\n");
    assert_eq!(after(&last).ok(), "");
    let empty = shell.client_reading(&["call", "--url", &server.url, "-p", "-"], " \n").failed(2);
    assert!(empty.contains("no prompt on stdin"), "{empty}");
}

#[test]
fn what_serve_would_refuse_is_not_called_valid() {
    let shell = Shell::new();
    let nuncio = nuncio_tests::binary().display();
    let check = |file: &str| {
        shell.write("c.yml", file);
        shell.line(&format!("{nuncio} config check --config c.yml"))
    };
    let oidc = |more: &str| format!("# who\noidc: {{issuer: 'https://id.example', audience: a, {more}}}");
    let wrong = [
        ("# which\nagent: acp".to_owned(), "`agent` in c.yml, line 2: agent `acp`: an ACP agent needs a command"),
        ("agent: generic".to_owned(), "a generic agent needs a command"),
        ("agent: upstream".to_owned(), "an upstream agent needs an address"),
        ("agent: upstream\nupstream: ftp://x".to_owned(), "line 1: agent `upstream`: upstream: "),
        ("agents: [{name: a, kind: acp}]".to_owned(), "line 1: agent `a`: an ACP agent needs a command"),
        ("transport: redis-streams\nredis-url: nonsense".to_owned(), "`redis-url` in c.yml, line 2"),
        (
            "push-notifications: true\npush-backend: redis-streams\npush-redis-url: x".to_owned(),
            "`push-redis-url` in c.yml, line 3",
        ),
        (oidc("jwks-url: nonsense"), "`oidc` in c.yml, line 2"),
        (oidc("algorithms: HS256"), "`oidc` in c.yml, line 2"),
        (oidc("secret: a-long-enough-secret-of-many-letters"), "`oidc` in c.yml, line 2"),
        ("oidc: {issuer: 'http://id.example', audience: a}".to_owned(), "`oidc` in c.yml, line 1"),
        ("tls: {cert: missing.pem, key: missing.pem}".to_owned(), "`tls` in c.yml, line 1"),
    ];
    for (file, told) in wrong {
        let done = check(&file);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{file}: {done:?}");
        assert!(done.err.contains(told), "{file}: {done:?}");
    }
    for file in ["", "agent: acp\ncommand: gemini --acp", "upstream: http://127.0.0.1:1/"] {
        let done = check(file);
        assert_eq!(done.code, Some(0), "{file}: {done:?}");
    }
}
