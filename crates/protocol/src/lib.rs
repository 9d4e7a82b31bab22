//! What A2A says: the 1.0 model, its JSON form, and the 0.3 dialects. No I/O, no async.

pub mod codec;
mod id;

pub use id::{ArtifactId, ContextId, MessageId, PushId, TaskId};
