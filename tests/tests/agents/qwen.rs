//! Qwen Code.

use nuncio_tests::json;

use crate::stream_json::Cli;
use crate::told::Told;

const QWEN: Cli = Cli { kind: "qwen", program: "qwen", shell: "run_shell_command", takes_rules: false };

#[tokio::test]
async fn an_answer_is_told_once_however_it_comes() {
    QWEN.says_everything_once().await;
}

#[tokio::test]
async fn a_turn_ends_as_the_program_says() {
    let lacks = "No auth type is selected. Please configure an auth type before running.";
    let key = "[API Error: 401 Incorrect API key provided: sk-n***. (Status: invalid_api_key)]";
    QWEN.ends_as_it_says(&[
        ("auth", "AUTH_REQUIRED", lacks),
        ("no key", "AUTH_REQUIRED", key),
        ("no server", "FAILED", "[API Error: Connection error. (cause: fetch failed)]"),
        ("exit 53", "FAILED", "agent reached its limit of turns: agent exited with code 53: boom: it broke"),
        ("exit 55", "FAILED", "agent used up its budget: agent exited with code 55: boom: it broke"),
    ])
    .await;
}

#[tokio::test]
async fn tools_thinking_and_usage_are_told() {
    let usage = json!({
        "inputTokens": 4, "outputTokens": 20, "cacheReadTokens": 100, "cacheWriteTokens": 10,
        "costUsd": 0.04, "durationMs": 1200, "model": "fake-1",
    });
    QWEN.tells_tools_thinking_and_usage(usage).await;
}

#[tokio::test]
async fn long_lines_are_read() {
    QWEN.reads_long_lines().await;
}

#[tokio::test]
async fn the_caller_decides_what_is_done() {
    QWEN.asks_before_it_acts().await;
}

#[tokio::test]
async fn rules_decide_before_the_caller() {
    QWEN.obeys_rules().await;
}

#[tokio::test]
async fn an_approval_that_is_withdrawn_is_not_waited_for() {
    QWEN.takes_questions_back().await;
}

#[tokio::test]
async fn two_approvals_at_once_are_asked_in_turn() {
    QWEN.asks_twice().await;
}

#[tokio::test]
async fn questions_are_answered_in_words() {
    QWEN.asks_for_words().await;
}

#[tokio::test]
async fn conversations_go_on() {
    QWEN.remembers().await;
}

#[tokio::test]
async fn an_approval_is_answered_after_a_restart() {
    QWEN.hears_an_answer_after_a_restart().await;
}

#[tokio::test]
async fn a_cancelled_turn_is_interrupted() {
    QWEN.stops().await;
}

#[tokio::test]
async fn it_is_started_with_its_flags_and_its_variables() {
    QWEN.is_started_as_it_should("agent exited with code 1: Unknown argument: frobnicate").await;
}

#[tokio::test]
async fn pictures_are_described() {
    let stage = QWEN.stage("store: memory");
    let mut params = nuncio_tests::message("look");
    params["message"]["parts"] = json!([{ "raw": "aGk=", "mediaType": "image/png", "filename": "a.png" }]);
    let told = Told::after(&stage, params).await;
    assert!(told.text().contains("- filename=a.png\n- mediaType=image/png\n"), "{}", told.task);
}
