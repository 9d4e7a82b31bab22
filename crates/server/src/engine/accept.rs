//! What a message means: a new task, the next turn of one, or an answer to a running one.

use std::future::poll_fn;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use nuncio_protocol::{
    ContextId, Error, ErrorKind, Message, Metadata, SendMessageRequest, StreamResponse, Task, TaskId,
    TaskPushNotificationConfig, TaskState, TaskStatus, Timestamp, codec,
};

use super::approval::HITL;
use super::arrival::Arrival;
use super::hub::Held;
use super::live::{Incoming, Live, WriteError};
use super::manners::NoRoom;
use super::roster::Served;
use super::schedule::{Control, Full, Job, Room};
use super::subscribe::{Close, Subscription};
use super::{
    Engine, IdempotentSend, KEY_LIFE, TaskJson, append_error, carry_through, micros, now, shutting_down, store_error,
};
use crate::call::Call;
use crate::push::Ringer;
use crate::store::{
    Claim, Created, IdempotencyKey, Lease, ListQuery, NewTask, PushConfig, Scope, Seq, State, StoreError, TaskKey,
    TaskRow,
};

/// The longest id or key that a caller may choose.
const LONGEST_ID: usize = 512;

/// What became of a message.
pub enum Sent {
    /// The agent answered directly.
    Message(Message),
    /// A task works on it.
    Task(Handle),
}

/// How the first turn of a task starts.
enum Start {
    /// When the task is stored.
    With(Box<Job>),
    /// It began before that; what is left of it, if anything.
    Begun(Arc<Control>, Option<Pin<Box<dyn Future<Output = ()> + Send>>>),
}

/// Lets it go on as far as it comes. Says whether it is still not done.
async fn is_pending(mut work: Pin<&mut (impl Future<Output = ()> + ?Sized)>) -> bool {
    poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_pending())).await
}

/// A task that a message started or continued.
pub struct Handle {
    engine: Arc<Engine>,
    live: Held,
    /// The event that the message brought.
    from: Seq,
}

impl Handle {
    /// A task that this message began.
    pub(super) fn new(engine: Arc<Engine>, live: Held) -> Self {
        Self { engine, live, from: 1 }
    }

    /// Waits until the task ends or waits for the caller.
    pub async fn settled(&self) -> Result<TaskJson, Error> {
        let from = self.from;
        let settled = |seq: Seq, state: TaskState| seq >= from && (state.is_terminal() || state.is_interrupted());
        let (seq, state) = self.live.committed();
        let at_once = settled(seq, state);
        if !at_once {
            self.live.wait(settled).await.map_err(|error| append_error(&error))?;
        }
        let task = self.engine.current(&self.live).await?;
        if at_once {
            // Those who ask at the same time come first, so that the answers leave together: waking each reader by
            // itself costs more than all else that is left to do.
            tokio::task::yield_now().await;
        }
        Ok(task)
    }

    /// The task as it is now.
    pub async fn now(&self) -> Result<TaskJson, Error> {
        self.engine.current(&self.live).await
    }

    /// Follows the task from this message on: the task itself first, then what happens to it.
    pub async fn stream(&self) -> Result<Subscription, Error> {
        let waits = self.engine.options.manners.stream_waits;
        let close = if waits { Close::WhenOver } else { Close::WhenInputRequired };
        if self.from == 1 {
            return Ok(Subscription::after(self.engine.clone(), self.hold(), 0, close));
        }
        Subscription::with_snapshot(self.engine.clone(), self.hold(), close).await
    }

    fn hold(&self) -> Held {
        self.engine.hub.hold(self.live.clone())
    }

    /// The task's id.
    pub fn task_id(&self) -> &TaskId {
        &self.live.id
    }

    /// The id of its context.
    pub fn context_id(&self) -> &ContextId {
        &self.live.context_id
    }
}

impl Engine {
    /// Takes a message. When this returns, the message is durable and its turn runs or waits. Once
    /// begun it is carried through, even if nobody waits for it any more.
    pub async fn send(self: &Arc<Self>, call: &Call, request: SendMessageRequest) -> Result<Sent, Error> {
        Error::check(request.violations())?;
        let (engine, call) = (self.clone(), call.clone());
        carry_through(async move { engine.accept(&call, request).await }).await
    }

    async fn accept(self: &Arc<Self>, call: &Call, request: SendMessageRequest) -> Result<Sent, Error> {
        if self.is_draining() {
            return Err(shutting_down());
        }
        self.check_tenant(&call.scope)?;
        let mut message = request.message.ok_or_else(|| Error::invalid("message", "is required"))?;
        check_ids(&message)?;
        self.check_parts(&message)?;
        self.keep_extensions(call, &mut message);
        let push = request.configuration.and_then(|configuration| configuration.task_push_notification_config);
        push.as_ref().map_or(Ok(()), |push| self.check_inline(push))?;
        let key = self.idempotency_key(call, &message)?;
        let _turnstile = match &key {
            Some(key) => Some(self.keys[self.stripe(&call.scope, key)].lock().await),
            None => None,
        };
        if let Some(key) = &key
            && let Some((task, from)) =
                self.store.find_key(&call.scope, key).await.map_err(|error| store_error(&error))?
            && let Some(again) = self.repeat(task, from).await?
        {
            return Ok(again);
        }
        self.find_question(call, &mut message).await?;
        if message.task_id.is_empty() {
            let served = self.choose(call, &request.metadata, &message).await?;
            if let Some(parts) = served.agent.answer(&message).await {
                return Ok(Sent::Message(direct_answer(&message, parts)));
            }
            if message.context_id.is_empty() {
                message.context_id = ContextId::fresh();
            }
            let arrival = Arrival::new(self, &call.scope, &served.name, &message, &request.metadata);
            let refused = match served.agent.admit(&arrival).await {
                Err(error) if self.is_for_a_task(&error) => Some(error.message.into_owned()),
                admitted => admitted.map(|()| None)?,
            };
            return self.new_task(call, message, served, key, push, refused).await;
        }
        let row = self.find(&call.scope, &message.task_id).await?;
        check_follow_up(&row, &message)?;
        message.context_id = row.context_id.clone();
        if let Some(served) = self.roster.get(&row.agent) {
            let arrival = Arrival::new(self, &call.scope, &served.name, &message, &request.metadata);
            served.agent.admit(&arrival).await?;
        }
        if let Some(push) = push {
            let push = self.webhook(call, &push, &row.id, row.seq, false)?;
            self.store_webhook(&row, push).await?;
        }
        self.follow_up(&row, Box::new(Incoming { message, key })).await
    }

    fn check_parts(&self, message: &Message) -> Result<(), Error> {
        let most = self.options.max_parts;
        if message.parts.len() <= most {
            return Ok(());
        }
        Err(Error::invalid("message.parts", &format!("has more than {most} parts: send several messages")))
    }

    /// What the caller activates is kept with the message, so that it still holds after a restart: the form of
    /// questions, and what agents understand by themselves.
    fn keep_extensions(&self, call: &Call, message: &mut Message) {
        for uri in &call.extensions {
            let known = message.extensions.iter().any(|known| **known == **uri);
            if !known && (**uri == *HITL || self.roster.is_for_an_agent(uri)) {
                message.extensions.push(uri.to_string());
            }
        }
    }

    /// The agent for a message that begins a task.
    async fn choose(&self, call: &Call, request: &Metadata, message: &Message) -> Result<&Served, Error> {
        let mut talking_to = None;
        if self.roster.is_several() && !message.context_id.is_empty() {
            let query = ListQuery {
                scope: call.scope.clone(),
                context_id: Some(message.context_id.clone()),
                state: None,
                since: None,
                after: None,
                limit: 1,
            };
            let page = self.store.list(query).await.map_err(|error| store_error(&error))?;
            talking_to = page.tasks.into_iter().next().map(|row| row.agent);
        }
        let chosen = self.roster.choose(&call.scope, request, message, talking_to.as_deref());
        chosen.ok_or_else(|| no_tenant(&call.scope))
    }

    /// The same send again: the task of the first time, unless it has been removed since.
    pub(super) async fn repeat(self: &Arc<Self>, task: TaskKey, from: Seq) -> Result<Option<Sent>, Error> {
        let row = self.store.task_by_key(task).await.map_err(|error| store_error(&error))?;
        let Some(row) = row else { return Ok(None) };
        let live = self.open(&row).await?;
        Ok(Some(Sent::Task(Handle { engine: self.clone(), live, from })))
    }

    async fn new_task(
        self: &Arc<Self>,
        call: &Call,
        mut message: Message,
        served: &Served,
        key: Option<IdempotencyKey>,
        push: Option<TaskPushNotificationConfig>,
        refused: Option<String>,
    ) -> Result<Sent, Error> {
        message.task_id = TaskId::fresh();
        let context = message.context_id.clone();
        let push = push.map(|push| self.webhook(call, &push, &message.task_id, 0, false)).transpose()?;
        let told = push.is_some();
        let refused = match refused {
            Some(words) => Err(NoRoom::Refused(words)),
            None => self.room_for(&call.scope, &context).await,
        };
        let room = match refused {
            Ok(room) => room,
            Err(NoRoom::Full(full)) => return Err(no_room(&full)),
            Err(why) => return Box::pin(self.failed_task(call, message, served, key, push, &why.to_string())).await,
        };
        let _queueing = match room {
            Room::Now => None,
            Room::Later => Some(self.queueing.read().await),
        };
        let at = Timestamp::now();
        let (live, body) = self.fresh_task(call, served, &message, at)?;
        let job = Job::new(self.hub.hold(live.clone()), message, room == Room::Now);
        let start = if room == Room::Now && served.agent.is_pure() {
            let (control, mut turn) = (job.control.clone(), Box::pin(self.clone().turn(job)));
            let pending = is_pending(turn.as_mut()).await;
            Start::Begun(control, pending.then_some(turn))
        } else {
            Start::With(Box::new(job))
        };
        let new = self.new_row(&live, (body, at), self.lease_for(room), key, push);
        let seq = new.seq();
        let task_key = match self.store.create(new).await {
            Ok(Created::New(task_key) | Created::Waiting(task_key)) => task_key,
            other => {
                // A turn that waits for an answer has given up its place, and takes it back here.
                drop(start);
                if let Some(next) = self.schedule.unreserve(room, &call.scope, &context) {
                    self.start(next);
                }
                return match other {
                    Ok(Created::Known(task, from)) => {
                        Box::pin(self.repeat(task, from)).await?.ok_or_else(Error::internal)
                    }
                    Err(error) => Err(store_error(&error)),
                    Ok(Created::New(_) | Created::Waiting(_)) => Err(Error::internal()),
                };
            }
        };
        self.metrics.events.inc();
        live.stored(task_key, seq);
        let live = self.hub.insert(&live);
        if told {
            self.hub.bell.ring(task_key);
        }
        tracing::debug!(task = %live.id, context = %live.context_id, "a task was accepted");
        match start {
            Start::With(job) => self.submit(*job, room),
            Start::Begun(_, None) => {}
            Start::Begun(control, Some(mut turn)) => {
                self.schedule.begun(task_key, control);
                // Often it has only waited for its end to be stored.
                if is_pending(turn.as_mut()).await {
                    tokio::spawn(turn);
                }
            }
        }
        Ok(Sent::Task(Handle::new(self.clone(), live)))
    }

    /// A task for a message in memory, and its first event. Nobody else has it yet.
    pub(super) fn fresh_task(
        &self,
        call: &Call,
        served: &Served,
        message: &Message,
        at: Timestamp,
    ) -> Result<(Arc<Live>, Bytes), Error> {
        let task = Task {
            id: message.task_id.clone(),
            context_id: message.context_id.clone(),
            status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: Some(at) },
            history: vec![message.clone()],
            ..Task::default()
        };
        let event = StreamResponse::Task(task);
        let body = codec::encode(&event);
        let StreamResponse::Task(task) = event else { return Err(Error::internal()) };
        let (store, ties) = (self.store.clone(), (self.metrics.events.clone(), Ringer::of(&self.hub.bell)));
        let live = Live::fresh(call.scope.clone(), served.name.clone(), task, body.clone(), store, ties);
        Ok((Arc::new(live), body))
    }

    /// What the store is to know of it, with what has happened already.
    pub(super) fn new_row(
        &self,
        live: &Live,
        (body, at): (Bytes, Timestamp),
        lease: Lease,
        key: Option<IdempotencyKey>,
        push: Option<PushConfig>,
    ) -> NewTask {
        NewTask {
            scope: live.scope.clone(),
            id: live.id.clone(),
            context_id: live.context_id.clone(),
            agent: live.agent.clone(),
            state: State(TaskState::Submitted.number()),
            body,
            at: at.as_micros(),
            lease,
            key,
            push,
            early: live.early(),
        }
    }

    pub(super) fn submit(self: &Arc<Self>, job: Job, room: Room) {
        if let Some(job) = self.schedule.submit(job, room) {
            self.start(job);
        }
    }

    /// A message for a task that exists: an answer to its running turn, or its next turn.
    async fn follow_up(self: &Arc<Self>, row: &TaskRow, mut incoming: Box<Incoming>) -> Result<Sent, Error> {
        incoming.message.task_id = row.id.clone();
        let live = self.open(row).await?;
        self.check_idle(&live).await?;
        let gate = live.gate.lock().await;
        let from = match live.deliver(incoming) {
            Ok(written) => written.map_err(|error| follow_up_error(&live, &error))?,
            Err(incoming) => self.next_turn(&live, incoming).await?,
        };
        live.durable(from).await.map_err(|error| append_error(&error))?;
        drop(gate);
        Ok(Sent::Task(Handle { engine: self.clone(), live, from }))
    }

    /// Begins another turn of a task that rests.
    async fn next_turn(self: &Arc<Self>, live: &Arc<Live>, incoming: Box<Incoming>) -> Result<Seq, Error> {
        let ((state, messages), _) = live.read(|task| (task.status.state, task.history.len()));
        if state.is_terminal() {
            return Err(over(&live.id, state));
        }
        if messages >= self.options.max_history {
            let text = "The task has all the messages it can hold: send a new one with its contextId and without its \
                        taskId";
            return Err(Error::new(ErrorKind::UnsupportedOperation, text).fact("taskId", live.id.as_str()));
        }
        let room = self.room_for(&live.scope, &live.context_id).await?;
        let message = incoming.message.clone();
        match self.claim_and_begin(live, incoming, room).await {
            Ok(from) => {
                self.submit(Job::new(self.hub.hold(live.clone()), message, room == Room::Now), room);
                Ok(from)
            }
            Err(error) => {
                if let Some(next) = self.schedule.unreserve(room, &live.scope, &live.context_id) {
                    self.start(next);
                }
                Err(error)
            }
        }
    }

    async fn claim_and_begin(&self, live: &Arc<Live>, incoming: Box<Incoming>, room: Room) -> Result<Seq, Error> {
        self.claim_now(live, self.lease_for(room)).await?;
        live.begin(incoming).map_err(|error| {
            self.strand(live);
            follow_up_error(live, &error)
        })
    }

    /// Claims a task for a caller who waits.
    pub(super) async fn claim_now(&self, live: &Arc<Live>, lease: Lease) -> Result<(), Error> {
        if self.claim(live, lease).await.map_err(|error| store_error(&error))? {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Unavailable, "The task is busy elsewhere: try again"))
    }

    /// Claims a task as it is in memory and opens it. False when another node was first; then it is
    /// read anew by the next who asks for it.
    pub(super) async fn claim(&self, live: &Arc<Live>, lease: Lease) -> Result<bool, StoreError> {
        match self.store.claim(live.key(), live.epoch(), lease, false).await? {
            Claim::Lost | Claim::Busy => live.lose(),
            Claim::Taken(row) if live.open(&row) => return Ok(true),
            Claim::Taken(row) => drop(self.stranded.lock().insert(row.key, row.epoch)),
        }
        Ok(false)
    }

    /// Only a turn that starts at once needs the lease: what waits may be started by any node, and
    /// after a crash it is known not to have begun.
    fn lease_for(&self, room: Room) -> Lease {
        match room {
            Room::Now => self.lease(),
            Room::Later => Self::no_lease(),
        }
    }

    /// A task that does not exist for this caller.
    pub(super) async fn find(&self, scope: &Scope, id: &TaskId) -> Result<TaskRow, Error> {
        self.check_tenant(scope)?;
        let row = self.store.task(scope, id).await.map_err(|error| store_error(&error))?;
        row.ok_or_else(|| Error::task_not_found(id.as_str()))
    }

    /// The task in memory, its fold loaded.
    pub(super) async fn open(&self, row: &TaskRow) -> Result<Held, Error> {
        let live = self.hub.open(row, &self.store);
        if let Err(error) = live.loaded.get_or_try_init(|| self.fill(&live)).await {
            // It may have been removed for its age since the row was read.
            let gone = matches!(self.store.task_by_key(row.key).await, Ok(None));
            return Err(if gone { Error::task_not_found(row.id.as_str()) } else { store_error(&error) });
        }
        Ok(live)
    }

    pub(crate) fn check_tenant(&self, scope: &Scope) -> Result<(), Error> {
        match &self.options.tenants {
            Some(tenants) if !tenants.contains(&*scope.tenant) => Err(no_tenant(scope)),
            _ => Ok(()),
        }
    }

    fn idempotency_key(&self, call: &Call, message: &Message) -> Result<Option<IdempotencyKey>, Error> {
        let key = match (&call.idempotency_key, self.options.idempotent_send) {
            (Some(key), _) if key.is_empty() || key.len() > LONGEST_ID => {
                return Err(Error::invalid("Idempotency-Key", "must be from 1 to 512 characters"));
            }
            (Some(key), _) => key.clone(),
            // No header can hold the first character, so that neither can be mistaken for the other.
            (None, IdempotentSend::MessageId) => format!("\n{}", message.message_id).into(),
            (None, IdempotentSend::Key) => return Ok(None),
        };
        Ok(Some(IdempotencyKey { key, since: now() - micros(KEY_LIFE) }))
    }

    fn stripe(&self, scope: &Scope, key: &IdempotencyKey) -> usize {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((scope, &key.key));
        usize::try_from(hash % 64).unwrap_or_default()
    }
}

fn no_tenant(scope: &Scope) -> Error {
    Error::new(ErrorKind::TaskNotFound, "No such tenant").fact("tenant", &*scope.tenant)
}

fn check_ids(message: &Message) -> Result<(), Error> {
    let ids = [
        ("message.messageId", message.message_id.as_str()),
        ("message.contextId", message.context_id.as_str()),
        ("message.taskId", message.task_id.as_str()),
    ];
    for (field, id) in ids {
        if id.len() > LONGEST_ID {
            return Err(Error::invalid(field, "is longer than 512 characters"));
        }
    }
    Ok(())
}

fn check_follow_up(row: &TaskRow, message: &Message) -> Result<(), Error> {
    if !message.context_id.is_empty() && message.context_id != row.context_id {
        return Err(Error::invalid("message.contextId", "is not the context of this task: leave it out"));
    }
    match TaskState::from_number(row.state.0.into()) {
        Some(state) if state.is_terminal() => Err(over(&row.id, state)),
        _ => Ok(()),
    }
}

/// Terminal tasks do not change: a refinement is a new task in the same context.
fn over(id: &TaskId, state: TaskState) -> Error {
    let text =
        format!("The task is over ({}): send a new message with its contextId and without its taskId", state.name());
    Error::new(ErrorKind::UnsupportedOperation, text).fact("taskId", id.as_str())
}

fn follow_up_error(live: &Live, error: &WriteError) -> Error {
    match error {
        WriteError::Closed => over(&live.id, live.read(|task| task.status.state).0),
        WriteError::Store(error) => append_error(error),
    }
}

pub(super) fn no_room(full: &Full) -> Error {
    match full {
        Full::Server => Error::new(ErrorKind::Unavailable, "The server has all the work it can hold: try again later"),
        Full::Caller => {
            let text = "You have all the work waiting that one caller may have: try again when some of it is done";
            Error::new(ErrorKind::TooMany, text)
        }
    }
}

fn direct_answer(message: &Message, parts: Vec<nuncio_protocol::Part>) -> Message {
    let context_id = if message.context_id.is_empty() { ContextId::fresh() } else { message.context_id.clone() };
    Message { context_id, ..Message::from_agent(parts) }
}
