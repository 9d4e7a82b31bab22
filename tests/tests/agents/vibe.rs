//! Mistral Vibe.

use nuncio_tests::Value;

use crate::lines::{Case, run};

fn case() -> Case {
    Case {
        kind: "vibe",
        program: "vibe",
        says_done: false,
        thinking: "Hm, let me see.",
        apart: "\n\n",
        tools: "",
        usage: Value::Null,
    }
}

#[tokio::test]
async fn vibe_speaks() {
    case().speaks().await;
}

#[tokio::test]
async fn vibe_remembers() {
    case().remembers().await;
}

#[tokio::test]
async fn vibe_gets_its_options() {
    let args = case().arguments("").await;
    assert_eq!(args, ["--prompt=show args", "--output", "streaming", "--agent=ask"]);
    let stage = case().stage("store: memory\nmodel: devstral\nauto-approve-permissions: true");
    let told = run(&stage.server, "show args").await;
    assert!(told.text.ends_with(r#""--agent=auto-approve", "--trust"]"#), "{}", told.text);
    let told = run(&stage.server, "show env").await;
    assert!(told.text.contains(r#""VIBE_ACTIVE_MODEL": "devstral""#), "{}", told.text);
}

#[tokio::test]
async fn vibe_reads_what_no_argument_can_hold() {
    let stage = case().stage("store: memory");
    let prompt = "long ago ".repeat(40_000);
    run(&stage.server, &format!("say {prompt}")).await.completed(&format!("You said: say {prompt}"));
}
