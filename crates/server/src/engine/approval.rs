//! Approvals: what is to be done, and what was decided.

use nuncio_protocol::Value;

/// Something that an agent may do only if it is allowed to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approval {
    /// What is to be done, in words.
    pub action: String,
    /// The tool that would do it; rules go by this name. Empty if there is none.
    pub tool: String,
    /// The call, as the agent names it. Empty if it does not.
    pub call: String,
    /// What exactly the tool would be given.
    pub input: Value,
    /// The answers that the agent understands. Empty for a plain yes or no.
    pub options: Vec<Choice>,
}

impl Approval {
    /// A plain question about `action`.
    pub fn of(action: impl Into<String>) -> Self {
        Self { action: action.into(), ..Self::default() }
    }
}

/// One of the answers to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What the agent calls it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it means.
    pub kind: ChoiceKind,
}

/// What choosing an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceKind {
    /// Yes, this time.
    AllowOnce,
    /// Yes, and do not ask again.
    AllowAlways,
    /// No, this time.
    RejectOnce,
    /// No, and do not ask again.
    RejectAlways,
}

/// What was decided about an [`Approval`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be done.
    pub approved: bool,
    /// The answer that was chosen, where there were several.
    pub option: Option<String>,
    /// Why not, if somebody said so.
    pub reason: Option<String>,
    /// Who decided.
    pub by: DecidedBy,
}

/// Who decided about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// Whoever answered.
    Caller,
    /// The configuration.
    Rule,
    /// Nobody, in time.
    Nobody,
}
