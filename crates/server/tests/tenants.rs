//! Tenants with agents of their own: which of them a request is for, and which paths they have.

#![allow(missing_docs, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use nuncio_protocol::{AgentCard, AgentExtension, Message, Part, Value, codec, json};
use nuncio_server::engine::roster::{Roster, Served};
use nuncio_server::metrics::Metrics;
use nuncio_server::store::MemoryStore;
use nuncio_server::{Agent, AgentError, Server, ServerOptions, Turn};

/// An agent that says who it is, and may ask for clients that know its extension.
struct Named(&'static str, Option<&'static str>);

#[async_trait::async_trait]
impl Agent for Named {
    async fn run(&self, _: &mut Turn) -> Result<(), AgentError> {
        Ok(())
    }

    async fn answer(&self, _: &Message) -> Option<Vec<Part>> {
        Some(vec![Part::text(self.0)])
    }

    fn card(&self) -> AgentCard {
        let mut card = AgentCard { name: self.0.into(), ..AgentCard::default() };
        let extension = |uri: &str| AgentExtension { uri: uri.into(), required: true, ..AgentExtension::default() };
        card.capabilities.extensions = self.1.map(extension).into_iter().collect();
        card
    }
}

fn served(name: &'static str, tenant: Option<&str>, extension: Option<&'static str>) -> Served {
    Served { name: name.into(), agent: Arc::new(Named(name, extension)), tenant: tenant.map(Into::into), profile: None }
}

fn server<const N: usize>(agents: [Served; N], tenants: Option<&[&str]>) -> Server {
    let mut options = ServerOptions::default();
    options.engine.tenants = tenants.map(|all| all.iter().map(|&name| name.into()).collect());
    let roster = Roster::new(agents).unwrap();
    Server::with_agents(roster, Arc::new(MemoryStore::new()), options, Metrics::new())
}

struct Answer {
    status: u16,
    activated: Option<String>,
    body: Value,
}

async fn ask(server: &Server, method: &str, path: &str, extensions: &str, body: &Value) -> Answer {
    let here = SocketAddr::from(([127, 0, 0, 1], 1));
    let request = Request::builder().method(method).uri(path).header("A2A-Version", "1.0");
    let request = request.header("A2A-Extensions", extensions);
    let request = request.body(Full::new(codec::encode(body))).unwrap();
    let (parts, body) = server.answer(here, here, request).await.into_parts();
    let activated = parts.headers.get("a2a-extensions").map(|value| value.to_str().unwrap().to_owned());
    let body: Bytes = body.collect().await.unwrap().to_bytes();
    Answer { status: parts.status.as_u16(), activated, body: codec::decode(&body).unwrap_or_default() }
}

const OWN: &str = "urn:test:own";

fn message(tenant: &str) -> Value {
    json!({ "tenant": tenant, "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hi" }] } })
}

fn rpc(params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params })
}

/// Who answered, and which extensions were in force.
fn said(answer: &Answer) -> (Option<&str>, Option<&str>) {
    let result = answer.body.get("result").unwrap_or(&answer.body);
    (result["message"]["parts"][0]["text"].as_str(), answer.activated.as_deref())
}

#[tokio::test]
async fn a_tenant_in_the_message_decides_about_extensions_as_one_in_the_path_does() {
    let server = server([served("main", None, None), served("own", Some("acme"), Some(OWN))], None);
    for (path, body) in [
        ("/", rpc(&message("acme"))),
        ("/acme/", rpc(&message(""))),
        ("/message:send", message("acme")),
        ("/message:send?tenant=acme", message("")),
        ("/acme/message:send", message("")),
    ] {
        let answer = ask(&server, "POST", path, OWN, &body).await;
        assert_eq!(said(&answer), (Some("own"), Some(OWN)), "{path}: {}", answer.body);
        let refused = ask(&server, "POST", path, "", &body).await;
        assert!(refused.body.to_string().contains("EXTENSION_SUPPORT_REQUIRED"), "{path}: {}", refused.body);
    }
    let other = ask(&server, "POST", "/", OWN, &rpc(&message(""))).await;
    assert_eq!(said(&other), (Some("main"), None), "{}", other.body);
}

#[tokio::test]
async fn the_card_for_everybody_is_of_agents_that_can_be_reached() {
    let agents = [served("hidden", Some("gone"), Some(OWN)), served("open", Some("acme"), None)];
    let server = server(agents, Some(&["acme"]));
    let card = ask(&server, "GET", "/.well-known/agent-card.json", "", &json!(null)).await.body;
    assert_eq!(card["name"], "open", "{card}");
    assert!(!card.to_string().contains(OWN), "{card}");
}

#[tokio::test]
async fn a_tenant_that_is_named_like_a_path_takes_it_from_nobody() {
    for name in ["tasks", "v1", "health", ".well-known", "message:send", "metrics"] {
        let server = server([served("main", None, None), served("own", Some(name), None)], None);
        let get = async |path: &str| ask(&server, "GET", path, "", &json!(null)).await;
        assert_eq!(get("/.well-known/agent-card.json").await.body["name"], "main", "{name}");
        assert_eq!(get("/health").await.body["status"], "healthy", "{name}");
        assert_eq!(get("/tasks").await.body["tasks"], json!([]), "{name}");
        assert_eq!(get("/metrics").await.status, 200, "{name}");
        let sent = ask(&server, "POST", "/message:send", "", &message("")).await;
        assert_eq!(said(&sent).0, Some("main"), "{name}: {}", sent.body);
        let own = ask(&server, "POST", "/", "", &rpc(&message(name))).await;
        assert_eq!(said(&own).0, Some("own"), "{name}: {}", own.body);
    }
}
