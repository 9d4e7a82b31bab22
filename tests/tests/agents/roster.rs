//! Several agents in one server.

use nuncio_tests::{Server, Value, answer, client, in_context, json, message, texts};

#[tokio::test]
async fn several_agents_have_paths_and_cards_of_their_own() {
    let server = Server::configured(
        "store: memory\nagents:\n- {name: main, skills: [general]}\n\
         - {name: shout, command: [sh, -c, 'echo LOUD $0'], tenant: loud, skills: [{id: shout, name: Shout, tags: [noise]}]}\n\
         - {name: quiet, command: [sh, -c, 'echo quiet $0'], skills: [whisper]}\n",
    );
    let card = |path: &str| client().get(format!("{}{path}/.well-known/agent-card.json", server.url)).send();
    let root: Value = card("").await.unwrap().json().await.unwrap();
    let ids = |card: &Value| -> Vec<String> {
        card["skills"].as_array().unwrap().iter().map(|skill| skill["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((root["name"].as_str(), ids(&root)), (Some("main"), vec!["general".into(), "whisper".into()]));
    let loud: Value = card("/loud").await.unwrap().json().await.unwrap();
    assert_eq!((loud["name"].as_str(), ids(&loud)), (Some("shout"), vec!["shout".into()]));
    for interface in loud["supportedInterfaces"].as_array().unwrap() {
        let (url, host) = (interface["url"].as_str().unwrap(), server.url.trim_start_matches("http://"));
        match interface["protocolBinding"].as_str().unwrap() {
            // gRPC has no paths: the tenant stands beside the address.
            "GRPC" => assert_eq!((url, &interface["tenant"]), (host, &json!("loud"))),
            "websocket" => assert!(url.starts_with(&format!("ws://{host}/loud")), "{interface}"),
            _ => assert!(url.starts_with(&format!("http://{host}/loud")), "{interface}"),
        }
    }

    // Its path, on every wire of its card.
    let rpc = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("hi") });
    let old = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": {
        "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "hi" }],
    } } });
    let v1 = |path: &str, body: &Value| {
        client().post(format!("{}{path}", server.url)).header("A2A-Version", "1.0").json(body)
    };
    for path in ["/loud", "/loud/", "/loud/a2a"] {
        let (_, body) = answer(v1(path, &rpc)).await;
        assert_eq!(texts(&body["result"]["task"]), ["LOUD hi\n"], "{path}: {body}");
    }
    let (_, body) = answer(v1("/loud/message:send", &message("hi"))).await;
    assert_eq!(texts(&body["task"]), ["LOUD hi\n"], "{body}");
    let (_, body) = answer(client().post(format!("{}/loud", server.url)).json(&old)).await;
    assert_eq!(texts(&body["result"]), ["LOUD hi\n"], "{body}");
    let request = json!({ "request": { "message_id": "m", "role": "ROLE_USER", "content": [{ "text": "hi" }] } });
    let (status, body) = answer(client().post(format!("{}/loud/v1/message:send", server.url)).json(&request)).await;
    assert_eq!(status, 200, "{body}");
    // The tenant of a request, and a skill.
    let mut params = message("hi");
    params["tenant"] = json!("loud");
    assert_eq!(texts(&server.send_params(params).await), ["LOUD hi\n"]);
    let mut params = message("hi");
    params["metadata"] = json!({ "skill": "whisper" });
    let quiet = server.send_params(params).await;
    assert_eq!(texts(&quiet), ["quiet hi\n"]);
    // The conversation stays with the agent that it began with.
    assert_eq!(texts(&server.send_params(in_context(&quiet["contextId"], "you?")).await), ["quiet you?\n"]);
    assert_eq!(texts(&server.send("hi").await), ["hi"]);
}
