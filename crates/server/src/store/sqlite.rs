//! The log in one SQLite file: the store of a single server.
//!
//! ```text
//!   append, create, … ──▶ queue ──▶ writer thread ──▶ BEGIN … COMMIT (one sync) ──▶ acknowledge
//!   create of a short task ──▶ one durable write beside the database ──▶ acknowledge, queue
//!   task, events, list … ──▶ pool of read-only connections
//! ```
//!
//! The writer takes everything that waits and commits it at once, so full durability costs one sync
//! per batch and not one per event. Another thread moves the write-ahead log into the file. Reads see
//! whatever was acknowledged before they began.
//!
//! A task that comes with all that has happened to it is durable before the database has it: see `ahead`.

mod ahead;
mod append;
mod checkpoint;
mod error;
mod head;
mod herald;
mod hot;
mod list;
mod log;
mod migrate;
mod open;
mod operator;
mod push;
mod queue;
mod read;
mod session;
mod short;
mod task;
#[cfg(test)]
mod tests;
mod trim;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use nuncio_protocol::{PushId, TaskId};
use rusqlite::Connection;
use tokio::sync::watch;

use super::finished::Finished;
use super::{
    Append, Backlog, Claim, Created, IdempotencyKey, Lease, ListPage, ListQuery, LogEvent, Micros, NewTask, Older,
    PushConfig, Scope, Seq, Session, SessionKey, Store, StoreError, TaskKey, TaskRow,
};
use ahead::{Ahead, Progress};
use error::At;
use herald::Herald;
use log::Places;
use open::FileId;
use queue::{How, Queue};
use read::Readers;
use writer::{Batch, Job, Question, Writer};

pub use operator::Operator;

/// When a write counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It is on the disk: a power cut takes nothing back.
    #[default]
    Full,
    /// The operating system has it: the process may crash at any time, but a power cut may take
    /// back the last moments.
    Normal,
}

impl Durability {
    fn pragma(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

/// Hears of every transaction: how many events it made durable, and how long it took.
/// Called on the writing thread, so it must be quick.
pub type OnCommit = Arc<dyn Fn(usize, Duration) + Send + Sync>;

/// How to use a database.
#[derive(Clone)]
pub struct SqliteOptions {
    /// When a write counts as durable.
    pub durability: Durability,
    /// How many reads may run at once.
    pub readers: usize,
    /// How many bytes of finished tasks are kept in memory for those who get them again.
    pub cache: usize,
    /// Hears of every transaction.
    pub on_commit: Option<OnCommit>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { durability: Durability::Full, readers: 8, cache: 32 << 20, on_commit: None }
    }
}

const LOST: &str = "the file was removed or replaced while in use: put it back, or stop the server and restore a backup; \
                    what is stored from here on is lost when the server ends";

/// The log in a SQLite file that belongs to this process alone.
pub struct SqliteStore {
    queue: Arc<Queue<Job>>,
    /// None where every task goes to the database directly.
    ahead: Option<Arc<Ahead>>,
    progress: Arc<Progress>,
    readers: Arc<Readers>,
    /// Where the file is, and which one it is.
    file: Arc<(PathBuf, FileId)>,
    finished: Arc<Finished>,
    done: watch::Receiver<bool>,
    writer: Option<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens a database, or creates it with its folder. A file that is damaged, in use, of a newer
    /// release or of another program stays as it is.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let at = At::new(path);
        let opened = open::open(path, options.durability, &at)?;
        let found = ahead::recover(&opened.writer, &opened.path, &at)?;
        let places = catch_up(&opened.writer, &found, &at).map_err(|error| at.sql(&error))?;
        let queue = Arc::new(Queue::new());
        let progress = Arc::<Progress>::default();
        let ahead = (options.durability == Durability::Full).then(|| {
            let (places, queue, progress) = (places.clone(), queue.clone(), progress.clone());
            let tools = ahead::Tools { places, queue, progress, on_commit: options.on_commit.clone() };
            Ahead::start(&opened.writer, &found, tools)
        });
        let (done, over) = watch::channel(false);
        let readers = Arc::new(Readers::new(opened.path.clone(), at.clone(), options.readers));
        let file = Arc::new((opened.path.clone(), opened.file));
        let finished = Arc::new(Finished::new(options.cache));
        let writer = Writer {
            db: opened.writer,
            at: at.clone(),
            path: opened.path.clone(),
            durability: options.durability,
            places,
            finished: finished.clone(),
            on_commit: options.on_commit,
            queue: queue.clone(),
            progress: progress.clone(),
            done,
            herald: Herald::start(),
            lock: opened.lock,
        };
        let thread = thread::Builder::new().name("nuncio-store".into());
        let writer = thread.spawn(move || writer.run()).map_err(|error| at.io(&error))?;
        Ok(Self { queue, ahead: ahead.flatten(), progress, readers, file, finished, done: over, writer: Some(writer) })
    }

    /// Runs a read that sees whatever was acknowledged before.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        // Where the database takes nothing just now, what it has can still be read.
        let _ = self.catch_up().await;
        self.readers.read(work).await
    }

    /// Runs a read for one thing. That it is not there is said only of a database that has everything.
    async fn find<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<Option<T>> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let caught_up = self.catch_up().await;
        match self.readers.read(work).await? {
            None => caught_up.map(|()| None),
            found => Ok(found),
        }
    }

    /// Waits until the database has everything that was acknowledged before.
    async fn catch_up(&self) -> Result<(), StoreError> {
        // Whoever stands in line now stands behind all of that.
        if self.progress.is_behind() { self.ask(|_| Ok(())).await } else { Ok(()) }
    }

    /// Forgets sessions from before this moment whose conversations have no task any more.
    async fn forget_sessions(&self, before: Micros) -> Result<(), StoreError> {
        let mut after = session::first();
        loop {
            let old = self.read(move |db| session::old(db, before, &after)).await?;
            let Some((last, _)) = old.last().cloned() else { return Ok(()) };
            let unused: Vec<_> = old.into_iter().filter(|(_, is_used)| !is_used).map(|(place, _)| place).collect();
            if !unused.is_empty() {
                self.ask(move |batch| session::forget(batch, &unused)).await?;
            }
            after = last;
        }
    }

    /// Takes nothing more. What was taken is still written.
    fn finish(&self) {
        if let Some(ahead) = &self.ahead {
            ahead.settle();
        }
        self.queue.close();
    }

    /// Stands in line for the writer and waits for the answer.
    async fn ask<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut Batch<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.question(move |batch| work(batch).map(Ok)).await
    }

    /// The same for writes that can be wrong by themselves.
    async fn question<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Batch<'_>) -> rusqlite::Result<Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (question, answer) = Question::new(work);
        self.queue.push(Job::Ask(Box::new(question)), How::Awaited).map_err(|_| StoreError::Closed)?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Drop for SqliteStore {
    /// What was handed over is still written, and the file is free for the next process afterwards.
    fn drop(&mut self) {
        self.readers.close_idle();
        self.finish();
        if let Some(writer) = self.writer.take()
            // The last owner may be a listener that the writer itself has just told something.
            && writer.thread().id() != thread::current().id()
        {
            let _ = writer.join();
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, task: NewTask) -> Result<Created, StoreError> {
        if let Some(ahead) = &self.ahead
            && let Some(key) = ahead.create(&task).await
        {
            return Ok(Created::New(key));
        }
        self.question(move |batch| task::create(batch, &task)).await
    }

    fn append(&self, append: Append) {
        // Where a turn ends or rests, its sender waits.
        let how = if append.snapshot.is_some() { How::Awaited } else { How::Soon };
        if let Err(Job::Append(append)) = self.queue.push(Job::Append(append), how) {
            append.ack.refused(append.seq, StoreError::Closed.into());
        }
    }

    async fn claim(&self, task: TaskKey, epoch: i64, lease: Lease, retry: bool) -> Result<Claim, StoreError> {
        self.ask(move |batch| task::claim(batch, task, epoch, &lease, retry)).await
    }

    async fn abandoned(&self, node: &str, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        let node = node.to_owned();
        self.read(move |db| read::abandoned(db, &node, limit)).await
    }

    async fn task(&self, scope: &Scope, id: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        let began = match self.finished.find(scope, id) {
            Ok(row) => return Ok(Some(row)),
            Err(began) => began,
        };
        if let Some(row) = self.progress.find(scope, id) {
            return Ok(Some(row));
        }
        let (scope, id) = (scope.clone(), id.clone());
        let row = self.find(move |db| read::task(db, &scope, &id)).await?;
        if let Some(row) = &row {
            self.finished.keep(began, row);
        }
        Ok(row)
    }

    async fn task_by_key(&self, key: TaskKey) -> Result<Option<TaskRow>, StoreError> {
        self.find(move |db| read::task_by_key(db, key)).await
    }

    async fn events(&self, task: TaskKey, after: Seq, limit: usize, bytes: usize) -> Result<Vec<LogEvent>, StoreError> {
        self.read(move |db| log::read(db, task, after, limit, bytes)).await
    }

    async fn messages(&self, task: TaskKey) -> Result<Vec<(Seq, Bytes)>, StoreError> {
        self.read(move |db| read::messages(db, task)).await
    }

    async fn find_key(&self, scope: &Scope, key: &IdempotencyKey) -> Result<Option<(TaskKey, Seq)>, StoreError> {
        let (scope, key) = (scope.clone(), key.clone());
        self.find(move |db| append::find_key(db, &scope, &key)).await
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.read(move |db| list::list(db, &query)).await
    }

    async fn put_push(&self, task: TaskKey, config: PushConfig) -> Result<(), StoreError> {
        self.question(move |batch| {
            let stored = push::put(batch, task, &config)?;
            Ok(if stored { Ok(()) } else { Err(batch.at.failed("the task does not exist")) })
        })
        .await
    }

    async fn pushes(&self, task: TaskKey) -> Result<Vec<PushConfig>, StoreError> {
        self.read(move |db| push::of_task(db, task)).await
    }

    async fn delete_push(&self, task: TaskKey, id: &PushId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.ask(move |batch| push::delete(batch, task, &id)).await
    }

    async fn due_pushes(&self, _: &str, now: Micros, limit: usize) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
        self.read(move |db| push::due(db, now, limit)).await
    }

    async fn advance_push(&self, task: TaskKey, config: PushConfig) -> Result<bool, StoreError> {
        self.ask(move |batch| push::advance(batch, task, &config)).await
    }

    async fn wake_pushes(&self, now: Micros) -> Result<usize, StoreError> {
        self.ask(move |batch| push::wake(batch, now)).await
    }

    async fn replay_push(&self, task: TaskKey, id: &PushId, now: Micros) -> Result<bool, StoreError> {
        let id = id.clone();
        self.ask(move |batch| push::replay(batch.db, task, &id, now)).await
    }

    async fn push_backlog(&self) -> Result<Backlog, StoreError> {
        self.read(push::backlog).await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        let key = key.clone();
        self.find(move |db| session::get(db, &key)).await
    }

    async fn put_session(&self, key: &SessionKey, session: Session, at: Micros) -> Result<(), StoreError> {
        let key = key.clone();
        self.ask(move |batch| session::put(batch, &key, &session, at)).await
    }

    async fn trim(&self, than: Older, limit: usize) -> Result<usize, StoreError> {
        let mut removed = 0;
        while removed < limit {
            let room = trim::TASKS.min(limit - removed);
            let (of_readers, of_writer) = (than.clone(), than.clone());
            let keys = self.read(move |db| trim::candidates(db, &of_readers, room)).await?;
            let some = self.ask(move |batch| trim::remove(batch, &keys, &of_writer)).await?;
            if some == 0 {
                break;
            }
            removed += some;
        }
        while self.ask(trim::sweep).await? {}
        while self.ask(move |batch| trim::forget(batch, than.keys)).await? {}
        // Where more tasks are to go, their conversations are looked at afterwards.
        if removed < limit {
            self.forget_sessions(than.before).await?;
        }
        self.ask(trim::forget_callers).await?;
        Ok(removed)
    }

    async fn check(&self) -> Result<(), StoreError> {
        let write = "INSERT INTO mark (name, value) VALUES ('checked', 1)
                     ON CONFLICT DO UPDATE SET value = value + 1";
        let (file, ahead) = (self.file.clone(), self.ahead.clone());
        self.question(move |batch| {
            batch.db.prepare_cached(write)?.execute([])?;
            // A file that has lost its name takes writes all the same, and nobody finds them again.
            let is_there =
                open::is_there(&file).and_then(|is| Ok(is && ahead.as_ref().map_or(Ok(true), |file| file.is_there())?));
            Ok(match is_there {
                Ok(true) => Ok(()),
                Ok(false) => Err(batch.at.failed(LOST)),
                Err(error) => Err(batch.at.io(&error)),
            })
        })
        .await
    }

    async fn close(&self) {
        self.finish();
        let mut done = self.done.clone();
        // An error means that the writer is gone, which is what this waits for.
        let _ = done.wait_for(|done| *done).await;
    }
}

/// Puts into the database what a crash has kept from it, and says which places are free.
fn catch_up(db: &Connection, found: &ahead::Found, at: &At) -> rusqlite::Result<Places> {
    let keys = found.tasks.iter().map(|task| task.key.0);
    let places = Places::after(trim::last_place(db)?.max(keys.max().unwrap_or(0)));
    if !found.tasks.is_empty() {
        writer::catch_up(db, at, &places, Arc::new(found.tasks.clone()), found.next)?;
        tracing::info!(tasks = found.tasks.len(), "what was on the disk ahead of the database is in it now");
    }
    Ok(places)
}

/// SQLite counts in `i64`; nothing real is larger.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn limit_of(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
