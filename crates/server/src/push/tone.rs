//! What servers that stand in for others tell their webhooks: the status of the task, and at its end what it made.

use bytes::Bytes;
use nuncio_protocol::{StreamResponse, Task, TaskState, TaskStatusUpdateEvent, codec, draft};

use crate::profile::proto_agent;

/// How webhooks are told, where that is not the form of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As LiquidCrypto does.
    Draft,
    /// As protoAgent does.
    ProtoAgent,
}

impl Tone {
    /// The name that is kept with a webhook, in place of a version.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::ProtoAgent => "proto-agent",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::Draft, Self::ProtoAgent].into_iter().find(|tone| tone.name() == name)
    }

    /// The body that tells of an event. `task` is the whole of a task that is over.
    pub(super) fn body(self, event: &[u8], task: Option<&Task>) -> Option<Bytes> {
        let update = match codec::decode(event).ok()? {
            StreamResponse::StatusUpdate(update) => update,
            StreamResponse::Task(task) => TaskStatusUpdateEvent {
                task_id: task.id,
                context_id: task.context_id,
                status: task.status,
                metadata: task.metadata,
            },
            StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => return None,
        };
        let done = update.status.state == TaskState::Completed;
        let made = task.filter(|_| done).and_then(|task| task.artifacts.last());
        let mut out = Vec::new();
        match self {
            Self::Draft => draft::write_notification(&update.task_id, &update.status, made, &mut out),
            Self::ProtoAgent => proto_agent::write_notification(update, made, &mut out),
        }
        Some(out.into())
    }
}
