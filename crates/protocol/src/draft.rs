//! The dialect of an early draft of A2A 1.0 that LiquidCrypto speaks, converted to and from the 1.0 model.
//!
//! Its methods have the names of 1.0; what they carry is nearer to 0.3: lower-case roles and states (`cancelled` with
//! two l), files and data one object deeper, frames told apart by `type`, and pages by cursor. Readers take the forms
//! of 1.0 as well; writers write the draft alone. Frames have a `contextId` more than the draft asks for, and pieces
//! of artifacts say that they are pieces.

mod read;
mod write;

pub use read::{Listing, Names, read_list, read_names, read_push_config, read_send};
pub use write::{
    ExtensionRequired, cursor, write_event, write_list, write_notification, write_push_config, write_push_configs,
    write_sent, write_task,
};

use crate::TaskState;

/// The states by the names of the draft.
const STATES: [(&str, TaskState); 9] = [
    ("unknown", TaskState::Unspecified),
    ("submitted", TaskState::Submitted),
    ("working", TaskState::Working),
    ("completed", TaskState::Completed),
    ("failed", TaskState::Failed),
    ("cancelled", TaskState::Canceled),
    ("input-required", TaskState::InputRequired),
    ("auth-required", TaskState::AuthRequired),
    ("rejected", TaskState::Rejected),
];

#[cfg(test)]
mod tests;
