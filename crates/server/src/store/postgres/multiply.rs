//! Many tasks out of one, made by the database itself: for measurements beside a million others.

use super::super::{StoreError, TaskKey};
use super::{PostgresStore, read};

/// How many tasks one transaction makes: so many blocks of numbers.
const BLOCKS: u64 = 16;
const BLOCK: u64 = 1024;

/// Copies a task with its events and its snapshot. Every copy has an id and a context of its own, as long as the old ones,
/// so that the lengths of packed events stay true; each is a millisecond older than the one before.
const COPY: &str = "\
WITH model AS MATERIALIZED (
    SELECT t.*, encode(convert_to(t.id, 'UTF8'), 'hex') AS id_hex,
           encode(convert_to(t.context_id, 'UTF8'), 'hex') AS context_hex FROM task AS t WHERE t.key = $1
), numbers AS MATERIALIZED (
    SELECT b.start + n AS key, (i - 1) * 1024 + n AS nth
    FROM (SELECT i, nextval('number') AS start FROM generate_series(1::int8, $2::int8) AS i) AS b
    CROSS JOIN generate_series(0, 1023) AS n
), named AS MATERIALIZED (
    SELECT key, nth, substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-7' || substr(h, 13, 3) || '-8' || substr(h, 16, 3)
               || '-' || substr(h, 19, 12) AS id,
           substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-7' || substr(h, 13, 3) || '-9' || substr(h, 16, 3)
               || '-' || substr(h, 19, 12) AS context_id
    FROM (SELECT key, nth, lpad(to_hex(key), 12, '0') || md5(key::text) AS h FROM numbers) AS hashed
), tasks AS (
    INSERT INTO task (key, scope, context, realm, who, seq, epoch, snapshot_seq, created, updated, state, was, lease_node,
                      tenant, owner, id, context_id, agent)
    SELECT n.key, m.scope,
           encode(substring(sha256($3::bytea || int8send(length(n.context_id)) || convert_to(n.context_id, 'UTF8'))
                            FROM 1 FOR 16), 'hex')::uuid,
           m.realm, m.who, m.seq, m.epoch, m.snapshot_seq, m.created - ($4::int8 + n.nth) * 1000,
           m.updated - ($4::int8 + n.nth) * 1000, m.state, m.state, '', m.tenant, m.owner, n.id, n.context_id, m.agent
    FROM named AS n CROSS JOIN model AS m RETURNING key, scope, state
), events AS (
    INSERT INTO event (task, seq, body)
    SELECT n.key, e.seq, decode(replace(replace(encode(e.body, 'hex'), m.id_hex, encode(convert_to(n.id, 'UTF8'), 'hex')),
                                        m.context_hex, encode(convert_to(n.context_id, 'UTF8'), 'hex')), 'hex')
    FROM event AS e CROSS JOIN model AS m CROSS JOIN named AS n WHERE e.task = $1
), snapshots AS (
    INSERT INTO snapshot (task, body)
    SELECT n.key, decode(replace(replace(encode(s.body, 'hex'), m.id_hex, encode(convert_to(n.id, 'UTF8'), 'hex')),
                                 m.context_hex, encode(convert_to(n.context_id, 'UTF8'), 'hex')), 'hex')
    FROM snapshot AS s CROSS JOIN model AS m CROSS JOIN named AS n WHERE s.task = $1
), counted AS (
    INSERT INTO tally AS t (scope, state, slot, n) SELECT scope, state, -1, count(*) FROM tasks GROUP BY scope, state
    ON CONFLICT (scope, state, slot) DO UPDATE SET n = t.n + excluded.n
)
SELECT count(*) FROM tasks";

impl PostgresStore {
    /// Makes copies of a task that is over and whose id and context are UUIDs: so many, rounded up to a block of 1,024,
    /// each older than the one before. Returns how many were made.
    pub async fn multiply(&self, task: TaskKey, times: u64) -> Result<u64, StoreError> {
        let Some(row) = read::task_by_key(&self.pool, &self.at, task).await? else {
            return Err(self.at.failed("the task does not exist"));
        };
        if !row.state.is_final() || row.id.as_str().len() != 36 || row.context_id.as_str().len() != 36 {
            return Err(self.at.failed("only a task that is over, with UUIDs for its id and context, can be copied"));
        }
        let mut scope = Vec::new();
        for part in [&row.scope.tenant, &row.scope.owner] {
            scope.extend_from_slice(&(part.len() as u64).to_be_bytes());
            scope.extend_from_slice(part.as_bytes());
        }
        let mut made = 0;
        while made < times {
            let blocks = (times - made).div_ceil(BLOCK).min(BLOCKS);
            let (count, after) = (i64::try_from(blocks).unwrap_or(1), i64::try_from(made).unwrap_or(i64::MAX));
            let client = self.pool.get().await?;
            let copied = client.query_one(COPY, &[&task.0, &count, &scope, &after]).await;
            let copied = copied.and_then(|row| read::count(&row, 0)).map_err(|error| self.at.sql(&error))?;
            made += copied;
        }
        Ok(made)
    }

    /// Has the database look at what it holds, as it does by itself after a while.
    pub async fn analyze(&self) -> Result<(), StoreError> {
        let client = self.pool.get().await?;
        client.batch_execute("VACUUM ANALYZE").await.map_err(|error| self.at.sql(&error))
    }
}
