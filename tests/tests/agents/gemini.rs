//! Gemini CLI.

use nuncio_tests::json;

use crate::lines::{Case, run};

fn case() -> Case {
    Case {
        kind: "gemini",
        program: "gemini",
        says_done: true,
        thinking: "",
        apart: "",
        tools: "",
        usage: json!({
            "inputTokens": 12, "outputTokens": 4, "cacheReadTokens": 5, "durationMs": 245, "model": "gemini-2.5-flash",
        }),
    }
}

#[tokio::test]
async fn gemini_speaks() {
    case().speaks().await;
}

#[tokio::test]
async fn gemini_remembers() {
    case().remembers().await;
}

#[tokio::test]
async fn gemini_warns_in_words() {
    let stage = case().stage("store: memory");
    assert_eq!(run(&stage.server, "noise").await.notes, ["Loop detected, stopping execution"]);
}

#[tokio::test]
async fn gemini_gets_its_options() {
    let args = case().arguments("").await;
    assert_eq!(args, ["-o", "stream-json", "--skip-trust", "--approval-mode=default"]);
    let args = case().arguments("model: flash\nauto-approve-permissions: true").await;
    assert_eq!(args[3..], ["--approval-mode=yolo", "--model=flash"]);
}
