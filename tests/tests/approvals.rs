//! Approvals: what is asked, who may answer and how, what rules decide, and what is written down.

use std::time::Duration;

use nuncio_tests::{
    Server, SseEvent, Value, Wire, answer, at_once, client, follow_up, id, json, message, state, texts,
};

const INPUT: &str = "urn:nuncio:a2a:input:v1";
const HITL: &str = "https://kagent.dev/extensions/hitl/v1";

/// What the status message of a task says to machines.
fn asked(task: &Value) -> &Value {
    &task["status"]["message"]["metadata"][INPUT]
}

/// What the log says about decisions.
async fn decisions(server: &Server, task: &Value) -> Vec<Value> {
    let log = server.log(id(task)).await;
    let told = |event: &SseEvent| event.body()["statusUpdate"]["metadata"].get(INPUT).cloned();
    log.iter().filter_map(told).filter(|what| what["kind"] == "decision").collect()
}

#[allow(clippy::needless_pass_by_value, reason = "it reads better where it is called")]
fn data(task: &Value, value: Value) -> Value {
    let mut params = follow_up(task, "");
    params["message"]["parts"] = json!([{ "data": value, "mediaType": "application/json" }]);
    params
}

#[tokio::test]
async fn a_decision_is_bound_to_what_was_asked_and_is_logged() {
    let server = Server::start(&["--store", "memory"]);
    let task = server.send("approve rm -rf build").await;
    let request = asked(&task).clone();
    assert_eq!(request["kind"], "approval");
    assert!(request["digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:")), "{request}");
    assert!(request["expires"].is_string());
    let options: Vec<&str> = request["options"].as_array().unwrap().iter().filter_map(|o| o["id"].as_str()).collect();
    assert_eq!(options, ["approve", "deny"]);

    let foreign = data(&task, json!({ "id": "another", "decision": "approve" }));
    assert_eq!(state(&server.send_params(foreign).await), "INPUT_REQUIRED");
    let changed = data(&task, json!({ "id": request["id"], "decision": "approve", "digest": "sha256:0" }));
    assert_eq!(state(&server.send_params(changed).await), "INPUT_REQUIRED");
    let right = data(&task, json!({ "id": request["id"], "decision": "approve", "digest": request["digest"] }));
    let done = server.send_params(right).await;
    assert_eq!(texts(&done), ["approved"]);
    let logged = decisions(&server, &done).await;
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert_eq!((&logged[0]["id"], &logged[0]["digest"]), (&request["id"], &request["digest"]));
    assert_eq!((&logged[0]["decision"], &logged[0]["by"]), (&json!("approved"), &json!("caller")));
}

#[tokio::test]
async fn whoever_asks_on_one_wire_is_answered_on_any_other() {
    let server = Server::start(&["--store", "memory"]);
    for ask in Wire::ALL {
        for reply in Wire::ALL {
            // The asking stream ends where the task waits.
            let events = nuncio_tests::Sse::open(ask.stream(&server, "approve it")).await.all().await;
            assert!(!events.is_empty());
            let waiting = server.rpc("ListTasks", json!({ "status": "TASK_STATE_INPUT_REQUIRED" })).await;
            let task = waiting["result"]["tasks"][0].clone();
            let parts = json!([{ "kind": "text", "text": "y" }]);
            let request = match reply {
                Wire::Rpc => server.rpc_request("SendMessage", &follow_up(&task, "y")),
                Wire::Rest => server.post("/message:send", &follow_up(&task, "y")),
                Wire::OldRpc => server.rpc_request(
                    "message/send",
                    &json!({ "message": {
                        "kind": "message", "messageId": "m-9", "role": "user", "parts": parts, "taskId": task["id"],
                    } }),
                ),
                Wire::OldRest => client().post(format!("{}/v1/message:send", server.url)).json(&json!({ "request": {
                    "message_id": "m-9", "role": "ROLE_USER", "content": [{ "text": "y" }], "task_id": task["id"],
                } })),
            };
            let (status, body) = answer(request).await;
            assert_eq!(status, 200, "{body}");
            let task = server.until(id(&task), "COMPLETED").await;
            assert_eq!(texts(&task), ["approved"], "{ask:?} {reply:?}");
        }
    }
}

#[tokio::test]
async fn rules_decide_without_asking() {
    let server = Server::configured("store: memory\nallow-tools: ['*(git *)']\ndeny-tools: ['*(*rm -rf*)']\n");
    for (action, answer) in [("git status", "approved"), ("git clean; rm -rf /", "denied")] {
        let task = server.send(&format!("approve {action}")).await;
        assert_eq!(texts(&task), [answer], "{task}");
        assert_eq!(decisions(&server, &task).await[0]["by"], "rule");
    }
    assert_eq!(
        state(&server.send("approve git status; ls").await),
        "INPUT_REQUIRED",
        "one command is allowed, not two"
    );

    let server = Server::configured("store: memory\nauto-approve-permissions: true\ndeny-tools: ['*(*rm -rf*)']\n");
    assert_eq!(texts(&server.send("approve anything").await), ["approved"]);
    assert_eq!(texts(&server.send("approve rm -rf /").await), ["denied"]);
}

#[tokio::test]
async fn nobody_answers_and_the_answer_is_no() {
    let server = Server::configured("store: memory\napproval-timeout: 300ms\n");
    let task = server.send_params(at_once(message("approve it"))).await;
    let task = server.until(id(&task), "COMPLETED").await;
    assert_eq!(texts(&task), ["denied"]);
    assert_eq!(decisions(&server, &task).await[0]["by"], "nobody");
}

#[tokio::test]
async fn an_answer_after_its_time_changes_nothing() {
    let server = Server::configured("store: memory\napproval-timeout: 200ms\n");
    let task = server.send("approve it").await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let (_, late) = answer(server.rpc_request("SendMessage", &follow_up(&task, "y"))).await;
    assert!(late["error"].is_object(), "{late}");
    assert_eq!(texts(&server.until(id(&task), "COMPLETED").await), ["denied"]);
}

#[tokio::test]
async fn kagents_form_is_spoken_to_whoever_activates_it() {
    let server = Server::start(&["--store", "memory"]);
    let send = |params: Value| server.rpc_request("SendMessage", &params).header("A2A-Extensions", HITL);
    let (_, body) = answer(send(message("approve rm -rf build"))).await;
    let task = &body["result"]["task"];
    let request = &task["status"]["message"]["metadata"][HITL];
    assert_eq!(request["type"], "tool_approval_request", "{task}");
    assert!(task["status"]["message"]["extensions"].as_array().is_some_and(|all| all.contains(&json!(HITL))));
    let tool = &request["tools"][0];
    assert!(tool["id"].is_string() && tool["call_id"].is_string() && tool["name"].is_string(), "{tool}");

    let mut reply = follow_up(task, "no");
    reply["message"]["extensions"] = json!([HITL]);
    let approvals = json!([{ "id": tool["id"], "approved": false, "rejection_reason": "too bold" }]);
    reply["message"]["metadata"] = json!({ HITL: { "type": "tool_approval_response", "approvals": approvals } });
    let (_, body) = answer(send(reply)).await;
    assert_eq!(texts(&body["result"]["task"]), ["denied"], "{body}");
    assert_eq!(decisions(&server, task).await[0]["reason"], "too bold");

    let plain = server.send("approve it").await;
    assert!(plain["status"]["message"]["metadata"].get(HITL).is_none(), "nobody asked for it");
}

#[tokio::test]
async fn an_approval_waits_through_a_restart() {
    let mut server = Server::start(&[]);
    let task = server.send("approve rm -rf build").await;
    let request = asked(&task).clone();
    server.kill();
    server.restart();
    let foreign = data(&task, json!({ "id": "another", "decision": "approve" }));
    assert_eq!(texts(&server.send_params(foreign).await), ["denied"], "what is no yes is no");
    let task = server.send("approve again").await;
    assert_ne!(asked(&task)["id"], request["id"]);
    server.kill();
    server.restart();
    let right = data(&task, json!({ "id": asked(&task)["id"], "decision": "approve" }));
    assert_eq!(texts(&server.send_params(right).await), ["approved"]);
}

#[tokio::test]
async fn an_approval_that_expired_while_no_server_was_there_is_denied() {
    let mut server = Server::configured("approval-timeout: 4s\n");
    let task = server.send("approve rm -rf build").await;
    server.kill();
    tokio::time::sleep(Duration::from_secs(4)).await;
    server.restart();
    assert_eq!(state(&server.task(id(&task)).await), "INPUT_REQUIRED");
    assert_eq!(texts(&server.send_params(follow_up(&task, "y")).await), ["denied"]);
}

#[tokio::test]
async fn words_that_are_no_answer_do_not_put_off_the_end_of_an_approval() {
    let server = Server::configured("store: memory\napproval-timeout: 4s\n");
    let task = server.send("approve it").await;
    let asked_at = std::time::Instant::now();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(state(&server.send_params(follow_up(&task, "why?")).await), "INPUT_REQUIRED", "it is asked again");
    assert_eq!(texts(&server.until(id(&task), "COMPLETED").await), ["denied"]);
    assert!(asked_at.elapsed() < Duration::from_millis(5800), "after {:?}", asked_at.elapsed());
}
