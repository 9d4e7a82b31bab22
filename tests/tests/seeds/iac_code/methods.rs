//! Document 000, lines 71 to 210: the methods, by the document's own requests.

use nuncio_tests::{Sse, Value, answer, id, in_context, json, state};

use super::{echo, events, params, post, post_request, said, serve};

/// 000:72-92, 000:99-100.
#[tokio::test]
async fn send_message() {
    let stage = echo("");
    let folder = stage.workspace.path().display().to_string();
    let body = json!({
        "jsonrpc": "2.0",
        "id": "1",
        "method": "SendMessage",
        "params": {
            "message": {
                "messageId": "msg-1",
                "role": "ROLE_USER",
                "parts": [{ "text": "Create a VPC with two vSwitches." }],
                "metadata": { "iac_code": { "cwd": folder } },
            },
            "configuration": { "acceptedOutputModes": ["text/plain"] },
        },
    });
    let answered = post(&stage.server, &body).await;
    assert_eq!((&answered["jsonrpc"], &answered["id"]), (&json!("2.0"), &json!("1")));
    let task = &answered["result"]["task"];
    assert_eq!((state(task), said(task).as_str()), ("INPUT_REQUIRED", "Create a VPC with two vSwitches."));
    assert_eq!(task["history"][0]["parts"], json!([{ "text": "Create a VPC with two vSwitches." }]));
    // Its own clients send the header; the request as it stands is answered too.
    let (_, bare) = answer(nuncio_tests::client().post(&stage.server.url).json(&body)).await;
    assert_eq!(state(&bare["result"]["task"]), "INPUT_REQUIRED");
}

/// 000:93-98.
#[tokio::test]
async fn messages_need_their_fields() {
    let server = serve("");
    for field in ["messageId", "role", "parts"] {
        let mut params = params("hello", None);
        params["message"].as_object_mut().unwrap().remove(field);
        let answered = server.rpc("SendMessage", params).await;
        assert_eq!(answered["error"]["code"], -32602, "{field}: {answered}");
    }
}

/// 000:110-129.
#[tokio::test]
async fn send_streaming_message() {
    let stage = echo("");
    let folder = stage.workspace.path().display().to_string();
    let body = json!({
        "jsonrpc": "2.0",
        "id": "2",
        "method": "SendStreamingMessage",
        "params": {
            "message": {
                "messageId": "msg-2",
                "role": "ROLE_USER",
                "parts": [{ "text": "Review this ROS template." }],
                "metadata": { "iac_code": { "cwd": folder } },
            },
            "configuration": { "acceptedOutputModes": ["text/plain"] },
        },
    });
    let all = Sse::open(post_request(&stage.server, &body)).await.all().await;
    assert!(all.iter().all(|event| event.data["jsonrpc"] == "2.0" && event.data["id"] == "2"), "{all:?}");
    assert!(all[0].body()["task"].is_object());
    assert_eq!(all.last().unwrap().state(), "TASK_STATE_INPUT_REQUIRED");
}

/// 000:130-140.
#[tokio::test]
async fn get_task() {
    let server = serve("");
    let task = server.send("hello").await;
    let body = |length: Value| json!({ "jsonrpc": "2.0", "id": "3", "method": "GetTask", "params": { "id": task["id"], "historyLength": length } });
    let got = post(&server, &body(json!(10))).await;
    assert_eq!(got["result"]["history"].as_array().unwrap().len(), 2, "{got}");
    let one = post(&server, &body(json!(1))).await;
    assert_eq!(one["result"]["history"].as_array().unwrap().len(), 1);
    let whole = server.task(id(&task)).await;
    assert_eq!(whole["history"].as_array().unwrap().len(), 2, "nothing was taken from what is stored");
    let unknown = server.rpc("GetTask", json!({ "id": "task-id" })).await;
    assert_eq!(unknown["error"]["code"], -32001);
}

/// 000:141-154.
#[tokio::test]
async fn list_tasks() {
    let server = serve("");
    let first = server.send("file notes.txt 10").await;
    for _ in 0..2 {
        server.send_params(in_context(&first["contextId"], "hello")).await;
    }
    let other = server.send("elsewhere").await;
    let list = async |more: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": "4", "method": "ListTasks", "params": more });
        post(&server, &body).await["result"].clone()
    };
    let mine = list(json!({ "contextId": first["contextId"], "pageSize": 20, "includeArtifacts": false })).await;
    assert_eq!((&mine["totalSize"], &mine["nextPageToken"]), (&json!(3), &json!("")));
    assert!(mine["tasks"].as_array().unwrap().iter().all(|task| task.get("artifacts").is_none()), "{mine}");
    let working =
        list(json!({ "contextId": first["contextId"], "status": "TASK_STATE_WORKING", "pageSize": 20 })).await;
    assert_eq!(working["totalSize"], 0);
    let waiting = list(json!({ "status": "TASK_STATE_INPUT_REQUIRED" })).await;
    assert_eq!(waiting["totalSize"], 4);
    let stamps: Vec<&str> =
        waiting["tasks"].as_array().unwrap().iter().map(|t| t["status"]["timestamp"].as_str().unwrap()).collect();
    assert!(stamps.is_sorted_by(|a, b| a >= b), "{stamps:?}");
    assert_eq!(waiting["tasks"][0]["id"], other["id"]);
    let page = list(json!({ "pageSize": 3 })).await;
    let token = page["nextPageToken"].as_str().unwrap();
    assert!(!token.is_empty());
    let rest = list(json!({ "pageSize": 3, "pageToken": token, "includeArtifacts": true, "historyLength": 1 })).await;
    assert_eq!(rest["tasks"][0]["id"], first["id"]);
    assert_eq!(rest["tasks"][0]["artifacts"].as_array().unwrap().len(), 1);
    assert_eq!(rest["tasks"][0]["history"].as_array().unwrap().len(), 1);
}

/// 000:155-165, 002:249.
#[tokio::test]
async fn cancel_task() {
    let server = serve("");
    let running = server.send_async("hold").await;
    server.until(id(&running), "WORKING").await;
    let body =
        |task: &Value| json!({ "jsonrpc": "2.0", "id": "5", "method": "CancelTask", "params": { "id": task["id"] } });
    let canceled = post(&server, &body(&running)).await;
    assert_eq!(state(&canceled["result"]), "CANCELED", "{canceled}");
    assert_eq!(nuncio_tests::words(&canceled["result"]), "Task canceled.");
    // None of these runs: canceled, finished, failed.
    for task in [running, server.send("hello").await, server.send("fail on purpose").await] {
        let refused = post(&server, &body(&task)).await;
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
        assert_eq!(refused["error"]["data"][0]["reason"], "TASK_NOT_CANCELABLE");
    }
}

/// 000:166-176, 002:250-253.
#[tokio::test]
async fn subscribe_to_task() {
    let server = serve("");
    let running = server.send_async("stream 20 50").await;
    let body = |task: &Value| json!({ "jsonrpc": "2.0", "id": "6", "method": "SubscribeToTask", "params": { "id": task["id"] } });
    let all = Sse::open(post_request(&server, &body(&running))).await.all().await;
    assert_eq!(all[0].body()["task"]["id"], running["id"]);
    assert_eq!(all.last().unwrap().state(), "TASK_STATE_INPUT_REQUIRED", "it closes with the turn");
    let canceled = server.send_async("hold").await;
    server.cancel(id(&canceled)).await;
    for task in [running, server.send("fail on purpose").await, canceled] {
        let refused = post(&server, &body(&task)).await;
        assert_eq!(refused["error"]["code"], -32001, "{refused}");
        assert_eq!(refused["error"]["message"], format!("Task {} is not active", id(&task)));
    }
}

/// 000:202-210, 002:290.
#[tokio::test]
async fn get_extended_agent_card() {
    let server = serve("token: local-dev-token");
    let body = json!({ "jsonrpc": "2.0", "id": "8", "method": "GetExtendedAgentCard", "params": {} });
    let (_, extended) = answer(post_request(&server, &body).bearer_auth("local-dev-token")).await;
    let card = &extended["result"];
    assert_eq!(card["name"], "iac-code", "{extended}");
    let skills = card["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 5, "one more than everybody sees");
    let details = skills[4]["description"].as_str().unwrap();
    assert!(details.contains("Tasks") && details.to_lowercase().contains("webhook"), "{details}");
    let (status, _) = answer(post_request(&server, &body)).await;
    assert_eq!(status, 401);
}

/// 000:3-11.
#[tokio::test]
async fn the_life_of_a_conversation() {
    let server = serve("");
    let (status, card) =
        answer(nuncio_tests::client().get(format!("{}/.well-known/agent-card.json", server.url))).await;
    assert_eq!((status, &card["supportedInterfaces"][0]["protocolBinding"]), (200, &json!("JSONRPC")));
    let streamed = events(&server, "hello").await;
    let task = &streamed[0].body()["task"];
    assert!(streamed[1..].iter().all(|event| event.body()["statusUpdate"].is_object()), "{streamed:?}");
    let next = server.send_params(in_context(&task["contextId"], "and then")).await;
    assert_eq!((&next["contextId"], said(&next).as_str()), (&task["contextId"], "and then"));
    let direct = server.rpc("SendMessage", params("message hi", None)).await;
    assert_eq!(direct["result"]["message"]["parts"][0]["text"], "hi");
    assert_eq!(server.rpc("ListTasks", json!({})).await["result"]["totalSize"], 2);
}
