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
use super::ahead::{Progress, Tasks};
use super::error::At;
use super::head::Heads;
use super::herald::Herald;
use super::hot::Hot;
use super::log::Places;
use super::queue::Queue;
use super::short::Short;
use super::{Durability, OnCommit, ahead, append, checkpoint};

/// Bounds the time that a batch takes, and with it how long the first in line waits for the last.
const BATCH: usize = 1024;

/// The same for its size in bytes.
const BATCH_BYTES: usize = 8 << 20;
/// The longest that a batch waits for company: little beside a sync of the disk.
const LONGEST_WAIT: Duration = Duration::from_micros(250);

/// How long after a failure durable tasks are tried again.
const RETRY: Duration = Duration::from_millis(20);

/// One write in line.
pub(super) enum Job {
    Append(Append),
    Ask(Box<dyn Ask>),
    /// Tasks that are durable already, and the slot up to which the database has everything with them.
    Ahead(Tasks, Option<u64>),
}

impl Job {
    fn weight(&self) -> usize {
        match self {
            Self::Append(append) => append.body.len() + append.snapshot.as_ref().map_or(0, Bytes::len),
            Self::Ask(_) => 0,
            Self::Ahead(tasks, _) => tasks.iter().map(Short::len).sum(),
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
    /// The places of the log that are free.
    pub(super) places: Places,
    /// Where events are packed, kept for its room.
    pub(super) packed: Vec<u8>,
    /// How the number of tasks per caller and state changes; written once, at the end.
    tally: Map<(Scope, State), i64>,
    pub(super) events: usize,
    /// Whether a task that is durable could not be put into the database. The next start tries it again, and all behind
    /// it.
    stuck: bool,
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
    fn new(db: &'a Connection, at: At, places: Places) -> rusqlite::Result<Self> {
        Ok(Self {
            db,
            at,
            hot: Hot::new(db)?,
            heads: Heads::default(),
            places,
            packed: Vec::new(),
            tally: Map::default(),
            events: 0,
            stuck: false,
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
        let mut ahead = None;
        for (step, work) in steps.iter_mut().enumerate() {
            match work {
                Step::Ask(ask) => ask.run(self)?,
                Step::Appends(appends) => {
                    append::appends(self, appends, |batch, index, refused| {
                        batch.told.push(Told { step, index, refused });
                    })?;
                }
                Step::Ahead(blocks, slot) => {
                    for task in blocks.iter().flat_map(|tasks| tasks.iter()) {
                        // It may have been put there before a crash that forgot how far that had come.
                        task.insert(self)?;
                    }
                    ahead = slot.filter(|_| !self.stuck).or(ahead);
                }
            }
        }
        if let Some(slot) = ahead {
            ahead::remember(self, slot)?;
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
    Ahead(Vec<Tasks>, Option<u64>),
}

/// Puts into the database what a crash has kept from it.
pub(super) fn catch_up(db: &Connection, at: &At, places: &Places, tasks: Tasks, slot: u64) -> rusqlite::Result<()> {
    let mut batch = Batch::new(db, at.clone(), places.clone())?;
    batch.transact(&mut [Step::Ahead(vec![tasks], Some(slot))]).map(|_| ())
}

/// What the writing thread begins with.
pub(super) struct Writer {
    pub(super) db: Connection,
    pub(super) at: At,
    pub(super) path: PathBuf,
    pub(super) durability: Durability,
    pub(super) places: Places,
    /// What readers take for unchangeable.
    pub(super) finished: Arc<Finished>,
    pub(super) on_commit: Option<OnCommit>,
    pub(super) queue: Arc<Queue<Job>>,
    /// How far the database is behind.
    pub(super) progress: Arc<Progress>,
    /// Set when the last batch is through.
    pub(super) done: watch::Sender<bool>,
    pub(super) herald: Herald,
    /// Held as long as this thread may write.
    pub(super) lock: File,
}

impl Writer {
    pub(super) fn run(self) {
        let Self { mut db, at, path, durability, places, finished, on_commit, queue, progress, done, herald, lock } =
            self;
        let _end = End { queue: queue.clone(), done, herald: herald.clone() };
        let moving = checkpoint::begin(&mut db, path, durability);
        match moving.and_then(|()| Batch::new(&db, at, places)) {
            Ok(batch) => {
                let queue = &*queue;
                Desk { batch, finished, on_commit, queue, progress, herald, failing: false }.serve();
            }
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
    queue: &'a Queue<Job>,
    progress: Arc<Progress>,
    herald: Herald,
    /// Whether the last batch failed, so that trouble is logged when it begins and when it ends.
    failing: bool,
}

impl Desk<'_> {
    fn serve(&mut self) {
        let mut jobs = Vec::with_capacity(BATCH);
        let (mut enough, mut patience) = (0, Duration::ZERO);
        while self.queue.wait(enough, patience) {
            // Whoever woke this thread is most likely not done.
            thread::yield_now();
            enough = self.queue.take(BATCH, BATCH_BYTES, Job::weight, &mut jobs);
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
                for step in &steps {
                    if let Step::Ahead(_, slot) = step {
                        self.progress.advance(step.len(), slot.filter(|_| !self.batch.stuck));
                    }
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
                if shared {
                    let all = steps.len();
                    let steps = self.put_back(steps);
                    let is_all = steps.len() == all;
                    self.herald.tell(false, move || fail(steps, &error));
                    if !is_all {
                        thread::sleep(RETRY);
                    }
                } else if let [step @ Step::Ahead(..)] = &steps[..]
                    && step.len() < 2
                {
                    tracing::error!("a task is on the disk and not in the database: the next start tries it again");
                    self.batch.stuck = true;
                    self.progress.advance(step.len(), None);
                } else if let [step] = &steps[..]
                    && step.len() < 2
                {
                    self.herald.tell(false, move || fail(steps, &error));
                } else {
                    let is_one = steps.len() == 1;
                    for alone in steps.into_iter().flat_map(|step| step.split(is_one)) {
                        self.batch(vec![alone]);
                    }
                }
            }
        }
    }

    /// What is durable is tried again; the rest is returned.
    fn put_back(&self, steps: Vec<Step>) -> Vec<Step> {
        let mut rest = Vec::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Ahead(blocks, slot) => {
                    // The last one says how far they come. When the queue is closed, the next start does it.
                    let mut slot = slot;
                    for tasks in blocks.into_iter().rev() {
                        let load = tasks.len();
                        let _ = self.queue.put_back(Job::Ahead(tasks, slot.take()), load);
                    }
                }
                step => rest.push(step),
            }
        }
        rest.reverse();
        rest
    }
}

impl Step {
    fn len(&self) -> usize {
        match self {
            Self::Appends(appends) => appends.len(),
            Self::Ask(_) => 1,
            Self::Ahead(blocks, _) => blocks.iter().map(|tasks| tasks.len()).sum(),
        }
    }

    /// What can be written by itself. Durable tasks stay together as long as it may be somebody else who is at fault.
    fn split(self, is_at_fault: bool) -> Vec<Step> {
        match self {
            Self::Appends(appends) => appends.into_iter().map(|one| Self::Appends(vec![one])).collect(),
            Self::Ahead(blocks, slot) if is_at_fault => {
                let tasks = blocks.iter().flat_map(|tasks| tasks.iter());
                let alone = tasks.map(|task| Self::Ahead(vec![Arc::new(vec![task.clone()])], None));
                alone.chain([Self::Ahead(Vec::new(), slot)]).collect()
            }
            whole => vec![whole],
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
            (Job::Ahead(tasks, slot), Some(Step::Ahead(all, last))) => {
                all.push(tasks);
                *last = slot.or(*last);
            }
            (Job::Ahead(tasks, slot), _) => steps.push(Step::Ahead(vec![tasks], slot)),
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
            Step::Ahead(..) => {}
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
