//! Document 000, lines 12 to 55: the card, its caching, its skills and schemes, and the routes.

use nuncio_tests::{Server, Value, answer, client, json};

use super::serve;

async fn card_of(server: &Server) -> Value {
    let (status, card) = answer(client().get(format!("{}/.well-known/agent-card.json", server.url))).await;
    assert_eq!(status, 200);
    card
}

fn pick<'a>(card: &'a Value, path: &str) -> &'a Value {
    card.pointer(path).unwrap_or(&Value::Null)
}

/// 000:12-27, 000:49-51.
#[tokio::test]
async fn the_card_has_its_fields() {
    let server = serve("");
    let card = card_of(&server).await;
    let url = format!("{}/", server.url);
    for (path, value) in [
        ("/name", json!("iac-code")),
        ("/supportedInterfaces/0/protocolBinding", json!("JSONRPC")),
        ("/supportedInterfaces/0/protocolVersion", json!("1.0")),
        ("/supportedInterfaces/0/url", json!(url)),
        ("/supportedInterfaces/1/protocolBinding", json!("HTTP+JSON")),
        ("/capabilities/streaming", json!(true)),
        ("/capabilities/pushNotifications", json!(false)),
        ("/capabilities/extendedAgentCard", json!(true)),
        ("/capabilities/extensions/0/uri", json!("urn:iac-code:a2a:artifact-metadata:v1")),
        ("/defaultOutputModes", json!(["text/plain"])),
    ] {
        assert_eq!(*pick(&card, path), value, "{path}");
    }
    let modes = card["defaultInputModes"].as_array().unwrap();
    for mode in
        ["text/plain", "application/json", "application/yaml", "image/png", "audio/mpeg", "application/octet-stream"]
    {
        assert!(modes.contains(&json!(mode)), "{mode}");
    }
    let pushing = serve("push-notifications: true");
    assert_eq!(card_of(&pushing).await["capabilities"]["pushNotifications"], true);
}

/// 000:28.
#[tokio::test]
async fn the_card_can_be_cached() {
    let server = serve("");
    let url = format!("{}/.well-known/agent-card.json", server.url);
    let first = client().get(&url).send().await.unwrap();
    let header = |name: &str| first.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(header("cache-control").as_deref(), Some("public, max-age=60"));
    assert!(header("last-modified").is_some());
    let etag = header("etag").unwrap();
    let again = client().get(&url).header("If-None-Match", &etag).send().await.unwrap();
    assert_eq!(again.status(), 304);
    assert!(again.bytes().await.unwrap().is_empty());
    let other = client().get(&url).header("If-None-Match", "\"sha256-0\"").send().await.unwrap();
    assert_eq!(other.status(), 200);
}

/// 000:29-35.
#[tokio::test]
async fn the_card_advertises_the_skills() {
    let card = card_of(&serve("")).await;
    let skills = card["skills"].as_array().unwrap();
    let expected = [
        ("iac_generation", "Generate Alibaba Cloud ROS and Terraform templates from natural language"),
        ("iac_review", "Inspect IaC templates and suggest fixes"),
        ("aliyun_ros_operations", "ROS stack workflows"),
        ("terraform_ros_conversion", "Terraform-to-ROS conversion using bundled"),
    ];
    assert_eq!(skills.len(), expected.len());
    for ((id, purpose), skill) in expected.into_iter().zip(skills) {
        assert_eq!(skill["id"], id);
        assert!(skill["description"].as_str().unwrap().contains(purpose), "{skill}");
        assert_eq!(skill["inputModes"], card["defaultInputModes"]);
    }
}

/// 000:36-41.
#[tokio::test]
async fn the_card_advertises_the_schemes_that_are_configured() {
    for (more, schemes) in [
        ("", vec![]),
        ("token: local-dev-token", vec!["bearerAuth"]),
        ("basic-username: iac-code\nbasic-password: local-dev-password", vec!["basicAuth"]),
        ("api-key: local-dev-key\napi-key-header: X-IAC-Code-Key", vec!["apiKeyAuth"]),
    ] {
        let server = serve(more);
        let card = card_of(&server).await;
        let known: Vec<&str> =
            card["securitySchemes"].as_object().into_iter().flatten().map(|(name, _)| &**name).collect();
        assert_eq!(known, schemes, "{more}");
        if more.starts_with("api-key") {
            let name = pick(&card, "/securitySchemes/apiKeyAuth/apiKeySecurityScheme/name").as_str().unwrap();
            assert!(name.eq_ignore_ascii_case("X-IAC-Code-Key"), "{name}");
        }
    }
}

/// 000:42-48.
#[tokio::test]
async fn the_routes_are_there() {
    let server = serve("");
    let (status, health) = answer(client().get(format!("{}/health", server.url))).await;
    assert_eq!((status, health), (200, json!({ "status": "healthy" })));
    let sent = server.rpc("SendMessage", super::params("hello", None)).await;
    assert_eq!(sent["result"]["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let id = sent["result"]["task"]["id"].as_str().unwrap();
    let (status, got) = answer(server.get(&format!("/tasks/{id}"))).await;
    assert_eq!((status, &got["id"]), (200, &json!(id)));
    let (status, sent) = answer(server.post("/message:send", &super::params("hello", None))).await;
    assert_eq!((status, &sent["task"]["status"]["state"]), (200, &json!("TASK_STATE_INPUT_REQUIRED")));
    let (status, list) = answer(server.get("/tasks")).await;
    assert_eq!((status, &list["totalSize"]), (200, &json!(2)));
}

/// 000:54, 002:108-113.
#[tokio::test]
async fn the_card_is_signed_with_the_secret() {
    let card = card_of(&serve("signing-secret: local-card-signing-secret")).await;
    let signature = &card["signatures"][0];
    let protected = signature["protected"].as_str().unwrap();
    let decoded = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, protected).unwrap();
    let header: Value = serde_json::from_slice(&decoded).unwrap();
    assert_eq!((&header["alg"], &header["kid"]), (&json!("HS256"), &json!("default")));
    assert!(!signature["signature"].as_str().unwrap().is_empty());
}

/// 000:262-268, 002:157-164.
#[tokio::test]
async fn the_card_declares_its_extensions() {
    let (plain, thinking) = ("urn:iac-code:a2a:artifact-metadata:v1", "urn:iac-code:a2a:thinking-exposure:v1");
    for (exposure, types) in [
        ("tool-trace", json!(["tool_trace"])),
        ("[tool-trace, raw-thinking]", json!(["raw_thinking", "tool_trace"])),
        ("raw_thinking", json!(["raw_thinking"])),
        ("none", Value::Null),
    ] {
        let card = card_of(&serve(&format!("thinking-exposure: {exposure}"))).await;
        let extensions = card["capabilities"]["extensions"].as_array().unwrap();
        assert_eq!(extensions[0]["uri"], plain);
        let exposed = extensions.iter().find(|extension| extension["uri"] == thinking);
        assert_eq!(exposed.map_or(Value::Null, |e| e["params"]["enabledTypes"].clone()), types, "{exposure}");
    }
}
