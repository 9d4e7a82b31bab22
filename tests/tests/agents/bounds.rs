//! What a program may see, how much it may print, how long it may take, and that nothing of it is left.

use std::collections::BTreeMap;

use nuncio_tests::{Stage, at_once, id, json, message, state};

use crate::lines::run;

fn ndjson(more: &str) -> Stage {
    Stage::fake("generic", "ndjson", &format!("store: memory\n{more}"))
}

#[tokio::test]
async fn a_program_sees_what_is_listed_and_no_secret_of_the_server() {
    let secrets = [
        ("NUNCIO_TOKEN", "server-token-0123456789"),
        ("NUNCIO_UPSTREAM_TOKEN", "upstream-token-0123456789"),
        ("IACCODE_A2A_HTTP_TOKEN", "other-token-0123456789"),
        ("AWS_SECRET_ACCESS_KEY", "aws-0123456789"),
        ("OPENAI_API_KEY", "openai-0123456789"),
        ("PASSED", "passed on"),
    ];
    let more = "store: memory\nenv: [PASSED, SET=set here, NUNCIO_TOKEN]\nupstream-token: config-token-0123456789";
    let stage = Stage::new_in("generic", &json!(["sh", "-c", "env"]), more, &secrets);
    let request = stage.server.post("/message:send", &message("go")).bearer_auth(secrets[0].1);
    let (_, answer) = nuncio_tests::answer(request).await;
    let text = nuncio_tests::texts(&answer["task"]).concat();
    let seen: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!((seen.get("PASSED"), seen.get("SET")), (Some(&"passed on"), Some(&"set here")));
    assert!(seen.contains_key("PATH"), "{text}");
    assert!(!text.contains("0123456789"), "{text}");
    let own = ["PASSED", "SET", "NUNCIO_AGENT_MARK", "PWD", "SHLVL", "_", "OLDPWD"];
    let usual = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "COLORTERM", "TZ", "TMPDIR"];
    let net = ["SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];
    let listed = |name: &str| {
        let prefixes = ["LC_", "XDG_", "GIT_AUTHOR_", "GIT_COMMITTER_"];
        own.iter().chain(&usual).chain(&net).any(|known| *known == name)
            || prefixes.iter().any(|prefix| name.starts_with(prefix))
            || name.to_lowercase().ends_with("_proxy")
    };
    for name in seen.keys() {
        assert!(listed(name), "{name} is seen");
    }
}

#[tokio::test]
async fn a_turn_has_a_deadline_that_no_program_outlives() {
    let stage = ndjson("turn-timeout: 3s\ncancel-grace: 500ms");
    let told = run(&stage.server, "stubborn").await;
    assert_eq!(told.state, "FAILED", "{told:?}");
    assert!(!told.words.is_empty());
    stage.until_idle().await;
}

#[tokio::test]
async fn silence_has_a_limit() {
    let stage = ndjson("silence-timeout: 3s\ncancel-grace: 500ms");
    let told = run(&stage.server, "slow").await;
    assert_eq!(told.state, "FAILED", "{told:?}");
    stage.until_idle().await;
}

#[tokio::test]
async fn a_cancel_ends_children_that_ignore_it_or_left_the_group() {
    let stage = ndjson("cancel-grace: 500ms");
    let task = stage.server.send_params(at_once(message("stubborn"))).await;
    let mut stream = stage.server.subscribe(id(&task), Some(0)).await;
    while let Some(event) = stream.next().await {
        if event.chunk().is_some() {
            break;
        }
    }
    assert!(stage.processes().len() >= 3, "itself, a child and one that left: {:?}", stage.processes());
    assert_eq!(state(&stage.server.cancel(id(&task)).await), "CANCELED");
    stage.until_idle().await;
}

#[tokio::test]
async fn what_a_program_leaves_running_ends_with_its_turn() {
    let stage = ndjson("");
    run(&stage.server, "linger").await.completed("Something runs on.");
    stage.until_idle().await;
}

#[tokio::test]
async fn a_line_has_a_limit() {
    let stage = Stage::shell("head -c 40000000 /dev/zero | tr '\\0' x; sleep 60", "store: memory");
    let told = run(&stage.server, "go").await;
    told.ended("FAILED", "The agent printed a line that is too long");
    stage.until_idle().await;
}

#[tokio::test]
async fn only_the_end_of_a_long_complaint_is_passed_on() {
    let script = "i=0; head -c 9000000 /dev/zero | tr '\\0' y >&2; printf '\\033]0;title\\007\\033[1mthe end\\033[0m' >&2; exit 9";
    let stage = Stage::shell(script, "store: memory");
    let told = run(&stage.server, "go").await;
    told.ended("FAILED", "agent exited with code 9: …");
    assert!(told.words.ends_with("the end") && told.words.len() < 3000, "{}", told.words);
}

#[tokio::test]
async fn only_so_many_programs_run_and_the_others_wait() {
    let script = "while [ ! -e go ]; do sleep 0.05; done; echo done";
    let stage = Stage::shell(script, "store: memory\nmax-running-turns: 2");
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(stage.server.send_params(at_once(message("go"))).await);
    }
    for task in &tasks[..2] {
        stage.server.until(id(task), "WORKING").await;
    }
    stage.until_busy().await;
    for task in &tasks[2..] {
        assert_eq!(state(&stage.server.task(id(task)).await), "SUBMITTED");
    }
    std::fs::write(stage.workspace.path().join("go"), "").expect("the workspace is ours");
    for task in &tasks {
        stage.server.until(id(task), "COMPLETED").await;
    }
    stage.until_idle().await;
}

#[tokio::test]
async fn what_is_printed_and_not_told_is_no_silence() {
    let line = r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"x"}}}"#;
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}"#;
    let script = format!("for i in 1 2 3 4 5 6 7 8 9 10; do echo '{line}'; sleep 0.4; done; echo '{done}'");
    let command = json!(["sh", "-c", script, "sh"]);
    let stage = Stage::new("claude-code", &command, "store: memory\nsilence-timeout: 2s");
    let told = run(&stage.server, "go").await;
    assert_eq!(told.state, "COMPLETED", "{told:?}");
}

#[tokio::test]
async fn a_program_that_has_answered_may_take_its_time_to_leave() {
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}"#;
    let command = json!(["sh", "-c", format!("trap '' TERM; echo '{done}'; while :; do sleep 0.1; done"), "sh"]);
    let stage = Stage::new("claude-code", &command, "store: memory\nsilence-timeout: 2s\nturn-timeout: 4s");
    let told = run(&stage.server, "go").await;
    assert_eq!(told.state, "COMPLETED", "{told:?}");
    stage.until_idle().await;
}

#[tokio::test]
async fn a_cancel_is_no_yes_to_what_a_program_asks() {
    let script = "printf 'Delete everything? [Y/n] '; read answer; [ \"$answer\" = n ] || touch deleted; sleep 60";
    let stage = Stage::shell(script, "store: memory");
    let task = stage.server.send("go").await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    stage.server.cancel(id(&task)).await;
    stage.server.until(id(&task), "CANCELED").await;
    stage.until_idle().await;
    assert!(!stage.workspace.path().join("deleted").exists());
}

#[tokio::test]
async fn what_a_program_left_behind_does_not_keep_its_turn_going() {
    let stage = Stage::shell("(while :; do echo tick; sleep 0.3; done) & echo done; exit 0", "store: memory");
    let told = run(&stage.server, "go").await;
    assert_eq!(told.state, "COMPLETED", "{told:?}");
    stage.until_idle().await;
}

#[tokio::test]
async fn a_program_that_closes_its_output_may_go_on_to_its_end() {
    let stage = Stage::shell("echo done; exec >&-; sleep 8; touch written; exit 0", "store: memory");
    run(&stage.server, "go").await.completed("done\n");
    assert!(stage.workspace.path().join("written").exists());
}
