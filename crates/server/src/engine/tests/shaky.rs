//! A store that lags behind and runs out of space, over one that does neither.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use nuncio_protocol::{PushId, TaskId};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::store::{
    Append, Backlog, Claim, Created, IdempotencyKey, Lease, ListPage, ListQuery, LogEvent, Micros, NewTask, Older,
    PushConfig, Scope, Seq, Session, SessionKey, Store, StoreError, TaskKey, TaskRow,
};

enum Job {
    Append(Append),
    Create(Box<NewTask>, oneshot::Sender<Result<Created, StoreError>>),
    Claim((TaskKey, i64, Lease, bool), oneshot::Sender<Result<Claim, StoreError>>),
}

/// Writes wait in one line and become durable together, as in a store on disk. What waits when the
/// runtime ends is lost, as in a crash.
pub(super) struct Shaky {
    inner: Arc<dyn Store>,
    line: Mutex<VecDeque<Job>>,
    news: Notify,
    lag: Duration,
    /// How many of the next batches find no space.
    faults: AtomicUsize,
}

impl Shaky {
    /// Starts the line. Without `lag`, everything is durable at once.
    pub(super) fn start(inner: Arc<dyn Store>, lag: Duration) -> Arc<Self> {
        let (line, news, faults) = (Mutex::default(), Notify::new(), AtomicUsize::new(0));
        let shaky = Arc::new(Self { inner, line, news, lag, faults });
        if !lag.is_zero() {
            tokio::spawn(shaky.clone().pump());
        }
        shaky
    }

    /// The next batches find no space.
    pub(super) fn fill_up(&self, batches: usize) {
        self.faults.store(batches, Ordering::Relaxed);
    }

    async fn pump(self: Arc<Self>) {
        loop {
            self.news.notified().await;
            tokio::time::sleep(self.lag).await;
            let batch = std::mem::take(&mut *self.line.lock());
            self.write(batch).await;
        }
    }

    async fn write(&self, batch: VecDeque<Job>) {
        let full = self.is_full();
        for job in batch {
            match job {
                Job::Append(append) if full => append.ack.refused(append.seq, no_space().into()),
                Job::Append(append) => self.inner.append(append),
                Job::Create(_, reply) if full => drop(reply.send(Err(no_space()))),
                Job::Create(task, reply) => drop(reply.send(self.inner.create(*task).await)),
                Job::Claim(_, reply) if full => drop(reply.send(Err(no_space()))),
                Job::Claim((task, epoch, lease, retry), reply) => {
                    drop(reply.send(self.inner.claim(task, epoch, lease, retry).await));
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        self.faults.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    async fn line_up<T>(&self, job: Job, answer: oneshot::Receiver<Result<T, StoreError>>) -> Result<T, StoreError> {
        if self.lag.is_zero() {
            self.write(VecDeque::from([job])).await;
        } else {
            self.line.lock().push_back(job);
            self.news.notify_one();
        }
        let answer = answer.await.unwrap_or(Err(StoreError::Closed));
        // An answer is on its way for a while, and everyone else can see already what it says.
        if !self.lag.is_zero() {
            tokio::time::sleep(self.lag / 2).await;
        }
        answer
    }
}

fn no_space() -> StoreError {
    StoreError::Full { at: "the test".into() }
}

#[async_trait]
impl Store for Shaky {
    async fn create(&self, task: NewTask) -> Result<Created, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.line_up(Job::Create(Box::new(task), reply), answer).await
    }

    fn append(&self, append: Append) {
        if !self.lag.is_zero() {
            self.line.lock().push_back(Job::Append(append));
            self.news.notify_one();
        } else if self.is_full() {
            append.ack.refused(append.seq, no_space().into());
        } else {
            self.inner.append(append);
        }
    }

    async fn claim(&self, task: TaskKey, epoch: i64, lease: Lease, retry: bool) -> Result<Claim, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.line_up(Job::Claim((task, epoch, lease, retry), reply), answer).await
    }

    async fn abandoned(&self, node: &str, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        self.inner.abandoned(node, limit).await
    }

    async fn task(&self, scope: &Scope, id: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        self.inner.task(scope, id).await
    }

    async fn task_by_key(&self, key: TaskKey) -> Result<Option<TaskRow>, StoreError> {
        self.inner.task_by_key(key).await
    }

    async fn events(&self, task: TaskKey, after: Seq, limit: usize, bytes: usize) -> Result<Vec<LogEvent>, StoreError> {
        tokio::task::yield_now().await;
        self.inner.events(task, after, limit, bytes).await
    }

    async fn messages(&self, task: TaskKey) -> Result<Vec<(Seq, Bytes)>, StoreError> {
        let messages = self.inner.messages(task).await;
        tokio::task::yield_now().await;
        messages
    }

    async fn find_key(&self, scope: &Scope, key: &IdempotencyKey) -> Result<Option<(TaskKey, Seq)>, StoreError> {
        self.inner.find_key(scope, key).await
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.inner.list(query).await
    }

    async fn put_push(&self, task: TaskKey, config: PushConfig) -> Result<(), StoreError> {
        self.inner.put_push(task, config).await
    }

    async fn pushes(&self, task: TaskKey) -> Result<Vec<PushConfig>, StoreError> {
        self.inner.pushes(task).await
    }

    async fn delete_push(&self, task: TaskKey, id: &PushId) -> Result<bool, StoreError> {
        self.inner.delete_push(task, id).await
    }

    async fn due_pushes(
        &self,
        node: &str,
        now: Micros,
        limit: usize,
    ) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
        self.inner.due_pushes(node, now, limit).await
    }

    async fn advance_push(&self, task: TaskKey, config: PushConfig) -> Result<bool, StoreError> {
        self.inner.advance_push(task, config).await
    }

    async fn wake_pushes(&self, now: Micros) -> Result<usize, StoreError> {
        self.inner.wake_pushes(now).await
    }

    async fn replay_push(&self, task: TaskKey, id: &PushId, now: Micros) -> Result<bool, StoreError> {
        self.inner.replay_push(task, id, now).await
    }

    async fn push_backlog(&self) -> Result<Backlog, StoreError> {
        self.inner.push_backlog().await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        self.inner.session(key).await
    }

    async fn put_session(&self, key: &SessionKey, session: Session, at: Micros) -> Result<(), StoreError> {
        self.inner.put_session(key, session, at).await
    }

    async fn trim(&self, than: Older, limit: usize) -> Result<usize, StoreError> {
        self.inner.trim(than, limit).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
