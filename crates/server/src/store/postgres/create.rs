//! New tasks of one batch.

use std::borrow::Cow;

use bytes::Bytes;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::super::packed::pack_rows;
use super::super::{Created, NewTask, StoreError};
use super::text::{context, digest, escape, realm, scope, who};
use super::{ROW_BYTES, number};

/// Makes tasks, unless their key was used, their id exists, or another turn of their context runs; tells which ones were
/// made (1), and whose keys are theirs (2). A key that points to the same task is from an earlier attempt at it. Keys and
/// contexts are taken in their order, so that two batches cannot wait for each other.
pub(super) const CREATE: &str = "\
WITH new AS (
    SELECT * FROM unnest($1::int8[], $2::uuid[], $3::uuid[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[],
                         $9::int8[], $10::int2[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
                         $16::text[], $17::bytea[], $18::int8[])
    AS n(key, scope, context, realm, who, seq, snapshot_seq, created, updated, state, lease_node, tenant, owner, id,
         context_id, agent, digest, since)
), used AS (
    INSERT INTO idempotency AS i (scope, digest, task, seq, at, since)
    SELECT scope, digest, key, 1, created, since FROM new WHERE digest IS NOT NULL ORDER BY scope, digest
    ON CONFLICT (scope, digest) DO UPDATE
        SET task = excluded.task, seq = excluded.seq, at = excluded.at, since = excluded.since
        WHERE i.at < excluded.since OR i.task = excluded.task
    RETURNING task
), made AS (
    INSERT INTO task (key, scope, context, realm, who, seq, epoch, snapshot_seq, created, updated, state, was, lease_node,
                      tenant, owner, id, context_id, agent)
    SELECT key, scope, context, realm, who, seq, 1, snapshot_seq, created, updated, state, state, lease_node,
           tenant, owner, id, context_id, agent
    FROM new WHERE digest IS NULL OR key IN (SELECT task FROM used) ORDER BY context
    ON CONFLICT DO NOTHING
    RETURNING key, scope, state
), counted AS (
    INSERT INTO tally AS t (scope, state, slot, n)
    SELECT scope, state, $19::int2, count(*) FROM made GROUP BY scope, state ORDER BY scope, state
    ON CONFLICT (scope, state, slot) DO UPDATE SET n = t.n + excluded.n
)
SELECT 1::int2, key FROM made UNION ALL SELECT 2::int2, task FROM used";

/// Rows of tasks that this very transaction has written. The subquery makes it one look per row whatever the planner
/// thinks of the sizes.
macro_rules! of_written {
    ($insert:literal, $source:literal) => {
        concat!(
            $insert,
            " FROM ",
            $source,
            " WHERE (SELECT t.xmin = pg_current_xact_id()::xid FROM task AS t WHERE t.key = e.task)"
        )
    };
}
pub(super) use of_written;

pub(super) const EVENTS: &str = of_written!(
    "INSERT INTO event (task, seq, body) SELECT e.task, e.seq, e.body",
    "unnest($1::int8[], $2::int8[], $3::bytea[]) AS e(task, seq, body)"
);

pub(super) const SNAPSHOTS: &str = of_written!(
    "INSERT INTO snapshot (task, body) SELECT e.task, e.body",
    "unnest($1::int8[], $2::bytea[]) AS e(task, body)"
);

pub(super) const PUSHES: &str = of_written!(
    "INSERT INTO push (task, id, body, version, acked, attempts, due, last_error, epoch, since, told, dead_from,
                       dead_count, dead_at, node)
     SELECT e.task, e.id, e.body, e.version, e.acked, e.attempts, e.due, e.last_error, e.epoch, e.since, e.told,
            e.dead_from, e.dead_count, e.dead_at, e.node",
    "unnest($1::int8[], $2::text[], $3::bytea[], $4::text[], $5::int8[], $6::int4[], $7::int8[], $8::text[], $9::int8[],
            $10::int8[], $11::int2[], $12::int8[], $13::int8[], $14::int8[], $15::text[])
     AS e(task, id, body, version, acked, attempts, due, last_error, epoch, since, told, dead_from, dead_count, dead_at,
          node)"
);

/// A task in line to be made.
pub(super) struct Create {
    pub(super) task: NewTask,
    /// Its number, once it has one; the same for every attempt.
    pub(super) key: i64,
    /// Whether it still hopes for its lease.
    pub(super) leased: bool,
    pub(super) reply: oneshot::Sender<Result<Created, StoreError>>,
}

impl Create {
    pub(super) fn new(task: NewTask, reply: oneshot::Sender<Result<Created, StoreError>>) -> Self {
        let mut create = Self { task, key: 0, leased: false, reply };
        create.leased = create.hopes();
        create
    }

    /// Whether it comes with a lease. Nobody writes a task that is over.
    pub(super) fn hopes(&self) -> bool {
        !self.task.lease.node.is_empty() && !self.task.present().0.is_final()
    }

    pub(super) fn weight(&self) -> usize {
        let early =
            self.task.early.iter().map(|early| early.body.len() + early.snapshot.as_ref().map_or(0, Bytes::len));
        self.task.body.len() + early.sum::<usize>()
    }

    /// What makes its key one of this caller's alone.
    pub(super) fn used(&self) -> Option<(Uuid, [u8; 32])> {
        let key = self.task.key.as_ref()?;
        Some((scope(&self.task.scope), digest(&[&key.key])))
    }
}

/// The values of [`CREATE`], [`EVENTS`] and [`SNAPSHOTS`].
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) key: Vec<i64>,
    pub(super) scope: Vec<Uuid>,
    pub(super) context: Vec<Uuid>,
    pub(super) realm: Vec<i64>,
    pub(super) who: Vec<i64>,
    pub(super) seq: Vec<i64>,
    pub(super) snapshot_seq: Vec<i64>,
    pub(super) created: Vec<i64>,
    pub(super) updated: Vec<i64>,
    pub(super) state: Vec<i16>,
    pub(super) lease_node: Vec<Cow<'a, str>>,
    pub(super) tenant: Vec<Cow<'a, str>>,
    pub(super) owner: Vec<Cow<'a, str>>,
    pub(super) id: Vec<Cow<'a, str>>,
    pub(super) context_id: Vec<Cow<'a, str>>,
    pub(super) agent: Vec<Cow<'a, str>>,
    pub(super) digest: Vec<Option<Vec<u8>>>,
    pub(super) since: Vec<Option<i64>>,
    pub(super) events: Events,
    pub(super) snapshots: (Vec<i64>, Vec<&'a [u8]>),
}

/// Rows of the log.
#[derive(Default)]
pub(super) struct Events {
    pub(super) task: Vec<i64>,
    pub(super) seq: Vec<i64>,
    pub(super) body: Vec<Vec<u8>>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(creates: &'a [Create]) -> Self {
        let mut all = Self::default();
        for create in creates {
            all.add(create);
        }
        all
    }

    fn add(&mut self, create: &'a Create) {
        let task = &create.task;
        let (state, updated) = task.present();
        self.key.push(create.key);
        self.scope.push(scope(&task.scope));
        self.context.push(context(&task.scope, task.context_id.as_str()));
        self.realm.push(realm(&task.scope.tenant));
        self.who.push(who(&task.scope.owner));
        self.seq.push(number(task.seq()));
        self.snapshot_seq.push(task.snapshot().map_or(0, |(seq, _)| number(seq)));
        self.created.push(task.at);
        self.updated.push(updated);
        self.state.push(state.0.into());
        self.lease_node.push(if create.leased { escape(&task.lease.node) } else { "".into() });
        self.tenant.push(escape(&task.scope.tenant));
        self.owner.push(escape(&task.scope.owner));
        self.id.push(escape(task.id.as_str()));
        self.context_id.push(escape(task.context_id.as_str()));
        self.agent.push(escape(&task.agent));
        self.digest.push(create.used().map(|(_, digest)| digest.to_vec()));
        self.since.push(task.key.as_ref().map(|key| key.since));
        let bodies = std::iter::once(&task.body).chain(task.early.iter().map(|early| &early.body));
        pack_rows(1, bodies, ROW_BYTES, |seq, body| {
            self.events.task.push(create.key);
            self.events.seq.push(number(seq));
            self.events.body.push(body);
        });
        if let Some((_, body)) = task.snapshot() {
            self.snapshots.0.push(create.key);
            self.snapshots.1.push(body);
        }
    }
}
