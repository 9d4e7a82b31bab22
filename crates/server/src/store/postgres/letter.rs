//! What nodes ask of each other: messages for tasks, cancellations, and webhooks that somebody should have in hand.

use nuncio_protocol::PushId;
use tokio_postgres::{Error, Row};

use super::super::{
    IdempotencyKey, Letter, LetterId, Micros, Node, Order, Posted, PushConfig, StoreError, TaskKey, WAITING,
};
use super::error::At;
use super::pool::Pool;
use super::text::{escape, unescape};
use super::{limit_of, push, read};

pub(super) async fn orders(pool: &Pool, at: &At, node: &Node) -> Result<Vec<Order>, StoreError> {
    let sql = "\
        SELECT t.key, NULL::int8 AS letter, NULL::bytea, NULL::text, NULL::int8, NULL::int8
        FROM cancel AS c JOIN task AS t ON t.key = c.task
        WHERE t.lease_node = $1 AND t.state NOT IN (3, 4, 5, 7)
        UNION ALL
        SELECT t.key, l.id, l.message, l.key, l.since, l.at
        FROM letter AS l JOIN task AS t ON t.key = l.task
        WHERE l.taken IS NULL AND t.lease_node = $1
        ORDER BY letter NULLS FIRST";
    let rows = pool.rows(sql, &[&escape(node)]).await?;
    read::all(at, &rows, order)
}

fn order(row: &Row) -> Result<Order, Error> {
    let task = TaskKey(row.try_get(0)?);
    let Some(id) = row.try_get::<_, Option<i64>>(1)? else { return Ok(Order::Cancel(task)) };
    let key = row.try_get::<_, Option<&str>>(3)?.map(|key| unescape(key).into());
    let since: Option<i64> = row.try_get(4)?;
    let letter = Letter {
        message: read::bytes(row, 2)?,
        key: key.zip(since).map(|(key, since)| IdempotencyKey { key, since }),
        at: row.try_get(5)?,
    };
    Ok(Order::Deliver(task, LetterId(id), letter))
}

pub(super) async fn ask_cancel(pool: &Pool, task: TaskKey) -> Result<(), StoreError> {
    let sql = "\
        INSERT INTO cancel (task) SELECT key FROM task WHERE key = $1 AND state NOT IN (3, 4, 5, 7)
        ON CONFLICT DO NOTHING";
    pool.ask(sql, &[&task.0]).await.map(drop)
}

pub(super) async fn is_cancel_asked(pool: &Pool, task: TaskKey) -> Result<bool, StoreError> {
    Ok(pool.row("SELECT 1 FROM cancel WHERE task = $1", &[&task.0]).await?.is_some())
}

pub(super) async fn post(pool: &Pool, at: &At, task: TaskKey, letter: &Letter) -> Result<LetterId, StoreError> {
    // Numbered first, so that an attempt whose answer was lost is known again.
    let rows = pool.ask("SELECT nextval('number')", &[]).await?.rows;
    let numbers: Vec<i64> = read::all(at, &rows, |row| row.try_get(0))?;
    let Some(id) = numbers.first() else { return Err(at.failed("no number for a letter")) };
    let sql = "\
        WITH new AS (
            INSERT INTO letter (id, task, at, since, key, message)
            SELECT $1::int8, $2::int8, $3::int8, $4::int8, $5::text, $6::bytea
            WHERE EXISTS (SELECT FROM task WHERE key = $2::int8)
            ON CONFLICT (id) DO NOTHING RETURNING id
        )
        SELECT id FROM new UNION ALL SELECT id FROM letter WHERE id = $1::int8";
    let (key, since) = (letter.key.as_ref().map(|key| escape(&key.key)), letter.key.as_ref().map(|key| key.since));
    let asked = pool.ask(sql, &[id, &task.0, &letter.at, &since, &key, &&*letter.message]).await?;
    if asked.rows.is_empty() { Err(at.failed("the task does not exist")) } else { Ok(LetterId(*id)) }
}

pub(super) async fn posted(pool: &Pool, at: &At, letter: LetterId) -> Result<Posted, StoreError> {
    let rows = pool.rows("SELECT taken FROM letter WHERE id = $1", &[&letter.0]).await?;
    let found = read::all(at, &rows, |row| row.try_get::<_, Option<i64>>(0))?;
    Ok(match found.first() {
        None => Posted::Gone,
        Some(None) => Posted::Waits,
        Some(Some(seq)) => Posted::Taken(seq.cast_unsigned()),
    })
}

pub(super) async fn recall(pool: &Pool, at: &At, letter: LetterId) -> Result<Posted, StoreError> {
    let sql = "DELETE FROM letter WHERE id = $1 AND taken IS NULL RETURNING 1";
    let asked = pool.ask(sql, &[&letter.0]).await?;
    if !asked.rows.is_empty() {
        return Ok(Posted::Waits);
    }
    match posted(pool, at, letter).await? {
        // An earlier attempt has taken it back.
        Posted::Gone if asked.again => Ok(Posted::Waits),
        other => Ok(other),
    }
}

pub(super) async fn take_pushes(
    pool: &Pool,
    at: &At,
    node: &Node,
    now: Micros,
    limit: usize,
) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
    let sql = format!(
        "WITH RECURSIVE {},
         free AS MATERIALIZED (
             SELECT o.task, o.id FROM dead CROSS JOIN LATERAL (
                 SELECT task, id FROM push WHERE node = dead.name AND due IS NOT NULL
                 ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED
             ) AS o LIMIT $3
         )
         UPDATE push AS p SET node = $1, epoch = p.epoch + 1, due = CASE WHEN p.due = $4 THEN $2::int8 ELSE p.due END
         FROM free WHERE p.task = free.task AND p.id = free.id
         RETURNING {}",
        super::lease::dead_nodes("push", "node", "due IS NOT NULL"),
        push::COLUMNS
    );
    let asked = pool.ask(&sql, &[&escape(node), &now, &limit_of(limit), &WAITING]).await?;
    read::all(at, &asked.rows, push::config)
}

pub(super) async fn take_push(pool: &Pool, task: TaskKey, id: &PushId, node: &Node) -> Result<bool, StoreError> {
    let sql = "\
        UPDATE push AS p SET node = $3, epoch = CASE WHEN p.node = $3 THEN p.epoch ELSE p.epoch + 1 END
        WHERE p.task = $1 AND p.id = $2
          AND (p.node = $3 OR NOT EXISTS (SELECT FROM node AS n WHERE n.name = p.node AND n.until > clock_timestamp()))
        RETURNING 1";
    Ok(!pool.ask(sql, &[&task.0, &escape(id.as_str()), &escape(node)]).await?.rows.is_empty())
}
