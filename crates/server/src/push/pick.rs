//! Which events a webhook gets, and in which form.

use bytes::Bytes;
use nuncio_protocol::{ArtifactId, StreamResponse, TaskArtifactUpdateEvent, TaskId, TaskState, codec};
use serde::Deserialize;

use crate::store::{Seq, Store, StoreError, TaskKey};

/// Which events are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PushEvents {
    /// Every event.
    All,
    /// Every change of state, and artifacts when they are complete.
    #[default]
    Status,
    /// The end of the task, and where it waits for its caller.
    Terminal,
}

/// As much of an event as decides whether it is sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Glance {
    pub(super) task_id: TaskId,
    /// The state that it says.
    pub(super) state: Option<TaskState>,
    artifact: Option<Chunk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Chunk {
    id: ArtifactId,
    append: bool,
    last: bool,
}

/// The form in which an event is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form {
    AsIs,
    /// The whole artifact that ends with this piece.
    Whole(ArtifactId),
}

impl Glance {
    /// Looks at an event. One that cannot be read says nothing, and is not sent.
    pub(super) fn at(body: &[u8]) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Wire {
            task: Option<Whole>,
            status_update: Option<Update>,
            artifact_update: Option<Piece>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Status {
            state: TaskState,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Whole {
            id: TaskId,
            status: Status,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Update {
            task_id: TaskId,
            status: Status,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Named {
            artifact_id: ArtifactId,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Piece {
            task_id: TaskId,
            artifact: Named,
            append: bool,
            last_chunk: bool,
        }
        let wire = codec::decode(body).unwrap_or_else(|error| {
            tracing::error!(%error, "an event in the log cannot be read, and is not sent to webhooks");
            Wire::default()
        });
        match wire {
            Wire { task: Some(task), .. } => Self { task_id: task.id, state: Some(task.status.state), artifact: None },
            Wire { status_update: Some(update), .. } => {
                Self { task_id: update.task_id, state: Some(update.status.state), artifact: None }
            }
            Wire { artifact_update: Some(piece), .. } => {
                let (append, last) = (piece.append, piece.last_chunk);
                let artifact = Some(Chunk { id: piece.artifact.artifact_id, append, last });
                Self { task_id: piece.task_id, state: None, artifact }
            }
            _ => Self::default(),
        }
    }

    /// Whether no event follows this one.
    pub(super) fn is_last(&self) -> bool {
        self.state.is_some_and(TaskState::is_terminal)
    }

    /// Whether the task is over with it, or waits for its caller.
    pub(super) fn rests(&self) -> bool {
        self.state.is_some_and(|state| state.is_terminal() || state.is_interrupted())
    }

    /// Whether it is a status, and one to be told.
    pub(super) fn is_told(&self, events: PushEvents, told: Option<u8>) -> bool {
        let changes = self.state.is_some_and(|state| Some(state.number()) != told);
        match events {
            _ if self.task_id.is_empty() => false,
            PushEvents::All => self.state.is_some(),
            PushEvents::Status => self.rests() || changes,
            PushEvents::Terminal => self.rests(),
        }
    }

    /// How to send it to a receiver that was told the state `told` last, if at all.
    pub(super) fn form(&self, events: PushEvents, told: Option<u8>) -> Option<Form> {
        let rests = self.rests();
        let changes = self.state.is_some_and(|state| Some(state.number()) != told);
        match (events, &self.artifact) {
            _ if self.task_id.is_empty() => None,
            (PushEvents::All, _) => Some(Form::AsIs),
            (PushEvents::Status, Some(Chunk { last: true, append: true, id })) => Some(Form::Whole(id.clone())),
            (PushEvents::Status, Some(chunk)) => chunk.last.then_some(Form::AsIs),
            (PushEvents::Status, None) => (rests || changes).then_some(Form::AsIs),
            (PushEvents::Terminal, _) => rests.then_some(Form::AsIs),
        }
    }
}

/// How many events are read at once to put an artifact together.
const PAGE: usize = 512;
const PAGE_BYTES: usize = 4 << 20;

/// An artifact with all its pieces up to the event `last`, as one event. A receiver that does not get every piece
/// could do nothing with the last of them.
pub(super) async fn whole(
    store: &dyn Store,
    task: TaskKey,
    id: &ArtifactId,
    last: Seq,
) -> Result<Option<Bytes>, StoreError> {
    let (mut found, mut after) = (None::<TaskArtifactUpdateEvent>, 0);
    while after < last {
        let events = store.events(task, after, PAGE, PAGE_BYTES).await?;
        let Some(end) = events.last().map(|event| event.seq) else { return Ok(None) };
        for event in events.iter().filter(|event| event.seq <= last) {
            let Ok(StreamResponse::ArtifactUpdate(piece)) = codec::decode(&event.body) else { continue };
            if piece.artifact.artifact_id != *id {
                continue;
            }
            match &mut found {
                Some(whole) if piece.append => {
                    whole.artifact.parts.extend(piece.artifact.parts);
                    whole.artifact.metadata.extend(piece.artifact.metadata);
                    whole.metadata.extend(piece.metadata);
                }
                _ => found = Some(piece),
            }
        }
        after = end;
    }
    let whole = found.map(|piece| TaskArtifactUpdateEvent { append: false, last_chunk: true, ..piece });
    Ok(whole.map(|whole| codec::encode(&StreamResponse::ArtifactUpdate(whole))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: &str) -> Glance {
        Glance::at(format!(r#"{{"statusUpdate":{{"taskId":"t","status":{{"state":"{state}"}}}}}}"#).as_bytes())
    }

    fn chunk(append: bool, last: bool) -> Glance {
        let text = format!(
            r#"{{"artifactUpdate":{{"taskId":"t","artifact":{{"artifactId":"a","parts":[]}},"append":{append},"lastChunk":{last}}}}}"#
        );
        Glance::at(text.as_bytes())
    }

    #[test]
    fn the_default_is_changes_of_state_and_finished_artifacts() {
        let form = |glance: &Glance, told: Option<u8>| glance.form(PushEvents::Status, told);
        let working = TaskState::Working.number();
        assert_eq!(form(&status("TASK_STATE_WORKING"), None), Some(Form::AsIs));
        assert_eq!(form(&status("TASK_STATE_WORKING"), Some(working)), None, "nothing changes");
        for state in ["TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"] {
            let told = status(state).state.map(TaskState::number);
            assert_eq!(form(&status(state), told), Some(Form::AsIs), "{state} is said again");
        }
        assert_eq!(form(&chunk(false, false), None), None);
        assert_eq!(form(&chunk(true, false), None), None);
        assert_eq!(form(&chunk(false, true), None), Some(Form::AsIs));
        assert_eq!(form(&chunk(true, true), None), Some(Form::Whole("a".into())));
        let task = Glance::at(br#"{"task":{"id":"t","status":{"state":"TASK_STATE_SUBMITTED"}}}"#);
        assert_eq!(form(&task, None), Some(Form::AsIs));
    }

    #[test]
    fn all_and_terminal_mean_what_they_say() {
        for event in [status("TASK_STATE_WORKING"), chunk(false, false), chunk(true, true)] {
            assert_eq!(event.form(PushEvents::All, Some(2)), Some(Form::AsIs));
            assert_eq!(event.form(PushEvents::Terminal, None), None);
        }
        assert_eq!(status("TASK_STATE_FAILED").form(PushEvents::Terminal, None), Some(Form::AsIs));
        assert_eq!(status("TASK_STATE_AUTH_REQUIRED").form(PushEvents::Terminal, None), Some(Form::AsIs));
        assert!(status("TASK_STATE_FAILED").is_last() && !status("TASK_STATE_INPUT_REQUIRED").is_last());
    }

    #[test]
    fn what_cannot_be_read_is_not_sent() {
        for body in [&b"{"[..], b"{}", b"[]", br#"{"message":{}}"#] {
            assert_eq!(Glance::at(body).form(PushEvents::All, None), None);
        }
    }
}
