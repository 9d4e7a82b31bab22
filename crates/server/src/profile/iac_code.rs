//! The rules of iac-code.

use nuncio_protocol::{AgentCard, Content, Error, ErrorKind, Message, Part};

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
    known_schemes: true,
};

/// The longest id of a task or context.
const LONGEST_ID: usize = 128;

/// Ids of tasks and contexts are short and plain, and a permission is for its own task.
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
    if ids.iter().any(|id| !id.is_empty() && !is_id(id)) {
        return Err(Error::new(ErrorKind::InvalidParams, "Invalid A2A id"));
    }
    match request {
        Request::Send(request) | Request::Stream(request) => request.message.as_ref().map_or(Ok(()), check_permission),
        _ => Ok(()),
    }
}

/// A permission is given on the task that asks for it.
fn check_permission(message: &Message) -> Result<(), Error> {
    let is_elsewhere = |part: &Part| match &part.content {
        Content::Data(data) if data["kind"] == "permission" => {
            data["requestTaskId"].as_str().is_some_and(|task| task != message.task_id.as_str())
        }
        _ => false,
    };
    if message.parts.iter().any(is_elsewhere) {
        let text = "Permission response taskId does not match requestTaskId.";
        return Err(Error::new(ErrorKind::InvalidParams, text));
    }
    Ok(())
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
