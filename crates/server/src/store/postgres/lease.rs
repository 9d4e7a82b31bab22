//! Who may write: nodes that are alive, claims, and what others have left behind.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::super::{Claim, Lease, Micros, Node, Progress, StoreError, TaskKey, TaskRow};
use super::error::At;
use super::pool::Pool;
use super::text::{digest, escape, unescape, who};
use super::{limit_of, read};

/// Nodes of which `table` has rows that satisfy `holds`, but that are not alive. One look per node, however many rows.
pub(super) fn dead_nodes(table: &str, column: &str, holds: &str) -> String {
    format!(
        "holder(name) AS (
            (SELECT {column} FROM {table} WHERE {holds} ORDER BY {column} LIMIT 1)
            UNION ALL
            SELECT (SELECT {column} FROM {table} WHERE {holds} AND {column} > h.name ORDER BY {column} LIMIT 1)
            FROM holder AS h WHERE h.name IS NOT NULL
        ), dead AS MATERIALIZED (
            SELECT h.name FROM holder AS h
            WHERE h.name IS NOT NULL
              AND NOT EXISTS (SELECT FROM node AS n WHERE n.name = h.name AND n.until > clock_timestamp())
        )"
    )
}

/// A task at rest whose node is not alive any more gives its context back. Its epoch is raised, because such a node may
/// only be slow.
pub(super) const EVICT: &str = "\
UPDATE task AS t SET lease_node = '', epoch = t.epoch + 1
WHERE t.context = $1 AND t.lease_node <> '' AND t.state > 2
  AND NOT EXISTS (SELECT FROM node AS n WHERE n.name = t.lease_node AND n.until > clock_timestamp())
RETURNING 1";

/// Takes a lease.
pub(super) async fn claim(
    pool: &Pool,
    at: &At,
    task: TaskKey,
    epoch: i64,
    lease: &Lease,
    retry: bool,
) -> Result<Claim, StoreError> {
    let claim = claim_once(pool, at, task, epoch, lease, retry).await?;
    if claim != Claim::Busy {
        return Ok(claim);
    }
    let Some(row) = pool.row("SELECT context FROM task WHERE key = $1", &[&task.0]).await? else {
        return Ok(Claim::Lost);
    };
    let context: Uuid = row.try_get(0).map_err(|error| at.sql(&error))?;
    if pool.ask(EVICT, &[&context]).await?.rows.is_empty() {
        return Ok(claim);
    }
    claim_once(pool, at, task, epoch, lease, retry).await
}

/// The row is locked first, so that what is seen of it holds.
async fn claim_once(
    pool: &Pool,
    at: &At,
    task: TaskKey,
    epoch: i64,
    lease: &Lease,
    retry: bool,
) -> Result<Claim, StoreError> {
    let sql = format!(
        "WITH seen AS (
            SELECT key, epoch, ticket, context, lease_node FROM task WHERE key = $1::int8 FOR UPDATE
        ), busy AS (
            SELECT FROM seen JOIN node AS n ON n.name = seen.lease_node
            WHERE n.until > clock_timestamp() AND seen.lease_node <> $3::text
            UNION ALL
            SELECT FROM seen JOIN task AS o ON o.context = seen.context AND o.lease_node <> ''
            WHERE o.key <> seen.key AND $3::text <> ''
        ), moved AS (
            UPDATE task AS t SET epoch = t.epoch + 1, attempts = CASE WHEN $4::bool THEN t.attempts + 1 ELSE 0 END,
                                 lease_node = $3::text, ticket = $5::int8
            FROM seen WHERE t.key = seen.key AND seen.epoch = $2::int8 AND NOT EXISTS (SELECT FROM busy)
            RETURNING t.*
        ), mine AS (
            SELECT * FROM moved UNION ALL SELECT t.* FROM task AS t WHERE t.key = $1::int8 AND t.ticket = $5::int8
        )
        SELECT seen.epoch = $2::int8, {} FROM seen LEFT JOIN mine AS t ON true",
        read::COLUMNS
    );
    // Whoever made a claim knows it again by its ticket, even if he did not hear the answer.
    let (_, ticket) = Uuid::new_v4().as_u64_pair();
    let node = escape(&lease.node);
    let asked = pool.try_ask(&sql, &[&task.0, &epoch, &node, &retry, &ticket.cast_signed()]).await?;
    let rows = match asked {
        Ok(rows) => rows,
        // Another turn of the context has begun at the same time.
        Err(SqlState::UNIQUE_VIOLATION) => return Ok(Claim::Busy),
        Err(code) => return Err(at.failed(code.code())),
    };
    let found = read::all(at, &rows, |row| {
        let taken = row.try_get::<_, Option<i64>>(1)?.is_some();
        Ok((row.try_get::<_, bool>(0)?, taken.then(|| read::row_at(row, 1)).transpose()?))
    });
    Ok(match found?.pop() {
        Some((_, Some(row))) => Claim::Taken(Box::new(row)),
        Some((true, None)) => Claim::Busy,
        Some((false, None)) | None => Claim::Lost,
    })
}

/// The same for all tasks at rest of such nodes.
pub(super) async fn evict(pool: &Pool) -> Result<(), StoreError> {
    let sql = format!(
        "WITH RECURSIVE {}
         UPDATE task AS t SET lease_node = '', epoch = t.epoch + 1
         WHERE t.key IN (
             SELECT o.key FROM dead CROSS JOIN LATERAL (
                 SELECT key FROM task WHERE lease_node = dead.name AND lease_node <> '' AND state > 2
                 LIMIT 256 FOR UPDATE SKIP LOCKED
             ) AS o
         ) AND t.state > 2",
        dead_nodes("task", "lease_node", "lease_node <> ''")
    );
    pool.ask(&sql, &[]).await.map(drop)
}

/// See [`super::super::Store::abandoned`]. `node` has no say: if it is not alive, others may take what it holds.
pub(super) async fn abandoned(pool: &Pool, at: &At, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
    let sql = format!(
        "WITH RECURSIVE {},
         left_behind AS (
             SELECT o.key, o.created FROM dead CROSS JOIN LATERAL (
                 SELECT key, created FROM task WHERE lease_node = dead.name AND lease_node <> '' AND state < 3
                 ORDER BY created, key LIMIT $1
             ) AS o
         ), waiting AS (
             SELECT t.key, t.created FROM task AS t
             WHERE t.lease_node = '' AND t.state < 3 AND t.state > 0
               AND NOT EXISTS (SELECT FROM task AS o WHERE o.context = t.context AND o.lease_node <> '')
               AND (SELECT o.key FROM task AS o WHERE o.context = t.context AND o.state < 3
                    ORDER BY o.created, o.key LIMIT 1) = t.key
             ORDER BY t.created, t.key LIMIT $1
         ), found AS (
             SELECT * FROM left_behind UNION ALL SELECT * FROM waiting ORDER BY created, key LIMIT $1
         )
         SELECT {} FROM found JOIN task AS t ON t.key = found.key ORDER BY t.created, t.key",
        dead_nodes("task", "lease_node", "lease_node <> ''"),
        read::COLUMNS
    );
    let rows = pool.rows(&sql, &[&limit_of(limit)]).await?;
    read::all(at, &rows, read::row)
}

pub(super) async fn beat(pool: &Pool, at: &At, node: &Node, ttl: Duration) -> Result<bool, StoreError> {
    let sql = "\
        INSERT INTO node AS n (name, until) VALUES ($1, clock_timestamp() + $2 * interval '1 second')
        ON CONFLICT (name) DO UPDATE SET was = n.until, until = excluded.until
        RETURNING coalesce(was > clock_timestamp(), false)";
    let rows = pool.ask(sql, &[&escape(node), &ttl.as_secs_f64()]).await?.rows;
    let alive = read::all(at, &rows, |row| row.try_get(0))?;
    Ok(alive.first() == Some(&true))
}

pub(super) async fn leave(pool: &Pool, node: &Node) -> Result<(), StoreError> {
    pool.ask("DELETE FROM node WHERE name = $1", &[&escape(node)]).await.map(drop)
}

pub(super) async fn clock(pool: &Pool, at: &At) -> Result<Micros, StoreError> {
    let rows = pool.rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8", &[]).await?;
    let times = read::all(at, &rows, |row| row.try_get(0))?;
    times.into_iter().next().ok_or_else(|| at.failed("the database does not tell the time"))
}

pub(super) async fn nodes(pool: &Pool, at: &At) -> Result<Vec<Node>, StoreError> {
    let rows = pool.rows("SELECT name FROM node WHERE until > clock_timestamp() ORDER BY name", &[]).await?;
    read::all(at, &rows, |row| Ok(unescape(row.try_get(0)?).into()))
}

pub(super) async fn held(pool: &Pool, at: &At, node: &Node) -> Result<Vec<(TaskKey, i64)>, StoreError> {
    let sql = "SELECT key, epoch FROM task WHERE lease_node = $1 AND lease_node <> ''";
    let rows = pool.rows(sql, &[&escape(node)]).await?;
    read::all(at, &rows, |row| Ok((TaskKey(row.try_get(0)?), row.try_get(1)?)))
}

pub(super) async fn progress(pool: &Pool, at: &At, tasks: &[TaskKey]) -> Result<Vec<Progress>, StoreError> {
    let sql = "\
        SELECT t.key, t.epoch, t.seq, t.state, n.name IS NOT NULL FROM task AS t
        LEFT JOIN node AS n ON n.name = t.lease_node AND n.until > clock_timestamp() WHERE t.key = ANY($1)";
    let keys: Vec<i64> = tasks.iter().map(|task| task.0).collect();
    let rows = pool.rows(sql, &[&keys]).await?;
    read::all(at, &rows, |row| {
        Ok(Progress {
            task: TaskKey(row.try_get(0)?),
            epoch: row.try_get(1)?,
            seq: read::count(row, 2)?,
            state: read::state(row, 3)?,
            alive: row.try_get(4)?,
        })
    })
}

pub(super) async fn load(pool: &Pool, at: &At, owner: &str) -> Result<(usize, usize), StoreError> {
    let sql = "\
        SELECT count(n.name), count(*) FILTER (WHERE t.lease_node = '')
        FROM task AS t LEFT JOIN node AS n ON n.name = t.lease_node AND n.until > clock_timestamp()
        WHERE t.who = $1 AND t.owner = $2 AND (t.state < 3 OR t.lease_node <> '')";
    let rows = pool.rows(sql, &[&who(owner), &escape(owner)]).await?;
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let counts = read::all(at, &rows, |row| Ok((size(read::count(row, 0)?), size(read::count(row, 1)?))))?;
    Ok(counts.first().copied().unwrap_or_default())
}

/// See [`super::super::Shared::borrow`]. `until` is the moment from which on nothing is used up.
pub(super) async fn borrow(
    pool: &Pool,
    at: &At,
    who: &str,
    interval: Duration,
    slack: Duration,
    want: u32,
) -> Result<u32, StoreError> {
    let sql = "\
        WITH now AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS at)
        INSERT INTO quota AS q (who, until, at, got)
        SELECT $1::bytea, at + least($4::int8, $3::int8 / $2::int8 + 1) * $2::int8, at,
               least($4::int8, $3::int8 / $2::int8 + 1) FROM now
        ON CONFLICT (who) DO UPDATE SET at = excluded.at,
            got = CASE WHEN q.until > excluded.at + $3::int8 THEN 0
                  ELSE least($4::int8, (excluded.at + $3::int8 - greatest(q.until, excluded.at)) / $2::int8 + 1) END,
            until = greatest(q.until, excluded.at) + $2::int8
                * CASE WHEN q.until > excluded.at + $3::int8 THEN 0
                  ELSE least($4::int8, (excluded.at + $3::int8 - greatest(q.until, excluded.at)) / $2::int8 + 1) END
        RETURNING got";
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4);
    // An interval that is no time at all is no limit.
    let (interval, slack) = (micros(interval).max(1), micros(slack).min(i64::MAX / 4));
    let digest = digest(&[who]);
    let asked = pool.ask(sql, &[&&digest[..], &interval, &slack, &i64::from(want)]).await?;
    let got = read::all(at, &asked.rows, |row| row.try_get::<_, i64>(0))?;
    Ok(got.first().and_then(|got| u32::try_from(*got).ok()).unwrap_or_default())
}
