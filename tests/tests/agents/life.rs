//! The life of an agent's processes.

use std::time::Duration;

use nuncio_tests::{Random, SseEvent, Stage, Value, at_once, client, id, in_context, json, message, state, texts};

#[tokio::test]
async fn a_killed_server_leaves_no_agent_behind_and_the_conversation_goes_on() {
    let mut stage = Stage::fake("claude-code", "claude", "");
    let first = stage.server.send("remember the number 7").await;
    assert_eq!(state(&first), "COMPLETED", "{first}");
    let slow = stage.server.send_params(at_once(in_context(&first["contextId"], "slow"))).await;
    stage.server.until(id(&slow), "WORKING").await;
    stage.until_busy().await;
    let before = stage.processes();
    stage.server.kill();
    stage.server.restart();
    let after = stage.processes();
    assert!(before.iter().all(|pid| !after.contains(pid)), "{before:?} {after:?}");
    let server = &stage.server;
    let over = server.until(id(&slow), "COMPLETED").await;
    assert_eq!(state(&over), "COMPLETED", "the agent went on with its session: {over}");
    let recall = server.send_params(in_context(&first["contextId"], "recall")).await;
    assert!(texts(&recall).concat().contains("number 7"), "{recall}");
}

/// A program that takes its time to read what it is asked, and writes down what it read.
#[tokio::test]
async fn what_a_program_had_not_read_when_the_server_died_reaches_it_later() {
    let answer = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}"#;
    let init = r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#;
    let script = format!(
        "sleep 1; while read -r line; do case $line in *'\"user\"'*) break;; esac; done; \
         printf '%s\\n' \"$line\" >> prompts; echo '{init}'; echo '{answer}'"
    );
    let mut stage = Stage::new("claude-code", &json!(["sh", "-c", script, "sh"]), "");
    let first = stage.server.send("hello").await;
    assert_eq!(state(&first), "COMPLETED", "{first}");
    let second = stage.server.send_params(at_once(in_context(&first["contextId"], "delete the branch"))).await;
    stage.until_busy().await;
    stage.server.kill();
    stage.server.restart();
    stage.server.until(id(&second), "COMPLETED").await;
    let prompts = std::fs::read_to_string(stage.workspace.path().join("prompts")).unwrap();
    assert!(prompts.lines().last().is_some_and(|prompt| prompt.contains("delete the branch")), "{prompts}");
}

#[tokio::test]
async fn two_hundred_cancels_at_any_moment_end_once_and_leave_nothing() {
    let script = "trap '' TERM; (trap '' TERM; for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.02; done; sleep 60) & \
                  setsid sh -c 'exec sleep 60' & wait";
    let stage = Stage::shell(script, "store: memory\ncancel-grace: 500ms");
    let server = &stage.server;
    let mut random = Random::new();
    for round in 0..20 {
        let mut tasks = Vec::new();
        for n in 0..10 {
            let task = server.send_params(at_once(message("go"))).await;
            let wait = Duration::from_millis(random.below(150));
            let (url, id) = (server.url.clone(), id(&task).to_owned());
            tasks.push(tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                let body = json!({ "jsonrpc": "2.0", "id": n, "method": "CancelTask", "params": { "id": id } });
                let sent = client().post(&url).header("A2A-Version", "1.0").json(&body).send().await.unwrap();
                let body: Value = sent.json().await.unwrap();
                (id, body)
            }));
        }
        for task in tasks {
            let (id, _) = task.await.unwrap();
            server.until(&id, "CANCELED").await;
            let finals = server.log(&id).await;
            let is_final = |event: &&SseEvent| {
                let state = event.body()["statusUpdate"]["status"]["state"].as_str().unwrap_or_default().to_owned();
                ["CANCELED", "COMPLETED", "FAILED", "REJECTED"].iter().any(|word| state.ends_with(word))
            };
            assert_eq!(finals.iter().filter(is_final).count(), 1, "round {round}");
        }
    }
    stage.until_idle().await;
}

/// Prints what a line of a program costs. No assertion: time is nothing to test.
#[tokio::test]
async fn the_cost_of_a_line_is_printed() {
    let stage = Stage::shell("seq 10000", "store: memory");
    let server = &stage.server;
    server.send("warm up").await;
    let before = cpu(server.pid());
    let task = server.send("go").await;
    let used = cpu(server.pid()) - before;
    assert_eq!(texts(&task).concat().lines().count(), 10_000);
    eprintln!("{:.2} µs of CPU per line", used.as_secs_f64() * 1e6 / 10_000.0);
}

/// The CPU time of a process.
fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, numbers) = stat.rsplit_once(')').expect("a name in brackets");
    let fields: Vec<u64> = numbers.split_whitespace().skip(11).take(2).map(|n| n.parse().expect("a number")).collect();
    Duration::from_millis((fields[0] + fields[1]) * 10)
}
