//! The profile `iac-code`: document 000 (its protocol reference) and document 002 (its command reference).

mod card;
mod client;
mod contexts;
mod errors;
mod input;
mod methods;
mod published;
mod push;
mod server;
mod streaming;

use nuncio_tests::{RequestBuilder, Server, Sse, SseEvent, Stage, Value, answer, client, json};

/// A server with the profile, and more lines of configuration.
pub(crate) fn serve(more: &str) -> Server {
    serve_in(more, &[])
}

/// The same, with more variables in its environment.
pub(crate) fn serve_in(more: &str, environment: &[(&str, &str)]) -> Server {
    Server::configured_in(&format!("profile: iac-code\nstore: memory\n{more}\n"), environment)
}

/// An agent that answers with its prompt.
pub(crate) fn echo(more: &str) -> Stage {
    echo_in(more, &[])
}

pub(crate) fn echo_in(more: &str, environment: &[(&str, &str)]) -> Stage {
    let more = format!("profile: iac-code\nstore: memory\nprompt-by: stdin\n{more}");
    Stage::new_in("generic", &json!(["cat"]), &more, environment)
}

/// An agent that prints these lines whatever it is told.
pub(crate) fn scripted(lines: &[Value], more: &str) -> Stage {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path().keep().unwrap();
    std::fs::write(&file, text).unwrap();
    let command = json!(["sh", "-c", format!("cat '{}'", file.display())]);
    Stage::new("gemini", &command, &format!("profile: iac-code\nstore: memory\n{more}"))
}

/// The parameters of a send as the document has them.
pub(crate) fn params(text: &str, cwd: Option<&str>) -> Value {
    let mut message = json!({ "messageId": "msg-1", "role": "ROLE_USER", "parts": [{ "text": text }] });
    if let Some(cwd) = cwd {
        message["metadata"] = json!({ "iac_code": { "cwd": cwd } });
    }
    json!({ "message": message, "configuration": { "acceptedOutputModes": ["text/plain"] } })
}

/// Parameters with these parts.
pub(crate) fn with_parts(parts: Value) -> Value {
    let mut all = params("", None);
    all["message"]["parts"] = parts;
    all
}

/// What the agent has said on a task, all of it but the end of its last line.
pub(crate) fn said(task: &Value) -> String {
    let empty = Vec::new();
    let history = task["history"].as_array().unwrap_or(&empty);
    let messages = history.iter().filter(|message| message["role"] == "ROLE_AGENT");
    let parts = messages.flat_map(|message| message["parts"].as_array().cloned().unwrap_or_default());
    let text: String = parts.map(|part| part["text"].as_str().unwrap_or_default().to_owned()).collect();
    text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
}

/// The result of a call with a whole body, as a document has it.
pub(crate) async fn post(server: &Server, body: &Value) -> Value {
    answer(post_request(server, body)).await.1
}

fn post_request(server: &Server, body: &Value) -> RequestBuilder {
    client().post(format!("{}/", server.url)).header("A2A-Version", "1.0").json(body)
}

/// All events of the stream that a text begins.
pub(crate) async fn events(server: &Server, text: &str) -> Vec<SseEvent> {
    let body = json!({ "jsonrpc": "2.0", "id": "2", "method": "SendStreamingMessage", "params": params(text, None) });
    Sse::open(post_request(server, &body)).await.all().await
}

/// The `iac_code` metadata of the events that have some.
pub(crate) fn metadata(events: &[SseEvent]) -> Vec<Value> {
    let of = |event: &SseEvent| event.body()["statusUpdate"]["metadata"]["iac_code"].clone();
    events.iter().map(of).filter(Value::is_object).collect()
}
