//! What a served agent is.

use async_trait::async_trait;
use nuncio_protocol::{AgentCard, Error, Message, Part};

pub use crate::engine::approval::{Approval, Choice, ChoiceKind, DecidedBy, Decision};
pub use crate::engine::arrival::Arrival;
pub use crate::engine::turn::{Answer, Pending, ToolCall, ToolStep, Turn, Usage};
pub use crate::store::Session;

pub mod acp;
pub mod demo;
pub mod process;
mod redact;
mod spoken;
pub mod upstream;
pub mod workplace;

/// An agent: called once per turn; returning ends the turn.
///
/// `Ok` without a final state means completed; `Err` or a panic means failed. Whether the client is
/// still connected makes no difference to a turn.
///
/// ```
/// use nuncio_server::{Agent, AgentError, Turn};
///
/// struct Shout;
///
/// #[async_trait::async_trait]
/// impl Agent for Shout {
///     async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
///         let text = turn.text_in().to_uppercase();
///         turn.text(text).await
///     }
/// }
/// ```
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// Works on one message.
    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError>;

    /// Answers a first message directly, without a task. `None`, the default, makes a task of it.
    /// It is asked before anything is stored, so it should be quick.
    async fn answer(&self, message: &Message) -> Option<Vec<Part>> {
        let _ = message;
        None
    }

    /// Looks at a message before anything is stored for it, and may refuse it.
    async fn admit(&self, arrival: &Arrival<'_>) -> Result<(), Error> {
        let _ = arrival;
        Ok(())
    }

    /// Whether its work has no effect but the answer. The turn of such an agent begins while its task is
    /// still on its way to the disk, and a short one is stored with the task at once. Nobody sees any of it
    /// before; but after a crash in that moment nothing is known of the task, and whoever sends the message
    /// again has it worked on again. So an agent that acts on the world must not say so.
    fn is_pure(&self) -> bool {
        false
    }

    /// A task was canceled that rested: no turn of it is there to hear of it, so `rest` stands in for one. Nothing
    /// can be reported any more.
    async fn canceled(&self, rest: &Turn) {
        let _ = rest;
    }

    /// What a crash in the middle of a turn means for this agent.
    fn on_crash(&self) -> OnCrash {
        OnCrash::Fail
    }

    /// What the card says of it: name, description, version, skills, modes, extensions. Addresses,
    /// security and capabilities are the server's to fill in.
    fn card(&self) -> AgentCard {
        AgentCard {
            name: "agent".into(),
            description: "An A2A agent".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            default_input_modes: vec!["text/plain".into()],
            default_output_modes: vec!["text/plain".into()],
            ..AgentCard::default()
        }
    }

    /// Grows whenever [`Agent::card`] says something else than before.
    fn revision(&self) -> u64 {
        0
    }
}

/// What becomes of a turn that a crash interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCrash {
    /// The task fails: running the turn again could do something twice.
    Fail,
    /// The turn runs again from its start, at most so many times.
    Retry {
        /// How often.
        max: u32,
    },
    /// The agent goes on with its own session: [`Turn::resumed`] says so.
    Resume,
}

/// What an agent with a session of its own is told after a crash, before the message once more: nobody knows whether
/// the message reached it.
pub(crate) const AFTER_A_CRASH: &str =
    "Continue where you were interrupted. If you had not begun, begin now. This was the request:";

/// What it is told of a decision that came when the program that had asked was gone.
pub(crate) fn told_of(decision: &Decision) -> String {
    let word = if decision.approved { "approved. Go on." } else { "denied. Do not do it." };
    let reason = decision.reason.as_ref().map(|reason| format!(" The reason: {reason}")).unwrap_or_default();
    format!("What you asked permission for is {word}{reason}")
}

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The agent says so, in words that the caller may read.
    #[error("{0}")]
    Failed(String),
    /// Something inside broke; the caller reads only that it did.
    #[error("internal: {0}")]
    Internal(String),
    /// The turn was stopped from outside, or is over. Pass it on.
    #[error("the turn was stopped")]
    Stopped,
    /// Nobody answered. The task keeps waiting, and an answer begins a new turn. Pass it on.
    #[error("no answer yet")]
    Unanswered,
}

impl From<std::io::Error> for AgentError {
    fn from(error: std::io::Error) -> Self {
        Self::Internal(error.to_string())
    }
}
