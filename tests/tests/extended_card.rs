//! The extended card: who gets it, in which form, and what is said where there is none.

#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

use nuncio_tests::{RequestBuilder, Server, Value, Wire, answer, client, json, nuncio};

/// A request for the extended card.
fn request(wire: Wire, server: &Server) -> RequestBuilder {
    match wire {
        Wire::Rpc => server.rpc_request("GetExtendedAgentCard", &json!({})),
        Wire::Rest => server.get("/extendedAgentCard"),
        Wire::OldRpc => server.rpc_request("agent/getAuthenticatedExtendedCard", &json!({})),
        Wire::OldRest => client().get(format!("{}/v1/card", server.url)),
    }
}

/// The card, or the error, without what stands around it.
fn inner(wire: Wire, body: &Value) -> Value {
    match wire {
        Wire::Rpc | Wire::OldRpc => body["result"].clone(),
        Wire::Rest | Wire::OldRest => body.clone(),
    }
}

async fn public(server: &Server, version: &str) -> Value {
    let url = format!("{}/.well-known/agent-card.json", server.url);
    answer(client().get(url).header("A2A-Version", version)).await.1
}

fn skills(card: &Value) -> Vec<&str> {
    card["skills"].as_array().unwrap().iter().filter_map(|skill| skill["id"].as_str()).collect()
}

#[tokio::test]
async fn known_callers_see_more_on_every_wire() {
    let server = Server::configured("store: memory\ntoken: known\nmax-parts: 77\n");
    let everybody = public(&server, "1.0").await;
    assert_eq!(everybody["capabilities"]["extendedAgentCard"], true);
    assert_eq!(public(&server, "").await["supportsAuthenticatedExtendedCard"], true);
    for wire in Wire::ALL {
        let (status, body) = answer(request(wire, &server).bearer_auth("known")).await;
        assert_eq!(status, 200, "{wire:?}: {body}");
        let card = inner(wire, &body);
        let mut more = skills(&card);
        assert_eq!(more.pop(), Some("runtime_details"), "{wire:?}: {body}");
        assert_eq!(more, skills(&everybody), "{wire:?}");
        let details = card["skills"].as_array().unwrap().last().unwrap()["description"].as_str().unwrap();
        assert!(details.contains("77 parts") && details.contains("No webhooks"), "{details}");
        // Strict readers of 1.0 refuse what belongs to 0.3.
        let old = card.get("url").is_some() && card.get("supportedInterfaces").is_none();
        assert_eq!(old, !wire.is_new(), "{wire:?}: {body}");
        assert!(!wire.is_new() || card.get("protocolVersion").is_none(), "{wire:?}");
    }
    let response = request(Wire::Rest, &server).bearer_auth("known").send().await.unwrap();
    assert_eq!(response.headers()["cache-control"], "private, no-store");
}

#[tokio::test]
async fn strangers_get_nothing() {
    let server = Server::configured("store: memory\ntoken: known\n");
    for wire in Wire::ALL {
        for request in [request(wire, &server), request(wire, &server).bearer_auth("unknown")] {
            let (status, body) = answer(request).await;
            assert_eq!((status, body), (401, json!({ "error": "Unauthorized" })), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn without_one_the_answer_says_so() {
    for yaml in ["store: memory\n", "store: memory\ntoken: known\nextended-card: off\n"] {
        let server = Server::configured(yaml);
        assert!(public(&server, "1.0").await["capabilities"].get("extendedAgentCard").is_none());
        assert!(public(&server, "").await.get("supportsAuthenticatedExtendedCard").is_none());
        for wire in Wire::ALL {
            let (status, body) = answer(request(wire, &server).bearer_auth("known")).await;
            match wire {
                Wire::Rpc | Wire::OldRpc => assert_eq!(body["error"]["code"], -32004, "{wire:?}: {body}"),
                Wire::Rest => assert_eq!(body["error"]["details"][0]["reason"], "UNSUPPORTED_OPERATION", "{body}"),
                Wire::OldRest => assert_eq!(status, 400, "{body}"),
            }
        }
    }
}

#[tokio::test]
async fn where_nothing_is_protected_it_is_for_everybody_who_asks() {
    let server = Server::configured("store: memory\nextended-card: on\n");
    for wire in Wire::ALL {
        let (status, body) = answer(request(wire, &server)).await;
        assert_eq!(status, 200, "{wire:?}");
        assert!(skills(&inner(wire, &body)).contains(&"runtime_details"), "{wire:?}: {body}");
    }
}

#[tokio::test]
async fn it_names_the_address_by_which_it_was_asked_for() {
    let server = Server::configured("store: memory\nextended-card: on\ntrusted-proxies: [127.0.0.1]\n");
    let asked = |host: &str| {
        let request = request(Wire::Rest, &server);
        request.header("X-Forwarded-Host", host).header("X-Forwarded-Proto", "https")
    };
    for host in ["one.example", "two.example"] {
        let (_, card) = answer(asked(host)).await;
        assert_eq!(card["supportedInterfaces"][0]["url"], format!("https://{host}/"));
    }
    let (_, card) = answer(request(Wire::Rpc, &server)).await;
    assert_eq!(card["result"]["supportedInterfaces"][0]["url"], format!("{}/", server.url));
}

#[tokio::test]
async fn a_tenant_that_does_not_exist_has_none() {
    let server = Server::configured("store: memory\nextended-card: on\ntenants: [blue]\n");
    let (status, _) = answer(server.get("/blue/extendedAgentCard")).await;
    assert_eq!(status, 200);
    let (status, body) = answer(server.get("/red/extendedAgentCard")).await;
    assert_eq!(status, 404, "{body}");
    let body = server.rpc("GetExtendedAgentCard", json!({ "tenant": "red" })).await;
    assert_eq!(body["error"]["code"], -32001, "{body}");
    let body = server.rpc("GetExtendedAgentCard", json!({ "tenant": "blue" })).await;
    assert!(body["result"].is_object(), "{body}");
}

#[tokio::test]
async fn the_command_shows_it() {
    let server = Server::configured("store: memory\ntoken: known\n");
    let run = |more: &[&str]| {
        let mut args = vec!["client", "--token", "known", "extended-card", "--url", server.url.as_str()];
        args.extend(more);
        nuncio(&args)
    };
    let done = run(&["--output", "json"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let card: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(skills(&card).contains(&"runtime_details"));
    let done = nuncio(&["client", "--token", "wrong", "extended-card", "--url", &server.url]);
    assert_eq!(done.status.code(), Some(4));
}

/// Extensions are named in a header on every wire, and those in force are named in the answer.
#[tokio::test]
async fn extensions_are_activated_echoed_and_required_on_every_wire() {
    let yaml =
        "store: memory\nextensions:\n  - {uri: 'urn:test:needed', required: true}\n  - {uri: 'urn:test:other'}\n";
    let server = Server::configured(yaml);
    for wire in Wire::ALL {
        let (status, body) = answer(wire.stream(&server, "hello")).await;
        let text = body.to_string();
        assert!(text.contains("urn:test:needed"), "{wire:?}: {status} {text}");
        assert!(wire != Wire::Rpc || body["error"]["code"] == -32008, "{text}");
        let all = "urn:test:other, urn:test:unknown,urn:test:needed,urn:test:other";
        let response = wire.stream(&server, "hello").header("A2A-Extensions", all).send().await.unwrap();
        assert_eq!(response.status(), 200, "{wire:?}");
        let name = if wire.is_new() { "a2a-extensions" } else { "x-a2a-extensions" };
        assert_eq!(response.headers()[name], "urn:test:other, urn:test:needed", "{wire:?}");
        let old = wire.stream(&server, "hello").header("X-A2A-Extensions", "urn:test:needed").send().await.unwrap();
        assert_eq!(old.status(), 200, "{wire:?}");
    }
    // Reading needs nothing.
    let body = server.rpc("ListTasks", json!({})).await;
    assert!(body["result"].is_object(), "{body}");
}
