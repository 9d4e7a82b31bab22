//! The operator's view of webhooks, beside a server that may be running.
//!
//! A second connection to the same file: SQLite keeps readers and the one writer apart, and all that is written here
//! is a cursor, whose epoch tells a server at work that it was moved, and secrets under another key.

use std::path::{Path, PathBuf};

use nuncio_protocol::{PushId, TaskId, Timestamp};
use rusqlite::{Connection, OpenFlags};

use super::super::operator::{OperatorPush, Resealed, Which};
use super::super::{State, StoreError};
use super::error::At;
use super::{limit_of, migrate, open, push};
use crate::push::keyring::Keyring;

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
                if let Some(body) = done.look(config, keyring) {
                    let put = push::put_body(&db, *task, config, &body).map_err(|error| self.at.sql(&error))?;
                    done.changed += usize::from(put);
                }
            }
        }
    }

    fn connect(&self, access: OpenFlags) -> Result<Connection, StoreError> {
        open::beside(&self.path, access).map_err(|error| self.at.sql(&error))
    }
}
