//! Answers of agents that know more states or roles than we do.

use super::{Value, decode, encode};
use crate::message::Role;
use crate::task::TaskState;
use crate::v03;

/// An answer in which every state and role that nobody here knows is replaced by the unspecified one, so that
/// the rest of it can be read; `None` if there is no such name. What belongs to the agent's own data stays as
/// it is.
///
/// Requests are not mended: there an unknown name is a mistake of the caller, who wants to hear of it.
pub fn mend(json: &[u8]) -> Option<Vec<u8>> {
    let mut tree: Value = decode(json).ok()?;
    replace(&mut tree).then(|| encode(&tree).into())
}

fn replace(value: &mut Value) -> bool {
    match value {
        Value::Array(list) => list.iter_mut().fold(false, |mended, item| replace(item) | mended),
        Value::Object(map) => {
            let mut mended = false;
            for (name, value) in map {
                mended |= match name.as_str() {
                    "state" => unspecified(value, v03::is_state, TaskState::from_number, TaskState::default().name()),
                    "role" => unspecified(value, v03::is_role, Role::from_number, Role::default().name()),
                    // Of these only their writer knows what they mean.
                    "metadata" | "data" | "params" => false,
                    _ => replace(value),
                };
            }
            mended
        }
        _ => false,
    }
}

/// Replaces a name or a number that is not known.
fn unspecified<T>(
    value: &mut Value,
    is_name: fn(&str) -> bool,
    number: fn(i64) -> Option<T>,
    instead: &'static str,
) -> bool {
    let known = match &*value {
        Value::String(name) => is_name(name),
        Value::Number(n) => n.as_i64().is_some_and(|n| number(n).is_some()),
        // Neither name nor number: that is no enum, and reading it says so.
        _ => true,
    };
    if !known {
        *value = instead.into();
    }
    !known
}
