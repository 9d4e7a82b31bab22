//! An extended card that is announced, and one that is not there.

#![allow(missing_docs, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use nuncio_protocol::{Value, codec, json};
use nuncio_server::agent::demo::Demo;
use nuncio_server::store::MemoryStore;
use nuncio_server::{ExtendedCard, Server, ServerOptions};

async fn ask(extended: ExtendedCard, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut options = ServerOptions::default();
    options.card.extended = extended;
    let server = Server::new(Arc::new(Demo), Arc::new(MemoryStore::new()), options);
    let here = SocketAddr::from(([127, 0, 0, 1], 1));
    let request = Request::builder().method(method).uri(path).header("A2A-Version", "1.0");
    let request = request.body(Full::new(codec::encode(body))).unwrap();
    let (parts, body) = server.answer(here, here, request).await.into_parts();
    let body: Bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), codec::decode(&body).unwrap())
}

#[tokio::test]
async fn one_that_nobody_has_set_up_is_not_configured() {
    let (_, card) = ask(ExtendedCard::Missing, "GET", "/.well-known/agent-card.json", &json!(null)).await;
    assert_eq!(card["capabilities"]["extendedAgentCard"], true);
    let (status, body) = ask(ExtendedCard::Missing, "GET", "/extendedAgentCard", &json!(null)).await;
    assert_eq!(status, 400);
    assert_eq!(body["error"]["details"][0]["reason"], "EXTENDED_AGENT_CARD_NOT_CONFIGURED");
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard" });
    let (_, body) = ask(ExtendedCard::Missing, "POST", "/", &request).await;
    assert_eq!(body["error"]["code"], -32007);
}

#[tokio::test]
async fn without_one_the_operation_is_not_supported() {
    let (_, card) = ask(ExtendedCard::Off, "GET", "/.well-known/agent-card.json", &json!(null)).await;
    assert!(card["capabilities"].get("extendedAgentCard").is_none());
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": null });
    let (_, body) = ask(ExtendedCard::Off, "POST", "/", &request).await;
    assert_eq!(body["error"]["code"], -32004);
}
