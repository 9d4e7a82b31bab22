//! Document 000, lines 231 to 261: what a stream shows of text, tools, permissions, thinking, usage and artifacts.

use nuncio_tests::{Value, at_once, follow_up, id, json, state};

use super::{events, metadata, params, said, scripted, serve};

/// 000:231-246.
#[tokio::test]
async fn text_is_delivered_as_status_messages() {
    let server = serve("");
    let all = events(&server, "stream 3").await;
    let spoken: Vec<&Value> = all
        .iter()
        .map(|event| &event.body()["statusUpdate"])
        .filter(|update| update["status"]["message"].is_object())
        .collect();
    assert_eq!(spoken.len(), 3, "{all:?}");
    for (n, update) in spoken.iter().enumerate() {
        let mut shape = (*update).clone();
        let message = shape["status"]["message"].as_object_mut().unwrap();
        assert!(message.remove("messageId").is_some());
        assert_eq!(
            (message.remove("taskId"), message.remove("contextId")),
            (Some(update["taskId"].clone()), Some(update["contextId"].clone()))
        );
        shape["status"].as_object_mut().unwrap().remove("timestamp");
        let expected = json!({
            "taskId": update["taskId"],
            "contextId": update["contextId"],
            "status": {
                "state": "TASK_STATE_WORKING",
                "message": { "role": "ROLE_AGENT", "parts": [{ "text": format!("chunk {n}") }] },
            },
        });
        assert_eq!(shape, expected);
    }
    let task = server.task(all[0].body()["task"]["id"].as_str().unwrap()).await;
    assert_eq!(said(&task), "chunk 0chunk 1chunk 2");
    assert_eq!(task["history"].as_array().unwrap().len(), 2, "its pieces are one message");
    assert!(task.get("artifacts").is_none(), "{task}");
}

/// 000:247-254.
#[tokio::test]
async fn tools_are_told_below_iac_code() {
    let long = "x".repeat(5_000);
    let lines = [
        json!({ "type": "init", "session_id": "s", "model": "m" }),
        json!({ "type": "tool_use", "tool_name": "write_file", "tool_id": "t-1", "parameters": { "text": long, "n": 1 } }),
        json!({ "type": "tool_result", "tool_id": "t-1", "status": "success", "output": { "text": long } }),
        json!({ "type": "tool_use", "tool_name": "bash", "tool_id": "t-2", "parameters": {} }),
        json!({ "type": "tool_result", "tool_id": "t-2", "status": "error", "error": { "message": "no" } }),
        json!({ "type": "message", "role": "assistant", "content": "done" }),
        json!({ "type": "result", "status": "success", "stats": { "input_tokens": 3, "output_tokens": 4 } }),
    ];
    let stage = scripted(&lines, "");
    let told = metadata(&events(&stage.server, "go").await);
    let tools: Vec<&Value> = told.iter().map(|one| &one["tool"]).filter(|tool| tool.is_object()).collect();
    let steps: Vec<(&str, &str)> =
        tools.iter().map(|t| (t["toolUseId"].as_str().unwrap(), t["status"].as_str().unwrap())).collect();
    assert_eq!(
        steps,
        [
            ("t-1", "started"),
            ("t-1", "input_complete"),
            ("t-1", "completed"),
            ("t-2", "started"),
            ("t-2", "input_complete"),
            ("t-2", "failed"),
        ]
    );
    assert!(tools[..3].iter().all(|tool| tool["name"] == "write_file"));
    assert_eq!(tools[1]["input"], json!({ "text": long[..4_000], "n": 1 }), "cut at 4,000 characters");
    assert_eq!(tools[2]["result"]["text"], long[..4_000]);
    // The demo agent gives its input in pieces.
    let pieces = metadata(&events(&serve(""), "tool search").await);
    let deltas = pieces.iter().filter(|one| one["tool"]["status"] == "input_delta").count();
    assert_eq!(deltas, 3, "{pieces:?}");
    // Nothing of it where it is not exposed.
    let silent = metadata(&events(&serve("thinking-exposure: none"), "tool search").await);
    assert_eq!(silent, Vec::<Value>::new());
}

/// 000:255, 002:165-169.
#[tokio::test]
async fn permissions_are_refused_unless_granted() {
    for (more, approved, answer) in [("", false, "denied"), ("auto-approve-permissions: true", true, "approved")] {
        let server = serve(more);
        let all = events(&server, "approve rm -rf build").await;
        let told = metadata(&all);
        assert_eq!(told[0]["permission"]["autoApproved"], approved, "{told:?}");
        let task = server.task(all[0].body()["task"]["id"].as_str().unwrap()).await;
        assert_eq!((state(&task), said(&task).as_str()), ("INPUT_REQUIRED", answer));
    }
}

/// The later form, as an option: the caller decides.
#[tokio::test]
async fn permissions_can_be_asked_for() {
    let server = serve("interactive-permissions: true");
    let task = server.send("approve rm -rf build").await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    let input = task["metadata"]["iac_code"]["input"].clone();
    assert_eq!((&input["kind"], &input["requestTaskId"]), (&json!("permission"), &task["id"]));
    let mut answer = follow_up(&task, "");
    answer["message"]["contextId"] = task["contextId"].clone();
    let decision = json!({
        "schemaVersion": 1, "kind": "permission", "requestTaskId": task["id"], "inputId": input["inputId"],
        "toolUseId": input["toolUseId"], "decision": "allow_once",
    });
    answer["message"]["parts"] = json!([{ "data": decision, "mediaType": "application/json" }]);
    let mut elsewhere = answer.clone();
    elsewhere["message"]["parts"][0]["data"]["requestTaskId"] = "another".into();
    let refused = server.rpc("SendMessage", elsewhere).await["error"].clone();
    let text = "Permission response taskId does not match requestTaskId.";
    assert_eq!((&refused["code"], &refused["message"]), (&json!(-32602), &json!(text)));
    let done = server.send_params(answer).await;
    assert_eq!((state(&done), said(&done).contains("approved")), ("INPUT_REQUIRED", true), "{done}");
}

/// What was answered, or is no longer wanted, is not shown as waiting, however little of tools is shown.
#[tokio::test]
async fn a_permission_is_pending_only_while_it_is() {
    for more in ["", "thinking-exposure: none"] {
        let server = serve(&format!("interactive-permissions: true\n{more}"));
        let task = server.send("approve rm -rf build").await;
        let asked = task["metadata"]["iac_code"].clone();
        assert_eq!(asked["permission"]["pending"], true, "{task}");
        let mut answer = follow_up(&task, "");
        answer["message"]["contextId"] = task["contextId"].clone();
        let decision = json!({
            "schemaVersion": 1, "kind": "permission", "requestTaskId": task["id"],
            "inputId": asked["input"]["inputId"], "toolUseId": asked["input"]["toolUseId"], "decision": "deny",
        });
        answer["message"]["parts"] = json!([{ "data": decision, "mediaType": "application/json" }]);
        let told = server.send_params(answer).await["metadata"]["iac_code"].clone();
        assert!(told.get("input").is_none() && told["permission"]["pending"] == false, "{told}");
        let received = json!({
            "kind": "permission", "inputId": asked["input"]["inputId"], "toolUseId": asked["input"]["toolUseId"],
            "decision": "deny",
        });
        let log = metadata(&server.log(id(&task)).await);
        assert!(log.iter().any(|one| one["inputReceived"] == received), "{log:?}");
        // Canceled: nobody need answer any more.
        let task = server.send("approve rm -rf build").await;
        let canceled = server.cancel(id(&task)).await;
        assert_eq!(state(&canceled), "CANCELED");
        let told = &canceled["metadata"]["iac_code"];
        assert!(told.get("input").is_none() && told["permission"]["pending"] == false, "{told}");
    }
}

/// The other later forms: a summary of tool input, and no paths.
#[tokio::test]
async fn less_can_be_shown() {
    let lines = [
        json!({ "type": "tool_use", "tool_name": "write", "tool_id": "t", "parameters": { "path": "/srv/app/x.tf" } }),
        json!({ "type": "tool_result", "tool_id": "t", "status": "success", "output": "wrote /srv/app/x.tf" }),
        json!({ "type": "message", "role": "assistant", "content": "It is in /srv/app/x.tf." }),
        json!({ "type": "result", "status": "success" }),
    ];
    let stage = scripted(&lines, "tool-input: summary\nsafe-mode: true");
    let all = events(&stage.server, "go").await;
    assert!(!format!("{all:?}").contains("/srv/app"), "{all:?}");
    let told = metadata(&all);
    assert_eq!(told[1]["tool"]["inputSummary"]["fields"], json!({ "path": { "type": "string" } }));
    assert_eq!(told[2]["tool"]["result"], "wrote [PATH]");
    let server = serve("safe-mode: true");
    let asked = server.send("ask Is it in /srv/app/x.tf?").await;
    assert!(asked["status"]["message"]["parts"][0]["text"] == "Is it in [PATH]?", "{asked}");
}

/// 000:256-257, 002:161-164.
#[tokio::test]
async fn raw_thinking_is_told_only_on_request() {
    let long = format!("think {}", "t".repeat(5_000));
    assert_eq!(metadata(&events(&serve(""), &long).await), Vec::<Value>::new());
    let told = metadata(&events(&serve("thinking-exposure:\n- tool-trace\n- raw-thinking"), &long).await);
    let thinking = &told[0]["thinking"];
    assert_eq!(thinking["type"], "raw_thinking");
    assert_eq!(thinking["text"].as_str().unwrap().len(), 4_000);
}

/// 000:258-260.
#[tokio::test]
async fn usage_is_told() {
    for more in ["", "thinking-exposure: none"] {
        let told = metadata(&events(&serve(more), "usage").await);
        assert_eq!(told, [json!({ "usage": { "inputTokens": 12, "outputTokens": 34, "totalTokens": 46 } })]);
    }
}

/// 000:261.
#[tokio::test]
async fn artifacts_of_tools_are_stored_and_named_by_file_urls() {
    let content = "Resources:\n  Vpc: {}\n";
    let artifact = json!({ "filename": "vpc.yml", "mediaType": "text/yaml", "content": content });
    let lines = [
        json!({ "type": "tool_use", "tool_name": "write_template", "tool_id": "t-1", "parameters": {} }),
        json!({ "type": "tool_result", "tool_id": "t-1", "status": "success", "output": { "ok": true, "artifact": artifact } }),
        json!({ "type": "result", "status": "success" }),
    ];
    let folder = tempfile::tempdir().unwrap();
    let stage = scripted(&lines, &format!("artifact-dir: {}", folder.path().display()));
    let all = events(&stage.server, "go").await;
    let update = all.iter().map(|event| &event.body()["artifactUpdate"]).find(|update| update.is_object()).unwrap();
    let part = &update["artifact"]["parts"][0];
    let path = part["url"].as_str().unwrap().strip_prefix("file://").unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), content);
    assert!(path.starts_with(folder.path().canonicalize().unwrap().to_str().unwrap()), "{path}");
    assert_eq!((&part["filename"], &part["mediaType"]), (&json!("vpc.yml"), &json!("text/yaml")));
    for facts in [&part["metadata"], &update["artifact"]["metadata"]] {
        assert_eq!((&facts["mediaType"], &facts["byteSize"]), (&json!("text/yaml"), &json!(content.len())));
        assert_eq!(facts["sha256"].as_str().unwrap().len(), 64);
    }
    assert!(!Value::from(metadata(&all)).to_string().contains("Vpc"), "the content is not told twice");
    let told = metadata(&all);
    let completed = told.iter().find(|one| one["tool"]["status"] == "completed").unwrap();
    assert_eq!(
        completed["tool"]["result"],
        json!({ "ok": true, "artifact": { "filename": "vpc.yml", "mediaType": "text/yaml" } })
    );
    let task = stage.server.task(update["taskId"].as_str().unwrap()).await;
    assert_eq!(task["artifacts"][0]["artifactId"], update["artifact"]["artifactId"]);
    // And for clients on other machines.
    let url = part["metadata"]["downloadUrl"].as_str().unwrap();
    let got = nuncio_tests::client().get(url).send().await.unwrap().text().await.unwrap();
    assert_eq!(got, content);
}

/// A message that waits for its answer is followed by it, as in every profile.
#[tokio::test]
async fn a_question_is_answered_on_its_task() {
    let server = serve("");
    let asked = server.send_params(at_once(params("ask Which colour?", None))).await;
    server.until(id(&asked), "INPUT_REQUIRED").await;
    let done = server.send_params(follow_up(&asked, "blue")).await;
    assert!(said(&done).ends_with("blue"), "{done}");
}
