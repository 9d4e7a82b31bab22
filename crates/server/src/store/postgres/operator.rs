//! The operator's view of webhooks, beside the servers that share the database.

use nuncio_protocol::{TaskId, Timestamp};
use tokio_postgres::{Error, Row};

use super::super::operator::{KeyKind, OperatorPush, Resealed, Which};
use super::super::{PushConfig, StoreError, TaskKey};
use super::error::At;
use super::pool::Pool;
use super::text::{escape, unescape};
use super::tls::Tls;
use super::url::Place;
use super::{Durability, agree, limit_of, migrate, push, read};
use crate::push::keyring::Keyring;

/// How many webhooks are read at once.
const PAGE: usize = 256;

/// A database that servers may use at the same time.
pub struct Operator {
    pool: Pool,
    at: At,
}

impl Operator {
    /// Looks at a database, in which a server of this release must have been.
    pub async fn open(url: &str, password: Option<&str>) -> Result<Self, StoreError> {
        let place = Place::read(url, password);
        let mut place = place.map_err(|what| At::new("store".into()).failed(what))?;
        place.settle(Durability::Full);
        place.pool = 2;
        let pool = Pool::new(&place, Tls::new(&place)?, std::time::Duration::from_secs(5))?;
        let operator = Self { pool, at: place.at.clone() };
        let client = operator.pool.get().await?;
        let (found, compatible) = migrate::version(&client, &operator.at).await?;
        drop(client);
        match found {
            0 => {
                Err(operator.at.failed("there is nothing of ours in it: start the server once, or name another store"))
            }
            found if found < migrate::KNOWN => {
                Err(operator.at.failed("the schema is of an older release: start the server once"))
            }
            found if found > migrate::KNOWN && compatible > migrate::KNOWN => {
                Err(operator.at.newer(found.into(), migrate::KNOWN.into()))
            }
            _ => Ok(operator),
        }
    }

    /// See [`super::super::operator::Operator::list`].
    pub async fn list(&self, which: Which, task: Option<&str>, limit: usize) -> Result<Vec<OperatorPush>, StoreError> {
        let (condition, order) = match which {
            Which::Open => ("p.due IS NOT NULL", "p.due, p.task, p.id"),
            Which::Dead => ("p.dead_at IS NOT NULL", "p.dead_at, p.task, p.id"),
        };
        let sql = format!(
            "SELECT {}, t.tenant, t.owner, t.id, t.state, t.seq FROM push AS p JOIN task AS t ON t.key = p.task
             WHERE {condition} AND ($1::text IS NULL OR t.id = $1) ORDER BY {order} LIMIT $2",
            push::COLUMNS
        );
        let rows = self.pool.rows(&sql, &[&task.map(escape), &limit_of(limit)]).await?;
        read::all(&self.at, &rows, webhook)
    }

    /// See [`super::super::operator::Operator::replay`].
    pub async fn replay(&self, webhook: &OperatorPush) -> Result<bool, StoreError> {
        push::replay(&self.pool, webhook.key, &webhook.config.id, Timestamp::now().as_micros()).await
    }

    /// See [`super::super::operator::Operator::reseal`].
    pub async fn reseal(&self, keyring: &Keyring) -> Result<Resealed, StoreError> {
        let mut done = Resealed::default();
        let mut after = (i64::MIN, String::new());
        let sql = format!(
            "SELECT {} FROM push AS p WHERE (p.task, p.id) > ($1, $2) ORDER BY p.task, p.id LIMIT $3",
            push::COLUMNS
        );
        loop {
            let rows = self.pool.rows(&sql, &[&after.0, &escape(&after.1), &limit_of(PAGE)]).await?;
            let page = read::all(&self.at, &rows, push::config)?;
            let Some((task, config)) = page.last() else { return Ok(done) };
            after = (task.0, config.id.to_string());
            for (task, config) in &page {
                if let Some(body) = done.look(config, keyring) {
                    done.changed += usize::from(self.put_body(*task, config, &body).await?);
                }
            }
        }
    }

    /// Replaces what a webhook is, and not how far it has come. False when it is no longer the same.
    async fn put_body(&self, task: TaskKey, config: &PushConfig, body: &[u8]) -> Result<bool, StoreError> {
        let sql = "UPDATE push SET body = $3 WHERE task = $1 AND id = $2 AND body = $4 RETURNING 1";
        let id = escape(config.id.as_str());
        Ok(!self.pool.ask(sql, &[&task.0, &id, &body, &&*config.body]).await?.rows.is_empty())
    }

    /// See [`super::super::operator::Operator::agree`].
    pub async fn agree(&self, kind: KeyKind, keys: &[(String, String)]) -> Result<(), StoreError> {
        let mut client = self.pool.get().await?;
        match agree::agree(&mut client, &self.at, kind, keys, true).await? {
            false => Ok(()),
            true => Err(self
                .at
                .failed("the servers on this database have other keys: use the same `keyring-dir` as they do")),
        }
    }
}

fn webhook(row: &Row) -> Result<OperatorPush, Error> {
    let (key, config) = push::config(row)?;
    let text = |column: usize| row.try_get::<_, &str>(column).map(unescape);
    Ok(OperatorPush {
        key,
        config,
        tenant: text(15)?.into(),
        owner: text(16)?.into(),
        task_id: TaskId::from(&*text(17)?),
        state: read::state(row, 18)?,
        seq: read::count(row, 19)?,
    })
}
