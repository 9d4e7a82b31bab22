//! The agent that the official test kits expect, driven by the prefix of the message's id.
//!
//! `PORT` (9999) gives its port, `CARD_FORMAT` (`union`, `1.0`, `0.3`) its card, `STREAMING=0` turns
//! streams off, `REQUIRED_EXTENSION=URI` declares an extension that clients must name, `PUSH=1` turns push
//! notifications on, and `ALLOW_LOOPBACK_PUSH=1` lets them go to this machine. `EXTENDED_CARD=1` shows an extended
//! card, and `EXTENDED_CARD=missing` announces one that is not there.

use std::env;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use nuncio_protocol::{AgentCard, AgentExtension, AgentSkill, Artifact, ArtifactId, Content, Message, Part, json};
use nuncio_server::push::PushOptions;
use nuncio_server::push::guard::{Guard, Openings};
use nuncio_server::store::MemoryStore;
use nuncio_server::{Agent, AgentError, CardFormat, CardOptions, ExtendedCard, Server, ServerOptions, Turn};
use tokio::net::TcpListener;

/// How long a task works that a kit wants to subscribe to again.
const RESUBSCRIBE: Duration = Duration::from_secs(4);

struct Conformance;

#[async_trait::async_trait]
impl Agent for Conformance {
    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        let id = turn.message().message_id.to_string();
        let is = |prefix: &str| id.starts_with(prefix);
        if is("tck-stream-artifact-text") {
            artifact(turn, Part::text("Streamed text content")).await
        } else if is("tck-stream-artifact-file") || (is("tck-artifact-file") && !is("tck-artifact-file-url")) {
            artifact(turn, file(Content::Raw("tck".into()))).await
        } else if is("tck-stream-artifact-chunked") {
            chunked(turn).await
        } else if is("tck-artifact-file-url") {
            artifact(turn, file(Content::Url("https://example.com/output.txt".into()))).await
        } else if is("tck-artifact-text") {
            artifact(turn, Part::text("Generated text content")).await
        } else if is("tck-artifact-data") {
            artifact(turn, Part::data(json!({ "key": "value", "count": 42 }))).await
        } else if is("tck-input-required") {
            turn.require_input("Input required: send a follow-up").await
        } else if is("tck-reject-task") {
            turn.reject("Rejected as asked").await
        } else if is("tck-stream-ordering-001") {
            artifact(turn, Part::text("Ordered output")).await
        } else if is("tck-stream-003") {
            artifact(turn, Part::text("Stream task lifecycle")).await
        } else if is("tck-stream-") {
            artifact(turn, Part::text("Stream hello from TCK")).await
        } else if is("test-resubscribe-message-id") {
            turn.status("Working").await?;
            tokio::select! {
                () = tokio::time::sleep(RESUBSCRIBE) => Ok(()),
                () = turn.cancelled() => Err(AgentError::Stopped),
            }
        } else if is("test-") || is("text-") || is("get-") {
            turn.require_input("Working on it; send more input").await
        } else {
            turn.complete(vec![Part::text("Hello from TCK")]).await
        }
    }

    async fn answer(&self, message: &Message) -> Option<Vec<Part>> {
        let asked = message.message_id.as_str().starts_with("tck-message-response");
        asked.then(|| vec![Part::text("Direct message response")])
    }

    fn card(&self) -> AgentCard {
        let modes = || vec!["text/plain".into(), "application/json".into(), "application/octet-stream".into()];
        AgentCard {
            name: "Nuncio conformance agent".into(),
            description: "Does what the official test kits expect".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            default_input_modes: modes(),
            default_output_modes: modes(),
            skills: vec![AgentSkill {
                id: "conformance".into(),
                name: "Conformance".into(),
                description: "Reacts to the prefix of the message id".into(),
                tags: vec!["test".into()],
                ..AgentSkill::default()
            }],
            ..AgentCard::default()
        }
    }
}

fn file(content: Content) -> Part {
    Part { filename: "output.txt".into(), media_type: "text/plain".into(), ..Part::from(content) }
}

async fn artifact(turn: &mut Turn, part: Part) -> Result<(), AgentError> {
    let artifact_id = ArtifactId::fresh();
    turn.artifact(Artifact { artifact_id, name: "output".into(), parts: vec![part], ..Artifact::default() }).await
}

async fn chunked(turn: &mut Turn) -> Result<(), AgentError> {
    let artifact_id = ArtifactId::fresh();
    let chunk = |text: &str| Artifact {
        artifact_id: artifact_id.clone(),
        name: "output".into(),
        parts: vec![Part::text(text)],
        ..Artifact::default()
    };
    turn.chunk(chunk("chunk-1 "), false, false).await?;
    turn.chunk(chunk("chunk-2"), true, true).await
}

fn push() -> std::io::Result<Option<PushOptions>> {
    let on = |name| env::var(name).as_deref() == Ok("1");
    if !on("PUSH") {
        return Ok(None);
    }
    let mut openings = Openings::default();
    if on("ALLOW_LOOPBACK_PUSH") {
        openings.hosts = vec!["localhost".into()];
        openings.cidrs =
            vec![IpNet::from(IpAddr::from([127, 0, 0, 1])), IpNet::from(IpAddr::from(Ipv6Addr::LOCALHOST))];
    }
    let guard = Guard::new(openings).map_err(std::io::Error::other)?;
    Ok(Some(PushOptions::new(guard)))
}

fn extended() -> ExtendedCard {
    match env::var("EXTENDED_CARD").as_deref() {
        Ok("1") => ExtendedCard::Skills(vec![AgentSkill {
            id: "conformance-details".into(),
            name: "Conformance details".into(),
            description: "What only callers see who ask for the extended card".into(),
            tags: vec!["test".into()],
            ..AgentSkill::default()
        }]),
        Ok("missing") => ExtendedCard::Missing,
        _ => ExtendedCard::Off,
    }
}

fn options() -> ServerOptions {
    let extension = env::var("REQUIRED_EXTENSION").ok().filter(|uri| !uri.is_empty());
    let required = |uri| AgentExtension { uri, required: true, ..AgentExtension::default() };
    ServerOptions {
        card: CardOptions {
            format: match env::var("CARD_FORMAT").as_deref() {
                Ok("1.0") => CardFormat::V1,
                Ok("0.3") => CardFormat::V03,
                _ => CardFormat::Union,
            },
            no_streaming: env::var("STREAMING").as_deref() == Ok("0"),
            extensions: extension.map(required).into_iter().collect(),
            extended: extended(),
            ..CardOptions::default()
        },
        ..ServerOptions::default()
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = env::var("PORT").unwrap_or_else(|_| "9999".into());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("http://{}/.well-known/agent-card.json", listener.local_addr()?);
    let mut options = options();
    options.engine.push = push()?;
    let server = Server::new(Arc::new(Conformance), Arc::new(MemoryStore::new()), options);
    server.run(listener, async { _ = tokio::signal::ctrl_c().await }).await
}
