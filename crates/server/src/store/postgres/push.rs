//! Webhooks and their cursors.

use std::borrow::Cow;

use nuncio_protocol::PushId;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::super::{Backlog, Dead, Micros, PushConfig, State, StoreError, TaskKey, WAITING};
use super::error::At;
use super::pool::Pool;
use super::text::{escape, unescape};
use super::{limit_of, number, read};

/// The columns of a [`PushConfig`], for `push AS p`.
pub(super) const COLUMNS: &str = "p.task, p.id, p.body, p.version, p.acked, p.attempts, p.due, p.last_error, p.epoch, \
     p.since, p.told, p.dead_from, p.dead_count, p.dead_at, p.node";

pub(super) fn config(row: &Row) -> Result<(TaskKey, PushConfig), Error> {
    let text = |column: usize| row.try_get::<_, &str>(column).map(unescape);
    let dead = match row.try_get::<_, Option<i64>>(11)? {
        None => None,
        Some(from) => Some(Dead { from: from.cast_unsigned(), count: read::count(row, 12)?, at: row.try_get(13)? }),
    };
    let node = text(14)?;
    let config = PushConfig {
        id: PushId::from(&*text(1)?),
        body: read::bytes(row, 2)?,
        version: text(3)?.into(),
        acked: read::count(row, 4)?,
        attempts: row.try_get::<_, i32>(5)?.cast_unsigned(),
        due: row.try_get(6)?,
        last_error: row.try_get::<_, Option<&str>>(7)?.map(|error| unescape(error).into_owned()),
        epoch: row.try_get(8)?,
        since: row.try_get(9)?,
        told: row.try_get::<_, Option<i16>>(10)?.map(|state| State(u8::try_from(state).unwrap_or_default())),
        dead,
        node: (!node.is_empty()).then(|| node.into()),
    };
    Ok((TaskKey(row.try_get(0)?), config))
}

/// Webhooks as columns, to be stored with new tasks or by themselves.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) task: Vec<i64>,
    id: Vec<Cow<'a, str>>,
    body: Vec<&'a [u8]>,
    version: Vec<Cow<'a, str>>,
    acked: Vec<i64>,
    attempts: Vec<i32>,
    due: Vec<Option<i64>>,
    last_error: Vec<Option<Cow<'a, str>>>,
    epoch: Vec<i64>,
    since: Vec<Option<i64>>,
    told: Vec<Option<i16>>,
    dead_from: Vec<Option<i64>>,
    dead_count: Vec<i64>,
    dead_at: Vec<Option<i64>>,
    node: Vec<Cow<'a, str>>,
}

impl<'a> Columns<'a> {
    pub(super) fn add(&mut self, task: i64, config: &'a PushConfig) {
        self.task.push(task);
        self.id.push(escape(config.id.as_str()));
        self.body.push(&config.body);
        self.version.push(escape(&config.version));
        self.acked.push(number(config.acked));
        self.attempts.push(config.attempts.cast_signed());
        self.due.push(config.due);
        self.last_error.push(config.last_error.as_deref().map(escape));
        self.epoch.push(config.epoch);
        self.since.push(config.since);
        self.told.push(config.told.map(|state| state.0.into()));
        self.dead_from.push(config.dead.map(|dead| number(dead.from)));
        self.dead_count.push(config.dead.map_or(0, |dead| number(dead.count)));
        self.dead_at.push(config.dead.map(|dead| dead.at));
        self.node.push(config.node.as_deref().map_or(Cow::Borrowed(""), escape));
    }

    pub(super) fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.task,
            &self.id,
            &self.body,
            &self.version,
            &self.acked,
            &self.attempts,
            &self.due,
            &self.last_error,
            &self.epoch,
            &self.since,
            &self.told,
            &self.dead_from,
            &self.dead_count,
            &self.dead_at,
            &self.node,
        ]
    }

    /// The values of the one webhook that was added.
    fn one(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.task[0],
            &self.id[0],
            &self.body[0],
            &self.version[0],
            &self.acked[0],
            &self.attempts[0],
            &self.due[0],
            &self.last_error[0],
            &self.epoch[0],
            &self.since[0],
            &self.told[0],
            &self.dead_from[0],
            &self.dead_count[0],
            &self.dead_at[0],
            &self.node[0],
        ]
    }
}

/// False when there is no such task.
pub(super) async fn put(pool: &Pool, task: TaskKey, config: &PushConfig) -> Result<bool, StoreError> {
    let mut columns = Columns::default();
    columns.add(task.0, config);
    let sql = "\
        INSERT INTO push AS p (task, id, body, version, acked, attempts, due, last_error, epoch, since, told, dead_from,
                               dead_count, dead_at, node)
        SELECT $1::int8, $2::text, $3::bytea, $4::text, $5::int8, $6::int4, $7::int8, $8::text, $9::int8, $10::int8,
               $11::int2, $12::int8, $13::int8, $14::int8, $15::text
        WHERE EXISTS (SELECT FROM task WHERE key = $1)
        ON CONFLICT (task, id) DO UPDATE SET body = excluded.body, version = excluded.version, acked = excluded.acked,
            attempts = excluded.attempts, due = excluded.due, last_error = excluded.last_error,
            epoch = greatest(excluded.epoch, p.epoch + 1), since = excluded.since, told = excluded.told,
            dead_from = excluded.dead_from, dead_count = excluded.dead_count, dead_at = excluded.dead_at,
            node = excluded.node
        RETURNING 1";
    Ok(!pool.ask(sql, &columns.one()).await?.rows.is_empty())
}

pub(super) async fn delete(pool: &Pool, task: TaskKey, id: &PushId) -> Result<bool, StoreError> {
    let sql = "DELETE FROM push WHERE task = $1 AND id = $2 RETURNING 1";
    let asked = pool.ask(sql, &[&task.0, &escape(id.as_str())]).await?;
    // What an earlier attempt has removed is not there any more.
    Ok(!asked.rows.is_empty() || asked.again)
}

/// A cursor behind the stored one, or an old epoch, tells of what is over: all of it is out of date.
pub(super) async fn advance(pool: &Pool, task: TaskKey, config: &PushConfig) -> Result<bool, StoreError> {
    let mut columns = Columns::default();
    columns.add(task.0, config);
    let sql = "\
        UPDATE push SET acked = $3, attempts = $4, due = $5, last_error = $6, since = $8, told = $9, dead_from = $10,
                        dead_count = $11, dead_at = $12
        WHERE task = $1 AND id = $2 AND acked <= $3 AND epoch = $7 RETURNING 1";
    let all = columns.one();
    let params: Vec<&(dyn ToSql + Sync)> =
        [0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13].into_iter().map(|column| all[column]).collect();
    Ok(!pool.ask(sql, &params).await?.rows.is_empty())
}

pub(super) async fn wake(pool: &Pool, now: Micros) -> Result<usize, StoreError> {
    let sql = "UPDATE push SET due = $1 WHERE due IS NOT NULL AND due = $2 RETURNING 1";
    Ok(pool.ask(sql, &[&now, &WAITING]).await?.rows.len())
}

/// Moves a webhook back before what was given up. Whoever delivers notices by the epoch.
pub(super) async fn replay(pool: &Pool, task: TaskKey, id: &PushId, now: Micros) -> Result<bool, StoreError> {
    let sql = "\
        UPDATE push SET acked = least(acked, dead_from - 1), attempts = 0, due = $3, since = NULL, told = NULL,
                        dead_from = NULL, dead_count = 0, dead_at = NULL, epoch = epoch + 1
        WHERE task = $1 AND id = $2 AND dead_from IS NOT NULL RETURNING 1";
    Ok(!pool.ask(sql, &[&task.0, &escape(id.as_str()), &now]).await?.rows.is_empty())
}

pub(super) async fn backlog(pool: &Pool, at: &At) -> Result<Backlog, StoreError> {
    let sql = "\
        SELECT (SELECT count(*) FROM push WHERE due < 9223372036854775807),
               (SELECT min(since) FROM push WHERE due < 9223372036854775807),
               (SELECT coalesce(sum(dead_count), 0)::int8 FROM push WHERE dead_at IS NOT NULL)";
    let rows = pool.rows(sql, &[]).await?;
    let read =
        |row: &Row| Ok(Backlog { pending: read::count(row, 0)?, oldest: row.try_get(1)?, dead: read::count(row, 2)? });
    Ok(read::all(at, &rows, read)?.pop().unwrap_or_default())
}

pub(super) async fn of_task(pool: &Pool, at: &At, task: TaskKey) -> Result<Vec<PushConfig>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM push AS p WHERE p.task = $1 ORDER BY p.id");
    let rows = pool.rows(&sql, &[&task.0]).await?;
    read::all(at, &rows, |row| Ok(config(row)?.1))
}

pub(super) async fn due(
    pool: &Pool,
    at: &At,
    node: &str,
    now: Micros,
    limit: usize,
) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM push AS p WHERE p.node = $1 AND p.due IS NOT NULL AND p.due <= $2
         ORDER BY p.due, p.task, p.id LIMIT $3"
    );
    let rows = pool.rows(&sql, &[&escape(node), &now, &limit_of(limit)]).await?;
    read::all(at, &rows, config)
}
