//! One event of a task: what happened, and the forms in which it is shown.

use std::sync::OnceLock;

use bytes::Bytes;
use nuncio_protocol::{Artifact, Message, Metadata, StreamResponse, TaskState, codec, json};

use crate::store::{LogEvent, Seq};

/// An event with the forms that readers have asked for.
#[derive(Debug)]
pub struct Event {
    /// Its number.
    pub seq: Seq,
    /// The A2A 1.0 form, as stored.
    pub body: Bytes,
    /// The state that it says, for events written here.
    pub(super) state: Option<TaskState>,
    /// The whole task with it, where a turn ends or rests.
    pub(super) snapshot: Option<Bytes>,
    /// Apart, because most events are never asked for in another form.
    forms: OnceLock<Box<[OnceLock<Bytes>; Form::COUNT]>>,
}

/// A form of events other than the stored one. How it is made is the business of whoever speaks it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Where an event keeps it, among [`Form::COUNT`].
    pub(crate) place: usize,
    /// Gives an event this form.
    pub(crate) make: fn(&StreamResponse) -> Bytes,
}

impl Form {
    /// How many forms an event has room for.
    pub(crate) const COUNT: usize = 6;
}

impl Event {
    pub(crate) fn new(seq: Seq, body: Bytes) -> Self {
        Self { seq, body, state: None, snapshot: None, forms: OnceLock::new() }
    }

    /// An event that is written here.
    pub(super) fn written(seq: Seq, body: Bytes, state: Option<TaskState>, snapshot: Option<Bytes>) -> Self {
        Self { state, snapshot, ..Self::new(seq, body) }
    }

    fn slot(&self, form: Form) -> &OnceLock<Bytes> {
        &self.forms.get_or_init(Box::default)[form.place]
    }

    /// Keeps a form of it that was made with it.
    pub(super) fn keep(self, form: Form, made: Bytes) -> Self {
        // Nobody else has it yet.
        let _ = self.slot(form).set(made);
        self
    }

    /// Another form of it, made once for all readers.
    pub(crate) fn form(&self, form: Form) -> Bytes {
        let made = self.slot(form).get_or_init(|| match codec::decode(&self.body) {
            Ok(event) => (form.make)(&event),
            Err(error) => {
                tracing::error!(%error, "an event in the log cannot be read");
                Bytes::new()
            }
        });
        made.clone()
    }
}

impl From<LogEvent> for Event {
    fn from(event: LogEvent) -> Self {
        Self::new(event.seq, event.body)
    }
}

/// What happens to a task.
#[derive(Debug)]
pub enum Update {
    /// Its state changed, or the agent said something about it.
    Status {
        /// The state from here on.
        state: TaskState,
        /// What the agent says.
        message: Option<Message>,
        /// Data keyed by extension.
        metadata: Metadata,
    },
    /// An artifact was made or grew.
    Artifact {
        /// The artifact or the piece to append.
        artifact: Artifact,
        /// Whether it is appended to the artifact with the same id.
        append: bool,
        /// Whether the artifact is complete with this.
        last_chunk: bool,
        /// Data keyed by extension.
        metadata: Metadata,
    },
}

/// On the status with which a task goes on to a message that waited: which one that is.
pub(crate) const TURN: &str = "urn:nuncio:a2a:turn:v1";

impl Update {
    /// The task goes on with a message that waited. After a crash the log tells by this what was taken.
    pub(super) fn next_turn(message: &Message) -> Self {
        let turn = json!({ "messageId": message.message_id.as_str() });
        Self::Status {
            state: TaskState::Working,
            message: None,
            metadata: Metadata::from_iter([(TURN.to_owned(), turn)]),
        }
    }

    /// Whether the task is over with it.
    pub(super) fn ends_task(&self) -> bool {
        matches!(self, Self::Status { state, .. } if state.is_terminal())
    }

    /// A change of state without words.
    pub fn state(state: TaskState) -> Self {
        Self::Status { state, message: None, metadata: Metadata::new() }
    }
}
