//! A writer: everything that waits becomes one transaction, again and again.
//!
//! When the connection dies under a batch, nobody knows whether it was committed. The writer then connects again, ends
//! what the old connection may still be doing, looks which parts are there, and writes the others. Looking is exact:
//! the number of a new task is chosen before the first attempt, and only this writer appends under its epochs.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::Error;

use super::super::{AppendError, Created, IdempotencyKey, Scope, StoreError, TaskKey};
use super::append::Run;
use super::batch::{Batch, Job, Outcome, Work};
use super::create::Create;
use super::error::{At, Trouble, trouble};
use super::link::{Backend, Link};
use super::pause::Pause;
use super::queue::Queue;
use super::tls::Tls;
use super::url::Place;
use super::{OnCommit, key, lease, settle, text};

/// Bounds the time that a batch takes, and with it how long the first in line waits for the last.
const BATCH: usize = 1024;
/// The same for its size in bytes.
const BATCH_BYTES: usize = 8 << 20;
/// How many numbers a block has; see the schema.
const BLOCK: i64 = 1024;

/// The state of one writer.
pub(super) struct Writer {
    pub(super) place: Arc<Place>,
    pub(super) tls: Tls,
    pub(super) at: At,
    pub(super) queue: Arc<Queue<Job>>,
    pub(super) on_commit: Option<OnCommit>,
    pub(super) patience: Duration,
    /// What the last attempt failed with, for whoever asks how it goes.
    pub(super) trouble: Arc<Mutex<Option<StoreError>>>,
    /// Set when the last batch is through.
    pub(super) done: watch::Sender<bool>,
    pub(super) link: Option<Link>,
    /// A connection that was lost under a batch.
    pub(super) former: Option<Backend>,
    pub(super) numbers: VecDeque<Range<i64>>,
}

impl Writer {
    pub(super) async fn run(mut self) {
        let _end = End { queue: self.queue.clone(), done: self.done.clone() };
        let mut line = VecDeque::new();
        while !line.is_empty() || self.queue.wait().await {
            self.queue.take(BATCH, BATCH_BYTES, Job::weight, &mut line);
            let batch = Batch::of(&mut line);
            // What is not done yet comes before what has arrived since.
            for left in self.batch(batch).await.into_iter().rev() {
                line.push_front(left);
            }
        }
    }

    /// Writes a batch, and says what became of it. Returns what takes another round.
    async fn batch(&mut self, mut batch: Batch) -> Vec<Job> {
        let since = batch.since.unwrap_or_else(Instant::now);
        let mut pause = Pause::until(since + self.patience);
        let mut left = Vec::new();
        loop {
            let started = Instant::now();
            // A server that is there and says nothing is as good as away.
            let attempt = tokio::time::timeout(self.patience, self.attempt(&mut batch, &mut left)).await;
            let (trouble, error) = match attempt {
                Ok(Ok(())) => {
                    self.say_trouble(None);
                    if let Some(hook) = &self.on_commit {
                        hook(batch.written, started.elapsed());
                    }
                    return left;
                }
                Ok(Err(error)) => (trouble(&error), self.at.sql(&error)),
                Err(_) => (Trouble::Away, self.at.failed("the database does not answer")),
            };
            match trouble {
                Trouble::Away => {
                    batch.uncertain = true;
                    if let Some(link) = self.link.take() {
                        self.former = Some(link.backend);
                    }
                }
                Trouble::Again => {}
                Trouble::Wrong if batch.len() > 1 => {
                    for alone in batch.split() {
                        left.extend(Box::pin(self.batch(alone)).await);
                    }
                    return left;
                }
                Trouble::Wrong => {
                    fail(batch, &error);
                    return left;
                }
            }
            self.say_trouble(Some(&error));
            if !pause.wait().await {
                fail(batch, &error);
                return left;
            }
        }
    }

    fn say_trouble(&self, error: Option<&StoreError>) {
        let mut trouble = self.trouble.lock();
        match (&*trouble, error) {
            (None, Some(error)) => tracing::error!(%error, "the store cannot write"),
            (Some(_), None) => tracing::info!("the store writes again"),
            _ => {}
        }
        *trouble = error.cloned();
    }

    async fn attempt(&mut self, batch: &mut Batch, left: &mut Vec<Job>) -> Result<(), Error> {
        self.connect().await?;
        self.give_numbers(batch).await?;
        let Some(link) = &mut self.link else { return Ok(()) };
        link.replan().await?;
        if let Some(former) = self.former.take() {
            link.end(&former).await;
        }
        if batch.uncertain {
            settle::settle(link, batch).await?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        let outcome = batch.write(link).await?;
        // From here on it is committed. What was refused may have been done by an earlier attempt that the server was
        // still busy with when it was looked for.
        if std::mem::replace(&mut batch.uncertain, true) {
            settle::settle_refused(link, batch, &outcome).await?;
        }
        while !batch.is_empty() {
            self.tell_one(batch, &outcome, left).await?;
        }
        Ok(())
    }

    async fn connect(&mut self) -> Result<(), Error> {
        if self.link.as_ref().is_none_or(|link| link.client.is_closed()) {
            self.link = None;
            self.link = Some(Link::open(&self.place, self.tls.clone()).await?);
        }
        Ok(())
    }

    /// Numbers new tasks.
    async fn give_numbers(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let Some(link) = &self.link else { return Ok(()) };
        let needed = batch.creates.iter().filter(|create| create.key == 0).count();
        let there: i64 = self.numbers.iter().map(|block| block.end - block.start).sum();
        let missing = i64::try_from(needed).unwrap_or(i64::MAX) - there;
        if missing > 0 {
            let blocks = (missing - 1) / BLOCK + 1;
            let sql = "SELECT nextval('number') FROM generate_series(1, $1::int8)";
            for row in link.client.query(sql, &[&blocks]).await? {
                let first: i64 = row.try_get(0)?;
                self.numbers.push_back(first..first + BLOCK);
            }
        }
        for create in batch.creates.iter_mut().filter(|create| create.key == 0) {
            while self.numbers.front().is_some_and(Range::is_empty) {
                self.numbers.pop_front();
            }
            create.key = self.numbers.front_mut().and_then(Iterator::next).unwrap_or_default();
        }
        Ok(())
    }

    /// Says what became of one part of a batch, which leaves the batch only when that is known.
    async fn tell_one(&mut self, batch: &mut Batch, outcome: &Outcome, left: &mut Vec<Job>) -> Result<(), Error> {
        let since = batch.since.unwrap_or_else(Instant::now);
        if let Some(check) = batch.checks.pop() {
            let _ = check.send(Ok(()));
        } else if let Some(release) = batch.releases.pop() {
            let _ = release.reply.send(Ok(()));
        } else if let Some(run) = batch.runs.last() {
            let refused = self.refusal(run, outcome).await?;
            let Some(run) = batch.runs.pop() else { return Ok(()) };
            match refused {
                Refusal::None => {
                    batch.written += run.appends.len();
                    tell(&run, None);
                }
                Refusal::For(why) => tell(&run, Some(why)),
                Refusal::NotYet => {
                    left.extend(run.appends.into_iter().map(|one| Job { since, work: Work::Append(one) }));
                }
            }
        } else if let Some(create) = batch.creates.last() {
            let created = self.created(create, outcome).await?;
            let Some(mut create) = batch.creates.pop() else { return Ok(()) };
            if let Err(leased) = created {
                create.leased = leased;
                left.push(Job { since, work: Work::Create(Box::new(create)) });
            } else if let Ok(created) = created {
                batch.written += if outcome.made.contains(&create.key) { 1 + create.task.early.len() } else { 0 };
                answer(create, created);
            }
        }
        Ok(())
    }

    async fn refusal(&self, run: &Run, outcome: &Outcome) -> Result<Refusal, Error> {
        let first = run.first();
        if outcome.moved.contains(&first.task.0) {
            return Ok(Refusal::None);
        }
        Ok(match outcome.special.get(&first.task) {
            Some(reached) if reached.fit && first.letter.is_some() && !reached.mail => {
                Refusal::For(AppendError::Recalled)
            }
            Some(reached) if reached.fit => {
                let free = self.free_key(None, first.task, first.key.as_ref()).await?;
                if free { Refusal::NotYet } else { Refusal::For(AppendError::KeyUsed) }
            }
            _ => Refusal::For(AppendError::Fenced),
        })
    }

    /// What became of a new task, or whether it may still hope for its lease in another round.
    async fn created(&self, create: &Create, outcome: &Outcome) -> Result<Result<Reply, bool>, Error> {
        let key = TaskKey(create.key);
        if outcome.made.contains(&create.key) {
            return Ok(Ok(Ok(if create.leased == create.hopes() { Created::New(key) } else { Created::Waiting(key) })));
        }
        if create.task.key.is_some() && !outcome.used.contains(&create.key) {
            let known = self.known(create).await?;
            if known.is_none() {
                self.free_key(Some(&create.task.scope), key, create.task.key.as_ref()).await?;
            }
            return Ok(known.map(Ok).ok_or(create.leased));
        }
        if !create.leased {
            return Ok(Ok(Err(self.at.failed("the task id exists"))));
        }
        // Another turn of its context runs, or its id exists: without a lease only the latter is in the way.
        let Some(link) = &self.link else { return Ok(Err(false)) };
        let context = text::context(&create.task.scope, create.task.context_id.as_str());
        Ok(Err(!link.client.query(lease::EVICT, &[&context]).await?.is_empty()))
    }

    /// The task that used this key, and with which event.
    async fn known(&self, create: &Create) -> Result<Option<Created>, Error> {
        let (Some(link), Some(used)) = (&self.link, &create.task.key) else { return Ok(None) };
        let found = key::find(&link.client, &create.task.scope, used).await?;
        Ok(found.map(|(task, seq)| if task.0 == create.key { Created::New(task) } else { Created::Known(task, seq) }))
    }

    /// Forgets the use of a key by a task that is gone. False if it counts.
    async fn free_key(
        &self,
        scope: Option<&Scope>,
        task: TaskKey,
        used: Option<&IdempotencyKey>,
    ) -> Result<bool, Error> {
        let (Some(link), Some(used)) = (&self.link, used) else { return Ok(false) };
        key::free(&link.client, scope, task, used).await
    }
}

type Reply = Result<Created, StoreError>;

/// Why a run was not taken.
enum Refusal {
    /// It was.
    None,
    For(AppendError),
    /// It may be, next time.
    NotYet,
}

pub(super) fn answer(create: Create, reply: Reply) {
    // Nobody waits any more when the caller went away; the task stands all the same.
    let _ = create.reply.send(reply);
}

/// One word to whoever waits for these events.
pub(super) fn tell(run: &Run, refused: Option<AppendError>) {
    // A listener that panics must not take the store down with it.
    let told = catch_unwind(AssertUnwindSafe(|| match refused {
        None => run.last().ack.committed(run.last().seq),
        Some(why) => run.first().ack.refused(run.first().seq, why),
    }));
    if told.is_err() {
        tracing::error!("a listener panicked");
    }
}

fn fail(batch: Batch, error: &StoreError) {
    let releases = batch.releases.into_iter().map(|release| release.reply);
    for reply in batch.checks.into_iter().chain(releases) {
        let _ = reply.send(Err(error.clone()));
    }
    for run in &batch.runs {
        tell(run, Some(error.clone().into()));
    }
    for create in batch.creates {
        answer(create, Err(error.clone()));
    }
}

/// However the writer ends, nobody is left waiting.
struct End {
    queue: Arc<Queue<Job>>,
    done: watch::Sender<bool>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.queue.close();
        let mut left = VecDeque::new();
        self.queue.take(usize::MAX, usize::MAX, |_| 0, &mut left);
        while !left.is_empty() {
            fail(Batch::of(&mut left), &StoreError::Closed);
        }
        self.done.send_replace(true);
    }
}
