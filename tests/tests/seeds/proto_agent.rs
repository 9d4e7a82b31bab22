//! The profile `proto-agent`: document 001, the endpoints of protoAgent.

mod card;
mod methods;
mod push;
mod streams;

use nuncio_tests::{Server, Sse, Value, answer, client, json};

/// A server with the profile and the built-in agent.
pub(crate) fn serve() -> Server {
    serve_in("", &[])
}

/// The same with more lines of configuration and more variables.
pub(crate) fn serve_in(more: &str, environment: &[(&str, &str)]) -> Server {
    Server::configured_in(&format!("profile: proto-agent\nstore: memory\n{more}\n"), environment)
}

/// A call at the path of the document. Returns the whole response.
pub(crate) async fn call(server: &Server, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": "caller-chosen", "method": method, "params": params });
    let (status, response) = answer(client().post(format!("{}/a2a", server.url)).json(&body)).await;
    assert_eq!((status, &response["id"]), (200, &json!("caller-chosen")), "{response}");
    response
}

/// The parameters of a send: as short as the document has them.
pub(crate) fn message(text: &str) -> Value {
    json!({ "message": { "role": "user", "parts": [{ "text": text }] } })
}

/// The task that a text makes.
pub(crate) async fn sent(server: &Server, text: &str) -> Value {
    let response = call(server, "message/send", message(text)).await;
    assert_eq!(response["result"]["kind"], "task", "{response}");
    response["result"].clone()
}

/// The stream of a method.
pub(crate) async fn stream(server: &Server, method: &str, params: Value) -> Sse {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    Sse::open(client().post(format!("{}/a2a", server.url)).json(&body)).await
}
