//! The profile `liquid-crypto`: document 003, the draft of A2A 1.0 as LiquidCrypto has it.

mod calls;
mod card;
mod lists;
mod push;
mod streams;

use nuncio_tests::{RequestBuilder, Server, Sse, Value, answer, client, json};

/// A server with the profile and the built-in agent.
pub(crate) fn serve() -> Server {
    serve_in("", &[])
}

/// The same with more lines of configuration and more variables.
pub(crate) fn serve_in(more: &str, environment: &[(&str, &str)]) -> Server {
    Server::configured_in(&format!("profile: liquid-crypto\nstore: memory\n{more}\n"), environment)
}

/// A request to one of the two paths.
pub(crate) fn request(server: &Server, path: &str, method: &str, params: &Value) -> RequestBuilder {
    let body = json!({ "jsonrpc": "2.0", "id": "1", "method": method, "params": params });
    client().post(format!("{}{path}", server.url)).json(&body)
}

/// A call. Returns the whole response.
pub(crate) async fn call(server: &Server, method: &str, params: Value) -> Value {
    answer(request(server, "/a2a", method, &params)).await.1
}

/// The stream of a method.
pub(crate) async fn stream(server: &Server, method: &str, params: Value) -> Sse {
    Sse::open(request(server, "/a2a/stream", method, &params)).await
}

/// The parameters of a send.
pub(crate) fn message(text: &str) -> Value {
    json!({ "message": { "messageId": "msg-1", "role": "user", "parts": [{ "text": text }] } })
}

/// The task that a text makes.
pub(crate) async fn sent(server: &Server, text: &str) -> Value {
    let response = call(server, "SendMessage", message(text)).await;
    assert!(response["result"]["id"].is_string(), "{response}");
    response["result"].clone()
}
