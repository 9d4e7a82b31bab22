//! Claude Code.

use nuncio_tests::{Stage, id, json, state};

use crate::stream_json::Cli;
use crate::told::Told;

const CLAUDE: Cli = Cli { kind: "claude-code", program: "claude", shell: "Bash", takes_rules: true };

#[tokio::test]
async fn an_answer_is_told_once_however_it_comes() {
    CLAUDE.says_everything_once().await;
}

#[tokio::test]
async fn a_turn_ends_as_the_program_says() {
    let refused = "The credentials of this agent are refused: authentication_failed";
    let ends =
        [("auth", "AUTH_REQUIRED", "Not logged in · Please run /login"), ("wrong key", "AUTH_REQUIRED", refused)];
    CLAUDE.ends_as_it_says(&ends).await;
}

#[tokio::test]
async fn tools_thinking_and_usage_are_told() {
    let usage = json!({
        "inputTokens": 114, "outputTokens": 20, "cacheReadTokens": 100, "cacheWriteTokens": 10,
        "costUsd": 0.04, "durationMs": 1200, "model": "fake-1",
    });
    CLAUDE.tells_tools_thinking_and_usage(usage).await;
}

#[tokio::test]
async fn long_lines_are_read() {
    CLAUDE.reads_long_lines().await;
}

#[tokio::test]
async fn the_caller_decides_what_is_done() {
    CLAUDE.asks_before_it_acts().await;
}

#[tokio::test]
async fn rules_decide_before_the_caller() {
    CLAUDE.obeys_rules().await;
}

#[tokio::test]
async fn an_approval_that_is_withdrawn_is_not_waited_for() {
    CLAUDE.takes_questions_back().await;
}

#[tokio::test]
async fn two_approvals_at_once_are_asked_in_turn() {
    CLAUDE.asks_twice().await;
}

#[tokio::test]
async fn questions_are_answered_in_words() {
    CLAUDE.asks_for_words().await;
}

/// A program that works on in silence when nobody has answered.
#[tokio::test]
async fn a_question_that_nobody_answers_is_not_waited_for_any_more() {
    let questions = json!([{ "question": "Which colour?", "options": [{ "label": "Red" }] }]);
    let request = json!({
        "type": "control_request", "request_id": "r",
        "request": {
            "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "t",
            "input": { "questions": questions },
        },
    });
    let answer = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}"#;
    let script = format!(
        "while read -r line; do case $line in *'\"user\"'*) break;; esac; done; echo '{request}'; read -r line; \
         for i in $(seq 600); do [ -e done ] && break; sleep 0.05; done; echo '{answer}'"
    );
    let more = "store: memory\napproval-timeout: 300ms";
    let stage = Stage::new("claude-code", &json!(["sh", "-c", script, "sh"]), more);
    let asked = stage.server.send("question").await;
    assert_eq!(state(&asked), "INPUT_REQUIRED", "{asked}");
    stage.server.until(id(&asked), "WORKING").await;
    std::fs::write(stage.workspace.path().join("done"), "").unwrap();
    stage.server.until(id(&asked), "COMPLETED").await;
}

#[tokio::test]
async fn conversations_go_on() {
    CLAUDE.remembers().await;
}

#[tokio::test]
async fn an_approval_is_answered_after_a_restart() {
    CLAUDE.hears_an_answer_after_a_restart().await;
}

#[tokio::test]
async fn a_cancelled_turn_is_interrupted() {
    CLAUDE.stops().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_program_that_lingers() {
    CLAUDE.leaves_nothing().await;
}

#[tokio::test]
async fn it_is_started_with_its_flags_and_its_variables() {
    CLAUDE.is_started_as_it_should("agent exited with code 1: error: unknown option '--frobnicate'").await;
}

#[tokio::test]
async fn a_result_waits_for_what_works_in_the_background() {
    let stage = CLAUDE.stage("store: memory");
    let told = Told::by(&stage, "background").await;
    assert_eq!((told.state(), &*told.text()), ("COMPLETED", "It works behind.\n\nNow it is done."));
    assert_eq!(told.words(), ["Waiting for a background task"]);
}

#[tokio::test]
async fn pictures_and_documents_reach_the_model() {
    let stage = CLAUDE.stage("store: memory");
    let mut params = nuncio_tests::message("look");
    let file = |kind: &str, name: &str| json!({ "raw": "aGk=", "mediaType": kind, "filename": name });
    params["message"]["parts"] = json!([{ "text": "look" }, file("image/png", "a.png")]);
    let told = Told::after(&stage, params).await;
    assert_eq!(told.text(), "I see: text, image image/png", "{}", told.task);
}
