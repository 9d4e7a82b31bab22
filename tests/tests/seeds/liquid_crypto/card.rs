//! Lines 1 to 73, 209 to 227, 319 to 330 and 370 to 415: the card, headers, discovery, extensions.

use nuncio_tests::{answer, client, json};

use super::{call, message, request, serve, serve_in, stream};

const OWN: &str = "https://a2a.io/extensions/required-ext";

#[tokio::test]
async fn the_card_has_the_fields_of_the_draft() {
    let server = serve();
    for version in [None, Some("1.0")] {
        let mut request = client().get(format!("{}/.well-known/agent-card.json", server.url));
        if let Some(version) = version {
            request = request.header("A2A-Version", version);
        }
        let (status, card) = answer(request).await;
        assert_eq!((status, &card["protocolVersions"]), (200, &json!(["1.0"])));
        for key in ["name", "description", "version"] {
            assert!(card[key].is_string(), "{key}");
        }
        let first = &card["supportedInterfaces"][0];
        assert_eq!(*first, json!({ "url": format!("{}/a2a", server.url), "protocolBinding": "JSONRPC" }));
        assert_eq!(
            (&card["capabilities"]["streaming"], &card["capabilities"]["pushNotifications"]),
            (&json!(true), &json!(true))
        );
        for modes in ["defaultInputModes", "defaultOutputModes"] {
            assert_eq!(card[modes].as_array().unwrap()[..2], [json!("text"), json!("file")]);
        }
        assert!(card["skills"].as_array().is_some_and(|skills| !skills.is_empty()));
        let declared = json!({
            "uri": "https://a2a.io/extensions/streaming-artifacts",
            "required": false,
            "description": "Progressive artifact streaming",
        });
        assert!(card["capabilities"]["extensions"].as_array().unwrap().contains(&declared), "{card}");
    }
}

#[tokio::test]
async fn the_card_is_at_one_path_alone() {
    let server = serve();
    let old = client().get(format!("{}/.well-known/agent.json", server.url)).send().await.unwrap();
    assert_eq!(old.status(), 404);
}

#[tokio::test]
async fn headers_say_which_version_is_spoken() {
    let server = serve();
    for version in [None, Some("1.0")] {
        let mut request = request(&server, "/a2a", "SendMessage", &message("hello"));
        if let Some(version) = version {
            request = request.header("A2A-Version", version);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["a2a-protocol-version"], "1.0");
        assert_eq!(response.headers()["content-type"], "application/json");
    }
    let stream = stream(&server, "SendMessage", message("hello")).await;
    assert_eq!(stream.headers()["a2a-protocol-version"], "1.0");
    let wrong = request(&server, "/a2a", "GetTask", &json!({ "id": "x" })).header("A2A-Version", "9.9");
    assert_eq!(answer(wrong).await.1["error"]["code"], -32009);
}

#[tokio::test]
async fn an_extension_can_be_required() {
    let server = serve_in(&format!("extensions:\n  - uri: {OWN}\n    required: true"), &[]);
    let refused = call(&server, "SendMessage", message("hello")).await;
    let wanted = json!({
        "code": -32008,
        "message": "Extension support required",
        "data": { "required": [OWN], "provided": [] },
    });
    assert_eq!(refused["error"], wanted);
    let others = "https://a2a.io/extensions/streaming-artifacts, https://example.com/my-ext";
    let some = request(&server, "/a2a", "SendMessage", &message("hello")).header("A2A-Extensions", others);
    let provided: Vec<&str> = others.split(", ").collect();
    assert_eq!(answer(some).await.1["error"]["data"]["provided"], json!(provided));
    let enabled =
        request(&server, "/a2a", "SendMessage", &message("hello")).header("A2A-Extensions", format!("{others}, {OWN}"));
    assert_eq!(answer(enabled).await.1["result"]["status"]["state"], "completed");
}

#[tokio::test]
async fn official_clients_are_served_beside() {
    let server = serve();
    let task = server.send("hello").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let old = json!({ "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "hi" }] } });
    for path in ["/", "/a2a"] {
        let response = answer(request(&server, path, "message/send", &old)).await.1;
        assert_eq!(
            (&response["result"]["kind"], &response["result"]["status"]["state"]),
            (&json!("task"), &json!("completed"))
        );
    }
}
