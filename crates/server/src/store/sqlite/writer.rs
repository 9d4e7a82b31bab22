//! The one thread that writes: everything that waits becomes one transaction and one sync.

use crate::map::Map;
use std::fs::File;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::super::finished::Finished;
use super::super::{Append, AppendError, Scope, Seq, State, StoreError};
use super::error::At;
use super::head::Heads;
use super::herald::Herald;
use super::hot::Hot;
use super::queue::Queue;
use super::{Durability, OnCommit, append, checkpoint};

/// Bounds the time that a batch takes, and with it how long the first in line waits for the last.
const BATCH: usize = 1024;

/// The same for its size in bytes.
const BATCH_BYTES: usize = 8 << 20;
/// The longest that a batch waits for company: little beside a sync of the disk.
const LONGEST_WAIT: Duration = Duration::from_micros(250);

/// One write in line.
pub(super) enum Job {
    Append(Append),
    Ask(Box<dyn Ask>),
}

impl Job {
    fn weight(&self) -> usize {
        match self {
            Self::Append(append) => append.body.len() + append.snapshot.as_ref().map_or(0, Bytes::len),
            Self::Ask(_) => 0,
        }
    }
}

/// A write with one answer. It may run more than once, but is answered once.
pub(super) trait Ask: Send {
    fn run(&mut self, batch: &mut Batch<'_>) -> rusqlite::Result<()>;
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// Makes an [`Ask`] of a closure. Its outer result fails the batch, its inner one only this write.
pub(super) struct Question<T, F> {
    work: F,
    found: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Question<T, F> {
    pub(super) fn new(work: F) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Self { work, found: None, reply }, answer)
    }
}

impl<T, F> Ask for Question<T, F>
where
    T: Send,
    F: FnMut(&mut Batch<'_>) -> rusqlite::Result<Result<T, StoreError>> + Send,
{
    fn run(&mut self, batch: &mut Batch<'_>) -> rusqlite::Result<()> {
        self.found = Some((self.work)(batch)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let found = self.found.unwrap_or(Err(StoreError::Closed));
        // Nobody waits any more when the caller went away; the write stands all the same.
        let _ = self.reply.send(outcome.and(found));
    }
}

/// The transaction in the making, and what goes on from one to the next.
pub(super) struct Batch<'a> {
    pub(super) db: &'a Connection,
    pub(super) at: At,
    pub(super) hot: Hot<'a>,
    pub(super) heads: Heads,
    /// The last place of the log that was handed out.
    pub(super) last_place: i64,
    /// Where events are packed, kept for its room.
    pub(super) packed: Vec<u8>,
    /// How the number of tasks per caller and state changes; written once, at the end.
    tally: Map<(Scope, State), i64>,
    pub(super) events: usize,
    /// Whether a finished task was removed, or changed against all rules.
    pub(super) changed_finished: bool,
    told: Vec<Told>,
}

/// What to say to the writer of a task when the transaction is through: index of a run of appends,
/// index in it, and what became of that event.
pub(super) struct Told {
    step: usize,
    index: usize,
    refused: Option<AppendError>,
}

impl<'a> Batch<'a> {
    fn new(db: &'a Connection, at: At, last_place: i64) -> rusqlite::Result<Self> {
        Ok(Self {
            db,
            at,
            hot: Hot::new(db)?,
            heads: Heads::default(),
            last_place,
            packed: Vec::new(),
            tally: Map::default(),
            events: 0,
            changed_finished: false,
            told: Vec::new(),
        })
    }

    pub(super) fn count(&mut self, scope: Scope, state: State, change: i64) {
        *self.tally.entry((scope, state)).or_default() += change;
    }

    /// One transaction. It is undone as a whole when any statement or the commit fails.
    fn transact(&mut self, steps: &mut [Step]) -> rusqlite::Result<(usize, Vec<Told>)> {
        (self.events, self.changed_finished, self.told) = (0, false, Vec::new());
        self.tally.clear();
        let done = self.steps(steps);
        if done.is_err() && !self.db.is_autocommit() {
            // Where even this fails, the next transaction cannot begin and says so.
            let _ = self.hot.rollback.execute([]);
        }
        done.map(|()| (self.events, mem::take(&mut self.told)))
    }

    fn steps(&mut self, steps: &mut [Step]) -> rusqlite::Result<()> {
        self.hot.begin.execute([])?;
        for (step, work) in steps.iter_mut().enumerate() {
            match work {
                Step::Ask(ask) => ask.run(self)?,
                Step::Appends(appends) => {
                    append::appends(self, appends, |batch, index, refused| {
                        batch.told.push(Told { step, index, refused });
                    })?;
                }
            }
        }
        for ((scope, state), change) in self.tally.drain().filter(|(_, change)| *change != 0) {
            let row = (&*scope.tenant, &*scope.owner, state.0, change);
            if self.hot.tally.execute(row)? == 0 {
                self.hot.tally_first.execute(row)?;
            }
        }
        self.hot.commit.execute([])?;
        Ok(())
    }
}

/// A part of a batch: neighbouring appends are sorted by task and written together.
enum Step {
    Appends(Vec<Append>),
    Ask(Box<dyn Ask>),
}

/// What the writing thread begins with.
pub(super) struct Writer {
    pub(super) db: Connection,
    pub(super) at: At,
    pub(super) path: PathBuf,
    pub(super) durability: Durability,
    pub(super) last_place: i64,
    /// What readers take for unchangeable.
    pub(super) finished: Arc<Finished>,
    pub(super) on_commit: Option<OnCommit>,
    pub(super) queue: Arc<Queue<Job>>,
    /// Set when the last batch is through.
    pub(super) done: watch::Sender<bool>,
    pub(super) herald: Herald,
    /// Held as long as this thread may write.
    pub(super) lock: File,
}

impl Writer {
    pub(super) fn run(self) {
        let Self { mut db, at, path, durability, last_place, finished, on_commit, queue, done, herald, lock } = self;
        let _end = End { queue: queue.clone(), done, herald: herald.clone() };
        let moving = checkpoint::begin(&mut db, path, durability);
        match moving.and_then(|()| Batch::new(&db, at, last_place)) {
            Ok(batch) => Desk { batch, finished, on_commit, herald, failing: false }.serve(&queue),
            Err(error) => tracing::error!(%error, "the store cannot write"),
        }
        let _ = checkpoint::end(&mut db);
        // Leaves one tidy file behind. Without it the next opening reads the log instead.
        let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let _ = db.close();
        drop(lock);
    }
}

/// Where writes are carried out, batch by batch.
struct Desk<'a> {
    batch: Batch<'a>,
    finished: Arc<Finished>,
    on_commit: Option<OnCommit>,
    herald: Herald,
    /// Whether the last batch failed, so that trouble is logged when it begins and when it ends.
    failing: bool,
}

impl Desk<'_> {
    fn serve(&mut self, queue: &Queue<Job>) {
        let mut jobs = Vec::with_capacity(BATCH);
        let (mut enough, mut patience) = (0, Duration::ZERO);
        while queue.wait(enough, patience) {
            // Whoever woke this thread is most likely not done.
            thread::yield_now();
            enough = queue.take(BATCH, BATCH_BYTES, Job::weight, &mut jobs);
            let started = Instant::now();
            self.batch(steps(jobs.drain(..)));
            patience = (started.elapsed() / 4).min(LONGEST_WAIT);
        }
    }

    fn batch(&mut self, mut steps: Vec<Step>) {
        let started = Instant::now();
        match self.batch.transact(&mut steps) {
            Ok((events, told)) => {
                if mem::take(&mut self.failing) {
                    tracing::info!("the store writes again");
                }
                // Before anybody hears of it.
                if self.batch.changed_finished {
                    self.finished.forget_all();
                }
                if let Some(hook) = &self.on_commit {
                    hook(events, started.elapsed());
                }
                let for_one = matches!(&steps[..], [Step::Ask(_)]);
                self.herald.tell(for_one, move || succeed(steps, told));
            }
            Err(error) => {
                self.batch.heads.forget_all();
                let error = self.batch.at.sql(&error);
                if !mem::replace(&mut self.failing, true) {
                    tracing::error!(%error, "the store cannot write");
                }
                // A full or busy disk concerns everyone. Otherwise one write may be at fault, such
                // as one that meets a damaged page, and must not take its neighbours along.
                let shared = matches!(error, StoreError::Full { .. } | StoreError::Locked { .. });
                if shared || steps.iter().map(Step::len).sum::<usize>() == 1 {
                    self.herald.tell(false, move || fail(steps, &error));
                } else {
                    for alone in steps.into_iter().flat_map(Step::split) {
                        self.batch(vec![alone]);
                    }
                }
            }
        }
    }
}

impl Step {
    fn len(&self) -> usize {
        match self {
            Self::Appends(appends) => appends.len(),
            Self::Ask(_) => 1,
        }
    }

    fn split(self) -> Vec<Step> {
        match self {
            Self::Appends(appends) => appends.into_iter().map(|one| Self::Appends(vec![one])).collect(),
            ask @ Self::Ask(_) => vec![ask],
        }
    }
}

fn steps(jobs: impl Iterator<Item = Job>) -> Vec<Step> {
    let mut steps = Vec::new();
    for job in jobs {
        match (job, steps.last_mut()) {
            (Job::Append(append), Some(Step::Appends(run))) => run.push(append),
            (Job::Append(append), _) => steps.push(Step::Appends(vec![append])),
            (Job::Ask(ask), _) => steps.push(Step::Ask(ask)),
        }
    }
    for step in &mut steps {
        if let Step::Appends(run) = step {
            // Stable: the appends of one task keep their order.
            run.sort_by_key(|append| append.task);
        }
    }
    steps
}

fn succeed(steps: Vec<Step>, told: Vec<Told>) {
    for Told { step, index, refused } in told {
        if let Some(Step::Appends(appends)) = steps.get(step)
            && let Some(append) = appends.get(index)
        {
            tell(append, append.seq, refused);
        }
    }
    for step in steps {
        if let Step::Ask(ask) = step {
            ask.answer(Ok(()));
        }
    }
}

fn fail(steps: Vec<Step>, error: &StoreError) {
    for step in steps {
        match step {
            Step::Ask(ask) => ask.answer(Err(error.clone())),
            Step::Appends(appends) => {
                for run in appends.chunk_by(same_writer) {
                    tell(&run[0], run[0].seq, Some(error.clone().into()));
                }
            }
        }
    }
}

/// Whether one word to the first reaches both.
pub(super) fn same_writer(a: &Append, b: &Append) -> bool {
    a.task == b.task && Arc::ptr_eq(&a.ack, &b.ack)
}

fn tell(append: &Append, seq: Seq, refused: Option<AppendError>) {
    // A listener that panics must not take the store down with it.
    let told = catch_unwind(AssertUnwindSafe(|| match refused {
        None => append.ack.committed(seq),
        Some(why) => append.ack.refused(seq, why),
    }));
    if told.is_err() {
        tracing::error!(seq, "a listener panicked");
    }
}

/// However the thread ends, nobody is left waiting.
struct End {
    queue: Arc<Queue<Job>>,
    done: watch::Sender<bool>,
    herald: Herald,
}

impl Drop for End {
    fn drop(&mut self) {
        self.queue.close();
        let mut left = Vec::new();
        self.queue.take(usize::MAX, usize::MAX, |_| 0, &mut left);
        let (left, done) = (steps(left.into_iter()), self.done.clone());
        self.herald.tell(false, move || {
            fail(left, &StoreError::Closed);
            done.send_replace(true);
        });
    }
}
