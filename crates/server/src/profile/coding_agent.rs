//! The rules of coding-agent-a2a.

use nuncio_protocol::{AgentCard, Error, ErrorKind, Value, json};

use crate::engine::Manners;
use crate::present::Style;

/// A question is answered on its task or anywhere in its conversation, and the stream waits for that.
pub(super) fn manners() -> Manners {
    Manners { style: Style::CodingAgent, answer_by_context: true, stream_waits: true, ..Manners::default() }
}

/// The card is named after the agent behind it.
pub(super) fn shape(card: &mut AgentCard) {
    let agent = std::mem::take(&mut card.name);
    card.description =
        format!("Delegates coding tasks to the {agent} agent and streams results back via the A2A protocol.");
    card.name = format!("coding-agent-a2a ({agent})");
    for skill in &mut card.skills {
        skill.input_modes.clone_from(&card.default_input_modes);
        skill.output_modes.clone_from(&card.default_output_modes);
    }
}

/// What a card of 0.3 has beside.
pub(super) fn finish_card(card: &mut Value) {
    card["capabilities"]["stateTransitionHistory"] = true.into();
    if card["protocolVersion"] == "0.3" {
        card["protocolVersion"] = "0.3.0".into();
    }
}

/// A question is not the end.
pub(crate) fn dress(frame: &mut Value) {
    if frame["kind"] == "status-update" && frame["status"]["state"] == "input-required" {
        frame["final"] = false.into();
    }
}

/// An error under its name.
pub(crate) fn error(error: &Error) -> Option<Value> {
    let name = match error.kind {
        ErrorKind::Parse => "Parse error",
        ErrorKind::InvalidRequest => "Invalid request",
        ErrorKind::MethodNotFound => "Method not found",
        ErrorKind::TaskNotFound => "TaskNotFound",
        _ => return None,
    };
    let data = json!({ "reason": error.kind.reason(), "detail": error.message });
    Some(json!({ "code": error.kind.code(), "message": name, "data": data }))
}
