//! What web pages try with servers that only their reader can reach.

use nuncio_tests::json;
use nuncio_tests::raw::{Wire, request};

const SEND: &str = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;

fn post(wire: &Wire, host: &str, headers: &str) -> nuncio_tests::raw::Answer {
    wire.ask(format!(
        "POST /message:send HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nA2A-Version: 1.0\r\n{headers}\
         Content-Length: {}\r\n\r\n{SEND}",
        SEND.len()
    ))
}

#[test]
fn a_page_cannot_give_its_own_name_to_a_loopback_server() {
    let wire = Wire::start("allowed-hosts: [agent.test]\n");
    let own = wire.address.to_string();
    for host in [&*own, "localhost", "localhost:1", "[::1]:41242", "agent.test", "AGENT.test:8080"] {
        assert_eq!(post(&wire, host, "").status, 200, "{host}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.168.1.1", "agent.test.evil"] {
        let answer = post(&wire, host, "");
        assert_eq!(answer.status, 403, "{host}");
        assert!(answer.text().contains("allowed-hosts"), "it says what to do: {}", answer.text());
        // Reading is refused as well: the card alone tells an attacker what there is.
        let card = format!("GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(wire.ask(card).status, 403, "{host}");
    }
    assert_eq!(wire.metric("nuncio_calls_total"), 6.0, "nothing else was done");
}

#[test]
fn a_foreign_page_cannot_send() {
    let wire = Wire::start("cors-origins: [\"https://console.example\"]\n");
    let own = wire.address.to_string();
    for origin in ["https://evil.example", "null", "http://localhost:8080", "https://console.example.evil"] {
        for kind in ["application/json", "text/plain", "application/x-www-form-urlencoded"] {
            let answer = post(&wire, &own, &format!("Origin: {origin}\r\nContent-Type: {kind}\r\n"));
            assert_eq!(answer.status, 403, "{origin} with {kind}");
            assert_eq!(answer.header("access-control-allow-origin"), None, "{origin} may not even read why");
        }
        let asked = format!("Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\n");
        assert_eq!(wire.ask(request("OPTIONS", "/", &asked, "")).status, 403, "{origin}");
        let socket = format!("Origin: {origin}\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
        assert_eq!(wire.get("/ws", &socket).status, 403, "{origin} opens a socket");
    }
    let same = post(&wire, &own, &format!("Origin: http://{own}\r\nContent-Type: application/json\r\n"));
    assert_eq!(same.status, 200, "a page of the server itself");
}

#[test]
fn a_page_that_may_is_told_so() {
    let wire = Wire::start("token: aaaaaaaaaaaaaaaa\ncors-origins: [\"https://console.example\"]\n");
    let origin = "Origin: https://console.example\r\n";
    let asked =
        format!("{origin}Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n");
    let preflight = wire.ask(request("OPTIONS", "/message:send", &asked, ""));
    assert_eq!(preflight.status, 204, "no credentials are asked for before there can be any");
    assert_eq!(preflight.header("access-control-allow-origin"), Some("https://console.example"));
    assert_eq!(preflight.header("access-control-allow-headers"), Some("authorization"));
    assert_eq!(preflight.header("access-control-allow-credentials"), None);
    let refused = post(&wire, "localhost", origin);
    assert_eq!(refused.status, 401, "the page still needs a token");
    assert_eq!(refused.header("access-control-allow-origin"), Some("https://console.example"), "and may read that");
    let served = post(&wire, "localhost", &format!("{origin}Authorization: Bearer aaaaaaaaaaaaaaaa\r\n"));
    assert_eq!(served.status, 200);
    assert_eq!(served.header("vary"), Some("Origin"));
}

#[test]
fn answers_carry_what_keeps_browsers_from_guessing() {
    let wire = Wire::start("");
    for path in ["/health", "/.well-known/agent-card.json", "/tasks", "/no/such/path"] {
        let answer = wire.get(path, "A2A-Version: 1.0\r\n");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
        assert!(answer.header("cache-control").is_some(), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
    assert_eq!(wire.get("/tasks", "A2A-Version: 1.0\r\n").header("cache-control"), Some("no-store"));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" }).to_string();
    assert_eq!(wire.post("/", "A2A-Version: 1.0\r\n", &body).header("x-content-type-options"), Some("nosniff"));
}
