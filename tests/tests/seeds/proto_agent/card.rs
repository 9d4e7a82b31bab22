//! Lines 1 to 8 and 85 to 86: the port, the paths of the card, its extensions.

use std::collections::BTreeSet;

use nuncio_tests::{Value, answer, binary, client, json};

use super::{call, message, serve, stream};

#[test]
fn the_port_is_7870() {
    let done =
        std::process::Command::new(binary()).args(["config", "show", "--profile", "proto-agent"]).output().unwrap();
    let shown = String::from_utf8_lossy(&done.stdout);
    assert!(shown.lines().any(|line| line.starts_with("port") && line.contains("7870")), "{shown}");
}

#[tokio::test]
async fn both_paths_have_the_same_card() {
    let server = serve();
    let mut cards = Vec::new();
    for path in ["agent-card.json", "agent.json"] {
        let (status, card) = answer(client().get(format!("{}/.well-known/{path}", server.url))).await;
        assert_eq!(status, 200);
        cards.push(card);
    }
    assert_eq!(cards[0], cards[1]);
    let card = &cards[0];
    assert_eq!(card["url"], format!("{}/a2a", server.url), "the address of the calls, not of the server");
    for (key, value) in [("streaming", true), ("pushNotifications", true), ("stateTransitionHistory", false)] {
        assert_eq!(card["capabilities"][key], value, "{key}");
    }
}

/// The keys of all `metadata` that look like extensions.
fn emitted(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(all) => all.iter().for_each(|item| emitted(item, found)),
        Value::Object(all) => {
            for (key, value) in all {
                if key == "metadata" {
                    let keys = value.as_object().into_iter().flat_map(|map| map.keys());
                    found.extend(keys.filter(|key| key.contains(':')).cloned());
                }
                emitted(value, found);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn the_card_declares_the_extensions_that_are_emitted() {
    let server = serve();
    let (_, card) = answer(client().get(format!("{}/.well-known/agent-card.json", server.url))).await;
    let declared = card["capabilities"]["extensions"].as_array().unwrap().iter();
    let declared: BTreeSet<String> = declared.map(|one| one["uri"].as_str().unwrap().to_owned()).collect();
    let mut found = BTreeSet::new();
    for text in ["hello", "tool search", "usage", "fail on purpose", "stream 3"] {
        for event in stream(&server, "message/stream", message(text)).await.all().await {
            emitted(event.body(), &mut found);
        }
        for event in server.stream(text).await.all().await {
            emitted(event.body(), &mut found);
        }
    }
    assert_eq!(declared, found);
    let base = "https://proto-labs.ai/a2a/ext/";
    assert_eq!(declared, ["cost-v1", "tool-call-v1"].map(|name| format!("{base}{name}")).into());
}

#[tokio::test]
async fn calls_are_json_rpc() {
    let server = serve();
    let unknown = call(&server, "tasks/get", json!({ "id": "x" })).await;
    assert_eq!(unknown["error"], json!({ "code": -32001, "message": "Task not found: x" }));
    assert_eq!(call(&server, "tasks/get", json!({})).await["error"]["code"], -32602);
    assert_eq!(call(&server, "tasks/sing", json!({})).await["error"]["code"], -32601);
    let no_text = json!({ "message": { "role": "user", "parts": [] } });
    assert_eq!(call(&server, "message/send", no_text).await["error"]["code"], -32602);
}

#[tokio::test]
async fn either_credential_lets_a_caller_in_and_the_card_is_for_everybody() {
    let server = super::serve_in("api-key: k3y", &[("A2A_AUTH_TOKEN", "t0ken")]);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message("hello") });
    let ask = |name: &str, value: &str| client().post(format!("{}/a2a", server.url)).json(&body).header(name, value);
    for (name, value, status) in [
        ("Authorization", "Bearer t0ken", 200),
        ("X-API-Key", "k3y", 200),
        ("Authorization", "Bearer wrong", 401),
        ("X-API-Key", "wrong", 401),
        ("X-Nothing", "", 401),
    ] {
        let (found, answer) = answer(ask(name, value)).await;
        assert_eq!(found, status, "{name}: {value}: {answer}");
        let detail = "Unauthorized: expected 'Authorization: Bearer <token>' or 'X-API-Key: <key>'";
        assert_eq!(answer["detail"] == detail, status == 401, "{answer}");
    }
    let (status, card) = answer(client().get(format!("{}/.well-known/agent-card.json", server.url))).await;
    assert_eq!(status, 200);
    assert_eq!(card["securitySchemes"].as_object().map(|all| all.len()), Some(2), "{card}");
}
