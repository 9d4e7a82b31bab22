//! Several nodes on one store, and everyone who talks to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::{ContextId, Error, ErrorKind, Message, MessageId, TaskId};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::super::kit::{Scripted, call, call_after, engine_with, message, options, say};
use super::super::super::line::{Line, Member, Way, Wire};
use super::super::story::{Cursor, Pace};
use super::super::world::{End, Reader};
use super::story::Op;
use crate::agent::OnCrash;
use crate::engine::{Close, Engine, EngineOptions, Over, Subscription};
use crate::store::{ListQuery, MemoryStore, Scope, Store, TaskRow};

/// One node, from its start to its end.
pub(super) struct Node {
    pub(super) engine: Arc<Engine>,
    agent: Arc<Scripted>,
    line: Arc<Line>,
    bus: Arc<Member>,
    stop: CancellationToken,
    /// Whether its callers may be told anything, or nothing.
    disturbed: Arc<AtomicBool>,
    /// Whether it is gone.
    pub(super) gone: Arc<AtomicBool>,
    /// Calls that are not answered yet.
    waiting: Arc<AtomicUsize>,
}

/// What everyone was told.
#[derive(Default)]
pub(super) struct Told {
    pub(super) tasks: Vec<TaskId>,
    /// The messages that were accepted.
    pub(super) accepted: Vec<(TaskId, MessageId)>,
    pub(super) shown: Vec<(TaskId, Bytes)>,
    pub(super) readers: Vec<(Arc<Mutex<Reader>>, Arc<AtomicBool>)>,
    pub(super) surprises: Vec<String>,
}

pub(super) struct World {
    pub(super) store: Arc<MemoryStore>,
    wire: Arc<Wire>,
    pub(super) agent: Arc<Scripted>,
    lag: Duration,
    pub(super) nodes: Vec<Node>,
    pub(super) told: Arc<Mutex<Told>>,
    reading: Vec<JoinHandle<()>>,
}

impl World {
    pub(super) fn new(on_crash: OnCrash, pure: bool, lag: Duration) -> Self {
        Self {
            store: Arc::new(MemoryStore::shared()),
            wire: Arc::default(),
            agent: Scripted::with(on_crash, pure),
            lag,
            nodes: Vec::new(),
            told: Arc::default(),
            reading: Vec::new(),
        }
    }

    async fn node(&self) -> Node {
        let (line, bus, agent) = (Line::to(&self.store, self.lag), self.wire.join(), self.agent.beside());
        let options = EngineOptions { bus: Some(bus.clone()), ..options() };
        let engine = engine_with(&agent, line.clone(), options);
        engine.recover().await.unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(engine.clone().tend(stop.clone()));
        let (disturbed, gone, waiting) = (Arc::default(), Arc::default(), Arc::default());
        Node { engine, agent, line, bus, stop, disturbed, gone, waiting }
    }

    pub(super) async fn add(&mut self) {
        let node = self.node().await;
        self.nodes.push(node);
    }

    pub(super) async fn play(&mut self, ops: &[Op]) {
        for op in ops {
            self.happen(op.clone()).await;
        }
    }

    async fn happen(&mut self, op: Op) {
        match op {
            Op::Send { node, context, script, key } => {
                let context_id = context.map_or_else(ContextId::default, |n| ContextId::from(format!("c{n}").as_str()));
                self.say(node, Message { context_id, ..message(&script) }, key);
            }
            Op::FollowUp { node, task, script, key } => {
                let Some(task_id) = self.task(task) else { return };
                self.say(node, Message { task_id, ..message(&script) }, key);
            }
            Op::Cancel { node, task } => self.cancel(node, task),
            Op::Subscribe { node, task, cursor, pace, until_input } => {
                self.subscribe(node, task, cursor, pace, until_input).await;
            }
            Op::Get { node, task } => self.get(node, task),
            Op::Sleep(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Op::Yield => tokio::task::yield_now().await,
            Op::Line { node, way, time } => self.line(node, way, time),
            Op::Slow { node, time } => self.at(node).line.slow_down(Duration::from_millis(time)),
            Op::Deaf { node, time } => {
                let bus = self.at(node).bus.clone();
                bus.cut(true);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(time)).await;
                    bus.cut(false);
                });
            }
            Op::Kill { node } => {
                self.replace(node, |node| {
                    node.line.set(Way::Dead);
                    node.bus.cut(true);
                })
                .await;
            }
            Op::Drain { node, time } => {
                self.replace(node, |node| {
                    let (engine, stop) = (node.engine.clone(), node.stop.clone());
                    tokio::spawn(async move {
                        engine.drain(Duration::from_millis(time)).await;
                        stop.cancel();
                    });
                })
                .await;
            }
        }
    }

    fn at(&self, node: usize) -> &Node {
        &self.nodes[node % self.nodes.len()]
    }

    fn line(&self, node: usize, way: Way, time: u64) {
        let node = self.at(node);
        node.disturbed.store(true, Ordering::SeqCst);
        node.line.set(way);
        let line = node.line.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(time)).await;
            line.set(Way::Open);
        });
    }

    async fn replace(&mut self, node: usize, end: impl FnOnce(&Node)) {
        let next = self.node().await;
        let place = node % self.nodes.len();
        let old = std::mem::replace(&mut self.nodes[place], next);
        old.disturbed.store(true, Ordering::SeqCst);
        old.gone.store(true, Ordering::SeqCst);
        end(&old);
    }

    fn task(&self, n: usize) -> Option<TaskId> {
        self.told.lock().tasks.get(n).cloned()
    }

    async fn row(&self, task: &TaskId) -> Option<TaskRow> {
        self.store.task(&Scope::default(), task).await.unwrap()
    }

    fn witness(&self, node: usize) -> (Arc<Engine>, Witness) {
        let node = self.at(node);
        node.waiting.fetch_add(1, Ordering::SeqCst);
        let (told, disturbed, waiting) = (self.told.clone(), node.disturbed.clone(), node.waiting.clone());
        (node.engine.clone(), Witness { told, disturbed, waiting })
    }

    fn say(&self, node: usize, message: Message, key: Option<u8>) {
        let (engine, witness) = self.witness(node);
        let (follow_up, id) = (!message.task_id.is_empty(), message.message_id.clone());
        let call = crate::Call { idempotency_key: key.map(|key| format!("k{key}").into()), ..call() };
        tokio::spawn(async move {
            let handle = match say(&engine, &call, message).await {
                Ok(handle) => handle,
                Err(error) => return witness.error(&error, follow_up, "a message"),
            };
            let task = handle.task_id().clone();
            {
                let mut told = witness.told.lock();
                if !told.tasks.contains(&task) {
                    told.tasks.push(task.clone());
                }
                // One with a key may have been said before, under another id.
                if key.is_none() {
                    told.accepted.push((task.clone(), id));
                }
            }
            match handle.settled().await {
                Ok(json) => {
                    let state = json.task().unwrap().status.state;
                    if !state.is_terminal() && !state.is_interrupted() {
                        witness.told.lock().surprises.push(format!("a blocking sender was shown {state:?}"));
                    }
                    witness.told.lock().shown.push((task, json.0));
                }
                Err(error) => witness.error(&error, false, "a blocking sender"),
            }
        });
    }

    fn cancel(&self, node: usize, task: usize) {
        let Some(task) = self.task(task) else { return };
        let (engine, witness) = self.witness(node);
        tokio::spawn(async move {
            match engine.cancel(&call(), &task).await {
                Ok(json) => witness.told.lock().shown.push((task, json.0)),
                Err(error) => witness.error(&error, true, "a cancel"),
            }
        });
    }

    fn get(&self, node: usize, task: usize) {
        let Some(task) = self.task(task) else { return };
        let (engine, witness) = self.witness(node);
        tokio::spawn(async move {
            match engine.get(&call(), &task).await {
                Ok(json) => witness.told.lock().shown.push((task, json.0)),
                Err(error) => witness.error(&error, true, "a get"),
            }
        });
    }

    async fn subscribe(&mut self, node: usize, task: usize, cursor: Cursor, pace: Pace, until_input: bool) {
        let Some(task) = self.task(task) else { return };
        let after = match cursor {
            Cursor::None => None,
            Cursor::At(n) => Some(n),
            Cursor::End => match self.row(&task).await {
                Some(row) => Some(row.seq),
                None => return,
            },
        };
        let close = if until_input { Close::WhenInputRequired } else { Close::WhenOver };
        let (engine, witness) = self.witness(node);
        // A reader may read for ever.
        witness.waiting.fetch_sub(1, Ordering::SeqCst);
        let gone = self.at(node).gone.clone();
        self.reading.push(tokio::spawn(async move {
            let mut subscription = match engine.subscribe(&call_after(after), &task, close, Over::Show).await {
                Ok(subscription) => subscription,
                Err(error) => {
                    witness.waiting.fetch_add(1, Ordering::SeqCst);
                    return witness.error(&error, true, "a reader");
                }
            };
            let stays = !matches!(pace, Pace::Leaves(_));
            let reader = Reader { task, after, until_input, stays, ..Reader::default() };
            let reader = Arc::new(Mutex::new(reader));
            witness.told.lock().readers.push((reader.clone(), gone));
            let end = read(&mut subscription, pace, &reader).await;
            witness.waiting.fetch_add(1, Ordering::SeqCst);
            match end {
                Ok(end) => reader.lock().end = end,
                Err(error) => {
                    reader.lock().end = End::Broken;
                    witness.error(&error, true, "a reader");
                }
            }
        }));
    }

    /// Waits until nobody works or waits any more, with all lines in order.
    pub(super) async fn rest(&mut self) {
        // Every fault is over by then.
        tokio::time::sleep(Duration::from_secs(10)).await;
        for round in 0.. {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let busy = self.nodes.iter().any(|node| !node.engine.is_idle());
            let waiting: usize = self.nodes.iter().map(|node| node.waiting.load(Ordering::SeqCst)).sum();
            let restless = self.restless().await;
            if !busy && waiting == 0 && restless.is_empty() {
                break;
            }
            assert!(round < 1_000, "busy: {busy}, calls without an answer: {waiting}, left working: {restless:?}");
        }
        // Readers of a task at rest have time to take what there is.
        tokio::time::sleep(Duration::from_secs(30)).await;
    }

    async fn restless(&self) -> Vec<(TaskId, u8)> {
        let query = ListQuery {
            scope: Scope::default(),
            context_id: None,
            state: None,
            since: None,
            after: None,
            limit: 1_000,
            bytes: usize::MAX,
        };
        let page = self.store.list(query).await.unwrap();
        page.tasks
            .into_iter()
            .filter(|row| row.state.is_active() || row.writer.is_some())
            .map(|row| (row.id, row.state.0))
            .collect()
    }

    /// Lets go of every reader.
    pub(super) async fn let_go(&self) {
        self.reading.iter().for_each(JoinHandle::abort);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    pub(super) fn overlaps(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| &node.agent)
            .chain([&self.agent])
            .map(|agent| agent.overlaps.load(Ordering::SeqCst))
            .max()
            .unwrap_or(0)
    }
}

/// Writes down what somebody was told; done when dropped.
struct Witness {
    told: Arc<Mutex<Told>>,
    disturbed: Arc<AtomicBool>,
    waiting: Arc<AtomicUsize>,
}

impl Witness {
    /// Errors are allowed where the node itself is in trouble, and where the caller asked for too much.
    fn error(&self, error: &Error, asked: bool, what: &str) {
        let too_much = [
            ErrorKind::UnsupportedOperation,
            ErrorKind::TaskNotCancelable,
            ErrorKind::TaskNotFound,
            ErrorKind::InvalidParams,
        ];
        let excused = self.disturbed.load(Ordering::SeqCst) || (asked && too_much.contains(&error.kind));
        if !excused {
            self.told.lock().surprises.push(format!("{what} heard {error:?}"));
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn read(subscription: &mut Subscription, pace: Pace, reader: &Mutex<Reader>) -> Result<End, Error> {
    let mut batch = Vec::new();
    for round in 0.. {
        match pace {
            Pace::Slow(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Pace::Leaves(after) if round >= after => return Ok(End::Open),
            Pace::Fast | Pace::Leaves(_) => {}
        }
        match subscription.next(&mut batch).await? {
            true => reader.lock().seen.extend(batch.drain(..).map(|event| (event.seq, event.body.clone()))),
            false => return Ok(End::Over),
        }
    }
    Ok(End::Open)
}
