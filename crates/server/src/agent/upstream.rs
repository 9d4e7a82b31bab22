//! Another A2A agent behind this server: its version and binding are translated, its streams resumed, its
//! tasks and conversations kept together with ours.
//!
//! * `link`: finds the agent by its card, and remembers both.
//! * `memory`: which of its tasks and conversations is which of ours.
//! * `outgoing`: a message of ours as it gets it, and how circles are noticed.
//! * `talk`: one turn from the first message to the last event.
//! * `incoming`: its events as ours.
//! * `failure`: what its errors are called here.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_client::{ClientError, Options, Retry};
use nuncio_protocol::{AgentCapabilities, AgentCard, AgentSkill, Error};

use super::{Agent, AgentError, Arrival, OnCrash, Turn};
use link::Link;
use talk::Talk;

mod failure;
mod incoming;
mod link;
mod memory;
mod outgoing;
mod talk;

/// The longest wait for an answer that is no stream.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a task is asked for whose events cannot be followed.
const POLL: Duration = Duration::from_secs(1);

/// An agent that is reached over A2A.
pub struct UpstreamAgent {
    link: Link,
    /// Names this agent among those that a message passes through.
    id: String,
}

impl UpstreamAgent {
    /// The agent at this address. Nothing is sent yet; only an address that can never work is an error.
    ///
    /// The credentials in `options` go to the origin of the address and nowhere else, and a card that leads to
    /// another origin is refused.
    pub fn new(url: impl Into<String>, options: Options) -> Result<Self, ClientError> {
        let options = Options {
            same_origin: true,
            timeout: PATIENCE,
            poll: POLL,
            // An agent that is started anew has half a minute for it.
            retry: Retry { tries: 10, first: Duration::from_millis(200), most: Duration::from_secs(5) },
            ..options
        };
        Ok(Self { link: Link::new(url.into(), options)?, id: uuid::Uuid::new_v4().to_string() })
    }

    /// Asks for the agent's card, again and again until it comes, and waits at most so long for it. An agent
    /// that is away for the moment is no reason not to start.
    pub async fn introduce(self: Arc<Self>, most: Duration) {
        let asking = tokio::spawn(async move { self.link.introduce().await });
        let _ = tokio::time::timeout(most, asking).await;
    }
}

#[async_trait]
impl Agent for UpstreamAgent {
    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        let client = match turn.resumed() {
            true => self.link.reach_again().await,
            false => self.link.reach().await,
        };
        let client = client.map_err(|error| failure::told(&error))?;
        let mut talk = Talk::new(client, &self.id, turn).await?;
        let stop = turn.cancelled();
        let result = tokio::select! {
            biased;
            () = stop => Err(AgentError::Stopped),
            result = talk.run(turn) => result,
        };
        let broken = matches!(result, Err(AgentError::Internal(_)));
        if broken || (turn.is_cancelled() && turn.is_given_up()) {
            talk.cancel().await;
        } else if result.is_err() {
            self.link.doubt();
        }
        result
    }

    async fn admit(&self, arrival: &Arrival<'_>) -> Result<(), Error> {
        outgoing::check_way(&self.id, arrival.message)
    }

    async fn canceled(&self, rest: &Turn) {
        if let Ok(client) = self.link.reach().await
            && let Ok(talk) = Talk::new(client, &self.id, rest).await
        {
            talk.cancel().await;
        }
    }

    fn on_crash(&self) -> OnCrash {
        OnCrash::Resume
    }

    fn card(&self) -> AgentCard {
        match self.link.card() {
            Some(card) => ours(&card),
            None => AgentCard {
                name: "upstream".into(),
                description: "Stands in front of another A2A agent, which could not be reached yet".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                default_input_modes: vec!["text/plain".into()],
                default_output_modes: vec!["text/plain".into()],
                ..AgentCard::default()
            },
        }
    }

    fn revision(&self) -> u64 {
        self.link.revision()
    }
}

/// What of its card holds for us too: not where it is, whom it lets in and what it signed.
fn ours(card: &AgentCard) -> AgentCard {
    let open = |skill: &AgentSkill| AgentSkill { security_requirements: Vec::new(), ..skill.clone() };
    AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        provider: card.provider.clone(),
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone(),
        icon_url: card.icon_url.clone(),
        capabilities: AgentCapabilities {
            extensions: card.capabilities.extensions.clone(),
            ..AgentCapabilities::default()
        },
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(open).collect(),
        ..AgentCard::default()
    }
}
