//! The agent's events as ours.

use nuncio_client::Known;
use nuncio_protocol::{
    Artifact, Content, Message, MessageId, Metadata, Role, StreamResponse, Task, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use sha2::{Digest, Sha256};

use super::memory::Memory;
use crate::agent::{AgentError, Turn};
use crate::artifact::FILE;
use crate::store::Seq;

/// What an event means for the turn.
#[derive(Debug)]
pub(super) enum Step {
    /// The agent works.
    On,
    /// The agent waits for the caller since this event of ours.
    Asked(Seq),
    /// Nothing new: it waits as before.
    Waits,
    /// The agent's task is over; ours goes on with this message, which arrived meanwhile.
    Next(Box<Message>),
    /// The task is over.
    Over,
}

/// Passes an event on.
pub(super) async fn pass_on(turn: &mut Turn, memory: &Memory, event: StreamResponse) -> Result<Step, AgentError> {
    match event {
        StreamResponse::Task(task) => look(turn, memory, task).await,
        StreamResponse::Message(message) => {
            let answer = TaskStatus { state: TaskState::Completed, message: Some(message), timestamp: None };
            status(turn, memory, TaskStatusUpdateEvent { status: answer, ..TaskStatusUpdateEvent::default() }).await
        }
        StreamResponse::StatusUpdate(update) => status(turn, memory, update).await,
        StreamResponse::ArtifactUpdate(update) => {
            let metadata = turn.shown(update.metadata);
            turn.relay_artifact(update.artifact, update.append, update.last_chunk, metadata).await?;
            Ok(Step::On)
        }
    }
}

/// A look at the whole task: only what is not in our log yet is passed on.
async fn look(turn: &mut Turn, memory: &Memory, task: Task) -> Result<Step, AgentError> {
    let ours = turn.task();
    let mut known = Known::of(Task {
        id: task.id.clone(),
        context_id: task.context_id.clone(),
        artifacts: ours.artifacts.into_iter().map(|artifact| with_bytes(artifact, &task)).collect(),
        ..ours
    });
    let now = task.status.clone();
    let mut last = None;
    for event in known.catch_up(task) {
        match event {
            // It comes behind everything else.
            StreamResponse::StatusUpdate(update) if update.status == now => last = Some(update),
            StreamResponse::StatusUpdate(update) => {
                let Some(message) = unheard(turn, update.status.message) else { continue };
                turn.relay_status(TaskState::Working, Some(said(memory, message)), Metadata::new()).await?;
            }
            StreamResponse::ArtifactUpdate(update) => {
                turn.relay_artifact(update.artifact, update.append, now.state.is_terminal(), Metadata::new()).await?;
            }
            _ => {}
        }
    }
    let (waits, same) = (now.state.is_interrupted(), turn.state() == now.state);
    let news = last.map(|mut last| {
        last.status.message = unheard(turn, last.status.message);
        last
    });
    match news {
        Some(news) if !(waits && same && news.status.message.is_none()) => status(turn, memory, news).await,
        _ => Ok(if waits { Step::Waits } else { Step::On }),
    }
}

/// A message that is not in our log yet.
fn unheard(turn: &Turn, message: Option<Message>) -> Option<Message> {
    message.filter(|message| message.message_id.is_empty() || !turn.has_message(&message.message_id))
}

async fn status(turn: &mut Turn, memory: &Memory, update: TaskStatusUpdateEvent) -> Result<Step, AgentError> {
    let state = update.status.state;
    let message = update.status.message.map(|message| said(memory, message));
    let metadata = turn.shown(update.metadata);
    let next = if state == TaskState::Completed { turn.waiting_message() } else { None };
    if state.is_terminal() && next.is_none() {
        turn.relay_status(state, message, metadata).await?;
        return Ok(Step::Over);
    }
    if state.is_interrupted() {
        return Ok(Step::Asked(turn.relay_status(state, message, metadata).await?));
    }
    // Our own log says already that the work has begun.
    if message.is_some() || !metadata.is_empty() || turn.state() != TaskState::Working {
        turn.relay_status(TaskState::Working, message, metadata).await?;
    }
    Ok(next.map_or(Step::On, |next| Step::Next(Box::new(next))))
}

/// A message of the agent, with our names for its tasks.
fn said(memory: &Memory, message: Message) -> Message {
    let message_id = if message.message_id.is_empty() { MessageId::fresh() } else { message.message_id };
    let reference_task_ids = message.reference_task_ids.iter().filter_map(|task| memory.ours(task)).collect();
    Message { message_id, role: Role::Agent, reference_task_ids, ..message }
}

/// An artifact of ours with the bytes that are kept apart, as far as they are the agent's, so that both can be
/// compared.
fn with_bytes(mut artifact: Artifact, task: &Task) -> Artifact {
    let theirs = task.artifacts.iter().find(|theirs| theirs.artifact_id == artifact.artifact_id);
    for (part, theirs) in artifact.parts.iter_mut().zip(theirs.into_iter().flat_map(|theirs| &theirs.parts)) {
        let (Some(about), Content::Raw(bytes)) = (part.metadata.get(FILE), &theirs.content) else { continue };
        let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if about["sha256"] == hash.as_str() {
            *part = theirs.clone();
        }
    }
    artifact
}
