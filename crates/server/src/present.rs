//! What an agent reports, as A2A events: one file per wire form behind one enum.
//!
//! ```text
//! an agent says             the turn asks its Presenter     which answers with
//! text, last_text           opening, text                   an update, and perhaps one before the first
//! think, tool               think, tool                     an update, or nothing where it is not shown
//! status, note              note                            the same
//! artifact, chunk, file     artifact                        an update
//! ask, approve              asked                           the status in which the task waits
//! (an approval is decided)  decided                         an update, or nothing
//! (session and model known) introduced                      an update, or nothing
//! usage                     usage                           nothing: it is kept until the end
//! complete, fail, Ok, Err   end                             the last status, and what comes right before it
//! ```
//!
//! A wire form is a file here with a `Presenter` that has these methods, a variant of [`Style`], a variant of
//! `Presenter` and a line in [`extensions`]. Which state a finished turn has is up to `end`: the engine reports
//! `Completed` and takes what comes back; a task that is to wait then takes its next message as another turn.

use nuncio_protocol::{AgentExtension, Artifact, Message, Metadata, TaskState};

use crate::engine::approval::{Decision, Request};
use crate::engine::turn::{ToolCall, ToolStep, Usage};
use crate::engine::{Exposure, Update};

mod coding_agent;
mod discreet;
mod iac_code;
mod nuncio;
pub(crate) mod proto_agent;

pub use nuncio::{INPUT, THINKING, TOOL, USAGE};

/// A wire form, as a configuration names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Text as an artifact that grows, all else as metadata keyed by extension.
    #[default]
    Nuncio,
    /// Text as status messages, all else below `metadata.iac_code`.
    IacCode,
    /// Text as an artifact that is replaced by the whole at the end, all else by the extensions of protoAgent.
    ProtoAgent,
    /// Text as an artifact, tools as words, and a summary at the end.
    CodingAgent,
}

/// The extensions that the events of an agent may carry, as the card declares them.
pub fn extensions(style: Style, exposure: Exposure) -> Vec<AgentExtension> {
    match style {
        Style::Nuncio => nuncio::extensions(exposure),
        Style::IacCode => iac_code::extensions(exposure),
        Style::ProtoAgent => proto_agent::extensions(exposure),
        Style::CodingAgent => Vec::new(),
    }
}

/// Turns the reports of one turn into updates.
pub(crate) enum Presenter {
    Nuncio(nuncio::Presenter),
    IacCode(Box<iac_code::Presenter>),
    ProtoAgent(Box<proto_agent::Presenter>),
    CodingAgent(Box<coding_agent::Presenter>),
}

/// How a turn ends, or where it rests.
pub(crate) struct Ending {
    /// What comes right before it. Usually nothing.
    pub(crate) before: Vec<Update>,
    pub(crate) last: Update,
}

/// A file that a tool made.
pub(crate) struct ToolFile {
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) bytes: Vec<u8>,
}

impl From<Update> for Ending {
    fn from(last: Update) -> Self {
        Self { before: Vec::new(), last }
    }
}

/// The same call on whichever it is.
macro_rules! each {
    ($presenter:expr, $it:ident => $call:expr) => {
        match $presenter {
            Presenter::Nuncio($it) => $call,
            Presenter::IacCode($it) => $call,
            Presenter::ProtoAgent($it) => $call,
            Presenter::CodingAgent($it) => $call,
        }
    };
}

impl Presenter {
    pub(crate) fn new(style: Style, exposure: Exposure) -> Self {
        match style {
            Style::Nuncio => Self::Nuncio(nuncio::Presenter::new(exposure)),
            Style::IacCode => Self::IacCode(Box::new(iac_code::Presenter::new(exposure))),
            Style::ProtoAgent => Self::ProtoAgent(Box::new(proto_agent::Presenter::new(exposure))),
            Style::CodingAgent => Self::CodingAgent(Box::new(coding_agent::Presenter::new(exposure))),
        }
    }

    /// What comes before the first piece of an answer. Usually nothing.
    pub(crate) fn opening(&mut self) -> Option<Update> {
        match self {
            Self::CodingAgent(it) => it.opening(),
            _ => None,
        }
    }

    /// A piece of the answer.
    pub(crate) fn text(&mut self, text: String, last: bool) -> Update {
        each!(self, it => it.text(text, last))
    }

    /// A piece of thinking, where it is shown.
    pub(crate) fn think(&mut self, text: &str) -> Option<Update> {
        each!(self, it => it.think(text))
    }

    /// A step of a tool call, where those are shown.
    pub(crate) fn tool(&mut self, call: ToolCall<'_>) -> Option<Update> {
        each!(self, it => it.tool(call))
    }

    /// The file that a step of a tool call holds, where such are artifacts.
    pub(crate) fn tool_file(&self, call: &ToolCall<'_>) -> Option<ToolFile> {
        match (self, call.step) {
            (Self::IacCode(_), ToolStep::Completed(result)) => iac_code::file_in(result),
            _ => None,
        }
    }

    /// What the turn does, in words.
    pub(crate) fn note(&mut self, message: Message) -> Option<Update> {
        each!(self, it => it.note(message))
    }

    /// A whole artifact, or a piece of one.
    pub(crate) fn artifact(&mut self, artifact: Artifact, append: bool, last_chunk: bool) -> Update {
        each!(self, it => it.artifact(artifact, append, last_chunk))
    }

    /// A question to the caller, or an approval that is asked for.
    pub(crate) fn asked(&mut self, message: Message, approval: Option<&Request>) -> Update {
        each!(self, it => it.asked(message, approval))
    }

    /// What was decided about an approval.
    pub(crate) fn decided(&mut self, request: &Request, decision: &Decision) -> Option<Update> {
        each!(self, it => it.decided(request, decision))
    }

    /// Which conversation and which model of its own the agent uses, where that is shown.
    pub(crate) fn introduced(&mut self, session: Option<&str>, model: Option<&str>) -> Option<Update> {
        match self {
            Self::CodingAgent(it) => it.introduced(session, model),
            _ => None,
        }
    }

    /// What the turn used; the last report counts.
    pub(crate) fn usage(&mut self, usage: Usage) {
        each!(self, it => it.usage(usage));
    }

    /// The end of the turn in this state, or the point where it rests.
    pub(crate) fn end(&mut self, state: TaskState, message: Option<Message>) -> Ending {
        each!(self, it => it.end(state, message))
    }
}

/// Takes from the metadata of a task what it waited for: its state is another now.
pub(crate) fn settle(metadata: &mut Metadata) {
    iac_code::settle(metadata);
}

/// An event on the way, which changes nothing about the state.
fn passing(metadata: Metadata) -> Update {
    Update::Status { state: TaskState::Working, message: None, metadata }
}
