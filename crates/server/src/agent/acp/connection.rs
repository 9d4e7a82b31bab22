//! A running agent: reads what it says, answers what needs no turn, and queues the rest in order.
//!
//! ```text
//!   stdout ──▶ listen ──▶ files, commands ──▶ answered at once, each on its own
//!                    └──▶ everything else ──▶ the queue, for the turn that runs
//! ```
//!
//! The queue is bounded by its bytes: while nobody takes from it, an agent that talks on has to wait. Answers
//! to our own requests go through it too, so that nothing which was said before them is seen after them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1::Error;
use bytes::Bytes;
use nuncio_protocol::{Value, json};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::desk::Desk;
use super::outbox::Outbox;
use super::peer::{self, Incoming, Peer};
use crate::agent::process::child::{Child, Patience};

/// How much may wait in the queue, in units of [`UNIT`]; more than the longest line.
const ROOM: usize = 64 << 10;
/// What the smallest message counts for.
const UNIT: usize = 1 << 10;
/// The most requests for files and commands that are open at once.
const MOST_OPEN: usize = 256;
/// How many of them are worked on at once: each may hold a whole file. Waiting for a command is no work.
const HANDS: usize = 8;

/// What an agent says to the turn.
#[derive(Debug)]
pub(crate) enum Event {
    Said(Incoming),
    /// It is gone, and why.
    Gone(String),
}

/// An event, and its room in the queue for as long as nobody has handled it.
pub(crate) struct Heard {
    pub(crate) event: Event,
    _room: Option<OwnedSemaphorePermit>,
}

impl Heard {
    /// Something that takes no room, or no longer does.
    pub(crate) fn again(event: Event) -> Self {
        Self { event, _room: None }
    }
}

/// A running agent.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    queue: mpsc::UnboundedReceiver<Heard>,
    writer: Option<mpsc::UnboundedSender<Bytes>>,
    end: Option<oneshot::Sender<Patience>>,
    listening: tokio::task::JoinHandle<()>,
    /// The end of the program, if it was come across among what nobody wanted.
    gone: Option<Heard>,
}

struct Shared {
    peer: Mutex<Peer>,
    /// Whether a turn runs: what an agent wants without one, it does not get.
    busy: AtomicBool,
    desk: Desk,
    /// Places for requests for files and commands that are not answered yet.
    open: Arc<Semaphore>,
    hands: Arc<Semaphore>,
}

impl Connection {
    /// Takes over a program that was just started.
    pub(crate) fn new(child: Child, desk: Desk) -> Self {
        let (sender, queue) = mpsc::unbounded_channel();
        let (end, ends) = oneshot::channel();
        let shared = Arc::new(Shared {
            peer: Mutex::default(),
            busy: AtomicBool::new(false),
            desk,
            open: Arc::new(Semaphore::new(MOST_OPEN)),
            hands: Arc::new(Semaphore::new(HANDS)),
        });
        let writer = child.writer();
        let listener = Listener {
            shared: shared.clone(),
            queue: sender,
            room: Arc::new(Semaphore::new(ROOM)),
            outbox: Outbox::new(writer.as_ref().map(mpsc::UnboundedSender::downgrade)),
        };
        let listening = tokio::spawn(listener.listen(child, ends));
        Self { shared, queue, writer, end: Some(end), listening, gone: None }
    }

    /// Whether the program still runs.
    pub(crate) fn is_alive(&self) -> bool {
        !self.queue.is_closed() && !self.listening.is_finished()
    }

    /// Begins a turn: what was said between turns is forgotten.
    pub(crate) fn begin(&mut self) {
        self.shared.busy.store(true, Ordering::SeqCst);
        self.forget();
    }

    /// Ends a turn: nothing that it started goes on, and nobody who asked is left waiting.
    pub(crate) fn rest(&mut self) {
        self.shared.busy.store(false, Ordering::SeqCst);
        self.shared.desk.clear();
        self.forget();
    }

    /// Passes over all that the agent has said, except that it is gone.
    pub(crate) fn forget(&mut self) {
        while let Ok(heard) = self.queue.try_recv() {
            self.decline(&heard.event);
            if matches!(heard.event, Event::Gone(_)) {
                self.gone = Some(heard);
            }
        }
    }

    /// The next thing that the agent says. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Heard {
        if let Some(gone) = self.gone.take() {
            return gone;
        }
        let heard = self.queue.recv().await;
        heard.unwrap_or_else(|| Heard::again(Event::Gone("agent ended".into())))
    }

    /// The next thing that it has said already.
    pub(crate) fn next_if_said(&mut self) -> Option<Heard> {
        self.queue.try_recv().ok()
    }

    /// Sends a request; its answer comes by [`Connection::next`] with this number.
    pub(crate) fn request<P: Serialize>(&self, method: &str, params: &P) -> u64 {
        let (id, line) = self.shared.peer.lock().request(method, params);
        self.send(line);
        id
    }

    pub(crate) fn notify<P: Serialize>(&self, method: &str, params: &P) {
        self.send(peer::notification(method, params));
    }

    /// Answers a request of the agent.
    pub(crate) fn answer(&self, id: &Value, result: Result<Value, Error>) {
        self.send(peer::answer(id, result));
    }

    /// Sends a request and waits for its answer. Whatever else the agent says before that goes to `other`.
    pub(crate) async fn call<P: Serialize>(
        &mut self,
        method: &str,
        params: &P,
        mut other: impl FnMut(&Incoming),
    ) -> Result<Value, CallError> {
        let wanted = self.request(method, params);
        loop {
            match self.next().await.event {
                Event::Said(Incoming::Answer { id, result }) if id == wanted => {
                    return result.map_err(CallError::Refused);
                }
                Event::Gone(why) => return Err(CallError::Gone(why)),
                event => {
                    if let Event::Said(said) = &event {
                        other(said);
                    }
                    self.decline(&event);
                }
            }
        }
    }

    /// Says no to a request that nobody is there for.
    pub(crate) fn decline(&self, event: &Event) {
        if let Event::Said(Incoming::Request { id, method, .. }) = event {
            self.answer(id, refusal(method));
        }
    }

    /// What a terminal of the agent printed.
    pub(crate) fn printed(&self, terminal: &str) -> Option<String> {
        self.shared.desk.printed(terminal)
    }

    /// Ends the commands of the agent, and goes on.
    pub(crate) fn stop_commands(&self) {
        self.shared.desk.clear();
    }

    /// Ends the program and everything that it started.
    pub(crate) async fn end(mut self, patience: Patience) {
        self.rest();
        self.writer = None;
        if let Some(end) = self.end.take() {
            let _ = end.send(patience);
        }
        // The end of the queue wakes a listener that waits for room.
        self.queue.close();
        while self.queue.try_recv().is_ok() {}
        let _ = (&mut self.listening).await;
    }

    /// The same, without waiting for it.
    pub(crate) fn end_soon(self, within: Duration) {
        tokio::spawn(self.end(Patience::within(within)));
    }

    fn send(&self, line: Bytes) {
        if let Some(writer) = &self.writer {
            let _ = writer.send(line);
        }
    }
}

impl Drop for Connection {
    /// Whoever gives up an agent without waiting for its end still leaves nothing behind.
    fn drop(&mut self) {
        self.shared.desk.clear();
        if self.end.is_some() {
            self.listening.abort();
        }
    }
}

/// Why a request got no result.
#[derive(Debug)]
pub(crate) enum CallError {
    Refused(Error),
    Gone(String),
}

/// What a request gets that nobody is there for.
fn refusal(method: &str) -> Result<Value, Error> {
    match method {
        "session/request_permission" => Ok(json!({ "outcome": { "outcome": "cancelled" } })),
        "elicitation/create" => Ok(json!({ "action": "cancel" })),
        _ => Err(Error::method_not_found()),
    }
}

struct Listener {
    shared: Arc<Shared>,
    queue: mpsc::UnboundedSender<Heard>,
    room: Arc<Semaphore>,
    outbox: Outbox,
}

impl Listener {
    async fn listen(self, mut child: Child, mut end: oneshot::Receiver<Patience>) {
        let why = loop {
            let line = tokio::select! {
                biased;
                patience = &mut end => {
                    child.end(patience.unwrap_or(Patience::within(Duration::from_secs(1)))).await;
                    return;
                }
                line = child.line() => line,
            };
            match line {
                Ok(Some(line)) => {
                    let heard = tokio::select! {
                        biased;
                        heard = self.hear(&line) => heard,
                        patience = &mut end => {
                            child.end(patience.unwrap_or(Patience::within(Duration::from_secs(1)))).await;
                            return;
                        }
                    };
                    if !heard {
                        break String::new();
                    }
                }
                Ok(None) => break String::new(),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    break "The agent printed a line that is too long".to_owned();
                }
                Err(error) => {
                    tracing::warn!(%error, "an agent cannot be read");
                    break String::new();
                }
            }
        };
        let exit = child.end(Patience::within(Duration::from_secs(5))).await;
        self.shared.desk.clear();
        let why = if why.is_empty() { exit.describe() } else { why };
        let _ = self.queue.send(Heard::again(Event::Gone(why)));
    }

    /// Handles a line; false when nobody listens any more.
    async fn hear(&self, line: &[u8]) -> bool {
        let Some(said) = self.shared.peer.lock().read(line) else {
            if !line.is_empty() {
                tracing::debug!(line = ?peer::shorten(&String::from_utf8_lossy(line), 200), "passed over");
            }
            return true;
        };
        let units = (line.len() / UNIT + 1).min(ROOM);
        let Ok(room) = self.room.clone().acquire_many_owned(u32::try_from(units).unwrap_or(u32::MAX)).await else {
            return false;
        };
        let busy = self.shared.busy.load(Ordering::SeqCst);
        match said {
            Incoming::Request { id, method, params } if Desk::serves(&method) => {
                self.serve(id, method, params, room).await;
                return true;
            }
            Incoming::Request { id, method, .. } if !busy || refusal(&method).is_err() => {
                tracing::debug!(method, "a request of an agent is refused");
                self.outbox.answer(&id, refusal(&method)).await;
                return true;
            }
            Incoming::Notification { .. } if !busy => return true,
            _ => {}
        }
        self.queue.send(Heard { event: Event::Said(said), _room: Some(room) }).is_ok()
    }

    /// Answers a request for a file or a command, beside everything else.
    async fn serve(&self, id: Value, method: String, params: Value, room: OwnedSemaphorePermit) {
        if !self.shared.busy.load(Ordering::SeqCst) {
            return self.outbox.answer(&id, Err(Error::invalid_request().data(json!("no turn is running")))).await;
        }
        let Ok(place) = self.shared.open.clone().try_acquire_owned() else {
            let error = Error::internal_error().data(json!("too many requests at once"));
            return self.outbox.answer(&id, Err(error)).await;
        };
        let (shared, outbox) = (self.shared.clone(), self.outbox.clone());
        tokio::spawn(async move {
            if method == "terminal/wait_for_exit" {
                let result = shared.desk.answer(&method, params).await;
                return outbox.answer_holding(&id, result, vec![room, place]);
            }
            let Ok(hand) = shared.hands.clone().acquire_owned().await else { return };
            let result = shared.desk.answer(&method, params).await;
            outbox.answer_holding(&id, result, vec![room, place, hand]);
        });
    }
}
