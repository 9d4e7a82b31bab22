//! Removing what is old, in transactions short enough that appends do not notice.

use deadpool_postgres::Object;
use tokio_postgres::Error;
use uuid::Uuid;

use super::super::{Micros, Older, StoreError};
use super::error::At;
use super::limit_of;
use super::pool::Pool;

/// Tasks per transaction.
const TASKS: usize = 64;
/// Rows of other tables per transaction.
const ROWS: i64 = 2_000;

/// Only one server trims at a time: the others have better things to do than to wait for its locks.
const LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended('nuncio trim ' || current_schema(), 0))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtextextended('nuncio trim ' || current_schema(), 0))";

/// Tasks that are old enough go with everything but their events, which may be many. They are found without
/// looking at the others: caller by caller, because the order by time is kept per caller.
const REMOVE: &str = "\
WITH old AS MATERIALIZED (
    SELECT t.key FROM (SELECT DISTINCT scope FROM tally) AS who CROSS JOIN LATERAL (
        SELECT o.key FROM task AS o
        WHERE o.scope = who.scope AND o.updated < $1 AND o.state > 2
          AND (o.state IN (3, 4, 5, 7) OR $3::bool AND o.state IN (6, 8) AND o.lease_node = '')
        ORDER BY o.updated LIMIT $2 FOR UPDATE SKIP LOCKED
    ) AS t LIMIT $2
), gone AS (
    DELETE FROM task WHERE key IN (SELECT key FROM old) RETURNING key, scope, state
), inboxes AS (
    DELETE FROM inbox WHERE task IN (SELECT key FROM old)
), pushes AS (
    DELETE FROM push WHERE task IN (SELECT key FROM old)
), letters AS (
    DELETE FROM letter WHERE task IN (SELECT key FROM old)
), cancels AS (
    DELETE FROM cancel WHERE task IN (SELECT key FROM old)
), snapshots AS (
    DELETE FROM snapshot WHERE task IN (SELECT key FROM old)
), trashed AS (
    INSERT INTO trash SELECT key FROM gone ON CONFLICT DO NOTHING
), counted AS (
    INSERT INTO tally AS t (scope, state, slot, n)
    SELECT scope, state, -1, -count(*) FROM gone GROUP BY scope, state ORDER BY scope, state
    ON CONFLICT (scope, state, slot) DO UPDATE SET n = t.n + excluded.n
)
SELECT count(*) FROM gone";

/// Some events of trimmed tasks.
const SWEEP: &str = "\
WITH old AS MATERIALIZED (
    SELECT e.task, e.seq FROM (SELECT task FROM trash ORDER BY task LIMIT 64) AS t
    CROSS JOIN LATERAL (SELECT task, seq FROM event WHERE event.task = t.task LIMIT $1) AS e LIMIT $1
), gone AS (
    DELETE FROM event USING old WHERE event.task = old.task AND event.seq = old.seq RETURNING 1
)
SELECT count(*) FROM gone";

/// Trimmed tasks without events.
const EMPTY: &str = "\
WITH gone AS (
    DELETE FROM trash WHERE task IN (
        SELECT t.task FROM (SELECT task FROM trash ORDER BY task LIMIT 64) AS t
        WHERE NOT EXISTS (SELECT FROM event WHERE event.task = t.task)
    ) RETURNING 1
)
SELECT count(*) FROM gone";

const KEYS: &str = "\
WITH gone AS (
    DELETE FROM idempotency AS i USING (
        SELECT scope, digest FROM idempotency WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
    ) AS old WHERE i.scope = old.scope AND i.digest = old.digest RETURNING 1
)
SELECT count(*) FROM gone";

/// Some sessions in the order of their age, without those whose conversation still has a task. Says where it stopped.
const SESSIONS: &str = "\
WITH old AS MATERIALIZED (
    SELECT at, scope, digest, context FROM session
    WHERE at < $1 AND (at, scope, digest) > ($3, $4, $5) ORDER BY at, scope, digest LIMIT $2
), gone AS (
    DELETE FROM session AS s USING old WHERE s.scope = old.scope AND s.digest = old.digest AND s.at < $1
      AND NOT EXISTS (SELECT FROM task AS t WHERE t.context = old.context AND t.state > 2)
      AND NOT EXISTS (SELECT FROM task AS t WHERE t.context = old.context AND t.state < 3)
)
SELECT at, scope, digest FROM old ORDER BY at DESC, scope DESC, digest DESC LIMIT 1";

const LETTERS: &str = "\
WITH gone AS (
    DELETE FROM letter WHERE id IN (SELECT id FROM letter WHERE at < $1 ORDER BY at LIMIT $2) RETURNING 1
)
SELECT count(*) FROM gone";

/// Slots that nobody is about to change become one.
const FOLD: &str = "\
WITH idle AS MATERIALIZED (
    SELECT scope, state, slot, n FROM tally WHERE slot >= 0 ORDER BY scope, state, slot LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM tally AS t USING idle WHERE t.scope = idle.scope AND t.state = idle.state AND t.slot = idle.slot
    RETURNING t.scope, t.state, t.n
), folded AS (
    INSERT INTO tally AS t (scope, state, slot, n)
    SELECT scope, state, -1, sum(n) FROM gone GROUP BY scope, state ORDER BY scope, state
    ON CONFLICT (scope, state, slot) DO UPDATE SET n = t.n + excluded.n
)
SELECT count(*) FROM gone";

/// What is left to say of callers without tasks, and of servers that have long been gone.
const FORGET: &str = "\
DELETE FROM tally WHERE slot = -1 AND n = 0;
DELETE FROM node WHERE until < clock_timestamp() - interval '1 day';
DELETE FROM quota WHERE until < (extract(epoch FROM clock_timestamp()) * 1000000)::int8;";

pub(super) async fn trim(pool: &Pool, at: &At, than: &Older, limit: usize) -> Result<usize, StoreError> {
    let client = pool.get().await?;
    let done = locked(&client, than, limit).await;
    if done.is_err() {
        // The lock ends with the connection, whatever state it is in.
        drop(Object::take(client));
    }
    done.map_err(|error| at.sql(&error))
}

async fn locked(client: &Object, than: &Older, limit: usize) -> Result<usize, Error> {
    if !client.query_one(LOCK, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let mut removed = 0;
    while removed < limit {
        let room = TASKS.min(limit - removed);
        let some = count(client, REMOVE, &[&than.before, &limit_of(room), &than.at_rest.is_some()]).await?;
        if some == 0 {
            break;
        }
        removed += some;
    }
    while count(client, SWEEP, &[&ROWS]).await? + count(client, EMPTY, &[]).await? > 0 {}
    for old in [KEYS, LETTERS] {
        while count(client, old, &[&than.keys, &ROWS]).await? > 0 {}
    }
    // Where more tasks are to go, their conversations are looked at afterwards.
    if removed < limit {
        forget_sessions(client, than.before).await?;
    }
    // Slots in use come back at once, so this goes through them once and not until none are left.
    count(client, FOLD, &[&limit_of(100_000)]).await?;
    client.batch_execute(FORGET).await?;
    client.query_one(UNLOCK, &[]).await?;
    Ok(removed)
}

async fn forget_sessions(client: &Object, before: Micros) -> Result<(), Error> {
    let statement = client.prepare_cached(SESSIONS).await?;
    let mut after = (Micros::MIN, Uuid::nil(), Vec::new());
    while let Some(last) = client.query_opt(&statement, &[&before, &ROWS, &after.0, &after.1, &after.2]).await? {
        after = (last.try_get(0)?, last.try_get(1)?, last.try_get::<_, Vec<u8>>(2)?);
    }
    Ok(())
}

async fn count(client: &Object, sql: &str, params: super::pool::Params<'_>) -> Result<usize, Error> {
    let statement = client.prepare_cached(sql).await?;
    let n: i64 = client.query_one(&statement, params).await?.try_get(0)?;
    Ok(usize::try_from(n).unwrap_or_default())
}
