//! The log in PostgreSQL: the store that several servers share.
//!
//! ```text
//!   append, create ──▶ a queue per writer ──▶ BEGIN … COMMIT, sent in one go ──▶ acknowledge
//!   everything else ──▶ a pool of connections, one statement each
//! ```
//!
//! A writer takes everything that waits and commits it at once. Events of one task always go to the same writer, so
//! they keep their order; other tasks go on beside them. Every append carries its lease in the statement itself, so a
//! server that was thought dead and wakes up writes nothing.

mod agree;
mod append;
mod batch;
mod content;
mod create;
mod doctor;
mod error;
mod key;
mod lease;
mod letter;
mod link;
mod list;
mod migrate;
mod multiply;
pub(crate) mod notice;
mod operator;
mod pause;
mod pool;
mod push;
mod queue;
mod read;
mod session;
mod settle;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod tls;
mod trim;
mod url;
mod writer;

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use nuncio_protocol::{PushId, TaskId};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::{
    Append, Backlog, Claim, Created, Durability, IdempotencyKey, Lease, Letter, LetterId, ListPage, ListQuery,
    LogEvent, Micros, NewTask, Node, Older, OnCommit, Order, Posted, Progress, PushConfig, Scope, Seq, Session,
    SessionKey, Shared, Store, StoreError, TaskKey, TaskRow,
};
use batch::{Job, Work};
use create::Create;
use error::{At, Trouble, trouble_of};
use pause::Pause;
use pool::Pool;
use queue::Queue;
use tls::Tls;
use url::Place;
use writer::Writer;

pub use doctor::Findings;
pub use operator::Operator;

/// How large a row of several events may be: two of them fit into a page.
const ROW_BYTES: usize = 4_000;

/// How long a server waits before it says that the database does not answer.
const CHECK: Duration = Duration::from_secs(5);

/// How to use a database.
#[derive(Clone)]
pub struct PostgresOptions {
    /// When a write counts as durable.
    pub durability: Durability,
    /// The password, if the URL has none.
    pub password: Option<String>,
    /// How long writes wait for a database that is away, before they fail.
    pub patience: Duration,
    /// Hears of every transaction.
    pub on_commit: Option<OnCommit>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { durability: Durability::Full, password: None, patience: Duration::from_secs(30), on_commit: None }
    }
}

/// The log in a database that other servers may use at the same time.
pub struct PostgresStore {
    name: String,
    schema: String,
    at: At,
    pool: Pool,
    shards: Vec<Shard>,
    /// Which writer makes the next task.
    next: AtomicUsize,
    /// Connections for single statements at most.
    pool_size: usize,
}

/// A writer, as the others see it.
struct Shard {
    queue: Arc<Queue<Job>>,
    done: watch::Receiver<bool>,
    trouble: Arc<Mutex<Option<StoreError>>>,
}

impl PostgresStore {
    /// Whether a URL can be one of a database. What is wrong with it is said without its password.
    pub fn check_url(url: &str) -> Result<(), String> {
        Place::read(url, None).map(drop)
    }

    /// A URL as it may be shown.
    pub fn shown_url(url: &str) -> String {
        Place::read(url, None).map_or_else(|_| "postgres://…".to_owned(), |place| place.at.shown().to_owned())
    }

    /// Opens a database, and makes or brings up to date what is ours in it. A schema of a newer release stays as it is.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let place = Place::read(url, options.password.as_deref());
        let mut place = place.map_err(|what| At::new("store".into()).failed(what))?;
        place.settle(options.durability);
        let place = Arc::new(place);
        let tls = Tls::new(&place)?;
        let name = prepare(&place, tls.clone(), options.patience).await?;
        let pool = Pool::new(&place, tls.clone(), options.patience)?;
        let shards = (0..place.writers).map(|_| Shard::start(&place, &tls, &options)).collect();
        let schema = place.schema.clone();
        Ok(Self { name, schema, at: place.at.clone(), pool, shards, next: AtomicUsize::new(0), pool_size: place.pool })
    }

    /// How many connections this server uses at most.
    fn most_connections(&self) -> usize {
        self.pool_size + self.shards.len()
    }

    /// The writer of a task.
    fn shard(&self, task: TaskKey) -> &Shard {
        let n = usize::try_from(task.0.rem_euclid(i64::try_from(self.shards.len()).unwrap_or(1))).unwrap_or_default();
        &self.shards[n]
    }

    fn open_or_closed(&self) -> Result<(), StoreError> {
        if self.shards.iter().any(|shard| shard.queue.is_closed()) { Err(StoreError::Closed) } else { Ok(()) }
    }
}

/// Brings the schema up to date, and finds out what tells this store from others.
async fn prepare(place: &Place, tls: Tls, patience: Duration) -> Result<String, StoreError> {
    let sql = |error: tokio_postgres::Error| place.at.sql(&error);
    let mut pause = Pause::until(Instant::now() + patience);
    let (mut client, connection) = loop {
        match place.config.connect(tls.clone()).await {
            // It starts again just now, as it may at any time; servers must not fall over for that.
            Err(error) if is_away(&error) && pause.wait().await => {}
            connected => break connected.map_err(sql)?,
        }
    };
    let connection = tokio::spawn(connection);
    migrate::migrate(&mut client, &place.at, &place.schema).await?;
    let row = client.query_one("SELECT value FROM mark WHERE name = 'name'", &[]).await.map_err(sql)?;
    let name = row.try_get(0).map_err(sql)?;
    drop(client);
    let _ = connection.await;
    Ok(name)
}

/// Whether nobody is there, or somebody who says that it will be a moment. Wrong passwords and certificates stay wrong.
fn is_away(error: &tokio_postgres::Error) -> bool {
    if let Some(code) = error.code() {
        return matches!(trouble_of(code), Trouble::Away);
    }
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    error.is_closed()
        || io.is_some_and(|error| matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset))
}

impl Shard {
    fn start(place: &Arc<Place>, tls: &Tls, options: &PostgresOptions) -> Self {
        let (queue, trouble) = (Arc::new(Queue::new()), Arc::default());
        let (done, finished) = watch::channel(false);
        let writer = Writer {
            place: place.clone(),
            tls: tls.clone(),
            at: place.at.clone(),
            queue: queue.clone(),
            on_commit: options.on_commit.clone(),
            patience: options.patience,
            trouble: Arc::clone(&trouble),
            done,
            link: None,
            former: None,
            numbers: std::collections::VecDeque::new(),
        };
        tokio::spawn(writer.run());
        Self { queue, done: finished, trouble }
    }
}

impl Drop for PostgresStore {
    /// What was handed over is still written, as long as the runtime lives.
    fn drop(&mut self) {
        for shard in &self.shards {
            shard.queue.close();
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(&self, task: NewTask) -> Result<Created, StoreError> {
        let (reply, answer) = oneshot::channel();
        let shard = &self.shards[self.next.fetch_add(1, Ordering::Relaxed) % self.shards.len()];
        let create = Work::Create(Box::new(Create::new(task, reply)));
        shard.queue.push(Job::new(create)).map_err(|_| StoreError::Closed)?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    fn append(&self, append: Append) {
        let back = self.shard(append.task).queue.push(Job::new(Work::Append(append)));
        if let Err(Job { work: Work::Append(append), .. }) = back {
            append.ack.refused(append.seq, StoreError::Closed.into());
        }
    }

    async fn claim(&self, task: TaskKey, epoch: i64, lease: Lease, retry: bool) -> Result<Claim, StoreError> {
        self.open_or_closed()?;
        lease::claim(&self.pool, &self.at, task, epoch, &lease, retry).await
    }

    async fn abandoned(&self, _: &str, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        lease::evict(&self.pool).await?;
        lease::abandoned(&self.pool, &self.at, limit).await
    }

    async fn task(&self, scope: &Scope, id: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        read::task(&self.pool, &self.at, scope, id).await
    }

    async fn task_by_key(&self, key: TaskKey) -> Result<Option<TaskRow>, StoreError> {
        read::task_by_key(&self.pool, &self.at, key).await
    }

    async fn events(&self, task: TaskKey, after: Seq, limit: usize, bytes: usize) -> Result<Vec<LogEvent>, StoreError> {
        read::events(&self.pool, &self.at, task, after, limit, bytes).await
    }

    async fn messages(&self, task: TaskKey) -> Result<Vec<(Seq, Bytes)>, StoreError> {
        read::messages(&self.pool, &self.at, task).await
    }

    async fn find_key(&self, scope: &Scope, key: &IdempotencyKey) -> Result<Option<(TaskKey, Seq)>, StoreError> {
        let digest = text::digest(&[&key.key]);
        let rows = self.pool.rows(key::FIND, &[&text::scope(scope), &&digest[..], &key.since]).await?;
        let found = read::all(&self.at, &rows, |row| Ok((TaskKey(row.try_get(0)?), read::count(row, 1)?)))?;
        Ok(found.first().copied())
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        list::list(&self.pool, &self.at, &query).await
    }

    async fn put_push(&self, task: TaskKey, config: PushConfig) -> Result<(), StoreError> {
        self.open_or_closed()?;
        let stored = push::put(&self.pool, task, &config).await?;
        if stored { Ok(()) } else { Err(self.at.failed("the task does not exist")) }
    }

    async fn pushes(&self, task: TaskKey) -> Result<Vec<PushConfig>, StoreError> {
        push::of_task(&self.pool, &self.at, task).await
    }

    async fn delete_push(&self, task: TaskKey, id: &PushId) -> Result<bool, StoreError> {
        self.open_or_closed()?;
        push::delete(&self.pool, task, id).await
    }

    async fn due_pushes(
        &self,
        node: &str,
        now: Micros,
        limit: usize,
    ) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
        push::due(&self.pool, &self.at, node, now, limit).await
    }

    async fn advance_push(&self, task: TaskKey, config: PushConfig) -> Result<bool, StoreError> {
        self.open_or_closed()?;
        push::advance(&self.pool, task, &config).await
    }

    async fn wake_pushes(&self, now: Micros) -> Result<usize, StoreError> {
        self.open_or_closed()?;
        push::wake(&self.pool, now).await
    }

    async fn replay_push(&self, task: TaskKey, id: &PushId, now: Micros) -> Result<bool, StoreError> {
        self.open_or_closed()?;
        push::replay(&self.pool, task, id, now).await
    }

    async fn push_backlog(&self) -> Result<Backlog, StoreError> {
        push::backlog(&self.pool, &self.at).await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        session::get(&self.pool, &self.at, key).await
    }

    async fn put_session(&self, key: &SessionKey, session: Session, at: Micros) -> Result<(), StoreError> {
        self.open_or_closed()?;
        session::put(&self.pool, key, &session, at).await
    }

    async fn trim(&self, than: Older, limit: usize) -> Result<usize, StoreError> {
        self.open_or_closed()?;
        trim::trim(&self.pool, &self.at, &than, limit).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        let mut answers = Vec::new();
        for shard in &self.shards {
            let (reply, answer) = oneshot::channel();
            shard.queue.push(Job::new(Work::Check(reply))).map_err(|_| StoreError::Closed)?;
            answers.push(answer);
        }
        for (shard, answer) in self.shards.iter().zip(answers) {
            let trouble = shard.trouble.lock().clone();
            // What is known to fail is not waited for as long.
            let patience = if trouble.is_some() { CHECK / 5 } else { CHECK };
            match tokio::time::timeout(patience, answer).await {
                Ok(answer) => answer.unwrap_or(Err(StoreError::Closed))?,
                Err(_) => {
                    let trouble = shard.trouble.lock().clone();
                    return Err(trouble.unwrap_or_else(|| self.at.failed("the database does not answer")));
                }
            }
        }
        Ok(())
    }

    async fn close(&self) {
        for shard in &self.shards {
            shard.queue.close();
        }
        for shard in &self.shards {
            // An error means that the writer is gone, which is what this waits for.
            let _ = shard.done.clone().wait_for(|done| *done).await;
        }
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

#[async_trait]
impl Shared for PostgresStore {
    fn name(&self) -> &str {
        &self.name
    }

    async fn beat(&self, node: &Node, ttl: Duration) -> Result<bool, StoreError> {
        lease::beat(&self.pool, &self.at, node, ttl).await
    }

    async fn leave(&self, node: &Node) -> Result<(), StoreError> {
        lease::leave(&self.pool, node).await
    }

    async fn clock(&self) -> Result<Micros, StoreError> {
        lease::clock(&self.pool, &self.at).await
    }

    async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        lease::nodes(&self.pool, &self.at).await
    }

    async fn release(&self, task: TaskKey, epoch: i64) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        let release = Job::new(Work::Release(task, epoch, reply));
        self.shard(task).queue.push(release).map_err(|_| StoreError::Closed)?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn held(&self, node: &Node) -> Result<Vec<(TaskKey, i64)>, StoreError> {
        lease::held(&self.pool, &self.at, node).await
    }

    async fn progress(&self, tasks: &[TaskKey]) -> Result<Vec<Progress>, StoreError> {
        lease::progress(&self.pool, &self.at, tasks).await
    }

    async fn orders(&self, node: &Node) -> Result<Vec<Order>, StoreError> {
        letter::orders(&self.pool, &self.at, node).await
    }

    async fn ask_cancel(&self, task: TaskKey) -> Result<(), StoreError> {
        letter::ask_cancel(&self.pool, task).await
    }

    async fn is_cancel_asked(&self, task: TaskKey) -> Result<bool, StoreError> {
        letter::is_cancel_asked(&self.pool, task).await
    }

    async fn post(&self, task: TaskKey, letter: Letter) -> Result<LetterId, StoreError> {
        letter::post(&self.pool, &self.at, task, &letter).await
    }

    async fn posted(&self, letter: LetterId) -> Result<Posted, StoreError> {
        letter::posted(&self.pool, &self.at, letter).await
    }

    async fn recall(&self, letter: LetterId) -> Result<Posted, StoreError> {
        letter::recall(&self.pool, &self.at, letter).await
    }

    async fn take_pushes(
        &self,
        node: &Node,
        now: Micros,
        limit: usize,
    ) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
        letter::take_pushes(&self.pool, &self.at, node, now, limit).await
    }

    async fn take_push(&self, task: TaskKey, id: &PushId, node: &Node) -> Result<bool, StoreError> {
        letter::take_push(&self.pool, task, id, node).await
    }

    async fn load(&self, owner: &str) -> Result<(usize, usize), StoreError> {
        lease::load(&self.pool, &self.at, owner).await
    }

    async fn borrow(&self, who: &str, interval: Duration, slack: Duration, want: u32) -> Result<u32, StoreError> {
        lease::borrow(&self.pool, &self.at, who, interval, slack, want).await
    }
}

/// PostgreSQL counts in `i64`; nothing real is larger.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn limit_of(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
