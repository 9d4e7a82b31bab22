//! The profile `coding-agent`: document 004, the protocol reference of coding-agent-a2a.

mod card;
mod events;
mod mcp;
mod methods;
mod states;

use nuncio_tests::{Server, Sse, SseEvent, Stage, Value, answer, client, json};

/// The lines that any command may print, as the adapters read them.
pub(crate) fn six_lines(output: &str) -> Vec<Value> {
    vec![
        json!({ "type": "system/init", "model": "m-1", "sessionId": "s-1" }),
        json!({ "type": "assistant", "message": { "role": "assistant", "content": [{ "type": "text", "text": "hi" }] } }),
        json!({ "type": "tool_use", "id": "u1", "name": "read_file", "input": { "path": "x" } }),
        json!({ "type": "tool_result", "tool_use_id": "u1", "content": output }),
        json!({ "type": "result", "cost": { "input_tokens": 1200, "output_tokens": 300 } }),
    ]
}

/// A server whose agent prints these lines, and after them does as the script says.
pub(crate) fn printing(lines: &[Value], then: &str) -> Stage {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path().keep().unwrap();
    std::fs::write(&file, text).unwrap();
    script(&format!("cat '{}'; {then}", file.display()), "")
}

/// A server whose agent is a shell script.
pub(crate) fn script(body: &str, more: &str) -> Stage {
    Stage::shell(body, &format!("profile: coding-agent\nstore: memory\n{more}"))
}

/// A whole request to the path of the document. Returns the whole response.
pub(crate) async fn post(server: &Server, body: &Value) -> Value {
    answer(client().post(format!("{}/a2a/jsonrpc", server.url)).json(body)).await.1
}

/// A call of 0.3. Returns the whole response.
pub(crate) async fn call(server: &Server, method: &str, params: Value) -> Value {
    post(server, &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await
}

/// The parameters of a send, as the document has them.
pub(crate) fn message(text: &str) -> Value {
    json!({ "message": {
        "kind": "message", "messageId": "msg-uuid", "role": "user", "parts": [{ "kind": "text", "text": text }],
    } })
}

/// The stream that a text begins.
pub(crate) async fn stream(server: &Server, text: &str) -> Sse {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": message(text) });
    Sse::open(client().post(format!("{}/a2a/jsonrpc", server.url)).json(&body)).await
}

/// What an event says, in a few words.
pub(crate) fn told(event: &SseEvent) -> String {
    let body = event.body();
    let part = |part: &Value| match part["kind"].as_str() {
        Some("data") => part["data"].to_string(),
        _ => part["text"].as_str().unwrap_or_default().to_owned(),
    };
    match body["kind"].as_str() {
        Some("artifact-update") => {
            let artifact = &body["artifact"];
            format!("{}: {}", artifact["name"].as_str().unwrap_or_default(), part(&artifact["parts"][0]))
        }
        _ => {
            let words = part(&body["status"]["message"]["parts"][0]);
            format!("{} {words}", body["status"]["state"].as_str().unwrap_or_default()).trim().to_owned()
        }
    }
}
