//! What servers that stand in for others tell their webhooks: the status of the task, and at its end what it made.

use bytes::Bytes;
use nuncio_protocol::{Artifact, StreamResponse, Task, TaskState, TaskStatusUpdateEvent, codec, draft};

use crate::present::proto_agent::COST;
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

    /// Whether a webhook has one secret, whatever it is registered as.
    pub(super) fn has_one_secret(self) -> bool {
        self == Self::ProtoAgent
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
        let made = task.filter(|_| done).and_then(whole);
        let made = made.as_ref();
        let mut out = Vec::new();
        match self {
            Self::Draft => draft::write_notification(&update.task_id, &update.status, made, &mut out),
            Self::ProtoAgent => proto_agent::write_notification(update, made, &mut out),
        }
        Some(out.into())
    }
}

/// All that a task made, as one artifact: there is place for no more. It is the answer, which is the one with the bill
/// where there is one, with what the others hold behind it.
fn whole(task: &Task) -> Option<Artifact> {
    let answer = task.artifacts.iter().rposition(|artifact| artifact.metadata.contains_key(COST)).unwrap_or(0);
    let mut whole = task.artifacts.get(answer)?.clone();
    let others = task.artifacts.iter().enumerate().filter(|(at, _)| *at != answer);
    whole.parts.extend(others.flat_map(|(_, other)| other.parts.iter().cloned()));
    Some(whole)
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Metadata, Part, TaskStatus, Value, json};

    use super::*;

    /// What a tone tells of the end of a task with these artifacts.
    fn told(tone: Tone, artifacts: Vec<Artifact>) -> Value {
        let status = TaskStatus { state: TaskState::Completed, ..TaskStatus::default() };
        let task = Task { id: "t".into(), status: status.clone(), artifacts, ..Task::default() };
        let update = TaskStatusUpdateEvent { task_id: "t".into(), status, ..TaskStatusUpdateEvent::default() };
        let event = codec::encode(&StreamResponse::StatusUpdate(update));
        codec::decode(&tone.body(&event, Some(&task)).unwrap()).unwrap()
    }

    fn artifact(id: &str, text: &str) -> Artifact {
        Artifact { artifact_id: id.into(), parts: vec![Part::text(text)], ..Artifact::default() }
    }

    fn texts(told: &Value) -> Vec<&str> {
        told["artifact"]["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect()
    }

    #[test]
    fn an_answer_and_files_are_told_as_one() {
        let told = told(Tone::Draft, vec![artifact("answer", "42"), artifact("file", "x: 1")]);
        assert_eq!((&told["artifact"]["artifactId"], texts(&told)), (&json!("answer"), vec!["42", "x: 1"]));
    }

    #[test]
    fn the_answer_with_its_bill_comes_first() {
        let cost = json!({ "usage": { "total_tokens": 7 }, "durationMs": 5 });
        let mut answer = artifact("answer", "42");
        answer.metadata = Metadata::from_iter([(COST.to_owned(), cost.clone())]);
        let told = told(Tone::ProtoAgent, vec![artifact("before", "x: 1"), answer, artifact("after", "y: 2")]);
        assert_eq!((&told["artifact"]["artifactId"], texts(&told)), (&json!("answer"), vec!["42", "x: 1", "y: 2"]));
        assert_eq!(told["artifact"]["parts"][3]["data"], cost);
    }

    #[test]
    fn who_made_nothing_tells_of_nothing() {
        assert_eq!(told(Tone::Draft, Vec::new()).get("artifact"), None);
    }
}
