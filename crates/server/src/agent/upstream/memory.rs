//! Which of the agent's tasks and conversations is which of ours. It is kept with the conversation in the store.

use nuncio_protocol::{ContextId, MessageId, TaskId, codec};
use serde::{Deserialize, Serialize};

use crate::agent::{AgentError, Session, Turn};

/// So many tasks of one conversation are remembered.
const MOST: usize = 64;

/// What is known of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// The agent's name for the conversation.
    pub(super) context: ContextId,
    /// Oldest first.
    tasks: Vec<Pair>,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Pair {
    ours: TaskId,
    /// The agent's name for it; empty before it has named one.
    pub(super) theirs: TaskId,
    /// The last message of ours, as it was sent, that the agent has reacted to.
    pub(super) heard: MessageId,
}

impl Memory {
    /// What is remembered of the turn's conversation.
    pub(super) async fn of(turn: &Turn) -> Result<Self, AgentError> {
        let native = turn.session().await?.native;
        Ok(native.and_then(|native| codec::decode(native.as_bytes()).ok()).unwrap_or_default())
    }

    /// Remembers it beyond a restart.
    pub(super) async fn keep(&self, turn: &mut Turn) -> Result<(), AgentError> {
        let native = String::from_utf8_lossy(&codec::encode(self)).into_owned();
        turn.keep_session(Session { native: Some(native), workspace: None }).await
    }

    /// What is known of a task of ours.
    pub(super) fn pair(&self, ours: &TaskId) -> Option<&Pair> {
        self.tasks.iter().find(|pair| pair.ours == *ours)
    }

    /// The same, to be changed.
    pub(super) fn pair_mut(&mut self, ours: &TaskId) -> &mut Pair {
        let place = self.tasks.iter().position(|pair| pair.ours == *ours).unwrap_or_else(|| {
            if self.tasks.len() >= MOST {
                self.tasks.remove(0);
            }
            self.tasks.push(Pair { ours: ours.clone(), ..Pair::default() });
            self.tasks.len() - 1
        });
        &mut self.tasks[place]
    }

    /// What the agent calls a task of ours.
    pub(super) fn theirs(&self, ours: &TaskId) -> Option<TaskId> {
        self.pair(ours).map(|pair| pair.theirs.clone()).filter(|id| !id.is_empty())
    }

    /// What we call a task of the agent.
    pub(super) fn ours(&self, theirs: &TaskId) -> Option<TaskId> {
        self.tasks.iter().find(|pair| pair.theirs == *theirs).map(|pair| pair.ours.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_task_is_forgotten_first_and_the_rest_survives_the_store() {
        let mut memory = Memory { context: "theirs".into(), ..Memory::default() };
        for n in 0..=MOST {
            memory.pair_mut(&TaskId::from(format!("a{n}"))).theirs = format!("b{n}").into();
        }
        let memory: Memory = codec::decode(&codec::encode(&memory)).unwrap();
        assert_eq!(memory.theirs(&"a0".into()), None);
        assert_eq!(memory.theirs(&"a1".into()), Some("b1".into()));
        assert_eq!(memory.ours(&"b64".into()), Some("a64".into()));
        assert_eq!(memory.context, ContextId::from("theirs"));
    }
}
