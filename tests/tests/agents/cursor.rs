//! Cursor.

use nuncio_tests::json;

use crate::lines::{Case, run};

fn case() -> Case {
    Case {
        kind: "cursor",
        program: "cursor-agent",
        says_done: true,
        thinking: "Hm, let me see.",
        apart: "",
        tools: "",
        usage: json!({
            "inputTokens": 1200, "outputTokens": 30, "cacheReadTokens": 1000, "cacheWriteTokens": 100,
            "durationMs": 1234, "model": "Composer 2.5",
        }),
    }
}

#[tokio::test]
async fn cursor_speaks() {
    case().speaks().await;
}

#[tokio::test]
async fn cursor_remembers() {
    case().remembers().await;
}

#[tokio::test]
async fn cursor_gets_its_options_and_never_the_prompt_among_them() {
    let stage = case().stage("store: memory");
    let workspace = format!("--workspace={}", stage.workspace.path().display());
    let args: Vec<String> = serde_json::from_str(&run(&stage.server, "show args").await.text).unwrap();
    assert_eq!(args, ["-p", "--output-format", "stream-json", "--stream-partial-output", "--trust", &workspace]);
    let args = case().arguments("model: gpt-9\nauto-approve-permissions: true").await;
    assert_eq!(args[5..7], ["-f", "--model=gpt-9"]);
}
