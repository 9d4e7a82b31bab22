//! Lines 16 to 62: the endpoints and the card.

use nuncio_tests::{Server, Value, answer, client, fake, json};

async fn card(adapter: &str, variable: &str, program: &str) -> (Server, Value) {
    let path = fake(program).display().to_string();
    let server = Server::start_in(
        &["--profile", "coding-agent", "--store", "memory"],
        &[("AGENT_ADAPTER", adapter), (variable, &path)],
    );
    let (status, card) = answer(client().get(format!("{}/.well-known/agent-card.json", server.url))).await;
    assert_eq!(status, 200);
    (server, card)
}

#[tokio::test]
async fn the_card_is_that_of_the_document() {
    let (server, card) = card("cursor", "CURSOR_AGENT_PATH", "cursor-agent").await;
    let wanted = json!({
        "name": "coding-agent-a2a (cursor)",
        "description": "Delegates coding tasks to the cursor agent and streams results back via the A2A protocol.",
        "protocolVersion": "0.3.0",
        "version": "0.1.0",
        "url": format!("{}/a2a/jsonrpc", server.url),
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [{
            "id": "code-task",
            "name": "Execute coding task",
            "description": "Runs a coding task (edit, refactor, analyse, explain, test) via a coding agent CLI.",
            "tags": ["coding", "refactor", "edit", "test"],
            "inputModes": ["text/plain"],
            "outputModes": ["text/plain", "application/json"],
            "examples": [
                "Refactor the auth module to use JWT",
                "Add unit tests for src/utils/date.ts",
                "Explain how the rate limiter works",
            ],
        }],
    });
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(&card[key], value, "{key}");
    }
    for (key, value) in [("streaming", true), ("pushNotifications", false), ("stateTransitionHistory", true)] {
        assert_eq!(card["capabilities"][key], value, "{key}");
    }
}

#[tokio::test]
async fn its_name_is_that_of_the_active_adapter() {
    let (server, card) = card("claude-code", "CLAUDE_CODE_PATH", "claude").await;
    assert_eq!(card["name"], "coding-agent-a2a (claude-code)");
    assert!(card["description"].as_str().unwrap().contains("the claude-code agent"));
    let (_, health) = answer(client().get(format!("{}/health", server.url))).await;
    assert_eq!(health, json!({ "status": "ok", "adapter": "claude-code" }));
}

#[tokio::test]
async fn everything_has_its_default() {
    let done = std::process::Command::new(nuncio_tests::binary())
        .args(["config", "show", "--profile", "coding-agent", "--output", "json"])
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&done.stdout);
    for line in ["41242", "cursor", "coding-agent", "2m"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}
