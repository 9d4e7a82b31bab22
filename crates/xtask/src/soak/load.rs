//! The mix: every operation, over every binding, at a given pace.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use nuncio_client::{Binding, Client, EventStream, Options};
use nuncio_protocol::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, SendMessageConfiguration, SendMessageRequest,
    SendMessageResponse, StreamResponse, Task, TaskId, TaskPushNotificationConfig, TaskState,
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

/// Callers of one server. Some of them wait for streams most of the time.
const CALLERS: usize = 96;
/// Tasks that are asked for again.
const REMEMBERED: usize = 256;
/// Calls that may be due at once; beyond that the pace is lost rather than made up for.
const DUE: usize = 2 * CALLERS;
const TICK: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Op {
    Send,
    Get,
    List,
    Stream,
    Cancel,
    Resume,
    Webhook,
}

/// What follows what.
const MIX: [Op; 20] = {
    use Op::*;
    [
        Send, Get, Send, List, Send, Stream, Send, Get, Cancel, Send, Get, Send, Resume, List, Send, Get, Stream, Send,
        Get, Webhook,
    ]
};

pub(super) struct Load {
    clients: Vec<Client>,
    webhook: String,
    due: Semaphore,
    /// Calls per second; none is as fast as it goes.
    pace: Mutex<Option<f64>>,
    going: AtomicBool,
    /// How many callers and pacers are still at it.
    active: watch::Sender<usize>,
    calls: AtomicU64,
    failed: AtomicU64,
    errors: Mutex<Vec<String>>,
    /// Microseconds of sends and gets since they were last taken.
    latencies: Mutex<(Vec<u32>, Vec<u32>)>,
    known: Mutex<VecDeque<TaskId>>,
}

impl Load {
    pub(super) fn new(address: &str, webhook: String) -> Result<Self> {
        let ways = [
            (format!("http://{address}/"), Binding::JsonRpc),
            (format!("http://{address}"), Binding::Rest),
            (format!("grpc://{address}"), Binding::Grpc),
            (format!("ws://{address}/ws"), Binding::WebSocket),
        ];
        let client = |(url, binding): &(String, Binding)| {
            Client::direct(url, Options { binding: Some(*binding), ..Options::default() })
        };
        Ok(Self {
            clients: ways.iter().map(client).collect::<Result<_, _>>()?,
            webhook,
            due: Semaphore::new(0),
            pace: Mutex::new(None),
            going: AtomicBool::new(false),
            active: watch::channel(0).0,
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            errors: Mutex::default(),
            latencies: Mutex::default(),
            known: Mutex::default(),
        })
    }

    pub(super) fn unhindered(&self) {
        *self.pace.lock() = None;
    }

    pub(super) fn pace(&self, calls_per_second: f64) {
        *self.pace.lock() = Some(calls_per_second);
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub(super) fn take_errors(&self) -> Vec<String> {
        mem::take(&mut *self.errors.lock())
    }

    /// What sends and gets took since the last time, in microseconds, smallest first.
    pub(super) fn take_latencies(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut sends, mut gets) = mem::take(&mut *self.latencies.lock());
        sends.sort_unstable();
        gets.sort_unstable();
        (sends, gets)
    }

    pub(super) fn begin(self: &Arc<Self>) {
        self.going.store(true, Ordering::Relaxed);
        self.active.send_modify(|n| *n += CALLERS + 1);
        tokio::spawn(self.clone().release());
        for caller in 0..CALLERS {
            tokio::spawn(self.clone().work(caller));
        }
    }

    /// Ends all callers, each after its present call.
    pub(super) async fn end(&self) {
        self.going.store(false, Ordering::Relaxed);
        let mut active = self.active.subscribe();
        // A caller that hangs is told by the errors that it leaves.
        let _ = tokio::time::timeout(Duration::from_secs(90), active.wait_for(|n| *n == 0)).await;
    }

    /// Lets calls begin at the pace.
    async fn release(self: Arc<Self>) {
        let mut tick = tokio::time::interval(TICK);
        let mut owed = 0.0;
        let mut last = Instant::now();
        while self.going.load(Ordering::Relaxed) {
            tick.tick().await;
            let pace = *self.pace.lock();
            owed += pace.map_or(DUE as f64, |pace| pace * last.elapsed().as_secs_f64());
            last = Instant::now();
            let room = DUE.saturating_sub(self.due.available_permits());
            let whole = (owed as usize).min(room);
            self.due.add_permits(whole);
            owed = (owed - whole as f64).clamp(0.0, 1.0);
        }
        // Those who wait shall see that it is over.
        self.due.add_permits(CALLERS);
        self.active.send_modify(|n| *n -= 1);
    }

    async fn work(self: Arc<Self>, caller: usize) {
        let mut n = caller;
        while self.going.load(Ordering::Relaxed) {
            if let Ok(permit) = self.due.acquire().await {
                permit.forget();
            }
            n += 1;
            let (op, client) = (MIX[n % MIX.len()], &self.clients[n / MIX.len() % self.clients.len()]);
            let start = Instant::now();
            let done = self.call(op, client).await;
            let took = u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX);
            self.calls.fetch_add(1, Ordering::Relaxed);
            match (done, op) {
                (Err(error), _) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    self.errors.lock().push(format!("{op:?} over {:?}: {error:#}", client.binding()));
                }
                (Ok(()), Op::Send) => self.latencies.lock().0.push(took),
                (Ok(()), Op::Get) => self.latencies.lock().1.push(took),
                (Ok(()), _) => {}
            }
        }
        self.active.send_modify(|n| *n -= 1);
    }

    async fn call(&self, op: Op, client: &Client) -> Result<()> {
        match op {
            Op::Send => self.send(client).await,
            Op::Get => self.get(client).await,
            Op::List => {
                let request = ListTasksRequest { page_size: Some(20), ..ListTasksRequest::default() };
                client.list(request).await?;
                Ok(())
            }
            Op::Stream => {
                let state = last_state(client.stream(message("stream 20")).await?).await?;
                ensure!(state == TaskState::Completed, "the stream ended with {state:?}");
                Ok(())
            }
            Op::Cancel => {
                let task = started(client, "hold").await?;
                let task = client.cancel(CancelTaskRequest { id: task.id, ..CancelTaskRequest::default() }).await?;
                ensure!(task.status.state == TaskState::Canceled, "the canceled task is {:?}", task.status.state);
                Ok(())
            }
            Op::Resume => resume(client).await,
            Op::Webhook => {
                let push =
                    TaskPushNotificationConfig { url: self.webhook.clone(), ..TaskPushNotificationConfig::default() };
                let mut request = message("told by webhook");
                request.configuration.get_or_insert_default().task_push_notification_config = Some(push);
                completed(client.send(request).await?)?;
                Ok(())
            }
        }
    }

    async fn send(&self, client: &Client) -> Result<()> {
        let task = completed(client.send(message("lorem ipsum dolor sit amet")).await?)?;
        let mut known = self.known.lock();
        known.push_back(task.id);
        if known.len() > REMEMBERED {
            known.pop_front();
        }
        Ok(())
    }

    async fn get(&self, client: &Client) -> Result<()> {
        let Some(id) = self.known.lock().back().cloned() else { return Ok(()) };
        let task = client.get(GetTaskRequest { id, ..GetTaskRequest::default() }).await?;
        ensure!(task.status.state == TaskState::Completed, "the task is {:?}", task.status.state);
        Ok(())
    }
}

/// Follows a task, goes away, and comes back: nothing is missed and nothing comes twice.
async fn resume(client: &Client) -> Result<()> {
    let task = started(client, "stream 40 10").await?;
    let mut events = client.subscribe(task.id.clone(), None).await?;
    let mut last = None;
    for _ in 0..5 {
        last = events.next().await.context("the stream ended early")??.seq.or(last);
    }
    drop(events);
    let mut events = client.subscribe(task.id, last).await?;
    let first = events.next().await.context("nothing came after the return")??;
    if let (Some(last), Some(seq)) = (last, first.seq) {
        ensure!(seq == last + 1, "event {seq} came after {last}");
    }
    let state = last_state(events).await?;
    ensure!(state == TaskState::Completed, "the stream ended with {state:?}");
    Ok(())
}

async fn last_state(mut events: EventStream) -> Result<TaskState> {
    let mut state = TaskState::Unspecified;
    while let Some(event) = events.next().await {
        state = match event?.response {
            StreamResponse::Task(task) => task.status.state,
            StreamResponse::StatusUpdate(update) => update.status.state,
            StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => state,
        };
    }
    Ok(state)
}

fn message(text: &str) -> SendMessageRequest {
    SendMessageRequest { message: Some(Message::from_user(vec![Part::text(text)])), ..SendMessageRequest::default() }
}

async fn started(client: &Client, text: &str) -> Result<Task> {
    let configuration = SendMessageConfiguration { return_immediately: true, ..SendMessageConfiguration::default() };
    task(client.send(SendMessageRequest { configuration: Some(configuration), ..message(text) }).await?)
}

fn task(answer: SendMessageResponse) -> Result<Task> {
    match answer {
        SendMessageResponse::Task(task) => Ok(task),
        SendMessageResponse::Message(_) => anyhow::bail!("a message came instead of a task"),
    }
}

fn completed(answer: SendMessageResponse) -> Result<Task> {
    let task = task(answer)?;
    ensure!(task.status.state == TaskState::Completed, "the task is {:?}", task.status.state);
    Ok(task)
}
