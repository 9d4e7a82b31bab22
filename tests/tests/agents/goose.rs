//! Goose.

use nuncio_tests::json;

use crate::lines::{Case, run};

fn case() -> Case {
    Case {
        kind: "goose",
        program: "goose",
        says_done: true,
        thinking: "Hm, let me see.",
        apart: "",
        tools: "developer__",
        usage: json!({ "inputTokens": 80, "outputTokens": 10 }),
    }
}

#[tokio::test]
async fn goose_speaks() {
    case().speaks().await;
}

#[tokio::test]
async fn goose_remembers() {
    case().remembers().await;
}

#[tokio::test]
async fn goose_says_what_its_extensions_do() {
    let stage = case().stage("store: memory");
    assert_eq!(run(&stage.server, "tools").await.notes, ["running read", "running shell"]);
}

#[tokio::test]
async fn goose_gets_its_options() {
    let args = case().arguments("model: gpt-9").await;
    assert_eq!(args[..5], ["run", "-i", "-", "--output-format", "stream-json"]);
    assert!(args[5].starts_with("--name=nuncio-"), "{args:?}");
    assert_eq!(args[6..], ["--model=gpt-9"]);
    for (more, mode) in [("", "approve"), ("auto-approve-permissions: true", "auto")] {
        let stage = case().stage(&format!("store: memory\n{more}"));
        let told = run(&stage.server, "show env").await;
        assert!(told.text.contains(&format!(r#""GOOSE_MODE": "{mode}""#)), "{}", told.text);
    }
}
