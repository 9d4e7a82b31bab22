//! A node's line to a store that it shares with others, and to their bus: it lags, fails, stands still and breaks for good.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use nuncio_protocol::{PushId, TaskId};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::bus::{Bus, Hint};
use crate::store::{
    Append, Backlog, Claim, Created, IdempotencyKey, Lease, Letter, LetterId, ListPage, ListQuery, LogEvent,
    MemoryStore, Micros, NewTask, Node, Older, Order, Posted, Progress, PushConfig, Scope, Seq, Session, SessionKey,
    Shared, Store, StoreError, TaskKey, TaskRow,
};

/// How a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Way {
    Open,
    /// Every call fails.
    Fails,
    /// Tasks are made and claimed, but who asked for that hears that it failed.
    Forgets,
    /// Nothing comes or goes until it is open again.
    Stands,
    /// Nothing ever comes or goes again: the node is dead.
    Dead,
}

pub(super) struct Line {
    inner: Arc<MemoryStore>,
    way: AtomicU8,
    opened: Notify,
    lag: Duration,
    slow: Mutex<Duration>,
    appends: Mutex<VecDeque<Append>>,
    news: Notify,
}

impl Line {
    pub(super) fn to(inner: &Arc<MemoryStore>, lag: Duration) -> Arc<Self> {
        let line = Arc::new(Self {
            inner: inner.clone(),
            way: AtomicU8::new(Way::Open as u8),
            opened: Notify::new(),
            lag,
            slow: Mutex::default(),
            appends: Mutex::default(),
            news: Notify::new(),
        });
        tokio::spawn(line.clone().carry());
        line
    }

    pub(super) fn set(&self, way: Way) {
        // The dead do not come back.
        if self.way() != Way::Dead {
            self.way.store(way as u8, Ordering::SeqCst);
            self.opened.notify_waiters();
        }
    }

    pub(super) fn way(&self) -> Way {
        [Way::Open, Way::Fails, Way::Forgets, Way::Stands, Way::Dead][usize::from(self.way.load(Ordering::SeqCst))]
    }

    /// Waits until something gets through, or does not.
    async fn pass(&self) -> Result<(), StoreError> {
        loop {
            let opened = self.opened.notified();
            match self.way() {
                Way::Open | Way::Forgets => return Ok(()),
                Way::Fails => return Err(no_line()),
                Way::Stands => opened.await,
                Way::Dead => std::future::pending().await,
            }
        }
    }

    async fn there(&self) -> Result<(), StoreError> {
        self.pass().await?;
        tokio::time::sleep(self.lag).await;
        self.pass().await
    }

    /// An answer may stand still on its way, but it is not lost.
    async fn back<T>(&self, answer: T) -> T {
        tokio::time::sleep(self.lag / 2).await;
        while matches!(self.way(), Way::Stands | Way::Dead) {
            let _ = self.pass().await;
        }
        answer
    }

    fn forget<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if self.way() == Way::Forgets { Err(no_line()) } else { answer }
    }

    /// Tasks are made and claimed so much later than everything else is done.
    pub(super) fn slow_down(&self, by: Duration) {
        *self.slow.lock() = by;
    }

    async fn slowly(&self) {
        let by = *self.slow.lock();
        if !by.is_zero() && self.pass().await.is_ok() {
            tokio::time::sleep(by).await;
        }
    }

    async fn carry(self: Arc<Self>) {
        loop {
            let next = self.appends.lock().pop_front();
            let Some(append) = next else {
                self.news.notified().await;
                tokio::time::sleep(self.lag).await;
                continue;
            };
            match self.pass().await {
                Ok(()) => self.inner.append(append),
                Err(error) => {
                    let (seq, task) = (append.seq, append.task);
                    append.ack.refused(seq, error.into());
                    // With all behind it.
                    self.appends.lock().retain(|other| other.task != task);
                }
            }
        }
    }
}

fn no_line() -> StoreError {
    StoreError::Failed { at: "the test".into(), what: "no line".into() }
}

macro_rules! over_the_line {
    ($line:expr, $call:expr) => {{
        $line.there().await?;
        let answer = $call.await;
        $line.back(answer).await
    }};
}

#[async_trait]
impl Store for Line {
    async fn create(&self, task: NewTask) -> Result<Created, StoreError> {
        self.slowly().await;
        let made = over_the_line!(self, self.inner.create(task));
        self.forget(made)
    }

    fn append(&self, append: Append) {
        self.appends.lock().push_back(append);
        self.news.notify_one();
    }

    async fn claim(&self, task: TaskKey, epoch: i64, lease: Lease, retry: bool) -> Result<Claim, StoreError> {
        self.slowly().await;
        let claimed = over_the_line!(self, self.inner.claim(task, epoch, lease, retry));
        self.forget(claimed)
    }

    async fn abandoned(&self, node: &str, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        over_the_line!(self, self.inner.abandoned(node, limit))
    }

    async fn task(&self, scope: &Scope, id: &TaskId) -> Result<Option<TaskRow>, StoreError> {
        over_the_line!(self, self.inner.task(scope, id))
    }

    async fn task_by_key(&self, key: TaskKey) -> Result<Option<TaskRow>, StoreError> {
        over_the_line!(self, self.inner.task_by_key(key))
    }

    async fn events(&self, task: TaskKey, after: Seq, limit: usize, bytes: usize) -> Result<Vec<LogEvent>, StoreError> {
        over_the_line!(self, self.inner.events(task, after, limit, bytes))
    }

    async fn messages(&self, task: TaskKey) -> Result<Vec<(Seq, Bytes)>, StoreError> {
        over_the_line!(self, self.inner.messages(task))
    }

    async fn find_key(&self, scope: &Scope, key: &IdempotencyKey) -> Result<Option<(TaskKey, Seq)>, StoreError> {
        over_the_line!(self, self.inner.find_key(scope, key))
    }

    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        over_the_line!(self, self.inner.list(query))
    }

    async fn put_push(&self, task: TaskKey, config: PushConfig) -> Result<(), StoreError> {
        over_the_line!(self, self.inner.put_push(task, config))
    }

    async fn pushes(&self, task: TaskKey) -> Result<Vec<PushConfig>, StoreError> {
        over_the_line!(self, self.inner.pushes(task))
    }

    async fn delete_push(&self, task: TaskKey, id: &PushId) -> Result<bool, StoreError> {
        over_the_line!(self, self.inner.delete_push(task, id))
    }

    async fn due_pushes(
        &self,
        node: &str,
        now: Micros,
        limit: usize,
    ) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
        over_the_line!(self, self.inner.due_pushes(node, now, limit))
    }

    async fn advance_push(&self, task: TaskKey, config: PushConfig) -> Result<bool, StoreError> {
        over_the_line!(self, self.inner.advance_push(task, config))
    }

    async fn wake_pushes(&self, now: Micros) -> Result<usize, StoreError> {
        over_the_line!(self, self.inner.wake_pushes(now))
    }

    async fn replay_push(&self, task: TaskKey, id: &PushId, now: Micros) -> Result<bool, StoreError> {
        over_the_line!(self, self.inner.replay_push(task, id, now))
    }

    async fn push_backlog(&self) -> Result<Backlog, StoreError> {
        over_the_line!(self, self.inner.push_backlog())
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        over_the_line!(self, self.inner.session(key))
    }

    async fn put_session(&self, key: &SessionKey, session: Session, at: Micros) -> Result<(), StoreError> {
        over_the_line!(self, self.inner.put_session(key, session, at))
    }

    async fn trim(&self, than: Older, limit: usize) -> Result<usize, StoreError> {
        over_the_line!(self, self.inner.trim(than, limit))
    }

    async fn check(&self) -> Result<(), StoreError> {
        over_the_line!(self, self.inner.check())
    }

    async fn close(&self) {}

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

#[async_trait]
impl Shared for Line {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn beat(&self, node: &Node, ttl: Duration) -> Result<bool, StoreError> {
        over_the_line!(self, self.inner.beat(node, ttl))
    }

    async fn leave(&self, node: &Node) -> Result<(), StoreError> {
        over_the_line!(self, self.inner.leave(node))
    }

    async fn clock(&self) -> Result<Micros, StoreError> {
        over_the_line!(self, self.inner.clock())
    }

    async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        over_the_line!(self, self.inner.nodes())
    }

    async fn release(&self, task: TaskKey, epoch: i64) -> Result<(), StoreError> {
        over_the_line!(self, self.inner.release(task, epoch))
    }

    async fn held(&self, node: &Node) -> Result<Vec<(TaskKey, i64)>, StoreError> {
        over_the_line!(self, self.inner.held(node))
    }

    async fn progress(&self, tasks: &[TaskKey]) -> Result<Vec<Progress>, StoreError> {
        over_the_line!(self, self.inner.progress(tasks))
    }

    async fn orders(&self, node: &Node) -> Result<Vec<Order>, StoreError> {
        over_the_line!(self, self.inner.orders(node))
    }

    async fn ask_cancel(&self, task: TaskKey) -> Result<(), StoreError> {
        over_the_line!(self, self.inner.ask_cancel(task))
    }

    async fn is_cancel_asked(&self, task: TaskKey) -> Result<bool, StoreError> {
        over_the_line!(self, self.inner.is_cancel_asked(task))
    }

    async fn post(&self, task: TaskKey, letter: Letter) -> Result<LetterId, StoreError> {
        over_the_line!(self, self.inner.post(task, letter))
    }

    async fn posted(&self, letter: LetterId) -> Result<Posted, StoreError> {
        over_the_line!(self, self.inner.posted(letter))
    }

    async fn recall(&self, letter: LetterId) -> Result<Posted, StoreError> {
        over_the_line!(self, self.inner.recall(letter))
    }

    async fn take_pushes(
        &self,
        node: &Node,
        now: Micros,
        limit: usize,
    ) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
        over_the_line!(self, self.inner.take_pushes(node, now, limit))
    }

    async fn take_push(&self, task: TaskKey, id: &PushId, node: &Node) -> Result<bool, StoreError> {
        over_the_line!(self, self.inner.take_push(task, id, node))
    }

    async fn load(&self, owner: &str) -> Result<(usize, usize), StoreError> {
        over_the_line!(self, self.inner.load(owner))
    }

    async fn borrow(&self, who: &str, interval: Duration, slack: Duration, want: u32) -> Result<u32, StoreError> {
        over_the_line!(self, self.inner.borrow(who, interval, slack, want))
    }
}

/// A bus between the nodes of one process.
#[derive(Debug, Default)]
pub(super) struct Wire {
    ends: Mutex<Vec<Arc<End>>>,
}

/// One node's end of it.
#[derive(Debug, Default)]
pub(super) struct End {
    heard: Mutex<Vec<Hint>>,
    news: Notify,
    cut: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Member(Arc<Wire>, Arc<End>);

impl Wire {
    pub(super) fn join(self: &Arc<Self>) -> Arc<Member> {
        let end = Arc::new(End::default());
        self.ends.lock().push(end.clone());
        Arc::new(Member(self.clone(), end))
    }
}

impl Member {
    /// Nothing comes or goes while it is cut, and what would have is lost.
    pub(super) fn cut(&self, cut: bool) {
        self.1.cut.store(cut, Ordering::SeqCst);
    }
}

#[async_trait]
impl Bus for Member {
    fn tell(&self, hints: &[Hint]) {
        if self.1.cut.load(Ordering::SeqCst) {
            return;
        }
        for end in self.0.ends.lock().iter() {
            if !Arc::ptr_eq(end, &self.1) && !end.cut.load(Ordering::SeqCst) {
                end.heard.lock().extend_from_slice(hints);
                end.news.notify_one();
            }
        }
    }

    async fn heard(&self) -> Vec<Hint> {
        loop {
            let heard = std::mem::take(&mut *self.1.heard.lock());
            if !heard.is_empty() {
                return heard;
            }
            self.1.news.notified().await;
        }
    }

    fn trouble(&self) -> Option<&'static str> {
        None
    }

    fn kind(&self) -> &'static str {
        "wire"
    }
}
