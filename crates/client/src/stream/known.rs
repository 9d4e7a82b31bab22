//! What the events so far say about a task, and what a later look at it adds.

use std::collections::HashSet;

use nuncio_protocol::{
    Artifact, ContextId, Message, MessageId, Metadata, Part, Role, StreamResponse, Task, TaskArtifactUpdateEvent,
    TaskId, TaskState, TaskStatus, TaskStatusUpdateEvent,
};

/// A task as its events tell it.
#[derive(Debug, Default)]
pub struct Known {
    id: TaskId,
    context_id: ContextId,
    status: TaskStatus,
    artifacts: Vec<Artifact>,
    metadata: Metadata,
    /// The messages that were passed on.
    said: HashSet<MessageId>,
}

impl Known {
    /// So much of a task is known.
    pub fn of(task: Task) -> Self {
        let mut known = Self::default();
        known.replace(task);
        known
    }

    /// Takes an event in.
    pub fn fold(&mut self, event: &StreamResponse) {
        match event {
            StreamResponse::Task(task) => self.replace(task.clone()),
            StreamResponse::StatusUpdate(update) => {
                self.name(&update.task_id, &update.context_id);
                self.hear(update.status.message.as_ref());
                self.status = update.status.clone();
                self.metadata.extend(update.metadata.clone());
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.name(&update.task_id, &update.context_id);
                let id = &update.artifact.artifact_id;
                match self.artifacts.iter_mut().find(|artifact| artifact.artifact_id == *id) {
                    Some(known) if update.append => known.parts.extend(update.artifact.parts.iter().cloned()),
                    Some(known) => *known = update.artifact.clone(),
                    None => self.artifacts.push(update.artifact.clone()),
                }
            }
            StreamResponse::Message(_) => {}
        }
    }

    /// The updates that lead from what is known to the task as it is now, and that were missed. Where nothing is
    /// known, the task itself.
    pub fn catch_up(&mut self, now: Task) -> Vec<StreamResponse> {
        if self.id.is_empty() {
            self.replace(now.clone());
            return vec![StreamResponse::Task(now)];
        }
        let mut missed = self.messages(&now);
        missed.extend(now.artifacts.iter().filter_map(|artifact| self.artifact(artifact)));
        if now.status.state != self.status.state || now.status.message != self.status.message {
            let new = now.metadata.iter().filter(|(key, value)| self.metadata.get(*key) != Some(value));
            let metadata = new.map(|(key, value)| (key.clone(), value.clone())).collect();
            missed.push(self.update(now.status.clone(), metadata));
        }
        missed.iter().for_each(|event| self.fold(event));
        now.history.iter().for_each(|message| self.hear(Some(message)));
        missed
    }

    /// Whether the events say more than this task does, which then is an old one.
    pub(super) fn is_ahead_of(&self, task: &Task) -> bool {
        let lacks = |known: &Artifact| {
            let then = task.artifacts.iter().find(|artifact| artifact.artifact_id == known.artifact_id);
            let then = then.map_or(&[][..], |artifact| &artifact.parts);
            remainder(then, &known.parts).is_some_and(|more| !more.is_empty())
        };
        let restarted = task.status.state == TaskState::Submitted && self.status.state != TaskState::Submitted;
        restarted || self.artifacts.iter().any(lacks)
    }

    fn replace(&mut self, task: Task) {
        self.name(&task.id, &task.context_id);
        self.hear(task.status.message.as_ref());
        task.history.iter().for_each(|message| self.hear(Some(message)));
        self.status = task.status;
        self.artifacts = task.artifacts;
        self.metadata = task.metadata;
    }

    fn name(&mut self, id: &TaskId, context_id: &ContextId) {
        if !id.is_empty() {
            self.id = id.clone();
        }
        if !context_id.is_empty() {
            self.context_id = context_id.clone();
        }
    }

    fn hear(&mut self, message: Option<&Message>) {
        self.said.extend(message.map(|message| message.message_id.clone()));
    }

    /// What the agent said with states that have passed: agents keep that in the history.
    fn messages(&self, now: &Task) -> Vec<StreamResponse> {
        let current = now.status.message.as_ref().map(|message| &message.message_id);
        let missed = now.history.iter().filter(|message| {
            let id = &message.message_id;
            message.role == Role::Agent && !id.is_empty() && Some(id) != current && !self.said.contains(id)
        });
        let status = |message: &Message| TaskStatus {
            state: self.status.state,
            message: Some(message.clone()),
            timestamp: self.status.timestamp,
        };
        missed.map(|message| self.update(status(message), Metadata::new())).collect()
    }

    fn update(&self, status: TaskStatus, metadata: Metadata) -> StreamResponse {
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.id.clone(),
            context_id: self.context_id.clone(),
            status,
            metadata,
        })
    }

    /// The update that makes an artifact what it is now.
    fn artifact(&self, now: &Artifact) -> Option<StreamResponse> {
        let known = self.artifacts.iter().find(|artifact| artifact.artifact_id == now.artifact_id);
        let (artifact, append) = match known {
            None => (now.clone(), false),
            Some(known) if known.parts == now.parts => return None,
            Some(known) => match remainder(&known.parts, &now.parts) {
                Some(parts) if parts.is_empty() => return None,
                Some(parts) => (Artifact { parts, ..now.clone() }, true),
                // It was replaced. A look from before the last event seems so too; the events behind it then make
                // up for it, as they follow from this look and from nothing else.
                None => (now.clone(), false),
            },
        };
        Some(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.id.clone(),
            context_id: self.context_id.clone(),
            artifact,
            append,
            ..Default::default()
        }))
    }
}

/// What `more` has behind `less`, if it begins with it. Agents may join pieces of text, so the pieces may differ.
fn remainder(less: &[Part], more: &[Part]) -> Option<Vec<Part>> {
    if let Some(rest) = more.strip_prefix(less) {
        return Some(rest.to_vec());
    }
    // Only the text at which the pieces begin to differ can have grown.
    let same = less.iter().zip(more).take_while(|(less, more)| less == more).count();
    let (less, more) = (&less[same..], &more[same..]);
    let known = less.iter().map(Part::as_text).collect::<Option<Vec<&str>>>()?.concat();
    let mut known = known.as_str();
    let mut rest = Vec::new();
    for part in more {
        match part.as_text() {
            _ if known.is_empty() => rest.push(part.clone()),
            Some(text) => match known.strip_prefix(text) {
                Some(left) => known = left,
                None => {
                    rest.push(part_with(part, text.strip_prefix(known)?));
                    known = "";
                }
            },
            None => return None,
        }
    }
    known.is_empty().then_some(rest)
}

/// The same part with other text.
fn part_with(part: &Part, text: &str) -> Part {
    Part {
        metadata: part.metadata.clone(),
        filename: part.filename.clone(),
        media_type: part.media_type.clone(),
        ..Part::text(text)
    }
}

#[cfg(test)]
mod tests;
