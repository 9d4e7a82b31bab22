//! The tools of coding-agent-a2a, by MCP: jobs are tasks.

use std::time::{Duration, Instant};

use nuncio_tests::{PATIENCE, Server, Value, answer, client, json};

use super::{call, printing, script, six_lines};

/// A request of MCP by whoever has this token. Returns the status and the response.
async fn ask_as(server: &Server, token: &str, method: &str, params: Value) -> (u16, Value) {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let request = client().post(format!("{}/mcp", server.url)).header("Accept", "application/json, text/event-stream");
    answer(request.bearer_auth(token).json(&body)).await
}

async fn ask(server: &Server, method: &str, params: Value) -> Value {
    let (status, response) = ask_as(server, "none", method, params).await;
    assert_eq!((status, &response["id"]), (200, &json!(7)), "{response}");
    response
}

/// What a tool says, or what it says is wrong.
async fn tool_as(server: &Server, token: &str, name: &str, arguments: Value) -> Result<Value, String> {
    let (_, response) = ask_as(server, token, "tools/call", json!({ "name": name, "arguments": arguments })).await;
    let result = &response["result"];
    assert_eq!(result["content"][0]["type"], "text", "{response}");
    let text = result["content"][0]["text"].as_str().unwrap();
    if result["isError"] == true { Err(text.to_owned()) } else { Ok(text.parse().unwrap()) }
}

async fn tool(server: &Server, name: &str, arguments: Value) -> Result<Value, String> {
    tool_as(server, "none", name, arguments).await
}

async fn run(server: &Server, task: &str) -> String {
    let job = tool(server, "coding_agent_run", json!({ "task": task })).await.unwrap();
    job["job_id"].as_str().unwrap().to_owned()
}

/// All events of a job, once it is done.
async fn until_done(server: &Server, job: &str) -> Vec<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let polled = tool(server, "coding_agent_poll", json!({ "jobId": job })).await.unwrap();
        if polled["done"] == true {
            return polled["events"].as_array().unwrap().clone();
        }
        assert!(Instant::now() < until, "{polled}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_client_of_mcp_is_greeted_and_finds_five_tools() {
    let stage = script("true", "");
    let server = &stage.server;
    for (wanted, agreed) in [("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-06-18")] {
        let hello =
            json!({ "protocolVersion": wanted, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let greeting = ask(server, "initialize", hello).await["result"].clone();
        assert_eq!(greeting["protocolVersion"], agreed);
        assert_eq!(
            (&greeting["serverInfo"]["name"], &greeting["capabilities"]),
            (&json!("nuncio"), &json!({ "tools": {} }))
        );
    }
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let response = client().post(format!("{}/mcp", server.url)).json(&ready).send().await.unwrap();
    assert_eq!(response.status(), 202);
    assert_eq!(response.bytes().await.unwrap().len(), 0);
    assert_eq!(ask(server, "ping", json!({})).await["result"], json!({}));
    let tools = ask(server, "tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let five = ["run", "poll", "result", "cancel", "info"].map(|name| format!("coding_agent_{name}"));
    assert_eq!(names, five);
    assert!(tools.as_array().unwrap().iter().all(|tool| tool["inputSchema"]["type"] == "object"), "{tools}");
}

#[tokio::test]
async fn a_job_is_a_task_and_is_polled_from_any_event_on() {
    let stage = printing(&six_lines("fine"), "exit 0");
    let job = run(&stage.server, "Add a health check endpoint").await;
    let all = until_done(&stage.server, &job).await;
    assert_eq!(all[0]["task"]["id"], *job, "{:?}", all[0]);
    assert_eq!(all[all.len() - 1]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    for seen in 0..=all.len() {
        let some = tool(&stage.server, "coding_agent_poll", json!({ "jobId": job, "sinceLine": seen })).await.unwrap();
        assert_eq!(some, json!({ "events": all[seen..], "done": true }), "after {seen}");
    }
    let beyond = json!({ "jobId": job, "sinceLine": u64::MAX });
    assert_eq!(tool(&stage.server, "coding_agent_poll", beyond).await.unwrap()["events"], json!([]));
    let task = call(&stage.server, "tasks/get", json!({ "id": job })).await["result"].clone();
    assert_eq!(task["history"][0]["parts"][0]["text"], "Add a health check endpoint");
}

#[tokio::test]
async fn the_result_of_a_finished_job_is_told_once() {
    let stage = printing(&six_lines("fine"), "exit 0");
    let job = run(&stage.server, "go").await;
    until_done(&stage.server, &job).await;
    let result = tool(&stage.server, "coding_agent_result", json!({ "jobId": job })).await.unwrap();
    assert_eq!((&result["summary"], &result["done"]), (&json!("hi"), &json!(true)), "{result}");
    let stats = &result["stats"];
    assert_eq!((&stats["inputTokens"], &stats["outputTokens"]), (&json!(1200), &json!(300)), "{result}");
    for name in ["coding_agent_result", "coding_agent_poll", "coding_agent_cancel"] {
        let again = tool(&stage.server, name, json!({ "jobId": job })).await;
        assert_eq!(again, Err(format!("Unknown job: {job}")), "{name}");
    }
    let task = call(&stage.server, "tasks/get", json!({ "id": job })).await;
    assert_eq!(task["result"]["status"]["state"], "completed", "the task stays");
}

#[tokio::test]
async fn a_failed_job_tells_why() {
    let stage = script("exit 3", "");
    let job = run(&stage.server, "go").await;
    until_done(&stage.server, &job).await;
    let result = tool(&stage.server, "coding_agent_result", json!({ "jobId": job })).await;
    assert_eq!(result, Ok(json!({ "summary": "agent exited with code 3", "done": true })));
}

#[tokio::test]
async fn a_running_job_is_kept_until_it_is_canceled() {
    let stage = script("sleep 60", "");
    let job = run(&stage.server, "go").await;
    stage.until_busy().await;
    for _ in 0..2 {
        let result = tool(&stage.server, "coding_agent_result", json!({ "jobId": job })).await.unwrap();
        assert_eq!(result["done"], false, "{result}");
    }
    let polled = tool(&stage.server, "coding_agent_poll", json!({ "jobId": job })).await.unwrap();
    assert_eq!(polled["done"], false, "{polled}");
    let canceled = tool(&stage.server, "coding_agent_cancel", json!({ "jobId": job })).await;
    assert_eq!(canceled, Ok(json!({ "cancelled": true })));
    stage.until_idle().await;
    let again = tool(&stage.server, "coding_agent_cancel", json!({ "jobId": job })).await;
    assert_eq!(again, Err(format!("Unknown job: {job}")));
    let task = call(&stage.server, "tasks/get", json!({ "id": job })).await;
    assert_eq!(task["result"]["status"]["state"], "canceled");
}

#[tokio::test]
async fn a_job_works_where_it_is_told_to_if_that_is_allowed() {
    let stage = script("pwd", "");
    let folder = stage.workspace.path().canonicalize().unwrap().join("inside");
    std::fs::create_dir(&folder).unwrap();
    let wish = json!({ "task": "go", "repoPath": folder, "model": "m", "force": true, "profile": "ROUTINE" });
    let job = tool(&stage.server, "coding_agent_run", wish).await.unwrap()["job_id"].as_str().unwrap().to_owned();
    until_done(&stage.server, &job).await;
    let result = tool(&stage.server, "coding_agent_result", json!({ "jobId": job })).await.unwrap();
    assert_eq!(result["summary"], folder.to_str().unwrap());
    let elsewhere = tool(&stage.server, "coding_agent_run", json!({ "task": "go", "repoPath": "/etc" })).await;
    assert_eq!(elsewhere, Err("Invalid A2A workspace metadata.".to_owned()));
}

#[tokio::test]
async fn info_names_the_agent() {
    let stage = script("true", "");
    let info = tool(&stage.server, "coding_agent_info", json!({})).await.unwrap();
    assert_eq!((&info["adapter"], &info["version"]), (&json!("generic"), &json!("0.1.0")), "{info}");
    assert_eq!(info["capabilities"]["streaming"], true);
}

#[tokio::test]
async fn nobody_reaches_the_job_of_another() {
    let tokens = "tokens: [{name: ann, token: token-of-ann-12345}, {name: bob, token: token-of-bob-12345}]";
    let stage = script("sleep 60", tokens);
    let (ann, bob) = ("token-of-ann-12345", "token-of-bob-12345");
    assert_eq!(ask_as(&stage.server, "wrong", "tools/list", json!({})).await.0, 401);
    let job = tool_as(&stage.server, ann, "coding_agent_run", json!({ "task": "go" })).await.unwrap()["job_id"].clone();
    for name in ["coding_agent_poll", "coding_agent_result", "coding_agent_cancel"] {
        let answer = tool_as(&stage.server, bob, name, json!({ "jobId": job })).await;
        assert_eq!(answer, Err(format!("Unknown job: {}", job.as_str().unwrap())), "{name}");
    }
    let polled = tool_as(&stage.server, ann, "coding_agent_poll", json!({ "jobId": job })).await.unwrap();
    assert_eq!(polled["done"], false, "it runs on: {polled}");
    let canceled = tool_as(&stage.server, ann, "coding_agent_cancel", json!({ "jobId": job })).await;
    assert_eq!(canceled, Ok(json!({ "cancelled": true })));
}

#[tokio::test]
async fn what_is_wrong_with_a_request_of_mcp_is_said() {
    let stage = script("true", "");
    let url = format!("{}/mcp", stage.server.url);
    let send = async |body: &str| {
        let request = client().post(&url).header("Content-Type", "application/json").body(body.to_owned());
        let (status, response) = answer(request).await;
        (status, response["error"]["code"].as_i64().unwrap_or_default())
    };
    assert_eq!(send("{").await, (400, -32700));
    assert_eq!(send("[]").await, (400, -32600));
    assert_eq!(send("7").await, (400, -32600));
    assert_eq!(send(r#"{"id":1,"method":"ping"}"#).await, (400, -32600));
    assert_eq!(send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/sing"}"#).await, (200, -32601));
    for params in [
        json!([]),
        json!({}),
        json!({ "name": "coding_agent_sing" }),
        json!({ "name": "coding_agent_run" }),
        json!({ "name": "coding_agent_run", "arguments": [] }),
        json!({ "name": "coding_agent_run", "arguments": { "task": 7 } }),
        json!({ "name": "coding_agent_run", "arguments": { "task": "go", "force": "yes" } }),
        json!({ "name": "coding_agent_poll", "arguments": { "jobId": "x", "sinceLine": -1 } }),
        json!({ "name": "coding_agent_poll", "arguments": { "jobId": "x", "sinceLine": 1.5 } }),
        json!({ "name": "coding_agent_result", "arguments": {} }),
    ] {
        let error = ask(&stage.server, "tools/call", params.clone()).await["error"].clone();
        assert_eq!(error["code"], -32602, "{params}: {error}");
    }
    for id in ["nothing", "", "../x", "\u{0}"] {
        let polled = tool(&stage.server, "coding_agent_poll", json!({ "jobId": id })).await;
        assert_eq!(polled, Err(format!("Unknown job: {id}")));
    }
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        assert_eq!(client().request(method, &url).send().await.unwrap().status(), 405);
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let old = client().post(&url).header("MCP-Protocol-Version", "1999-01-01").json(&ping);
    assert_eq!(answer(old).await.0, 400);
}

#[tokio::test]
async fn other_profiles_have_no_tools() {
    let stage = nuncio_tests::Stage::shell("true", "store: memory");
    assert_eq!(ask_as(&stage.server, "none", "ping", json!({})).await.0, 404);
}

#[tokio::test]
async fn a_job_outlives_its_server() {
    let mut stage = nuncio_tests::Stage::shell("echo hello", "profile: coding-agent");
    let job = run(&stage.server, "go").await;
    let before = until_done(&stage.server, &job).await;
    stage.server.kill();
    stage.server.restart();
    assert_eq!(until_done(&stage.server, &job).await, before);
    let result = tool(&stage.server, "coding_agent_result", json!({ "jobId": job })).await;
    assert_eq!(result, Ok(json!({ "summary": "hello", "done": true })));
}
