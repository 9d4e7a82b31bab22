//! The rules of iac-code.

use nuncio_protocol::{AgentCard, Error, ErrorKind};

use crate::bind::dispatch::Request;
use crate::engine::Manners;
use crate::present::Style;

/// One turn per conversation, refusals as failed tasks, and a task that rests is done with its turn.
pub(super) const MANNERS: Manners = Manners {
    style: Style::IacCode,
    busy: Some("Task is already working."),
    refusal_is_task: true,
    rest_is_over: true,
    answer_by_context: false,
    stream_waits: false,
};

/// The longest id of a task or context.
const LONGEST_ID: usize = 128;

/// Ids of tasks and contexts are short and plain.
pub(super) fn check(request: &Request) -> Result<(), Error> {
    let ids = match request {
        Request::Send(request) | Request::Stream(request) => match &request.message {
            Some(message) => [message.task_id.as_str(), message.context_id.as_str()],
            None => ["", ""],
        },
        Request::Get(request) => [request.id.as_str(), ""],
        Request::List(request) => ["", request.context_id.as_str()],
        Request::Cancel(request) => [request.id.as_str(), ""],
        Request::Subscribe(request) => [request.id.as_str(), ""],
        Request::PushCreate(config) | Request::PushCreateBearer(config) => [config.task_id.as_str(), ""],
        Request::PushGet(request) | Request::PushDelete(request) => [request.task_id.as_str(), ""],
        Request::PushList(request) => [request.task_id.as_str(), ""],
        Request::NoPush(_) | Request::ExtendedCard { .. } => ["", ""],
    };
    // One that is left out is another matter.
    if ids.iter().all(|id| id.is_empty() || is_id(id)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidParams, "Invalid A2A id"))
}

fn is_id(id: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-');
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(is_plain)
}

/// Every skill takes and gives what the agent does.
pub(super) fn shape(card: &mut AgentCard) {
    for skill in &mut card.skills {
        skill.input_modes.clone_from(&card.default_input_modes);
        skill.output_modes.clone_from(&card.default_output_modes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_and_plain() {
        for good in ["a", "task-1", "A.b:c_d-9", &"x".repeat(128)] {
            assert!(is_id(good), "{good}");
        }
        for bad in ["", "a b", "a/b", "ü", "a\n", &"x".repeat(129)] {
            assert!(!is_id(bad), "{bad}");
        }
    }
}
