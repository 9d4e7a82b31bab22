//! The default wire form.
//!
//! Text becomes one artifact that grows chunk by chunk. Thinking, tools and usage are metadata keyed
//! by extension, so that a client which does not know them sees a plain stream.

use nuncio_protocol::{AgentExtension, Artifact, ArtifactId, Message, Metadata, Part, TaskState, Value, json};

use super::{Ending, passing};
use crate::artifact::FILE;
use crate::engine::approval::{Decision, HITL, Request};
use crate::engine::turn::{ToolCall, Usage};
use crate::engine::{Exposure, Update};

/// Thinking of the agent: `{"text"}`.
pub const THINKING: &str = "urn:nuncio:a2a:thinking:v1";
/// Tool calls: `{"id", "name", "phase", "input"?, "delta"?, "output"?, "error"?}`.
pub const TOOL: &str = "urn:nuncio:a2a:tool:v1";
/// Tokens used: `{"inputTokens", "outputTokens", "model"?}`, on the status that ends a turn.
pub const USAGE: &str = "urn:nuncio:a2a:usage:v1";
/// What the agent waits for: `{"kind", "id", "options"?, "digest"?, "expires"?, "tool"?, "input"?}`, on the message
/// that asks; and what was decided: `{"kind": "decision", "id", "digest", "decision", "by", "option"?, "reason"?}`.
pub const INPUT: &str = "urn:nuncio:a2a:input:v1";

/// The extensions that the events of an agent may carry, as the card declares them.
pub(super) fn extensions(exposure: Exposure) -> Vec<AgentExtension> {
    let declare = |uri: &str, description: &str| AgentExtension {
        uri: uri.into(),
        description: description.into(),
        ..AgentExtension::default()
    };
    let mut all = Vec::new();
    if exposure.thinking {
        all.push(declare(THINKING, "The agent's thinking, in the metadata of status updates"));
    }
    if exposure.tools {
        all.push(declare(TOOL, "Tool calls, in the metadata of status updates"));
    }
    all.push(declare(USAGE, "Token usage, in the metadata of the status that ends a turn"));
    all.push(declare(FILE, "Hash and size of files that are kept apart, in the metadata of artifact parts"));
    all.push(declare(INPUT, "What an input-required task waits for, in the metadata of its message"));
    all.push(declare(HITL, "Approvals in the form of kagent, for clients that activate it"));
    all
}

impl Exposure {
    /// Whether clients see what belongs to this extension.
    pub(crate) fn shows(self, extension: &str) -> bool {
        match extension {
            THINKING => self.thinking,
            TOOL => self.tools,
            _ => true,
        }
    }
}

/// Turns the reports of one turn into updates.
pub(crate) struct Presenter {
    exposure: Exposure,
    /// The artifact that the turn's text goes to.
    text: Option<ArtifactId>,
    usage: Option<Usage>,
}

impl Presenter {
    pub(crate) fn new(exposure: Exposure) -> Self {
        Self { exposure, text: None, usage: None }
    }

    /// A piece of the answer.
    pub(crate) fn text(&mut self, text: String, last: bool) -> Update {
        let append = self.text.is_some();
        let artifact_id = self.text.get_or_insert_with(ArtifactId::fresh).clone();
        Update::Artifact {
            artifact: Artifact { artifact_id, parts: vec![Part::text(text)], ..Artifact::default() },
            append,
            last_chunk: last,
            metadata: Metadata::new(),
        }
    }

    /// A whole artifact, or a piece of one.
    pub(crate) fn artifact(&mut self, artifact: Artifact, append: bool, last_chunk: bool) -> Update {
        Update::Artifact { artifact, append, last_chunk, metadata: Metadata::new() }
    }

    /// A piece of thinking, where it is shown.
    pub(crate) fn think(&mut self, text: &str) -> Option<Update> {
        self.exposure.thinking.then(|| about(THINKING, json!({ "text": text })))
    }

    /// A step of a tool call, where those are shown.
    pub(crate) fn tool(&mut self, call: ToolCall<'_>) -> Option<Update> {
        self.exposure.tools.then(|| about(TOOL, call.describe()))
    }

    /// What the turn does, in words.
    pub(crate) fn note(&mut self, message: Message) -> Option<Update> {
        Some(Update::Status { state: TaskState::Working, message: Some(message), metadata: Metadata::new() })
    }

    /// A question, or an approval that is asked for.
    pub(crate) fn asked(&mut self, message: Message, _approval: Option<&Request>) -> Update {
        self.status(TaskState::InputRequired, Some(message))
    }

    /// What was decided about an approval.
    pub(crate) fn decided(&mut self, request: &Request, decision: &Decision) -> Option<Update> {
        Some(about(INPUT, request.record(decision)))
    }

    /// Usage is told once, with the status that ends the turn.
    pub(crate) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// The end of the turn, or the point where it rests.
    pub(crate) fn end(&mut self, state: TaskState, message: Option<Message>) -> Ending {
        self.status(state, message).into()
    }

    fn status(&mut self, state: TaskState, message: Option<Message>) -> Update {
        let mut metadata = Metadata::new();
        if let Some(usage) = self.usage.take() {
            metadata.insert(USAGE.into(), usage.describe());
        }
        Update::Status { state, message, metadata }
    }
}

fn about(extension: &str, what: Value) -> Update {
    passing(Metadata::from_iter([(extension.to_owned(), what)]))
}
