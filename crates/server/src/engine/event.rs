//! One event of a task: what happened, and the forms in which it is shown.

use std::sync::OnceLock;

use bytes::Bytes;
use nuncio_protocol::{Artifact, Message, Metadata, StreamResponse, TaskState, codec, proto};

use crate::bind::grpc::framed;
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
    forms: OnceLock<Box<Forms>>,
}

/// The other forms, as far as somebody has asked for them.
#[derive(Debug, Default)]
struct Forms {
    v03: OnceLock<Bytes>,
    v03_rest: OnceLock<Bytes>,
    proto: OnceLock<Bytes>,
    proto_v03: OnceLock<Bytes>,
}

impl Event {
    pub(crate) fn new(seq: Seq, body: Bytes) -> Self {
        Self { seq, body, state: None, snapshot: None, forms: OnceLock::new() }
    }

    fn forms(&self) -> &Forms {
        self.forms.get_or_init(Box::default)
    }

    /// An event that is written here.
    pub(super) fn written(seq: Seq, body: Bytes, state: Option<TaskState>, snapshot: Option<Bytes>) -> Self {
        Self { state, snapshot, ..Self::new(seq, body) }
    }

    /// The A2A 0.3 form, derived once for all readers.
    pub fn v03(&self, derive: impl FnOnce(&StreamResponse, &mut Vec<u8>)) -> Bytes {
        lazily(&self.forms().v03, &self.body, written(derive))
    }

    /// Another form, for readers so few that each derives it.
    pub(crate) fn derived(&self, derive: impl FnOnce(&StreamResponse, &mut Vec<u8>)) -> Bytes {
        lazily(&OnceLock::new(), &self.body, written(derive))
    }

    /// The form of the 0.3 REST dialect, derived once for all readers.
    pub fn v03_rest(&self, derive: impl FnOnce(&StreamResponse, &mut Vec<u8>)) -> Bytes {
        lazily(&self.forms().v03_rest, &self.body, written(derive))
    }

    /// The gRPC form, with what stands before a message there.
    pub(crate) fn proto(&self) -> Bytes {
        lazily(&self.forms().proto, &self.body, |event| framed(&proto::write::<proto::v1::StreamResponse, _>(event)))
    }

    /// The same for 0.3.
    pub(crate) fn proto_v03(&self) -> Bytes {
        lazily(&self.forms().proto_v03, &self.body, |event| {
            framed(&proto::write::<proto::v03::StreamResponse, _>(event))
        })
    }
}

/// Makes a form once.
fn lazily(slot: &OnceLock<Bytes>, body: &Bytes, derive: impl FnOnce(StreamResponse) -> Bytes) -> Bytes {
    let made = slot.get_or_init(|| match codec::decode::<StreamResponse>(body) {
        Ok(event) => derive(event),
        Err(error) => {
            tracing::error!(%error, "an event in the log cannot be read");
            Bytes::new()
        }
    });
    made.clone()
}

fn written(write: impl FnOnce(&StreamResponse, &mut Vec<u8>)) -> impl FnOnce(StreamResponse) -> Bytes {
    |event| {
        let mut out = Vec::with_capacity(512);
        write(&event, &mut out);
        out.into()
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

impl Update {
    /// Whether the task is over with it.
    pub(super) fn ends_task(&self) -> bool {
        matches!(self, Self::Status { state, .. } if state.is_terminal())
    }

    /// A change of state without words.
    pub fn state(state: TaskState) -> Self {
        Self::Status { state, message: None, metadata: Metadata::new() }
    }
}
