//! Following a task: a reader of its log with a cursor.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_protocol::{Error, ErrorKind, Task, TaskId, TaskState, codec};

use super::event::{Event, Form};
use super::fold::trim_history;
use super::hub::Held;
use super::live::Live;
use super::{Engine, append_error, store_error};
use crate::call::Call;
use crate::store::{Seq, TaskKey};

/// How many events a reader that has fallen behind takes from the store at once.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// Events that follow each other faster than this go out together, as far as they come while others have their turn: to
/// send each by itself costs more than all else about it.
const RUSH: Duration = Duration::from_millis(10);
/// How often others have their turn: of two who give way to each other at once, the later goes on first, and hyper asks
/// twice before it gives way.
const WAYS: usize = 4;

/// When a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// When the task is over.
    WhenOver,
    /// When the task is over or waits for the caller's input.
    WhenInputRequired,
}

impl Close {
    fn applies(self, state: TaskState) -> bool {
        state.is_terminal() || (self == Self::WhenInputRequired && state == TaskState::InputRequired)
    }
}

/// A reader of one task's log. It never loses, doubles or reorders: it asks for "what is after n".
pub struct Subscription {
    engine: Arc<Engine>,
    source: Source,
    cursor: Seq,
    close: Close,
    /// The task itself, to be shown before anything else.
    first: Option<Arc<Event>>,
    /// When the last events that were waited for came.
    came: Option<Instant>,
}

enum Source {
    /// A task that may still move.
    Live(Held),
    /// A finished one, up to its last event.
    Log(TaskKey, Seq),
}

impl Subscription {
    pub(super) fn after(engine: Arc<Engine>, live: Held, cursor: Seq, close: Close) -> Self {
        Self { engine, source: Source::Live(live), cursor, close, first: None, came: None }
    }

    /// Starts with the task as it is now, or as it was at the event `at` where that is long past, with at most so many
    /// messages of history; what follows is exactly what happened after.
    pub(super) async fn with_snapshot(
        engine: Arc<Engine>,
        mut live: Held,
        at: Seq,
        close: Close,
        history: Option<i32>,
    ) -> Result<Self, Error> {
        loop {
            match Self::try_with_snapshot(&engine, &live, at, close, history).await {
                // Another node has taken the task over before this was stored.
                Err(_) if engine.is_shared() && live.broken().is_some() => {
                    live = Box::pin(engine.reopen(&live)).await?;
                }
                made => return made,
            }
        }
    }

    async fn try_with_snapshot(
        engine: &Arc<Engine>,
        live: &Held,
        at: Seq,
        close: Close,
        history: Option<i32>,
    ) -> Result<Self, Error> {
        let (mut body, now) = live.read(|task| shown(task, history));
        let seq = now.min(at);
        live.durable(seq).await.map_err(|error| append_error(&error))?;
        if seq < now {
            body = shown(engine.task_at(live, seq).await?.task(), history);
        }
        let first = Some(Arc::new(Event::new(seq, body.into())));
        let live = engine.hub.hold(Arc::clone(live));
        Ok(Self { first, ..Self::after(engine.clone(), live, seq, close) })
    }

    /// The form in which it will ask for events: those that are still to be written get it while they are at hand.
    pub(crate) fn prefer(&self, form: Option<Form>) {
        if let (Source::Live(live), Some(form)) = (&self.source, form) {
            live.prefer(form);
        }
    }

    /// Goes on after an event that the reader has seen already, wherever it would begin otherwise.
    pub(crate) fn go_on_after(&mut self, seen: Seq) {
        self.cursor = seen;
        self.first = None;
    }

    /// The number of the next event; those behind it are consecutive.
    pub(crate) fn first_seq(&self) -> Seq {
        self.first.as_ref().map_or(self.cursor + 1, |first| first.seq)
    }

    /// Waits for the next events and adds them to `into`. `false` means that the stream is over.
    pub async fn next(&mut self, into: &mut Vec<Arc<Event>>) -> Result<bool, Error> {
        if let Some(first) = self.first.take() {
            into.push(first);
            return Ok(true);
        }
        match &self.source {
            Source::Log(task, last) => {
                let (task, last) = (*task, *last);
                if self.cursor >= last {
                    return Ok(false);
                }
                self.read_log(task, into).await
            }
            Source::Live(live) => {
                let live = Arc::clone(live);
                self.follow(live, into).await
            }
        }
    }

    async fn follow(&mut self, mut live: Arc<Live>, into: &mut Vec<Arc<Event>>) -> Result<bool, Error> {
        loop {
            let progress = live.follow(self.cursor, into);
            if let Some(last) = into.last() {
                self.cursor = last.seq;
                return Ok(true);
            }
            if self.cursor < progress.committed && !progress.found {
                return self.read_log(live.key(), into).await;
            }
            // Not before what was read from the store is known here: that state may be an older one.
            if self.close.applies(progress.state) && self.cursor == progress.committed {
                return Ok(false);
            }
            let (cursor, close) = (self.cursor, self.close);
            // What another node writes may be read from the store before it is known here: then it ends without an event.
            let moved = |committed, state| committed > cursor || (committed == cursor && close.applies(state));
            if let Err(error) = live.wait(moved).await {
                let other = self.engine.hub.get(live.key()).filter(|other| !other.is_lost());
                if !self.engine.is_shared() && other.is_none_or(|other| Arc::ptr_eq(&other, &live)) {
                    return Err(append_error(&error));
                }
                // Another node goes on with the task, or its creator here, and this reader with it.
                let held = Box::pin(self.engine.reopen(&live)).await?;
                live = Arc::clone(&held);
                self.source = Source::Live(held);
            }
            let now = Instant::now();
            if self.came.replace(now).is_some_and(|before| now - before < RUSH) {
                for _ in 0..WAYS {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    async fn read_log(&mut self, task: TaskKey, into: &mut Vec<Arc<Event>>) -> Result<bool, Error> {
        let events = self.engine.store().events(task, self.cursor, PAGE, PAGE_BYTES).await;
        let events = events.map_err(|error| store_error(&error))?;
        // The log is known to hold the next event. Without it, the task is being removed for its age:
        // a stream that just ended there would look complete.
        if events.first().is_none_or(|event| event.seq != self.cursor + 1) {
            return Err(Error::new(ErrorKind::TaskNotFound, "The task was removed because it is old"));
        }
        into.extend(events.into_iter().map(|event| Arc::new(event.into())));
        self.cursor = into.last().map_or(self.cursor, |event| event.seq);
        Ok(true)
    }
}

/// A task as the first event of a stream, with at most so many messages of history.
fn shown(task: &Task, history: Option<i32>) -> Vec<u8> {
    let mut trimmed = Cow::Borrowed(task);
    if history.is_some() {
        trim_history(trimmed.to_mut(), history);
    }
    let mut body = b"{\"task\":".to_vec();
    codec::encode_into(&*trimmed, &mut body);
    body.push(b'}');
    body
}

impl Engine {
    /// Follows a task of the caller. With the number of the last event seen, it continues exactly
    /// after that, also on a finished task; without one, it starts with the task as it is now.
    pub async fn subscribe(
        self: &Arc<Self>,
        call: &Call,
        id: &TaskId,
        close: Close,
        over: Over,
    ) -> Result<Subscription, Error> {
        let row = self.find(&call.scope, id).await?;
        let finished = row.state.is_final();
        if let Some(after) = call.after {
            if after > row.seq && self.hub.get(row.key).is_none_or(|live| live.committed().0 < after) {
                let text = format!("The task has no event {after}: subscribe without Last-Event-ID");
                return Err(Error::new(ErrorKind::InvalidParams, text).fact("taskId", id.as_str()));
            }
            if finished {
                let source = Source::Log(row.key, row.seq);
                return Ok(Subscription {
                    engine: self.clone(),
                    source,
                    cursor: after,
                    close,
                    first: None,
                    came: None,
                });
            }
            let live = self.open(&row).await?;
            return Ok(Subscription::after(self.clone(), live, after, close));
        }
        let rest_is_over = self.options.manners.rest_is_over;
        let not_active = || Error::new(ErrorKind::TaskNotFound, format!("Task {id} is not active"));
        if finished && over == Over::Refuse {
            let text = "The task is over: get it, or subscribe with Last-Event-ID to read its events again";
            let error = if rest_is_over { not_active() } else { Error::new(ErrorKind::UnsupportedOperation, text) };
            return Err(error.fact("taskId", id.as_str()));
        }
        let live = self.open(&row).await?;
        if rest_is_over && over == Over::Refuse && live.rests() {
            return Err(not_active().fact("taskId", id.as_str()));
        }
        Subscription::with_snapshot(self.clone(), live, Seq::MAX, close, None).await
    }
}

/// What a subscription without a cursor to a finished task gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// An error.
    Refuse,
    /// The task, and the end of the stream.
    Show,
}
