//! A task in memory: the fold that its writer extends, and the durable tail that its readers follow.
//!
//! Two locks, never held together with I/O. `writer` orders events: whoever holds it gives an event
//! its number, folds it and hands it to the store. `feed` holds what is durable. What a reader takes
//! from the fold may be ahead of the store, so it waits for that number to be durable before it shows
//! anything.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use nuncio_protocol::{
    ContextId, Message, Role, StreamResponse, Task, TaskArtifactUpdateEvent, TaskId, TaskState, TaskStatus,
    TaskStatusUpdateEvent, Timestamp, codec,
};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Notify, OnceCell};

mod feed;
mod follower;

use feed::Feed;

use super::cluster::Link;
use super::event::{Event, Form, Update};
use super::fold::Fold;
use crate::push::{Bell, Ringer};
use crate::store::{
    Append, AppendError, Early, IdempotencyKey, Lease, LetterId, Scope, Seq, State, Store, TaskKey, TaskRow,
};

/// Why an update was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    /// The turn is over: canceled, timed out or finished.
    #[error("the turn is over")]
    Closed,
    /// The store refused.
    #[error(transparent)]
    Store(#[from] AppendError),
}

/// A message that a caller sends to a task that exists.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    pub(crate) message: Message,
    pub(crate) key: Option<IdempotencyKey>,
    /// The letter that brought it, if it came by another node.
    pub(crate) letter: Option<LetterId>,
}

/// What every task in memory is tied to.
#[derive(Clone)]
pub(crate) struct Ties {
    pub(crate) store: Arc<dyn Store>,
    /// Counts what is handed to the store.
    pub(crate) events: Counter,
    pub(crate) bell: Arc<Bell>,
    /// The other nodes, if there can be any.
    pub(crate) link: Option<Arc<Link>>,
}

/// A task in memory. All who write or follow it on this node share one.
pub(crate) struct Live {
    key: OnceLock<TaskKey>,
    pub(crate) scope: Scope,
    pub(crate) id: TaskId,
    pub(crate) context_id: ContextId,
    /// Which of the served agents works on it.
    pub(crate) agent: Arc<str>,
    /// Set once the fold holds everything that the log holds.
    pub(crate) loaded: OnceCell<()>,
    /// One follow-up at a time decides what it means for the task.
    pub(crate) gate: tokio::sync::Mutex<()>,
    writer: Mutex<Writer>,
    feed: Mutex<Feed>,
    /// Wakes whoever waits for the feed to move.
    moved: Notify,
    /// The form in which a reader wants events, if it is not the stored one. Others are made when they are asked for.
    form: OnceLock<Form>,
    /// Wakes a turn that waits for an answer.
    pub(crate) answered: Notify,
    /// Wakes a turn whose events cannot be stored any more.
    lost: Notify,
    store: Arc<dyn Store>,
    /// Counts what is handed to the store.
    events: Counter,
    /// Tells the task's webhooks.
    pub(crate) ringer: Ringer,
    /// The other nodes, if there can be any.
    link: Option<Arc<Link>>,
}

#[derive(Default)]
struct Writer {
    fold: Fold,
    seq: Seq,
    epoch: i64,
    /// Whether a turn may write.
    open: bool,
    /// The life of this node in which it was opened.
    life: u64,
    /// Messages that arrived during the turn and wait for it, each with the event that it came with.
    mailbox: VecDeque<(Seq, Message)>,
    /// Whether that is all that waits, and not only what has arrived since the task was read from the log.
    knows_all: bool,
    /// What has happened already, while the store does not know the task.
    early: Option<Vec<Early>>,
}

/// A message as it goes to the store.
struct Said {
    body: Bytes,
    key: Option<IdempotencyKey>,
    letter: Option<LetterId>,
}

impl Live {
    /// A task that is known to the store; its fold is loaded by whoever needs it first.
    pub(crate) fn known(row: &TaskRow, ties: &Ties) -> Self {
        let Ties { store, events, bell, link } = ties.clone();
        Self {
            key: row.key.into(),
            scope: row.scope.clone(),
            id: row.id.clone(),
            context_id: row.context_id.clone(),
            agent: row.agent.clone(),
            loaded: OnceCell::new(),
            gate: tokio::sync::Mutex::default(),
            writer: Mutex::default(),
            feed: Mutex::default(),
            moved: Notify::new(),
            form: OnceLock::new(),
            answered: Notify::new(),
            lost: Notify::new(),
            store,
            events,
            ringer: Ringer::of(&bell),
            link,
        }
    }

    /// A task that is to be created under this lease, with its first event. Nobody but its own turn may have it before
    /// it is [`stored`](Self::stored).
    pub(crate) fn fresh(scope: Scope, agent: Arc<str>, task: Task, first: Bytes, lease: &Lease, ties: &Ties) -> Self {
        let Ties { store, events, bell, link } = ties.clone();
        let (id, context_id) = (task.id.clone(), task.context_id.clone());
        let first = Event::written(1, first, Some(task.status.state), None);
        Self {
            key: OnceLock::new(),
            scope,
            id,
            context_id,
            agent,
            loaded: OnceCell::new_with(Some(())),
            gate: tokio::sync::Mutex::default(),
            writer: Mutex::new(Writer {
                fold: Fold::new(task),
                seq: 1,
                epoch: 1,
                open: true,
                life: link.as_ref().map_or(0, |link| link.life_of(&lease.node)),
                mailbox: VecDeque::new(),
                knows_all: true,
                early: Some(Vec::new()),
            }),
            feed: Mutex::new(Feed { pending: VecDeque::from([Arc::new(first)]), ..Feed::default() }),
            moved: Notify::new(),
            form: OnceLock::new(),
            answered: Notify::new(),
            lost: Notify::new(),
            store,
            events,
            ringer: Ringer::of(&bell),
            link,
        }
    }

    /// The store's number for it; that of no task before it is stored.
    pub(crate) fn key(&self) -> TaskKey {
        self.key.get().copied().unwrap_or(TaskKey::NONE)
    }

    /// What has happened before the store knows the task, to be stored with it.
    pub(crate) fn early(&self) -> Vec<Early> {
        self.writer.lock().early.as_mut().map(mem::take).unwrap_or_default()
    }

    /// The store knows the task now with its events up to `seq`. What has happened since follows.
    pub(crate) fn stored(self: &Arc<Self>, key: TaskKey, seq: Seq) {
        let mut writer = self.writer.lock();
        // It is stored once.
        let _ = self.key.set(key);
        for (event, seq) in writer.early.take().into_iter().flatten().zip(seq + 1..) {
            self.append(&writer, seq, event, None);
        }
        drop(writer);
        self.told(seq);
    }

    /// Fills in what the log holds.
    pub(crate) fn fill(&self, fold: Fold, row: &TaskRow, seq: Seq) {
        let mut writer = self.writer.lock();
        let mut feed = self.feed.lock();
        feed.committed = seq;
        feed.state = fold.state();
        feed.snapshot = row.snapshot.clone().map(|snapshot| (row.snapshot_seq, snapshot));
        *writer = Writer { fold, seq, epoch: row.epoch, ..Writer::default() };
    }

    /// Opens the task for a turn under the lease that `row` was claimed with. Not if it is over, not if that lease is of
    /// an earlier life of this node, and not if somebody else has written since: then this is no longer what the log says.
    pub(crate) fn open(&self, row: &TaskRow) -> bool {
        let mut writer = self.writer.lock();
        writer.epoch = row.epoch;
        if writer.seq != row.seq {
            writer.open = false;
            drop(writer);
            self.lose();
            return false;
        }
        writer.life = self.link.as_ref().map_or(0, |link| link.life_under(row));
        writer.open = !writer.fold.state().is_terminal() && self.allows(writer.life);
        writer.open
    }

    /// Whether what was opened in this life of this node may still be written.
    fn allows(&self, life: u64) -> bool {
        self.link.as_ref().is_none_or(|link| link.pulse.allows(life))
    }

    /// Cuts it off if the life in which it was opened is over: it may not have been known here when that ended.
    pub(crate) fn cut_off_late(&self) {
        let mut writer = self.writer.lock();
        if writer.open && !self.allows(writer.life) {
            self.cut_off_locked(&mut writer);
        }
    }

    /// A reader wants events in this form: from now on they get it where they are written.
    pub(crate) fn prefer(&self, form: Form) {
        // Where readers differ, the first has it.
        let _ = self.form.set(form);
    }

    /// How many messages wait for the turn.
    pub(crate) fn waiting(&self) -> usize {
        self.writer.lock().mailbox.len()
    }

    /// What the caller has said, but for what waits for a turn.
    pub(crate) fn said(&self) -> Vec<Message> {
        let writer = self.writer.lock();
        let waits = |said: &&Message| writer.mailbox.iter().any(|(_, message)| message.message_id == said.message_id);
        let from_user = writer.fold.task().history.iter().filter(|message| message.role == Role::User);
        from_user.filter(|message| !waits(message)).cloned().collect()
    }

    /// Whether it is known here which messages wait for a turn: not where the task was only read.
    pub(crate) fn knows_what_waits(&self) -> bool {
        self.writer.lock().knows_all
    }

    /// Sets the messages that wait for the turn, of those that came with the events up to `seq`. Later ones stay behind them.
    pub(crate) fn set_mailbox(&self, messages: impl IntoIterator<Item = Message>, seq: Seq) {
        let mut writer = self.writer.lock();
        let later = mem::take(&mut writer.mailbox).into_iter().filter(|(at, _)| *at > seq);
        writer.mailbox = messages.into_iter().map(|message| (0, message)).chain(later).collect();
        writer.knows_all = true;
    }

    /// Somebody else writes to this task: whoever follows it here hears that, and the next to ask for
    /// it reads it anew.
    pub(crate) fn lose(&self) {
        self.break_off(AppendError::Fenced);
    }

    /// This node may not write any more, whatever becomes of what is on its way to the store: readers wait for that, the
    /// turn does not.
    pub(crate) fn cut_off(&self) {
        self.cut_off_locked(&mut self.writer.lock());
    }

    fn cut_off_locked(&self, writer: &mut Writer) {
        writer.open = false;
        self.leave_rest();
    }

    /// The lease under which the task is written here.
    pub(crate) fn epoch(&self) -> i64 {
        self.writer.lock().epoch
    }

    /// That lease, and the number of the last event.
    pub(crate) fn version(&self) -> (i64, Seq) {
        let writer = self.writer.lock();
        (writer.epoch, writer.seq)
    }

    /// Reads the fold and the number up to which it counts.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Task) -> T) -> (T, Seq) {
        let writer = self.writer.lock();
        (read(writer.fold.task()), writer.seq)
    }

    /// Whether the task waits for its caller, and no turn of it for an answer.
    pub(crate) fn rests(&self) -> bool {
        let writer = self.writer.lock();
        !writer.open && writer.fold.state().is_interrupted()
    }

    /// Writes an update of the running turn.
    pub(crate) fn write(self: &Arc<Self>, update: Update) -> Result<Seq, WriteError> {
        let mut writer = self.writer.lock();
        self.write_locked(&mut writer, update, None)
    }

    /// Ends the turn with `update`, unless a message waits: then it is returned and the turn goes on.
    pub(crate) fn end_or_next(self: &Arc<Self>, update: Update) -> Result<Option<Message>, WriteError> {
        let mut writer = self.writer.lock();
        if let Some((_, message)) = writer.mailbox.pop_front() {
            return Ok(Some(message));
        }
        self.write_locked(&mut writer, update, None).map(|_| None)
    }

    /// Comes to rest, unless a message waits: then it is returned and the turn goes on. A task that
    /// does not wait for the caller yet does so with `update`. A later message begins another turn.
    pub(crate) fn rest_or_next(self: &Arc<Self>, update: Update) -> Result<Option<Message>, WriteError> {
        let mut writer = self.writer.lock();
        if let Some((_, message)) = writer.mailbox.pop_front() {
            return Ok(Some(message));
        }
        if writer.open && !writer.fold.state().is_interrupted() {
            self.write_locked(&mut writer, update, None)?;
        }
        writer.open = false;
        Ok(None)
    }

    /// Takes the next message that arrived after the event `after`: what was said before a question
    /// is no answer to it, and waits for the end of the turn.
    pub(crate) fn next_message(&self, after: Seq) -> Option<Message> {
        let mut writer = self.writer.lock();
        let place = writer.mailbox.iter().position(|(seq, _)| *seq > after)?;
        writer.mailbox.remove(place).map(|(_, message)| message)
    }

    /// Takes the message that has waited longest.
    pub(crate) fn oldest_message(&self) -> Option<Message> {
        self.writer.lock().mailbox.pop_front().map(|(_, message)| message)
    }

    /// Hands a message to the turn that is under way, if there is one.
    pub(crate) fn deliver(self: &Arc<Self>, incoming: Box<Incoming>) -> Result<Result<Seq, WriteError>, Box<Incoming>> {
        let mut writer = self.writer.lock();
        if !writer.open {
            return Err(incoming);
        }
        let state = match writer.fold.state() {
            TaskState::Submitted => TaskState::Submitted,
            _ => TaskState::Working,
        };
        let message = incoming.message.clone();
        let written = self.write_locked(&mut writer, Update::state(state), Some(*incoming));
        if let Ok(seq) = written {
            writer.mailbox.push_back((seq, message));
            self.answered.notify_one();
        }
        Ok(written)
    }

    /// Begins a new turn of a task at rest with the message that asks for it.
    pub(crate) fn begin(self: &Arc<Self>, incoming: Incoming) -> Result<Seq, WriteError> {
        let mut writer = self.writer.lock();
        self.write_locked(&mut writer, Update::state(TaskState::Submitted), Some(incoming))
    }

    fn write_locked(
        self: &Arc<Self>,
        writer: &mut Writer,
        update: Update,
        incoming: Option<Incoming>,
    ) -> Result<Seq, WriteError> {
        if !writer.open {
            return Err(WriteError::Closed);
        }
        if !self.allows(writer.life) {
            self.cut_off_locked(writer);
            return Err(AppendError::Fenced.into());
        }
        let at = Timestamp::now();
        let event = self.event(update, at, &writer.fold);
        let body = codec::encode(&event);
        let form = self.form.get().map(|form| (*form, (form.make)(&event)));
        let state = match &event {
            StreamResponse::StatusUpdate(update) => Some(update.status.state),
            _ => None,
        };
        writer.fold.apply(event);
        writer.seq += 1;
        let said = incoming.map(|Incoming { message, key, letter }| {
            let body = codec::encode(&message);
            writer.fold.say(message);
            Said { body, key, letter }
        });
        let rests = state.is_some_and(|state| state.is_terminal() || state.is_interrupted());
        let snapshot = rests.then(|| codec::encode(writer.fold.task()));
        writer.open &= !state.is_some_and(TaskState::is_terminal);
        let mut event = Event::written(writer.seq, body, state, snapshot);
        if let Some((form, made)) = form {
            event = event.keep(form, made);
        }
        self.hand_over(writer, event, at, said)?;
        Ok(writer.seq)
    }

    /// Gives an event to the store while the writer's lock keeps the order. The store only queues it.
    fn hand_over(
        self: &Arc<Self>,
        writer: &mut Writer,
        event: Event,
        at: Timestamp,
        said: Option<Said>,
    ) -> Result<(), WriteError> {
        let event = Arc::new(event);
        {
            let mut feed = self.feed.lock();
            if let Some(error) = feed.why_lost() {
                writer.open = false;
                return Err(error.into());
            }
            feed.pending.push_back(event.clone());
        }
        self.events.inc();
        let entry = Early {
            body: event.body.clone(),
            at: at.as_micros(),
            state: event.state.map(|state| State(state.number())),
            snapshot: event.snapshot.clone(),
        };
        match &mut writer.early {
            Some(early) => early.push(entry),
            None => self.append(writer, event.seq, entry, said),
        }
        Ok(())
    }

    fn append(self: &Arc<Self>, writer: &Writer, seq: Seq, event: Early, said: Option<Said>) {
        let Early { body, at, state, snapshot } = event;
        let (task, epoch, ack) = (self.key(), writer.epoch, self.clone());
        let (message, key, letter) = said.map_or((None, None, None), |said| (Some(said.body), said.key, said.letter));
        self.store.append(Append { task, epoch, seq, body, at, state, snapshot, message, key, letter, ack });
    }

    fn event(&self, update: Update, at: Timestamp, fold: &Fold) -> StreamResponse {
        let (task_id, context_id) = (self.id.clone(), self.context_id.clone());
        match update {
            Update::Status { state, message, metadata } => {
                let message = message.map(|message| Message {
                    task_id: task_id.clone(),
                    context_id: context_id.clone(),
                    ..message
                });
                let status = TaskStatus { state, message, timestamp: Some(at) };
                StreamResponse::StatusUpdate(TaskStatusUpdateEvent { task_id, context_id, status, metadata })
            }
            Update::Artifact { artifact, append, last_chunk, metadata } => {
                // There is nothing to append to yet: the first piece makes the artifact.
                let append = append && fold.has_artifact(&artifact.artifact_id);
                StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                    task_id,
                    context_id,
                    artifact,
                    append,
                    last_chunk,
                    metadata,
                })
            }
        }
    }
}
