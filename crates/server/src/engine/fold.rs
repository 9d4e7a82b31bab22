//! From events to the task that they describe.

use nuncio_protocol::{
    Artifact, ArtifactId, Content, Message, Metadata, Part, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatusUpdateEvent,
};

use crate::map::Map;
use crate::present;

/// A task as the sum of its events so far.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    task: Task,
    /// Where each artifact is, so that a chunk costs the same however many there are.
    places: Map<ArtifactId, usize>,
}

impl Fold {
    /// A fold that starts from a whole task.
    pub(crate) fn new(task: Task) -> Self {
        let places = task.artifacts.iter().enumerate().map(|(i, a)| (a.artifact_id.clone(), i)).collect();
        Self { task, places }
    }

    /// The task.
    pub(crate) fn task(&self) -> &Task {
        &self.task
    }

    /// Where the task stands.
    pub(crate) fn state(&self) -> TaskState {
        self.task.status.state
    }

    /// Whether there is such an artifact already.
    pub(crate) fn has_artifact(&self, id: &ArtifactId) -> bool {
        self.places.contains_key(id)
    }

    /// Adds an event.
    pub(crate) fn apply(&mut self, event: StreamResponse) {
        match event {
            StreamResponse::Task(task) => *self = Self::new(task),
            StreamResponse::Message(message) => self.task.history.push(message),
            StreamResponse::StatusUpdate(update) => self.apply_status(update),
            StreamResponse::ArtifactUpdate(update) => self.apply_artifact(update),
        }
    }

    /// Adds a message of the caller.
    pub(crate) fn say(&mut self, message: Message) {
        self.task.history.push(message);
    }

    /// The message of the old status becomes history. Metadata stays with the task where the state
    /// changes; on the way it only describes a passing event.
    fn apply_status(&mut self, update: TaskStatusUpdateEvent) {
        let changed = update.status.state != self.task.status.state;
        let before = std::mem::replace(&mut self.task.status, update.status);
        if let Some(said) = before.message {
            self.remember(said);
        }
        if changed {
            present::settle(&mut self.task.metadata);
            merge(&mut self.task.metadata, update.metadata);
        }
    }

    /// A message that came in pieces is one.
    fn remember(&mut self, said: Message) {
        let goes_on = |last: &&mut Message| !said.message_id.is_empty() && last.message_id == said.message_id;
        match self.task.history.last_mut().filter(goes_on) {
            Some(last) => said.parts.into_iter().for_each(|part| join(&mut last.parts, part)),
            None => self.task.history.push(said),
        }
    }

    fn apply_artifact(&mut self, update: TaskArtifactUpdateEvent) {
        let Artifact { artifact_id, parts, metadata, .. } = match self.places.get(&update.artifact.artifact_id) {
            Some(_) if update.append => update.artifact,
            Some(&place) => {
                self.task.artifacts[place] = update.artifact;
                return;
            }
            None => {
                self.places.insert(update.artifact.artifact_id.clone(), self.task.artifacts.len());
                self.task.artifacts.push(update.artifact);
                return;
            }
        };
        let artifact = &mut self.task.artifacts[self.places[&artifact_id]];
        artifact.parts.extend(parts);
        merge(&mut artifact.metadata, metadata);
    }
}

/// Text goes on with text; all else stands beside it.
fn join(parts: &mut Vec<Part>, part: Part) {
    let is_plain = part.metadata.is_empty() && part.media_type.is_empty();
    match (parts.last_mut(), part) {
        (
            Some(Part { content: Content::Text(text), metadata, media_type, .. }),
            Part { content: Content::Text(more), .. },
        ) if is_plain && metadata.is_empty() && media_type.is_empty() => text.push_str(&more),
        (_, part) => parts.push(part),
    }
}

fn merge(into: &mut Metadata, from: Metadata) {
    for (key, value) in from {
        into.insert(key, value);
    }
}

/// Keeps the newest `most` messages; a limit of zero drops the history.
pub(crate) fn trim_history(task: &mut Task, most: Option<i32>) {
    let Some(most) = most else { return };
    let most = usize::try_from(most).unwrap_or_default();
    let surplus = task.history.len().saturating_sub(most);
    task.history.drain(..surplus);
}
