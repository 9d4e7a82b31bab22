//! Identifiers. Each kind is its own type, cheap to clone and to compare.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// An unset id and an empty one are the same thing on the wire.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// A fresh id: unguessable, and ordered by time.
            pub fn fresh() -> Self {
                let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
                Self(Arc::from(&*uuid::Uuid::now_v7().hyphenated().encode_lower(&mut text)))
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(Arc::from(id))
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(Arc::from(id))
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(IdVisitor).map(Self)
            }
        }
    )*};
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, id: &str) -> Result<Arc<str>, E> {
        Ok(Arc::from(id))
    }

    fn visit_unit<E>(self) -> Result<Arc<str>, E> {
        Ok(Arc::default())
    }
}

ids! {
    /// Names a task; made by the server, unique inside its tenant.
    TaskId,
    /// Names a conversation: the tasks and messages that belong together.
    ContextId,
    /// Names a message; made by whoever wrote it.
    MessageId,
    /// Names an artifact inside its task.
    ArtifactId,
    /// Names a webhook configuration inside its task.
    PushId,
}
