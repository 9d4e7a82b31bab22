//! The operator's view of webhooks, beside servers that may be running.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use nuncio_protocol::TaskId;

use super::{PushConfig, Seq, State, StoreError, TaskKey, postgres, sqlite};
use crate::push::hook::Hook;
use crate::push::keyring::Keyring;

/// A webhook with the task that it belongs to.
#[derive(Clone, Debug)]
pub struct OperatorPush {
    /// The tenant of the task.
    pub tenant: Arc<str>,
    /// The caller who owns the task.
    pub owner: Arc<str>,
    /// The task.
    pub task_id: TaskId,
    /// Where the task stands.
    pub state: State,
    /// The task's last event.
    pub seq: Seq,
    /// The webhook.
    pub config: PushConfig,
    pub(super) key: TaskKey,
}

impl OperatorPush {
    /// Where the webhook leads.
    pub fn url(&self) -> String {
        Hook::read(&self.config).map(|hook| hook.url).unwrap_or_default()
    }
}

/// Which webhooks to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that have, or may get, something to deliver.
    Open,
    /// Those that did not take everything.
    Dead,
}

/// What came of putting secrets under another key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// How many webhooks have the new key now, and had another before.
    pub changed: usize,
    /// How many cannot be read, and stay as they are.
    pub unreadable: usize,
    /// The keys that are needed.
    pub in_use: BTreeSet<String>,
}

impl Resealed {
    /// The webhook under the active key, if it has another.
    pub(super) fn look(&mut self, config: &PushConfig, keyring: &Keyring) -> Option<Vec<u8>> {
        let (key, body) = match Hook::reseal(config, keyring) {
            Ok(Some(body)) => (keyring.ids().into_iter().next(), Some(body)),
            Ok(None) => (Hook::key_id(config), None),
            Err(_) => {
                self.unreadable += 1;
                (Hook::key_id(config), None)
            }
        };
        self.in_use.extend(key);
        body.map(|body| body.to_vec())
    }
}

/// A database that servers may have open at the same time.
pub enum Operator {
    /// The file of one server.
    Sqlite(sqlite::Operator),
    /// A database that servers share.
    Postgres(Box<postgres::Operator>),
}

impl Operator {
    /// Looks at a file, which must be of this release.
    pub fn sqlite(path: &Path) -> Result<Self, StoreError> {
        sqlite::Operator::open(path).map(Self::Sqlite)
    }

    /// Looks at a database, whose schema must be there.
    pub async fn postgres(url: &str, password: Option<&str>) -> Result<Self, StoreError> {
        Ok(Self::Postgres(Box::new(postgres::Operator::open(url, password).await?)))
    }

    /// Webhooks, those that wait longest first; those of one task, if it is named.
    pub async fn list(&self, which: Which, task: Option<&str>, limit: usize) -> Result<Vec<OperatorPush>, StoreError> {
        match self {
            Self::Sqlite(operator) => operator.list(which, task, limit),
            Self::Postgres(operator) => operator.list(which, task, limit).await,
        }
    }

    /// Sends what was given up once more, and all that came after it. A server that runs notices within seconds,
    /// another one when it starts. False when the webhook is gone or has nothing to replay.
    pub async fn replay(&self, webhook: &OperatorPush) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(operator) => operator.replay(webhook),
            Self::Postgres(operator) => operator.replay(webhook).await,
        }
    }

    /// Puts the secrets of all webhooks under the active key. A webhook that is replaced at the same time stays as it
    /// is; call this again until nothing changes.
    pub async fn reseal(&self, keyring: &Keyring) -> Result<Resealed, StoreError> {
        match self {
            Self::Sqlite(operator) => operator.reseal(keyring),
            Self::Postgres(operator) => operator.reseal(keyring).await,
        }
    }

    /// Tells servers that share the store which keys they have in common from now on.
    pub async fn agree(&self, kind: KeyKind, keys: &[(String, String)]) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(operator) => operator.agree(kind, keys).await,
        }
    }
}

/// What keys are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Secrets of webhooks are sealed with them.
    Keyring,
    /// Notifications are signed with them.
    Signing,
}
