//! Appends of one batch: one fenced update of each task with its events, in as few statements as there are kinds.

use bytes::Bytes;

use super::super::packed::pack_rows;
use super::super::{Append, Micros, Seq, State};
use super::create::{Events, of_written};
use super::text::digest;
use super::{ROW_BYTES, number};

/// Events of tasks that go on as before: most of a stream.
pub(super) const PLAIN: &str = "\
WITH moved AS (
    UPDATE task AS t SET seq = r.last
    FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::bytea[]) AS r(task, epoch, first, last, body)
    WHERE t.key = r.task AND t.epoch = r.epoch AND t.seq = r.first - 1 AND t.state NOT IN (3, 4, 5, 7)
    RETURNING t.key, r.first, r.body
), written AS (
    INSERT INTO event (task, seq, body) SELECT key, first, body FROM moved
)
SELECT key FROM moved";

/// What follows from `moved`: events, snapshots, the tally, and that nobody need cancel what is over.
macro_rules! follows {
    ($slot:literal) => {
        concat!(
            "written AS (
    INSERT INTO event (task, seq, body) SELECT key, first, body FROM moved
), pictured AS (
    INSERT INTO snapshot (task, body) SELECT key, snapshot FROM moved WHERE snapshot IS NOT NULL
    ON CONFLICT (task) DO UPDATE SET body = excluded.body
), counted AS (
    INSERT INTO tally AS c (scope, state, slot, n)
    SELECT scope, state, ",
            $slot,
            "::int2, sum(n) FROM (
        SELECT scope, was AS state, -1 AS n FROM moved WHERE was <> state
        UNION ALL SELECT scope, state, 1 FROM moved WHERE was <> state
    ) AS change GROUP BY scope, state HAVING sum(n) <> 0 ORDER BY scope, state
    ON CONFLICT (scope, state, slot) DO UPDATE SET n = c.n + excluded.n
), settled AS (
    DELETE FROM cancel WHERE task IN (SELECT key FROM moved WHERE state IN (3, 4, 5, 7))
)"
        )
    };
}

/// Events that change the state of their tasks, or come with a snapshot. A task that is over gives its lease back.
pub(super) const CHANGED: &str = concat!(
    "\
WITH moved AS (
    UPDATE task AS t SET seq = r.last, was = t.state, state = coalesce(r.state, t.state),
        updated = CASE WHEN r.state IS NULL THEN t.updated ELSE r.at END,
        snapshot_seq = coalesce(r.snapshot_seq, t.snapshot_seq),
        lease_node = CASE WHEN r.state IN (3, 4, 5, 7) THEN '' ELSE t.lease_node END
    FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::bytea[], $6::int2[], $7::int8[], $8::int8[],
                $9::bytea[]) AS r(task, epoch, first, last, body, state, at, snapshot_seq, snapshot)
    WHERE t.key = r.task AND t.epoch = r.epoch AND t.seq = r.first - 1 AND t.state NOT IN (3, 4, 5, 7)
    RETURNING t.key, t.scope, t.was, t.state, r.first, r.body, r.snapshot
), ",
    follows!("$10"),
    "
SELECT key FROM moved"
);

/// The same for one task whose first event uses a key or takes a letter, which must not happen if the fence does not
/// hold, nor the other way round: so the task is locked first. Tells how far it came.
pub(super) const SPECIAL: &str = concat!(
    "\
WITH fit AS (
    SELECT t.key, t.scope FROM task AS t
    WHERE t.key = $1::int8 AND t.epoch = $2::int8 AND t.seq = $3::int8 - 1 AND t.state NOT IN (3, 4, 5, 7)
    FOR UPDATE
), mail AS (
    SELECT l.id FROM letter AS l JOIN fit ON fit.key = l.task WHERE l.id = $11::int8 AND l.taken IS NULL FOR UPDATE OF l
), used AS (
    INSERT INTO idempotency AS i (scope, digest, task, seq, at, since)
    SELECT fit.scope, $12::bytea, $1::int8, $3::int8, $14::int8, $13::int8 FROM fit
    WHERE $12::bytea IS NOT NULL AND ($11::int8 IS NULL OR EXISTS (SELECT FROM mail))
    ON CONFLICT (scope, digest) DO UPDATE
        SET task = excluded.task, seq = excluded.seq, at = excluded.at, since = excluded.since
        WHERE i.at < excluded.since OR (i.task = excluded.task AND i.seq = excluded.seq)
    RETURNING task
), moved AS (
    UPDATE task AS t SET seq = $4::int8, was = t.state, state = coalesce($6::int2, t.state),
        updated = CASE WHEN $6::int2 IS NULL THEN t.updated ELSE $7::int8 END,
        snapshot_seq = coalesce($8::int8, t.snapshot_seq),
        lease_node = CASE WHEN $6::int2 IN (3, 4, 5, 7) THEN '' ELSE t.lease_node END
    FROM fit
    WHERE t.key = fit.key AND ($11::int8 IS NULL OR EXISTS (SELECT FROM mail))
        AND ($12::bytea IS NULL OR EXISTS (SELECT FROM used))
    RETURNING t.key, t.scope, t.was, t.state, $3::int8 AS first, $5::bytea AS body, $9::bytea AS snapshot
), taken AS (
    UPDATE letter SET taken = $3::int8 FROM moved WHERE letter.id = $11::int8
), ",
    follows!("$10"),
    "
SELECT EXISTS (SELECT FROM fit), EXISTS (SELECT FROM mail), EXISTS (SELECT FROM used), EXISTS (SELECT FROM moved)"
);

/// The callers' messages that came with events.
pub(super) const MESSAGES: &str = of_written!(
    "INSERT INTO inbox (task, seq, at, body) SELECT e.task, e.seq, e.at, e.body",
    "unnest($1::int8[], $2::int8[], $3::int8[], $4::bytea[]) AS e(task, seq, at, body)"
);

/// Turns that are over give their leases back. By its length, so that no index of leases is walked instead of the keys.
pub(super) const RELEASE: &str = "\
UPDATE task AS t SET lease_node = '' FROM unnest($1::int8[], $2::int8[]) AS r(task, epoch)
WHERE t.key = r.task AND t.epoch = r.epoch AND length(t.lease_node) > 0";

/// Neighbouring events of one task under one lease, which are written together or not at all.
pub(super) struct Run {
    pub(super) appends: Vec<Append>,
}

impl Run {
    pub(super) fn first(&self) -> &Append {
        // A run begins with an append and only grows.
        &self.appends[0]
    }

    pub(super) fn last(&self) -> &Append {
        &self.appends[self.appends.len() - 1]
    }

    /// Whether its first event uses a key or takes a letter.
    pub(super) fn is_special(&self) -> bool {
        is_special(self.first())
    }

    /// Whether this event can be written together with those that are there. One word reaches whoever waits for them.
    pub(super) fn takes(&self, next: &Append) -> bool {
        let last = self.last();
        !is_special(next)
            && last.epoch == next.epoch
            && last.seq.checked_add(1) == Some(next.seq)
            && std::sync::Arc::ptr_eq(&last.ack, &next.ack)
            // Nothing follows the end; the fence will say so.
            && !last.state.is_some_and(State::is_final)
    }

    fn state(&self) -> Option<(State, Micros)> {
        self.appends.iter().rev().find_map(|append| Some((append.state?, append.at)))
    }

    fn snapshot(&self) -> Option<(Seq, &Bytes)> {
        self.appends.iter().rev().find_map(|append| Some((append.seq, append.snapshot.as_ref()?)))
    }

    pub(super) fn is_plain(&self) -> bool {
        self.appends.iter().all(|append| append.state.is_none() && append.snapshot.is_none())
    }
}

fn is_special(append: &Append) -> bool {
    append.key.is_some() || append.letter.is_some()
}

/// The values of [`PLAIN`] or [`CHANGED`].
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) task: Vec<i64>,
    pub(super) epoch: Vec<i64>,
    pub(super) first: Vec<i64>,
    pub(super) last: Vec<i64>,
    pub(super) body: Vec<Vec<u8>>,
    pub(super) state: Vec<Option<i16>>,
    pub(super) at: Vec<Option<i64>>,
    pub(super) snapshot_seq: Vec<Option<i64>>,
    pub(super) snapshot: Vec<Option<&'a [u8]>>,
}

impl<'a> Columns<'a> {
    /// Adds a run; rows beyond the first of it go to `more`.
    pub(super) fn add(&mut self, run: &'a Run, more: &mut Events) {
        let (first, last) = (run.first(), run.last());
        self.task.push(first.task.0);
        self.epoch.push(first.epoch);
        self.first.push(number(first.seq));
        self.last.push(number(last.seq));
        pack_rows(first.seq, run.appends.iter().map(|append| &append.body), ROW_BYTES, |seq, body| {
            if seq == first.seq {
                self.body.push(body);
                return;
            }
            more.task.push(first.task.0);
            more.seq.push(number(seq));
            more.body.push(body);
        });
        self.state.push(run.state().map(|(state, _)| state.0.into()));
        self.at.push(run.state().map(|(_, at)| at));
        self.snapshot_seq.push(run.snapshot().map(|(seq, _)| number(seq)));
        self.snapshot.push(run.snapshot().map(|(_, body)| &**body));
    }
}

/// The values of [`SPECIAL`] beyond those that every run has.
pub(super) struct Special<'a> {
    pub(super) run: Columns<'a>,
    pub(super) letter: Option<i64>,
    pub(super) digest: Option<Vec<u8>>,
    pub(super) since: Option<i64>,
    pub(super) used_at: i64,
}

impl<'a> Special<'a> {
    pub(super) fn of(run: &'a Run, more: &mut Events) -> Self {
        let mut columns = Columns::default();
        columns.add(run, more);
        let first = run.first();
        Self {
            run: columns,
            letter: first.letter.map(|letter| letter.0),
            digest: first.key.as_ref().map(|key| digest(&[&key.key]).to_vec()),
            since: first.key.as_ref().map(|key| key.since),
            used_at: first.at,
        }
    }
}

/// The values of [`MESSAGES`].
#[derive(Default)]
pub(super) struct Messages<'a> {
    pub(super) task: Vec<i64>,
    pub(super) seq: Vec<i64>,
    pub(super) at: Vec<i64>,
    pub(super) body: Vec<&'a [u8]>,
}

impl<'a> Messages<'a> {
    pub(super) fn add(&mut self, run: &'a Run) {
        for append in &run.appends {
            if let Some(message) = &append.message {
                self.task.push(append.task.0);
                self.seq.push(number(append.seq));
                self.at.push(append.at);
                self.body.push(message);
            }
        }
    }
}
