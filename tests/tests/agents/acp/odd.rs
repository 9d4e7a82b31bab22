//! Agents that do not behave.

use nuncio_tests::{Random, Stage, at_once, id, in_context, json, message, state, words};

use super::{finals, said, stage};

#[tokio::test]
async fn what_is_no_message_is_passed_over() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let task = server.send("garbage").await;
    assert_eq!(state(&task), "COMPLETED", "{task}");
    assert!(said(&task).starts_with("error -32601"), "{task}");
    assert!(said(&task).contains(" error -32602"), "{task}");
    let long = server.send_params(in_context(&task["contextId"], "long")).await;
    assert_eq!(said(&long).len(), 1 << 20);
    assert_eq!(finals(&server.log(id(&long)).await).len(), 1);
}

#[tokio::test]
async fn half_of_a_character_is_all_that_is_lost() {
    let stage = stage("", "store: memory");
    assert_eq!(said(&stage.server.send("half").await), "before \u{FFFD} after and \u{FFFD}");
}

#[tokio::test]
async fn frames_that_are_almost_right_end_nothing() {
    let stage = stage("", "store: memory");
    let mut random = Random::new();
    for _ in 0..5 {
        let seed = random.below(u64::MAX);
        let task = stage.server.send(&format!("noise {seed}")).await;
        assert_eq!(state(&task), "COMPLETED", "noise {seed}: {task}");
        assert!(said(&task).ends_with("over"), "noise {seed}: {task}");
        let next = stage.server.send_params(in_context(&task["contextId"], "hello")).await;
        assert_eq!(said(&next), "echo hello", "noise {seed}");
    }
}

#[tokio::test]
async fn a_line_without_end_ends_the_turn_and_not_the_server() {
    let stage = stage("", "store: memory\ncancel-grace: 1s");
    let task = stage.server.send("huge").await;
    assert_eq!((state(&task), words(&task)), ("FAILED", "The agent printed a line that is too long"));
    stage.until_idle().await;
    assert_eq!(said(&stage.server.send("hello").await), "echo hello");
}

#[tokio::test]
async fn an_agent_that_dies_fails_its_task_and_is_started_again() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let first = server.send("remember the number 3").await;
    let dead = server.send_params(in_context(&first["contextId"], "die")).await;
    assert_eq!(state(&dead), "FAILED", "{dead}");
    assert!(words(&dead).contains("code 3") && words(&dead).contains("out of memory"), "{dead}");
    assert_eq!(said(&dead), "I am ", "what it had said stays");
    assert_eq!(finals(&server.log(id(&dead)).await).len(), 1);
    let recall = server.send_params(in_context(&first["contextId"], "recall")).await;
    assert_eq!(said(&recall), "number 3 of 3");
}

#[tokio::test]
async fn programs_that_are_no_agents_are_told_apart() {
    let other = stage("v9", "store: memory");
    let task = other.server.send("hello").await;
    assert_eq!(state(&task), "FAILED");
    assert!(words(&task).contains("version 9"), "{task}");
    other.until_idle().await;

    for command in [json!(["true"]), json!(["sh", "-c", "echo no config >&2; exit 4"])] {
        let stage = Stage::new("acp", &command, "store: memory");
        let task = stage.server.send("hello").await;
        assert_eq!(state(&task), "FAILED", "{command}: {task}");
        assert!(command[0] == "true" || words(&task).contains("no config"), "{task}");
    }
    let missing = Stage::new("acp", &json!(["no-such-agent", "--acp"]), "store: memory");
    let task = missing.server.send("hello").await;
    assert!(words(&task).contains("\"no-such-agent\"") && words(&task).contains("not installed"), "{task}");
}

#[tokio::test]
async fn one_that_never_answers_can_be_canceled_and_times_out() {
    for kind in ["mute", "prose"] {
        let stage = stage(kind, "store: memory\nturn-timeout: 1s\ncancel-grace: 1s");
        let task = stage.server.send_params(at_once(message("hello"))).await;
        stage.until_busy().await;
        assert_eq!(state(&stage.server.cancel(id(&task)).await), "CANCELED");
        let late = stage.server.send("hello").await;
        assert_eq!(state(&late), "FAILED", "{late}");
        stage.until_idle().await;
    }
}

#[tokio::test]
async fn asking_without_listening_fills_nobodys_memory() {
    let stage = stage("", "store: memory");
    stage.server.send("hello").await;
    let before = stage.server.resident_kib();
    let task = stage.server.send("unread").await;
    assert_eq!(said(&task), "asked", "{task}");
    let grown = stage.server.resident_kib().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB");
}
