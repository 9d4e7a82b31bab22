//! The log in memory: for tests, demonstrations and agents whose tasks may die with the process.

mod crew;
mod log;
mod shelf;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use bytes::Bytes;
use nuncio_protocol::{PushId, TaskId};
use parking_lot::Mutex;

use super::{
    Append, Backlog, Claim, Created, IdempotencyKey, Lease, ListPage, ListQuery, LogEvent, Micros, NewTask, Older,
    PushConfig, Scope, Seq, Session, SessionKey, Shared, Store, StoreError, TaskKey, TaskRow,
};
use crew::Crew;
use log::{Kept, Log};

/// Every task of this process, and nothing after it. "Durable" means: as long as the process lives.
#[derive(Default)]
pub struct MemoryStore {
    /// One lock: every operation under it is a few map steps, shorter than any finer locking.
    log: Mutex<Log>,
    /// What tells it from others, if several servers share it.
    name: String,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store for several servers in this process. It tells the time by the clock of Tokio.
    pub fn shared() -> Self {
        let mut log = Log::default();
        log.crew = Some(Crew::default());
        Self { log: Mutex::new(log), name: format!("memory-{}", uuid::Uuid::new_v4().simple()) }
    }

    fn write<T>(&self, work: impl FnOnce(&mut Log) -> T) -> Result<T, StoreError> {
        let mut log = self.log.lock();
        log.open()?;
        Ok(work(&mut log))
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, task: NewTask) -> Result<Created, StoreError> {
        let kept = Kept::of(&task);
        self.write(|log| log.create(task, kept))?
    }

    fn append(&self, append: Append) {
        let (ack, seq) = (append.ack.clone(), append.seq);
        // A statement of its own: the lock is free again when the writer hears of it.
        let outcome = self.log.lock().append(append);
        match outcome {
            Ok(()) => ack.committed(seq),
            Err(why) => ack.refused(seq, why),
        }
    }

    async fn claim(&self, task: TaskKey, epoch: i64, lease: Lease, retry: bool) -> Result<Claim, StoreError> {
        self.write(|log| log.claim(task, epoch, lease, retry))
    }

    async fn abandoned(&self, node: &str, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        Ok(self.log.lock().abandoned(node, limit))
    }

    async fn task(&self, scope: &Scope, id: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        Ok(self.log.lock().task(scope, id))
    }

    async fn task_by_key(&self, key: TaskKey) -> Result<Option<TaskRow>, StoreError> {
        let log = self.log.lock();
        Ok(log.tasks.get(&key).map(|entry| log.shown(entry)))
    }

    async fn events(&self, task: TaskKey, after: Seq, limit: usize, bytes: usize) -> Result<Vec<LogEvent>, StoreError> {
        let log = self.log.lock();
        log.tasks.get(&task).map_or(Ok(Vec::new()), |entry| entry.events(after, limit, bytes))
    }

    async fn messages(&self, task: TaskKey) -> Result<Vec<(Seq, Bytes)>, StoreError> {
        Ok(self.log.lock().tasks.get(&task).map(|entry| entry.messages.clone()).unwrap_or_default())
    }

    async fn find_key(&self, scope: &Scope, key: &IdempotencyKey) -> Result<Option<(TaskKey, Seq)>, StoreError> {
        Ok(self.log.lock().find_key(scope, key))
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        Ok(self.log.lock().list(&query))
    }

    async fn put_push(&self, task: TaskKey, config: PushConfig) -> Result<(), StoreError> {
        self.write(|log| log.put_push(task, config))?
    }

    async fn pushes(&self, task: TaskKey) -> Result<Vec<PushConfig>, StoreError> {
        let log = self.log.lock();
        Ok(log.tasks.get(&task).map(|entry| entry.pushes.values().cloned().collect()).unwrap_or_default())
    }

    async fn delete_push(&self, task: TaskKey, id: &PushId) -> Result<bool, StoreError> {
        self.write(|log| log.delete_push(task, id))
    }

    async fn due_pushes(
        &self,
        node: &str,
        now: Micros,
        limit: usize,
    ) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
        Ok(self.log.lock().due_pushes(node, now, limit))
    }

    async fn advance_push(&self, task: TaskKey, config: PushConfig) -> Result<bool, StoreError> {
        self.write(|log| log.advance_push(task, config))
    }

    async fn wake_pushes(&self, now: Micros) -> Result<usize, StoreError> {
        self.write(|log| log.wake_pushes(now))
    }

    async fn replay_push(&self, task: TaskKey, id: &PushId, now: Micros) -> Result<bool, StoreError> {
        self.write(|log| log.replay_push(task, id, now))
    }

    async fn push_backlog(&self) -> Result<Backlog, StoreError> {
        Ok(self.log.lock().push_backlog())
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        Ok(self.log.lock().sessions.get(key).map(|(session, _)| session.clone()))
    }

    async fn put_session(&self, key: &SessionKey, session: Session, at: Micros) -> Result<(), StoreError> {
        self.write(|log| drop(log.sessions.insert(key.clone(), (session, at))))
    }

    async fn trim(&self, than: Older, limit: usize) -> Result<usize, StoreError> {
        self.write(|log| log.trim(&than, limit))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.write(|_| ())
    }

    async fn close(&self) {
        let mut log = self.log.lock();
        // Whoever else shares it goes on.
        log.closed = log.crew.is_none();
    }

    fn shared(&self) -> Option<&dyn Shared> {
        (!self.name.is_empty()).then_some(self as &dyn Shared)
    }
}
