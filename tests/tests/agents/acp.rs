//! Agents that speak the Agent Client Protocol: what they say and want, through the real server.

use nuncio_tests::{
    Server, Sse, SseEvent, Stage, Value, Wire, fake, follow_up, id, in_context, json, message, state, texts, words,
};

mod desk;
mod foreign;
mod life;
mod odd;

const INPUT: &str = "urn:nuncio:a2a:input:v1";
const TOOL: &str = "urn:nuncio:a2a:tool:v1";

/// A server with the fake agent, which is started with this word.
fn stage(kind: &str, more: &str) -> Stage {
    Stage::new("acp", &json!([fake("acp.py"), kind]), more)
}

/// What all text of a task says.
fn said(task: &Value) -> String {
    texts(task).concat()
}

/// The tool calls in a log, each as its id, its phase and what that phase holds.
fn tool_steps(log: &[SseEvent]) -> Vec<(String, String, Value)> {
    let told = |event: &SseEvent| event.body()["statusUpdate"]["metadata"].get(TOOL).cloned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let held = |step: &Value| ["input", "delta", "output", "error"].iter().find_map(|key| step.get(key)).cloned();
    let steps = log.iter().filter_map(told);
    steps.map(|step| (text(&step["id"]), text(&step["phase"]), held(&step).unwrap_or_default())).collect()
}

/// The texts of the status messages in a log.
fn status_texts(log: &[SseEvent]) -> Vec<String> {
    let text = |event: &SseEvent| {
        let message = &event.body()["statusUpdate"]["status"]["message"];
        message["parts"][0]["text"].as_str().map(str::to_owned)
    };
    log.iter().filter_map(text).collect()
}

/// The final states in a log.
fn finals(log: &[SseEvent]) -> Vec<String> {
    let state = |event: &SseEvent| event.body()["statusUpdate"]["status"]["state"].as_str().map(str::to_owned);
    let is_final = |state: &String| ["CANCELED", "COMPLETED", "FAILED", "REJECTED"].iter().any(|w| state.ends_with(w));
    log.iter().filter_map(state).filter(is_final).collect()
}

async fn answer_with(server: &Server, task: &Value, text: &str) -> Value {
    server.send_params(follow_up(task, text)).await
}

#[tokio::test]
async fn text_tools_plans_and_usage_arrive_in_their_places() {
    let stage = stage("", "store: memory\nthinking-exposure: all");
    let server = &stage.server;
    let task = server.send("tools").await;
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let artifacts = task["artifacts"].as_array().unwrap();
    let named = |name: &str| artifacts.iter().find(|one| one["name"] == name);
    assert_eq!(texts(&task).iter().filter(|text| !text.is_empty()).collect::<Vec<_>>(), ["All done"]);
    let change = &named("changes").expect("an artifact with the changes")["parts"][0]["data"];
    assert_eq!(*change, json!({ "path": "a.txt", "oldText": "old\n", "newText": "new\n" }));
    let picture = artifacts.iter().map(|one| &one["parts"][0]).find(|part| part["mediaType"] == "image/png");
    assert_eq!(picture.expect("a picture")["raw"], "AQID");

    let log = server.log(id(&task)).await;
    let path = stage.workspace.path().canonicalize().unwrap().join("a.txt");
    let step = |call: &str, phase: &str, what: Value| (call.to_owned(), phase.to_owned(), what);
    assert_eq!(
        tool_steps(&log),
        [
            step("call-1", "started", Value::Null),
            step("call-1", "input", json!({ "path": path })),
            step("call-1", "delta", json!("half")),
            step("call-1", "delta", json!(" and whole")),
            step("call-1", "completed", json!("half and whole")),
            step("call-2", "started", Value::Null),
            step("call-2", "delta", json!("no network")),
            step("call-2", "failed", json!("no network")),
        ]
    );
    let told = status_texts(&log);
    assert_eq!(told, ["Plan:\n[x] look\n[>] edit", "Mode: code"], "{told:?}");
    let metadata = |event: &SseEvent, key: &str| event.body()["statusUpdate"]["metadata"].get(key).cloned();
    let thought: Vec<Value> = log.iter().filter_map(|event| metadata(event, "urn:nuncio:a2a:thinking:v1")).collect();
    assert_eq!(thought, [json!({ "text": "Let me see" })]);
    let usage: Vec<Value> = log.iter().filter_map(|event| metadata(event, "urn:nuncio:a2a:usage:v1")).collect();
    let used = json!({ "inputTokens": 7, "outputTokens": 5, "cacheReadTokens": 2, "costUsd": 0.25 });
    assert_eq!(usage, [used]);
    assert!(!task.to_string().contains("never shown") && !task.to_string().contains("not ours"), "{task}");
    // Its own cost only, although the agent tells that of the whole conversation.
    let mut spent = Vec::new();
    let mut context = json!(null);
    for _ in 0..2 {
        let next = match &context {
            Value::Null => server.send("usage").await,
            context => server.send_params(in_context(context, "usage")).await,
        };
        context = next["contextId"].clone();
        let log = server.log(id(&next)).await;
        let usage: Vec<Value> = log.iter().filter_map(|event| metadata(event, "urn:nuncio:a2a:usage:v1")).collect();
        spent.push(usage[0]["costUsd"].clone());
    }
    assert_eq!(spent, [json!(0.5), json!(0.5)]);
}

#[tokio::test]
async fn permission_is_given_by_what_an_option_means() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    for (reply, chosen) in
        [("y", "yes"), ("n", "no"), ("Always", "always"), ("never", "never"), ("This time", "yes"), ("Not now", "no")]
    {
        let task = server.send("permission").await;
        assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
        assert!(words(&task).contains("Run make"), "{task}");
        let asked = &task["status"]["message"]["metadata"][INPUT];
        assert_eq!((&asked["tool"], &asked["input"]), (&json!("execute"), &json!({ "command": "make" })));
        let kinds: Vec<&Value> = asked["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
        assert_eq!(kinds, ["reject_always", "allow_always", "reject_once", "allow_once"]);
        let task = answer_with(server, &task, reply).await;
        assert_eq!(said(&task), format!("chose {chosen}"), "{reply}");
        // A call is what became of it, whatever the agent says of it afterwards.
        let steps = tool_steps(&server.log(id(&task)).await);
        let last = if matches!(chosen, "yes" | "always") { "completed" } else { "failed" };
        assert_eq!(steps.last().map(|(call, phase, _)| (call.as_str(), phase.as_str())), Some(("call-p", last)));
    }
    // Without an option for this time only, the caller's word counts for longer.
    let task = server.send("permission reject_always allow_always").await;
    let task = answer_with(server, &task, "n").await;
    assert_eq!(said(&task), "chose never");
}

#[tokio::test]
async fn rules_and_expiry_answer_without_anybody() {
    let yes = stage("", "store: memory\nauto-approve-permissions: true");
    assert_eq!(said(&yes.server.send("permission").await), "chose yes");
    // Nobody said "always", so nobody's settings are changed.
    assert_eq!(said(&yes.server.send("permission allow_always reject_always").await), "chose cancelled");
    let no = stage("", "store: memory\ndeny-tools: [execute]");
    assert_eq!(said(&no.server.send("permission").await), "chose no");
    let late = stage("", "store: memory\napproval-timeout: 200ms");
    let task = late.server.send("permission").await;
    assert_eq!(said(&late.server.until(id(&task), "COMPLETED").await), "chose no");
}

#[tokio::test]
async fn several_permissions_are_asked_one_after_the_other() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let first = server.send("twice").await;
    assert!(words(&first).contains("Do a"), "{first}");
    let second = answer_with(server, &first, "y").await;
    assert!(words(&second).contains("Do b"), "{second}");
    assert_eq!(said(&answer_with(server, &second, "n").await), "yes no");
    // One that was taken back while another was asked for is not asked for at all.
    let first = server.send("withdraw").await;
    let done = answer_with(server, &first, "y").await;
    assert_eq!((state(&done), said(&done).as_str()), ("COMPLETED", "yes -32800"), "{done}");
}

#[tokio::test]
async fn forms_and_links_become_questions() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let task = server.send("form").await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    assert!(words(&task).starts_with("Which port?\n- port (Port)"), "{task}");
    let again = answer_with(server, &task, "many").await;
    assert!(words(&again).starts_with("port must be a whole number."), "{again}");
    let done = answer_with(server, &again, "8080").await;
    assert_eq!(said(&done), r#"{"action": "accept", "content": {"port": 8080}}"#);
    let declined = answer_with(server, &server.send("form").await, "decline").await;
    assert_eq!(said(&declined), r#"{"action": "decline"}"#);
    let task = server.send("fields").await;
    let mut params = follow_up(&task, "");
    params["message"]["parts"] = json!([{ "data": { "host": "h", "zone": "eu", "more": 1 } }]);
    let done = server.send_params(params).await;
    assert_eq!(said(&done), r#"{"action": "accept", "content": {"host": "h", "zone": "eu"}}"#);
    let link = server.send("link").await;
    assert!(words(&link).contains("https://example.org/in"), "{link}");
    assert_eq!(said(&answer_with(server, &link, "done").await), r#"{"action": "accept"}"#);
}

#[tokio::test]
async fn every_reason_to_stop_has_its_state() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    for (reason, wanted, words_of_it) in [
        ("end_turn", "COMPLETED", ""),
        ("max_tokens", "COMPLETED", "limit of tokens"),
        ("max_turn_requests", "COMPLETED", "limit of requests"),
        ("refusal", "REJECTED", "refuses"),
        ("cancelled", "FAILED", "stopped"),
        ("something_new", "COMPLETED", ""),
    ] {
        let task = server.send(&format!("stop {reason}")).await;
        assert_eq!(state(&task), wanted, "{reason}: {task}");
        assert!(words(&task).contains(words_of_it), "{reason}: {task}");
    }
    let task = server.send("error").await;
    assert_eq!((state(&task), words(&task)), ("FAILED", "Internal error: the quota is used up"));
    // The conversation goes on after a failure.
    let next = server.send_params(in_context(&task["contextId"], "hello")).await;
    assert_eq!(said(&next), "echo hello");
}

#[tokio::test]
async fn an_agent_that_is_not_signed_in_says_what_to_do() {
    let stage = stage("login", "store: memory");
    let server = &stage.server;
    let task = server.send("hello").await;
    assert_eq!(state(&task), "AUTH_REQUIRED", "{task}");
    assert!(words(&task).contains("Fake login (touch signed-in)"), "{task}");
    stage.until_idle().await;
    std::fs::write(stage.workspace.path().join("signed-in"), "").unwrap();
    let task = answer_with(server, &task, "done").await;
    // It has seen nothing of the task yet.
    assert_eq!(said(&task), "echo hello\ndone");

    let with_method = self::stage("login", "store: memory\nauth-method: fake");
    assert_eq!(said(&with_method.server.send("hello").await), "echo hello");
}

#[tokio::test]
async fn a_sign_in_that_expires_in_a_conversation_does_not_lose_it() {
    let stage = stage("", "store: memory");
    let server = &stage.server;
    let first = server.send("remember the number 11").await;
    let task = server.send_params(in_context(&first["contextId"], "login")).await;
    assert_eq!(state(&task), "AUTH_REQUIRED", "{task}");
    assert!(words(&task).contains("the token has expired"), "{task}");
    assert_eq!(task["status"]["message"]["metadata"][INPUT]["kind"], "credentials");
    std::fs::write(stage.workspace.path().join("signed-in"), "").unwrap();
    let done = answer_with(server, &task, "done").await;
    // The message that it did not take the first time, and the second of the conversation.
    assert_eq!(said(&done), "signed in; 1 of 2");
    let recall = server.send_params(in_context(&first["contextId"], "recall")).await;
    assert!(said(&recall).starts_with("number 11 "), "{recall}");
    let new = server.send("login").await;
    assert_eq!(said(&new), "signed in; 1 of 1");
}

#[tokio::test]
async fn every_wire_shows_the_same() {
    let stage = stage("", "store: memory");
    for wire in Wire::ALL {
        let events = Sse::open(wire.stream(&stage.server, "flood")).await.all().await;
        let text: String = events.iter().filter_map(SseEvent::chunk).collect();
        assert_eq!(text.lines().count(), 5000, "{wire:?}");
        let asked = Sse::open(wire.stream(&stage.server, "permission")).await.all().await;
        let last = asked.last().unwrap().data.to_string();
        assert!(last.contains("Run make"), "{wire:?}: {last}");
    }
}

#[tokio::test]
async fn parts_of_a_message_arrive_as_the_agent_takes_them() {
    let stage = stage("", "store: memory");
    std::fs::write(stage.workspace.path().join("note.md"), "# Note").unwrap();
    let url = format!("file://{}", stage.workspace.path().canonicalize().unwrap().join("note.md").display());
    let mut params = message("look");
    params["message"]["parts"] = json!([
        { "text": "look" },
        { "raw": "AQID", "mediaType": "image/png", "filename": "p.png" },
        { "url": url, "mediaType": "text/markdown" },
    ]);
    let task = stage.server.send_params(params).await;
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let kept = std::fs::read_dir(stage.workspace.path().join(".fake-acp")).unwrap().next().unwrap().unwrap();
    let memory: Value = serde_json::from_slice(&std::fs::read(kept.path()).unwrap()).unwrap();
    let blocks = &memory["said"][0];
    assert_eq!(blocks[0], json!({ "type": "text", "text": "look" }));
    assert_eq!(blocks[1], json!({ "type": "image", "data": "AQID", "mimeType": "image/png" }));
    assert_eq!(blocks[2]["resource"], json!({ "uri": url, "mimeType": "text/markdown", "text": "# Note" }));
}
