//! The sum of events, written down as simply as possible.

use nuncio_protocol::{Artifact, StreamResponse, Task};

pub(super) fn apply(task: &mut Task, event: StreamResponse) {
    match event {
        StreamResponse::Task(whole) => *task = whole,
        StreamResponse::Message(message) => task.history.push(message),
        StreamResponse::StatusUpdate(update) => {
            if update.status.state != task.status.state {
                task.metadata.extend(update.metadata);
            }
            let before = std::mem::replace(&mut task.status, update.status);
            task.history.extend(before.message);
        }
        StreamResponse::ArtifactUpdate(update) => {
            let same = |artifact: &&mut Artifact| artifact.artifact_id == update.artifact.artifact_id;
            match task.artifacts.iter_mut().find(same) {
                None => task.artifacts.push(update.artifact),
                Some(known) if update.append => {
                    known.parts.extend(update.artifact.parts);
                    known.metadata.extend(update.artifact.metadata);
                }
                Some(known) => *known = update.artifact,
            }
        }
    }
}
