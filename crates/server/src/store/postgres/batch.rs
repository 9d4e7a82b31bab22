//! What is written at once: in one transaction, sent without waiting for answers in between.

use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, MaybeDone, maybe_done};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::super::{Append, StoreError, TaskKey};
use super::append::{self, Messages, Run, Special};
use super::create::{self, Create, Events};
use super::link::{Link, send};
use super::push;
use crate::map::Map;

/// Runs that need a statement of their own, in one batch.
const SPECIALS: usize = 32;

/// One write in line.
pub(super) struct Job {
    pub(super) since: Instant,
    pub(super) work: Work,
}

pub(super) enum Work {
    Append(Append),
    Create(Box<Create>),
    /// Gives a lease back, after everything that was appended under it.
    Release(TaskKey, i64, oneshot::Sender<Result<(), StoreError>>),
    /// Asks whether writing works.
    Check(oneshot::Sender<Result<(), StoreError>>),
}

impl Job {
    pub(super) fn new(work: Work) -> Self {
        Self { since: Instant::now(), work }
    }

    pub(super) fn weight(&self) -> usize {
        match &self.work {
            Work::Append(append) => append.body.len() + append.snapshot.as_ref().map_or(0, bytes::Bytes::len),
            Work::Create(create) => create.weight(),
            Work::Release(..) | Work::Check(_) => 0,
        }
    }
}

/// A lease to give back.
pub(super) struct Release {
    task: TaskKey,
    epoch: i64,
    pub(super) reply: oneshot::Sender<Result<(), StoreError>>,
}

/// Writes that go together: at most one run of each task, and no key twice.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) runs: Vec<Run>,
    pub(super) creates: Vec<Create>,
    pub(super) releases: Vec<Release>,
    pub(super) checks: Vec<oneshot::Sender<Result<(), StoreError>>>,
    /// Since when the first of them waits.
    pub(super) since: Option<Instant>,
    /// Whether an earlier attempt may have done it.
    pub(super) uncertain: bool,
    /// How many events of it were written.
    pub(super) written: usize,
}

impl Batch {
    /// Takes from the line what can go together. The rest stays, in its order.
    pub(super) fn of(line: &mut VecDeque<Job>) -> Self {
        let mut batch = Self::default();
        let mut place: Map<TaskKey, Option<usize>> = Map::default();
        let mut keys = HashSet::new();
        let mut specials = 0;
        let mut rest = VecDeque::new();
        for job in line.drain(..) {
            let since = job.since;
            match job.work {
                Work::Append(append) => match place.get_mut(&append.task) {
                    Some(Some(run)) if batch.runs[*run].takes(&append) => batch.runs[*run].appends.push(append),
                    // Later ones of this task wait behind it.
                    Some(held) => {
                        *held = None;
                        rest.push_back(Job { since, work: Work::Append(append) });
                        continue;
                    }
                    None => {
                        let task = append.task;
                        let run = Run { appends: vec![append] };
                        specials += usize::from(run.is_special());
                        if run.is_special() && specials > SPECIALS {
                            place.insert(task, None);
                            rest.extend(run.appends.into_iter().map(|one| Job { since, work: Work::Append(one) }));
                            continue;
                        }
                        place.insert(task, Some(batch.runs.len()));
                        batch.runs.push(run);
                    }
                },
                Work::Create(create) if create.used().is_some_and(|used| !keys.insert(used)) => {
                    rest.push_back(Job { since, work: Work::Create(create) });
                    continue;
                }
                Work::Create(create) => batch.creates.push(*create),
                Work::Release(task, epoch, reply) => {
                    let held = place.insert(task, None) == Some(None);
                    if held {
                        rest.push_back(Job { since, work: Work::Release(task, epoch, reply) });
                        continue;
                    }
                    batch.releases.push(Release { task, epoch, reply });
                }
                Work::Check(reply) => batch.checks.push(reply),
            }
            batch.since = Some(batch.since.map_or(since, |first| first.min(since)));
        }
        *line = rest;
        batch
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len() + self.creates.len() + self.releases.len() + self.checks.len()
    }

    /// One batch for each of its parts: one of them may be at fault, and must not take the others along.
    pub(super) fn split(self) -> Vec<Self> {
        let (since, uncertain) = (self.since, self.uncertain);
        let one = move || Self { since, uncertain, ..Self::default() };
        let runs = self.runs.into_iter().map(move |run| Self { runs: vec![run], ..one() });
        let creates = self.creates.into_iter().map(move |create| Self { creates: vec![create], ..one() });
        let checks = self.checks.into_iter().map(move |check| Self { checks: vec![check], ..one() });
        let releases = self.releases.into_iter().map(move |release| Self { releases: vec![release], ..one() });
        runs.chain(creates).chain(releases).chain(checks).collect()
    }

    /// One attempt. Nothing has happened if a statement fails; everything has, once this returns what became of it.
    pub(super) async fn write(&self, link: &Link) -> Result<Outcome, Error> {
        let (client, sql) = (&link.client, &link.sql);
        let values = Values::of(self);
        let mut parts = Vec::new();
        if !self.creates.is_empty() {
            let c = &values.creates;
            parts.push((Part::Create, send(client, &sql.create, values.create_params(&link.slot))));
            let events: Vec<&(dyn ToSql + Sync)> = vec![&c.events.task, &c.events.seq, &c.events.body];
            parts.push((Part::Other, send(client, &sql.create_events, events)));
            if !c.snapshots.0.is_empty() {
                parts.push((Part::Other, send(client, &sql.create_snapshots, vec![&c.snapshots.0, &c.snapshots.1])));
            }
            if !values.pushes.task.is_empty() {
                parts.push((Part::Other, send(client, &sql.create_pushes, values.pushes.params())));
            }
        }
        let (plain, changed) = (&values.plain, &values.changed);
        if !plain.task.is_empty() {
            let params: Vec<&(dyn ToSql + Sync)> =
                vec![&plain.task, &plain.epoch, &plain.first, &plain.last, &plain.body];
            parts.push((Part::Moved, send(client, &sql.plain, params)));
        }
        if !changed.task.is_empty() {
            parts.push((Part::Moved, send(client, &sql.changed, changed_params(changed, &link.slot))));
        }
        for (run, special) in &values.specials {
            parts.push((Part::Special(*run), send(client, &sql.special, special_params(special, &link.slot))));
        }
        let more = &values.more;
        if !more.task.is_empty() {
            parts.push((Part::Other, send(client, &sql.more_events, vec![&more.task, &more.seq, &more.body])));
        }
        let messages = &values.messages;
        if !messages.task.is_empty() {
            let params: Vec<&(dyn ToSql + Sync)> = vec![&messages.task, &messages.seq, &messages.at, &messages.body];
            parts.push((Part::Other, send(client, &sql.messages, params)));
        }
        if !self.releases.is_empty() {
            parts.push((Part::Other, send(client, &sql.release, vec![&values.released.0, &values.released.1])));
        }
        if !self.checks.is_empty() {
            let mark = format!(
                "INSERT INTO mark AS m VALUES ('checked {}', '1')
                 ON CONFLICT (name) DO UPDATE SET value = (m.value::int8 + 1)::text",
                link.slot
            );
            parts.push((Part::Other, async move { client.batch_execute(&mark).await.map(|()| Vec::new()) }.boxed()));
        }
        if parts.len() > 1 {
            let say = |word: &'static str| async move { client.batch_execute(word).await.map(|()| Vec::new()) }.boxed();
            parts.insert(0, (Part::Other, say("BEGIN")));
            parts.push((Part::Other, say("COMMIT")));
        }
        let (kinds, futures): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let mut outcome = Outcome::default();
        for (kind, answer) in kinds.into_iter().zip(in_order(futures).await) {
            outcome.hear(kind, &answer?)?;
        }
        Ok(outcome)
    }
}

/// What a statement of a batch tells.
#[derive(Clone, Copy)]
enum Part {
    Create,
    Moved,
    Special(TaskKey),
    Other,
}

/// What became of a batch.
#[derive(Default)]
pub(super) struct Outcome {
    /// Tasks that were made.
    pub(super) made: HashSet<i64>,
    /// Tasks whose key is theirs.
    pub(super) used: HashSet<i64>,
    /// Tasks whose events were taken.
    pub(super) moved: HashSet<i64>,
    /// How far runs came that use a key or take a letter.
    pub(super) special: Map<TaskKey, Reached>,
}

/// How far a run came that uses a key or takes a letter.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    pub(super) fit: bool,
    pub(super) mail: bool,
}

impl Outcome {
    fn hear(&mut self, part: Part, rows: &[Row]) -> Result<(), Error> {
        match part {
            Part::Other => {}
            Part::Moved => {
                for row in rows {
                    self.moved.insert(row.try_get(0)?);
                }
            }
            Part::Create => {
                for row in rows {
                    let which = if row.try_get::<_, i16>(0)? == 1 { &mut self.made } else { &mut self.used };
                    which.insert(row.try_get(1)?);
                }
            }
            Part::Special(task) => {
                for row in rows {
                    self.special.insert(task, Reached { fit: row.try_get(0)?, mail: row.try_get(1)? });
                    if row.try_get(3)? {
                        self.moved.insert(task.0);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The values of all statements of a batch.
struct Values<'a> {
    creates: create::Columns<'a>,
    pushes: push::Columns<'a>,
    plain: append::Columns<'a>,
    changed: append::Columns<'a>,
    specials: Vec<(TaskKey, Special<'a>)>,
    more: Events,
    messages: Messages<'a>,
    released: (Vec<i64>, Vec<i64>),
}

impl<'a> Values<'a> {
    fn of(batch: &'a Batch) -> Self {
        let mut values = Self {
            creates: create::Columns::of(&batch.creates),
            pushes: push::Columns::default(),
            plain: append::Columns::default(),
            changed: append::Columns::default(),
            specials: Vec::new(),
            more: Events::default(),
            messages: Messages::default(),
            released: batch.releases.iter().map(|release| (release.task.0, release.epoch)).unzip(),
        };
        for create in &batch.creates {
            if let Some(push) = &create.task.push {
                values.pushes.add(create.key, push);
            }
        }
        for run in &batch.runs {
            values.messages.add(run);
            if run.is_special() {
                values.specials.push((run.first().task, Special::of(run, &mut values.more)));
            } else if run.is_plain() {
                values.plain.add(run, &mut values.more);
            } else {
                values.changed.add(run, &mut values.more);
            }
        }
        values
    }

    fn create_params<'b>(&'b self, slot: &'b i16) -> Vec<&'b (dyn ToSql + Sync)> {
        let c = &self.creates;
        vec![
            &c.key,
            &c.scope,
            &c.context,
            &c.realm,
            &c.who,
            &c.seq,
            &c.snapshot_seq,
            &c.created,
            &c.updated,
            &c.state,
            &c.lease_node,
            &c.tenant,
            &c.owner,
            &c.id,
            &c.context_id,
            &c.agent,
            &c.digest,
            &c.since,
            slot,
        ]
    }
}

fn changed_params<'b>(c: &'b append::Columns<'_>, slot: &'b i16) -> Vec<&'b (dyn ToSql + Sync)> {
    vec![&c.task, &c.epoch, &c.first, &c.last, &c.body, &c.state, &c.at, &c.snapshot_seq, &c.snapshot, slot]
}

fn special_params<'b>(special: &'b Special<'_>, slot: &'b i16) -> Vec<&'b (dyn ToSql + Sync)> {
    let run = &special.run;
    vec![
        &run.task[0],
        &run.epoch[0],
        &run.first[0],
        &run.last[0],
        &run.body[0],
        &run.state[0],
        &run.at[0],
        &run.snapshot_seq[0],
        &run.snapshot[0],
        slot,
        &special.letter,
        &special.digest,
        &special.since,
        &special.used_at,
    ]
}

/// Sends all, in this order, and waits for all answers.
async fn in_order<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut all: Vec<MaybeDone<_>> = futures.into_iter().map(maybe_done).collect();
    poll_fn(|cx| {
        let mut pending = false;
        for one in &mut all {
            pending |= one.poll_unpin(cx).is_pending();
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    all.iter_mut().filter_map(|one| std::pin::Pin::new(one).take_output()).collect()
}
