//! What an agent elsewhere reports, passed on as it is.

use nuncio_protocol::{Artifact, Message, MessageId, Metadata, Role, TaskState};

use super::Turn;
use crate::agent::AgentError;
use crate::engine::event::Update;
use crate::engine::schedule::Stop;
use crate::store::Seq;

impl Turn {
    /// Passes on a status with its words and metadata. A terminal one ends the turn; after one that waits for
    /// the caller, [`Turn::reply`] has the answer.
    pub(crate) async fn relay_status(
        &mut self,
        state: TaskState,
        message: Option<Message>,
        metadata: Metadata,
    ) -> Result<Seq, AgentError> {
        let seq = self.put(Update::Status { state, message, metadata }).await?;
        self.ended = state.is_terminal();
        Ok(seq)
    }

    /// Passes on an artifact or a piece of one.
    pub(crate) async fn relay_artifact(
        &mut self,
        artifact: Artifact,
        append: bool,
        last_chunk: bool,
        metadata: Metadata,
    ) -> Result<(), AgentError> {
        let artifact = self.keep_apart(artifact, append).await?;
        self.emit(Update::Artifact { artifact, append, last_chunk, metadata }).await
    }

    /// Waits for the message that answers the event `asked`; `None` when nobody answers in time.
    pub(crate) async fn reply(&self, asked: Seq) -> Result<Option<Message>, AgentError> {
        self.wait_for_answer(asked, self.engine.options.approval_timeout).await
    }

    /// Takes a message that arrived while the turn was busy with another.
    pub(crate) fn waiting_message(&self) -> Option<Message> {
        let message = self.live.oldest_message()?;
        // One that cannot be written is noticed by the next who writes.
        let _ = self.live.write(Update::next_turn(&message));
        Some(message)
    }

    /// Of some metadata, what clients may see.
    pub(crate) fn shown(&self, mut metadata: Metadata) -> Metadata {
        let exposure = self.engine.options.exposure;
        metadata.retain(|extension, _| exposure.shows(extension));
        metadata
    }

    /// Where the task stands.
    pub(crate) fn state(&self) -> TaskState {
        self.live.read(|task| task.status.state).0
    }

    /// Whether the task's history or status holds this message.
    pub(crate) fn has_message(&self, id: &MessageId) -> bool {
        let (has, _) = self.live.read(|task| {
            let mut said = task.history.iter().chain(&task.status.message);
            said.any(|message| message.message_id == *id)
        });
        has
    }

    /// Which of the caller's messages on this task this one is.
    pub(crate) fn place_of(&self, id: &MessageId) -> usize {
        let (place, _) = self.live.read(|task| {
            let from_user = task.history.iter().filter(|message| message.role == Role::User).enumerate();
            from_user.filter(|(_, message)| message.message_id == *id).last().map_or(0, |(place, _)| place)
        });
        place
    }

    /// Whether the turn is to stop because nobody wants it any more, here or anywhere.
    pub(crate) fn is_given_up(&self) -> bool {
        matches!(self.control.why(), Some(Stop::Canceled | Stop::TimedOut(_)))
    }
}
