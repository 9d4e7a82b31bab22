//! Each rule is broken once, and a good card breaks none.

use super::*;
use crate::codec::json;

fn good() -> Value {
    json!({
        "name": "Weather", "description": "Tells the weather", "version": "1.2.0",
        "supportedInterfaces": [
            { "url": "https://agents.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
            { "url": "agents.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0" },
            { "url": "wss://agents.example/ws", "protocolBinding": "https://agents.example/ws/v1", "protocolVersion": "1.0" },
            { "url": "https://agents.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3" }
        ],
        "provider": { "organization": "Example", "url": "https://example.com" },
        "capabilities": { "streaming": true, "extendedAgentCard": true, "extensions": [{ "uri": "urn:example:x" }] },
        "securitySchemes": {
            "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } },
            "oidc": { "openIdConnectSecurityScheme": { "openIdConnectUrl": "https://id.example/.well-known/openid-configuration" } }
        },
        "securityRequirements": [{ "schemes": { "bearer": {} } }, { "schemes": { "oidc": { "list": ["read"] } } }],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain", "application/json; charset=utf-8"],
        "skills": [{ "id": "now", "name": "Now", "description": "The weather now", "tags": ["weather"] }],
        "signatures": [{ "protected": "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ", "signature": "AAAA" }]
    })
}

fn rules(card: &Value) -> Vec<&'static str> {
    let mut names: Vec<&str> = lint(&codec::encode(card)).iter().map(|finding| finding.rule).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The good card with one member changed, or without it.
fn with(pointer: &str, value: Value) -> Value {
    let mut card = good();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = card.pointer_mut(parent).unwrap();
    match (parent, name.parse::<usize>()) {
        (Value::Array(list), Ok(i)) if i < list.len() => list[i] = value,
        (Value::Array(list), Ok(_)) => list.push(value),
        (Value::Object(members), _) => _ = members.insert(name.to_owned(), value),
        _ => panic!("nothing at {pointer}"),
    }
    card
}

fn without(name: &str) -> Value {
    let mut card = good();
    card.as_object_mut().unwrap().shift_remove(name).unwrap();
    card
}

#[test]
fn a_good_card_breaks_no_rule() {
    assert_eq!(lint(&codec::encode(&good())), []);
}

#[test]
fn every_rule_finds_its_mistake() {
    let scheme = |scheme: Value| with("/securitySchemes/bearer", scheme);
    let url = |url: &str| with("/supportedInterfaces/0/url", json!(url));
    let text = |text: &str| with("/description", json!(text));
    let header = |header: &str| {
        use base64::Engine as _;
        let protected = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(header);
        with("/signatures/0/protected", json!(protected))
    };
    let flow = |name: &str, flow: Value| scheme(json!({ "oauth2SecurityScheme": { "flows": { name: flow } } }));
    let token = |url: &str| json!({ "tokenUrl": url, "scopes": {} });
    let cases: Vec<(&str, Value)> = vec![
        ("not-a-card", json!([])),
        ("not-a-card", json!("card")),
        ("not-a-card", with("/skills", json!("none"))),
        ("old-shape", json!({ "name": "n", "url": "https://a.example", "protocolVersion": "0.3.0" })),
        ("mixed-versions", with("/preferredTransport", json!("JSONRPC"))),
        ("snake-case", {
            let mut card = without("defaultInputModes");
            card["default_input_modes"] = json!(["text/plain"]);
            card
        }),
        ("unknown-member", with("/capabilities/stateTransitionHistory", json!(true))),
        ("unknown-member", with("/x-vendor", json!(1))),
        ("missing-member", without("version")),
        ("missing-member", without("capabilities")),
        ("empty-member", with("/name", json!(" "))),
        ("empty-member", with("/defaultOutputModes", json!([]))),
        ("no-interface", with("/supportedInterfaces", json!([]))),
        ("interface-url", url("/rpc")),
        ("interface-url", url("https:///rpc")),
        ("interface-url", url("http://0.0.0.0:8080/")),
        ("interface-url", url("ftp://agents.example/")),
        ("interface-url", with("/supportedInterfaces/1/url", json!(""))),
        ("insecure-url", url("http://agents.example/rpc")),
        ("local-url", url("http://localhost:8080/")),
        ("local-url", url("https://[::1]:8080/")),
        ("url-with-secret", url("https://user:secret@agents.example/")),
        ("unknown-binding", with("/supportedInterfaces/0/protocolBinding", json!("JSON-RPC"))),
        ("interface-version", with("/supportedInterfaces/0/protocolVersion", json!(""))),
        ("interface-version", with("/supportedInterfaces/0/protocolVersion", json!("1.0.3"))),
        ("no-current-version", with("/supportedInterfaces", json!([good()["supportedInterfaces"][3]]))),
        ("duplicate-interface", with("/supportedInterfaces/9", good()["supportedInterfaces"][0].clone())),
        ("provider", with("/provider/url", json!(""))),
        ("skill-member", with("/skills/0/tags", json!([]))),
        ("skill-member", with("/skills/0/id", json!(""))),
        ("duplicate-skill", with("/skills/9", good()["skills"][0].clone())),
        ("no-skill", with("/skills", json!([]))),
        ("media-type", with("/defaultInputModes/0", json!("text"))),
        ("media-type", with("/skills/0/inputModes", json!(["a/b/c"]))),
        ("extension-uri", with("/capabilities/extensions/0/uri", json!("x"))),
        ("extension-uri", with("/capabilities/extensions/9", json!({ "uri": "urn:example:x" }))),
        ("security-scheme", scheme(json!({ "apiKeySecurityScheme": { "location": "body", "name": "k" } }))),
        ("security-scheme", scheme(json!({ "apiKeySecurityScheme": { "location": "header", "name": "" } }))),
        ("security-scheme", scheme(json!({ "httpAuthSecurityScheme": {} }))),
        ("undeclared-scheme", with("/securityRequirements/0", json!({ "schemes": { "basic": {} } }))),
        ("undeclared-scheme", with("/skills/0/securityRequirements", json!([{ "schemes": { "x": {} } }]))),
        ("unused-scheme", with("/securitySchemes/mtls", json!({ "mtlsSecurityScheme": {} }))),
        ("open-requirement", with("/securityRequirements/2", json!({ "schemes": {} }))),
        ("deprecated-flow", flow("password", token("https://id.example/"))),
        ("deprecated-flow", flow("implicit", json!({ "authorizationUrl": "https://id.example/", "scopes": {} }))),
        ("authorization-url", flow("clientCredentials", token("http://id.example/token"))),
        (
            "authorization-url",
            with(
                "/securitySchemes/oidc",
                json!({ "openIdConnectSecurityScheme": { "openIdConnectUrl": "id.example" } }),
            ),
        ),
        ("open-extended-card", {
            let mut card = without("securityRequirements");
            card.as_object_mut().unwrap().shift_remove("securitySchemes");
            card
        }),
        ("signature", header(r#"{"alg":"none","kid":"k"}"#)),
        ("signature", header(r#"{"alg":"ES256"}"#)),
        ("signature", header(r#"{"alg":"XX","kid":"k"}"#)),
        ("signature", header(r#"{"alg":"ES256","kid":"k","jku":"http://a.example/"}"#)),
        ("signature", header("[]")),
        ("signature", with("/signatures/0/signature", json!("=="))),
        ("signed-empty-member", with("/description", json!(""))),
        ("signed-unknown-member", with("/url", json!("https://agents.example/rpc"))),
        ("hidden-characters", text("ignore\u{202e}this")),
        ("hidden-characters", with("/skills/0/description", json!("a\u{1b}[8mb"))),
        ("long-text", text(&"x".repeat(5000))),
    ];
    for (rule, card) in &cases {
        assert!(rules(card).contains(rule), "{rule} is not found, but {:?}: {card}", rules(card));
    }
    for rule in RULES {
        assert!(cases.iter().any(|(name, _)| *name == rule.name), "{} is never broken", rule.name);
        assert!(rule.section.split('.').all(|n| n.parse::<u8>().is_ok()), "{}", rule.section);
    }
}

#[test]
fn one_mistake_is_one_finding_with_its_place() {
    let found = lint(&codec::encode(&with("/supportedInterfaces/0/protocolVersion", json!("1"))));
    let [finding] = &*found else { panic!("{found:?}") };
    assert_eq!((finding.rule, finding.level), ("interface-version", Level::Error));
    assert_eq!((finding.section, &*finding.at), ("3.6", "supportedInterfaces[0].protocolVersion"));
}

#[test]
fn errors_come_before_warnings() {
    let mut card = with("/x", json!(1));
    card["skills"][0]["id"] = json!("");
    let levels: Vec<Level> = lint(&codec::encode(&card)).iter().map(|finding| finding.level).collect();
    assert_eq!(levels.first(), Some(&Level::Error));
    assert!(levels.is_sorted_by(|a, b| a >= b), "{levels:?}");
}
