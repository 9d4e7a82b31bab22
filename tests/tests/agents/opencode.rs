//! OpenCode.

use nuncio_tests::json;

use crate::lines::{Case, run};

fn case() -> Case {
    Case {
        kind: "opencode",
        program: "opencode",
        says_done: false,
        thinking: "Hm, let me see.",
        apart: "\n\n",
        tools: "",
        usage: json!({
            "inputTokens": 56, "outputTokens": 5, "cacheReadTokens": 40, "cacheWriteTokens": 5, "costUsd": 0.25,
        }),
    }
}

#[tokio::test]
async fn opencode_speaks() {
    case().speaks().await;
}

#[tokio::test]
async fn opencode_remembers() {
    case().remembers().await;
}

#[tokio::test]
async fn opencode_costs_what_its_steps_cost_together() {
    let stage = case().stage("store: memory\nmodel: anthropic/claude");
    let told = run(&stage.server, "tools").await;
    let sum = json!({
        "inputTokens": 168, "outputTokens": 15, "cacheReadTokens": 120, "cacheWriteTokens": 15, "costUsd": 0.75,
        "model": "anthropic/claude",
    });
    assert_eq!(told.usage, sum);
}

#[tokio::test]
async fn opencode_gets_its_options() {
    let args = case().arguments("").await;
    assert_eq!(args, ["run", "--format", "json", "--thinking"]);
    let args = case().arguments("model: a/b\nauto-approve-permissions: true").await;
    assert_eq!(args[4..], ["--auto", "--model=a/b"]);
}
