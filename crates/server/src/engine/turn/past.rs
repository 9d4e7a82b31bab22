//! What was said before a turn.

use nuncio_protocol::{Message, Part, Role};

use super::Turn;
use crate::engine::approval::{Decision, decision_about};
use crate::present::INPUT;

/// What a task was waiting for when this turn's message arrived.
#[derive(Clone, Debug, PartialEq)]
pub enum Pending {
    /// A question.
    Question,
    /// An approval; the decision that the message holds, if it holds one.
    Approval(Option<Decision>),
    /// Credentials that come by another way.
    Credentials,
}

impl Turn {
    /// What the task was waiting for when this message arrived and no turn was there to take it,
    /// for example because the server was restarted in between.
    pub fn answering(&self) -> Option<Pending> {
        let (asked, _) = self.live.read(|task| {
            let mut said = task.history.iter().rev();
            said.find(|message| message.message_id == self.message.message_id)?;
            let before = said.next().filter(|message| message.role == Role::Agent)?;
            before.metadata.get(INPUT).cloned()
        });
        let asked = asked?;
        Some(match asked["kind"].as_str() {
            // A message that came while the agent worked decides nothing, even right behind an approval that had expired.
            Some("approval") => Pending::Approval(decision_about(&asked, &self.message, self.woke?)),
            Some("credentials") => Pending::Credentials,
            _ => Pending::Question,
        })
    }

    /// All that the caller has said on this task, but for what waits for a turn of its own: for an agent that has seen
    /// none of it.
    pub(crate) fn said_so_far(&self) -> Vec<Part> {
        let mut messages = self.live.said();
        if !messages.iter().any(|message| message.message_id == self.message.message_id) {
            messages.push(self.message.clone());
        }
        messages.into_iter().flat_map(|Message { parts, .. }| parts).collect()
    }
}
