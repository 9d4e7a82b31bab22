//! A message of ours as the agent gets it, and how circles are noticed.

use nuncio_client::Client;
use nuncio_protocol::{Error, ErrorKind, Message, MessageId, Metadata, Role, TaskId, Value};

use super::memory::Memory;
use crate::agent::Turn;

/// The agents that a message came through, in its metadata.
pub(super) const VIA: &str = "urn:nuncio:a2a:via:v1";
/// A longer way is taken for a circle of agents that do not know each other.
const LONGEST_WAY: usize = 16;

/// Refuses a message that was here before.
pub(super) fn check_way(id: &str, message: &Message) -> Result<(), Error> {
    let way = way(&message.metadata);
    if way.iter().any(|agent| agent.as_str() == Some(id)) {
        let text = "The message has come back to an agent that passed it on: the agents form a circle. Whoever runs \
                    them must change where one of them leads";
        return Err(Error::new(ErrorKind::InvalidRequest, text));
    }
    if way.len() >= LONGEST_WAY {
        let text = format!("The message has come through {LONGEST_WAY} agents, more than are allowed");
        return Err(Error::new(ErrorKind::InvalidRequest, text));
    }
    Ok(())
}

fn way(metadata: &Metadata) -> &[Value] {
    metadata.get(VIA).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The id of a message at the agent: the same whenever this message is sent, and no other's. Our callers need not
/// know of each other, so their ids may meet there.
pub(super) fn message_id(turn: &Turn, message: &Message) -> MessageId {
    format!("{}.{}", turn.task_id(), turn.place_of(&message.message_id)).into()
}

/// The message as the agent gets it: its parts and metadata as they are, its names for everything else.
pub(super) fn translate(
    message: &Message,
    message_id: MessageId,
    task_id: TaskId,
    memory: &Memory,
    client: &Client,
    id: &str,
) -> Message {
    let mut metadata = message.metadata.clone();
    let mut way = way(&metadata).to_vec();
    way.push(id.into());
    metadata.insert(VIA.into(), way.into());
    Message {
        message_id,
        context_id: memory.context.clone(),
        task_id,
        role: Role::User,
        parts: message.parts.clone(),
        metadata,
        extensions: activated(message, client),
        reference_task_ids: message.reference_task_ids.iter().filter_map(|task| memory.theirs(task)).collect(),
    }
}

/// Of the extensions that the caller activates, those that the agent declares.
pub(super) fn activated(message: &Message, client: &Client) -> Vec<String> {
    let declared = client.card().map_or(&[][..], |card| &card.capabilities.extensions);
    let is_declared = |uri: &&String| declared.iter().any(|extension| extension.uri == **uri);
    let mut all: Vec<String> = message.extensions.iter().filter(is_declared).cloned().collect();
    let required = declared.iter().filter(|extension| extension.required).map(|extension| extension.uri.clone());
    let missing: Vec<String> = required.filter(|uri| !all.contains(uri)).collect();
    all.extend(missing);
    all
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Part, json};

    use super::*;

    fn came_through(agents: Value) -> Message {
        let mut message = Message::from_user(vec![Part::text("hello")]);
        message.metadata.insert(VIA.into(), agents);
        message
    }

    #[test]
    fn a_message_that_was_here_before_is_refused() {
        assert!(check_way("me", &came_through(json!(["you", "they"]))).is_ok());
        assert!(check_way("me", &came_through(json!(["you", "me"]))).is_err());
        assert!(check_way("me", &came_through(json!(vec!["you"; LONGEST_WAY]))).is_err());
        assert!(check_way("me", &came_through(json!("me"))).is_ok(), "not a way at all");
    }
}
