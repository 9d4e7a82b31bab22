//! One process after the other on the same log, and everyone who talks to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::{ContextId, Error, ErrorKind, Message, TaskId};
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::super::kit::{Scripted, call, call_after, engine_with, message, options, say, tend};
use super::super::shaky::Shaky;
use super::story::{Cursor, Op, Pace};
use crate::agent::OnCrash;
use crate::engine::{Close, Engine, EngineOptions, Over, Subscription, TaskJson};
use crate::store::{Lease, ListQuery, LogEvent, Older, Scope, Seq, Store, TaskRow};

/// What does not change in a story.
pub(super) struct Ground {
    pub(super) on_crash: OnCrash,
    /// Whether turns begin before their tasks are stored.
    pub(super) pure: bool,
    pub(super) lag: Duration,
    pub(super) runtime: fn() -> Runtime,
    /// By how much every deadline is shorter, where the clock is real.
    pub(super) hurry: u32,
}

/// What a reader was shown.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) task: TaskId,
    /// Where it began; `None` if it began with the task itself.
    pub(super) after: Option<Seq>,
    pub(super) until_input: bool,
    pub(super) seen: Vec<(Seq, Bytes)>,
    pub(super) end: End,
    /// Reads to the end of its life.
    pub(super) stays: bool,
    pub(super) life: usize,
}

#[derive(Default, PartialEq, Eq, Debug)]
pub(super) enum End {
    #[default]
    Open,
    Over,
    Broken,
}

/// A log that is read before it is removed.
pub(super) struct Removed {
    pub(super) events: Vec<LogEvent>,
    pub(super) messages: Vec<(Seq, Bytes)>,
}

/// What all lives and everyone in them share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) tasks: Vec<TaskId>,
    pub(super) readers: Vec<Arc<Mutex<Reader>>>,
    /// What was answered for a task, by whatever call.
    pub(super) shown: Vec<(TaskId, Bytes)>,
    pub(super) removed: HashMap<TaskId, Removed>,
    /// Whether the store or another node may be the reason for an error.
    pub(super) disturbed: bool,
    /// Whether another node writes too: its events are told to readers there, and not to those here.
    pub(super) divided: bool,
    pub(super) surprises: Vec<String>,
    /// How many lives are over. Who is in one while it ends may be told anything.
    pub(super) over: usize,
}

/// Writes down what somebody in one life was told.
#[derive(Clone)]
struct Witness {
    shared: Arc<Mutex<Shared>>,
    life: usize,
}

impl Witness {
    /// Errors are allowed where somebody else is the reason, and where the caller asked for too much.
    fn error(&self, error: &Error, asked: bool, what: &str) {
        let mut shared = self.shared.lock();
        let too_much = [
            ErrorKind::UnsupportedOperation,
            ErrorKind::TaskNotCancelable,
            ErrorKind::TaskNotFound,
            ErrorKind::InvalidParams,
        ];
        let excused = shared.disturbed || shared.over > self.life || (asked && too_much.contains(&error.kind));
        if !excused {
            shared.surprises.push(format!("{what} heard {error:?}"));
        }
    }

    fn shown(&self, task: TaskId, json: TaskJson) {
        self.shared.lock().shown.push((task, json.0));
    }
}

pub(super) struct World {
    pub(super) ground: Ground,
    pub(super) shared: Arc<Mutex<Shared>>,
    /// Calls that are not answered yet.
    waiting: Arc<AtomicUsize>,
    life: Option<Life>,
}

/// One process.
pub(super) struct Life {
    pub(super) engine: Arc<Engine>,
    pub(super) agent: Arc<Scripted>,
    pub(super) store: Arc<Shaky>,
    /// They go on with what they took until their writes are refused.
    rivals: Vec<Arc<Engine>>,
    readers: Vec<JoinHandle<()>>,
}

impl World {
    pub(super) fn new(ground: Ground) -> Self {
        Self { ground, shared: Arc::default(), waiting: Arc::default(), life: None }
    }

    pub(super) fn life(&self) -> &Life {
        self.life.as_ref().unwrap()
    }

    fn options(&self) -> EngineOptions {
        let base = options();
        let hurry = self.ground.hurry;
        EngineOptions {
            turn_timeout: base.turn_timeout / hurry,
            approval_timeout: base.approval_timeout / hurry,
            cancel_grace: base.cancel_grace / hurry,
            ..base
        }
    }

    pub(super) async fn begin(&mut self, store: Arc<dyn Store>) {
        let store = Shaky::start(store, self.ground.lag);
        let agent = Scripted::with(self.ground.on_crash, self.ground.pure);
        let engine = engine_with(&agent, store.clone(), self.options());
        engine.recover().await.unwrap();
        tend(&engine);
        self.life = Some(Life { engine, agent, store, rivals: Vec::new(), readers: Vec::new() });
    }

    /// Everything that this life holds goes with it. Its runtime takes the rest along.
    pub(super) fn crash(&mut self) {
        self.life = None;
        self.waiting = Arc::default();
        let mut shared = self.shared.lock();
        shared.over += 1;
        shared.divided = false;
    }

    pub(super) async fn play(&mut self, ops: &[Op]) {
        for op in ops {
            self.happen(op.clone()).await;
        }
    }

    async fn happen(&mut self, op: Op) {
        match op {
            Op::Send { context, script, key } => {
                let context_id = context.map_or_else(ContextId::default, |n| ContextId::from(format!("c{n}").as_str()));
                self.say(Message { context_id, ..message(&script) }, key);
            }
            Op::FollowUp { task, script, key } => {
                let Some(task_id) = self.task(task) else { return };
                self.say(Message { task_id, ..message(&script) }, key);
            }
            Op::Cancel { task } => self.cancel(task),
            Op::Subscribe { task, cursor, pace, until_input } => self.subscribe(task, cursor, pace, until_input).await,
            Op::Get { task } => self.get(task),
            Op::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms) / self.ground.hurry.min(20)).await,
            Op::Yield => tokio::task::yield_now().await,
            Op::NoSpace(batches) => {
                self.shared.lock().disturbed = true;
                self.life().store.fill_up(batches);
            }
            Op::Steal { task } => self.steal(task).await,
            Op::Rival => self.rival().await,
            Op::Trim => self.trim().await,
            Op::Crash => {}
        }
    }

    fn witness(&self) -> Witness {
        Witness { shared: self.shared.clone(), life: self.shared.lock().over }
    }

    fn task(&self, n: usize) -> Option<TaskId> {
        self.shared.lock().tasks.get(n).cloned()
    }

    /// Does `work` beside everything else. Whatever it is, it must come to an end.
    fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        let waiting = self.waiting.clone();
        waiting.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            work.await;
            waiting.fetch_sub(1, Ordering::SeqCst);
        });
    }

    fn say(&self, message: Message, key: Option<u8>) {
        let (engine, witness) = (self.life().engine.clone(), self.witness());
        let follow_up = !message.task_id.is_empty();
        let call = crate::Call { idempotency_key: key.map(|key| format!("k{key}").into()), ..call() };
        self.beside(async move {
            let handle = match say(&engine, &call, message).await {
                Ok(handle) => handle,
                Err(error) => return witness.error(&error, follow_up, "a message"),
            };
            let task = handle.task_id().clone();
            {
                let mut shared = witness.shared.lock();
                if !shared.tasks.contains(&task) {
                    shared.tasks.push(task.clone());
                }
            }
            match handle.settled().await {
                Ok(json) => {
                    let state = json.task().unwrap().status.state;
                    if !state.is_terminal() && !state.is_interrupted() {
                        let what = format!("a blocking sender was shown {state:?}");
                        witness.shared.lock().surprises.push(what);
                    }
                    witness.shown(task, json);
                }
                Err(error) => witness.error(&error, false, "a blocking sender"),
            }
        });
    }

    fn cancel(&self, task: usize) {
        let Some(task) = self.task(task) else { return };
        let (engine, witness) = (self.life().engine.clone(), self.witness());
        self.beside(async move {
            match engine.cancel(&call(), &task).await {
                Ok(json) => witness.shown(task, json),
                Err(error) => witness.error(&error, true, "a cancel"),
            }
        });
    }

    fn get(&self, task: usize) {
        let Some(task) = self.task(task) else { return };
        let (engine, witness) = (self.life().engine.clone(), self.witness());
        self.beside(async move {
            match engine.get(&call(), &task).await {
                Ok(json) => witness.shown(task, json),
                Err(error) => witness.error(&error, true, "a get"),
            }
        });
    }

    async fn subscribe(&mut self, task: usize, cursor: Cursor, pace: Pace, until_input: bool) {
        let Some(task) = self.task(task) else { return };
        let engine = self.life().engine.clone();
        let after = match cursor {
            Cursor::None => None,
            Cursor::At(n) => Some(n),
            Cursor::End => match self.row(&task).await {
                Some(row) => Some(row.seq),
                None => return,
            },
        };
        let close = if until_input { Close::WhenInputRequired } else { Close::WhenOver };
        let witness = self.witness();
        let hurry = self.ground.hurry.min(20);
        self.life.as_mut().unwrap().readers.push(tokio::spawn(async move {
            let mut subscription = match engine.subscribe(&call_after(after), &task, close, Over::Show).await {
                Ok(subscription) => subscription,
                Err(error) => return witness.error(&error, true, "a reader"),
            };
            let stays = !matches!(pace, Pace::Leaves(_));
            let life = witness.life;
            let reader = Reader { task, after, until_input, stays, life, ..Reader::default() };
            let reader = Arc::new(Mutex::new(reader));
            witness.shared.lock().readers.push(reader.clone());
            let end = read(&mut subscription, pace, hurry, &reader, &witness).await;
            reader.lock().end = end;
        }));
    }

    async fn row(&self, task: &TaskId) -> Option<TaskRow> {
        self.life().store.task(&Scope::default(), task).await.unwrap()
    }

    async fn steal(&self, task: usize) {
        let Some(task) = self.task(task) else { return };
        let Some(row) = self.row(&task).await else { return };
        self.shared.lock().disturbed = true;
        let lease = Lease { node: "thief".into() };
        let _ = self.life().store.claim(row.key, row.epoch, lease, true).await;
    }

    async fn rival(&mut self) {
        {
            let mut shared = self.shared.lock();
            (shared.disturbed, shared.divided) = (true, true);
        }
        let agent = Scripted::with(self.ground.on_crash, self.ground.pure);
        let life = self.life();
        let rival = engine_with(&agent, life.store.clone(), self.options());
        let _ = rival.recover().await;
        self.life.as_mut().unwrap().rivals.push(rival);
    }

    async fn trim(&self) {
        let store = &self.life().store;
        let all = ListQuery {
            scope: Scope::default(),
            context_id: None,
            state: None,
            since: None,
            after: None,
            limit: usize::MAX,
            bytes: usize::MAX,
        };
        for row in store.list(all).await.unwrap().tasks {
            if row.state.is_final() {
                let events = store.events(row.key, 0, usize::MAX, usize::MAX).await.unwrap();
                let messages = store.messages(row.key).await.unwrap();
                self.shared.lock().removed.insert(row.id, Removed { events, messages });
            }
        }
        // A task that ends just now goes unread, and nothing can be said of it.
        store.trim(Older::than(i64::MAX), usize::MAX).await.unwrap();
    }

    /// Waits until nobody works or waits any more.
    pub(super) async fn rest(&mut self) {
        for round in 0.. {
            tokio::time::sleep(Duration::from_millis(500) / self.ground.hurry.min(20)).await;
            let life = self.life();
            let busy = !life.engine.is_idle();
            let waiting = self.waiting.load(Ordering::SeqCst);
            let restless = self.restless().await;
            if !busy && waiting == 0 && restless.is_empty() {
                break;
            }
            assert!(
                round < 1_000,
                "busy: {busy}, calls without an answer: {waiting}, tasks left working: {restless:?}"
            );
        }
        // Readers of a task at rest have time to take what there is.
        tokio::time::sleep(Duration::from_secs(30) / self.ground.hurry).await;
    }

    async fn restless(&self) -> Vec<(TaskId, u8)> {
        let mut found = Vec::new();
        let tasks = self.shared.lock().tasks.clone();
        for task in tasks {
            if let Some(row) = self.row(&task).await
                && row.state.is_active()
            {
                found.push((task, row.state.0));
            }
        }
        found
    }

    /// Lets go of every reader of this life.
    pub(super) async fn let_go(&self) {
        for reader in &self.life().readers {
            reader.abort();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn read(
    subscription: &mut Subscription,
    pace: Pace,
    hurry: u32,
    reader: &Mutex<Reader>,
    witness: &Witness,
) -> End {
    let mut batch = Vec::new();
    for round in 0.. {
        match pace {
            Pace::Slow(ms) => tokio::time::sleep(Duration::from_millis(ms) / hurry).await,
            Pace::Leaves(after) if round >= after => return End::Open,
            Pace::Fast | Pace::Leaves(_) => {}
        }
        match subscription.next(&mut batch).await {
            Ok(true) => reader.lock().seen.extend(batch.drain(..).map(|event| (event.seq, event.body.clone()))),
            Ok(false) => return End::Over,
            Err(error) => {
                witness.error(&error, true, "a reader");
                return End::Broken;
            }
        }
    }
    End::Open
}
