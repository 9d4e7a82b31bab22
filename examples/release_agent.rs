//! An agent that asks, uses tools, remembers and hands over files: `cargo run -p nuncio-server --example release_agent`.
//!
//! Say `version` for an answer without a task, `release 1.2.0` for a task with an approval, `status` for what it remembers.

use std::time::Duration;

use nuncio_protocol::{AgentCard, AgentSkill, Error, ErrorKind, Message, Part, json};
use nuncio_server::agent::{Arrival, Session, ToolCall, ToolStep, Usage};
use nuncio_server::{Agent, AgentError, OnCrash, Turn, serve};

struct Release;

#[async_trait::async_trait]
impl Agent for Release {
    /// Refuses what it could not do anything with, before anything is stored.
    async fn admit(&self, arrival: &Arrival<'_>) -> Result<(), Error> {
        match arrival.message.text().trim() {
            "" => Err(Error::new(ErrorKind::InvalidParams, "Say `release VERSION`, `status` or `version`.")),
            _ => Ok(()),
        }
    }

    /// Answers what needs no task.
    async fn answer(&self, message: &Message) -> Option<Vec<Part>> {
        (message.text().trim() == "version").then(|| vec![Part::text(env!("CARGO_PKG_VERSION"))])
    }

    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        let text = turn.text_in();
        match text.trim().split_once(' ') {
            Some(("release", version)) => release(turn, version.trim()).await,
            None if text.trim() == "status" => {
                let last = turn.session().await?.native;
                turn.text(last.map_or("Nothing was released.".into(), |version| format!("{version} was the last.")))
                    .await
            }
            _ => turn.reject("I only know `release VERSION`, `status` and `version`.").await,
        }
    }

    /// Asking again is better than releasing twice.
    fn on_crash(&self) -> OnCrash {
        OnCrash::Fail
    }

    fn card(&self) -> AgentCard {
        AgentCard {
            name: "release".into(),
            description: "Releases versions, if somebody approves".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            default_input_modes: vec!["text/plain".into()],
            default_output_modes: vec!["text/plain".into()],
            skills: vec![AgentSkill {
                id: "release".into(),
                name: "Release".into(),
                description: "Builds and publishes a version".into(),
                tags: vec!["release".into()],
                ..AgentSkill::default()
            }],
            ..AgentCard::default()
        }
    }
}

async fn release(turn: &mut Turn, version: &str) -> Result<(), AgentError> {
    turn.think("I build first, so that what is approved is what is published.").await?;
    let (call, input) = ("build-1", json!({ "version": version }));
    turn.tool(ToolCall { id: call, name: "build", step: ToolStep::Started }).await?;
    turn.tool(ToolCall { id: call, name: "build", step: ToolStep::Input(&input) }).await?;
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(200)) => {}
        // Whoever is canceled cleans up, and passes that on.
        () = turn.cancelled() => return Err(AgentError::Stopped),
    }
    turn.tool(ToolCall { id: call, name: "build", step: ToolStep::Completed(&json!("built")) }).await?;
    turn.file("notes.txt", "text/plain", format!("Notes of {version}\n").into_bytes()).await?;

    let decision = turn.approve(&*format!("publish {version}")).await?;
    if !decision.approved {
        return turn.fail(format!("{version} is not published: it was not approved.")).await;
    }
    let channel = turn.ask("Which channel?").await?.text();
    let session = turn.session().await?;
    turn.keep_session(Session { native: Some(version.to_owned()), ..session }).await?;
    turn.usage(Usage { input_tokens: 12, output_tokens: 7, ..Usage::default() });
    turn.text(format!("{version} is published ")).await?;
    turn.last_text(format!("on {}.", channel.trim())).await
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    println!("http://127.0.0.1:41242/.well-known/agent-card.json");
    serve(Release, "127.0.0.1:41242").await
}
