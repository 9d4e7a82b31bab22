//! The operator's view of webhooks, beside a server that may be running.
//!
//! A second connection to the same file: SQLite keeps readers and the one writer apart, and all that is written here
//! is a cursor, whose epoch tells a server at work that it was moved, and secrets under another key.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nuncio_protocol::{PushId, TaskId, Timestamp};
use rusqlite::{Connection, OpenFlags};

use super::super::{PushConfig, Seq, State, StoreError, TaskKey};
use super::error::At;
use super::{limit_of, migrate, open, push};
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
    key: TaskKey,
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

/// How many webhooks are read at once.
const PAGE: usize = 256;

/// A database that a server may have open at the same time.
pub struct Operator {
    path: PathBuf,
    at: At,
}

impl Operator {
    /// Looks at a database, which must be of this release.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let at = At::new(path);
        let path = std::path::absolute(path).map_err(|error| at.io(&error))?;
        if !path.is_file() {
            return Err(at.failed("there is no database: start the server once, or name another data-dir"));
        }
        let operator = Self { path, at };
        let db = operator.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let found = migrate::version(&db).map_err(|error| operator.at.sql(&error))?;
        match found {
            found if found > migrate::KNOWN => Err(operator.at.newer(found, migrate::KNOWN)),
            found if found < migrate::KNOWN => {
                Err(operator.at.failed("the database is of an older release: start the server once"))
            }
            _ => Ok(operator),
        }
    }

    /// Webhooks, those that wait longest first; those of one task, if it is named.
    pub fn list(&self, which: Which, task: Option<&str>, limit: usize) -> Result<Vec<OperatorPush>, StoreError> {
        let db = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let (condition, order) = match which {
            Which::Open => ("p.due IS NOT NULL", "p.due, p.task, p.id"),
            Which::Dead => ("p.dead_at IS NOT NULL", "p.dead_at, p.task, p.id"),
        };
        let columns: Vec<String> = push::COLUMNS.split(", ").map(|column| format!("p.{column}")).collect();
        let sql = format!(
            "SELECT {}, t.tenant, t.owner, t.id, t.state, t.seq FROM push AS p JOIN task AS t ON t.key = p.task
             WHERE {condition} AND (?1 IS NULL OR t.id = ?1) ORDER BY {order} LIMIT ?2",
            columns.join(", ")
        );
        let read = |db: &Connection| -> rusqlite::Result<Vec<OperatorPush>> {
            let mut select = db.prepare(&sql)?;
            let rows = select.query_map((task, limit_of(limit)), |row| {
                let (key, config) = push::config(row)?;
                Ok(OperatorPush {
                    key,
                    config,
                    tenant: row.get(14)?,
                    owner: row.get(15)?,
                    task_id: TaskId::from(row.get::<_, String>(16)?),
                    state: State(row.get(17)?),
                    seq: row.get::<_, i64>(18)?.cast_unsigned(),
                })
            })?;
            rows.collect()
        };
        read(&db).map_err(|error| self.at.sql(&error))
    }

    /// Sends what was given up once more, and all that came after it. A server that runs notices within seconds,
    /// another one when it starts. False when the webhook is gone or has nothing to replay.
    pub fn replay(&self, webhook: &OperatorPush) -> Result<bool, StoreError> {
        let db = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let id: &PushId = &webhook.config.id;
        push::replay(&db, webhook.key, id, Timestamp::now().as_micros()).map_err(|error| self.at.sql(&error))
    }

    /// Puts the secrets of all webhooks under the active key. A webhook that is replaced at the same time stays as it
    /// is; call this again until nothing changes.
    pub fn reseal(&self, keyring: &Keyring) -> Result<Resealed, StoreError> {
        let db = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let mut done = Resealed::default();
        let mut after = (i64::MIN, String::new());
        loop {
            let page = push::page(&db, (after.0, &after.1), PAGE).map_err(|error| self.at.sql(&error))?;
            let Some((task, config)) = page.last() else { return Ok(done) };
            after = (task.0, config.id.to_string());
            for (task, config) in &page {
                let key = match Hook::reseal(config, keyring) {
                    Ok(Some(body)) => {
                        let put = push::put_body(&db, *task, config, &body).map_err(|error| self.at.sql(&error))?;
                        done.changed += usize::from(put);
                        keyring.ids().into_iter().next()
                    }
                    Ok(None) => Hook::key_id(config),
                    Err(_) => {
                        done.unreadable += 1;
                        Hook::key_id(config)
                    }
                };
                done.in_use.extend(key);
            }
        }
    }

    fn connect(&self, access: OpenFlags) -> Result<Connection, StoreError> {
        open::beside(&self.path, access).map_err(|error| self.at.sql(&error))
    }
}
