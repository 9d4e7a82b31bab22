//! A message that begins a task.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use nuncio_protocol::{
    ContextId, Error, Message, StreamResponse, Task, TaskId, TaskPushNotificationConfig, TaskState, TaskStatus,
    Timestamp, codec,
};

use super::follow_up::no_room;
use super::{Handle, Sent};
use crate::boxed::boxed;
use crate::call::Call;
use crate::engine::arrival::Kept;
use crate::engine::live::Live;
use crate::engine::manners::NoRoom;
use crate::engine::roster::Served;
use crate::engine::schedule::{Control, Job, Room};
use crate::engine::{Engine, append_error, store_error};
use crate::store::{AppendError, Created, IdempotencyKey, Lease, NewTask, PushConfig, Scope, State};

/// A message that begins a task, as far as it is known when it is accepted.
pub(super) struct Begun {
    pub(super) message: Message,
    /// Whether its context was made for it: then nobody else can have a turn in it.
    pub(super) is_new_context: bool,
    pub(super) key: Option<IdempotencyKey>,
    pub(super) push: Option<TaskPushNotificationConfig>,
    /// What its agent remembers of it.
    pub(super) kept: Option<Kept>,
    /// Why it becomes a task that has failed already.
    pub(super) refused: Option<String>,
}

/// How the first turn of a task starts.
enum Start {
    /// When the task is stored.
    With(Box<Job>),
    /// It began before that; what is left of it.
    Begun(Arc<Control>, Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// Lets it go on as far as it comes. Says whether it is still not done.
async fn is_pending(mut work: Pin<&mut (impl Future<Output = ()> + ?Sized)>) -> bool {
    poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_pending())).await
}

impl Engine {
    pub(super) async fn new_task(self: &Arc<Self>, call: &Call, served: &Served, begun: Begun) -> Result<Sent, Error> {
        let Begun { mut message, is_new_context, key, push, kept, refused } = begun;
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
        if let Err(error) = self.keep(kept).await {
            self.unreserve(room, &call.scope, &context);
            return Err(error);
        }
        let _queueing = match room {
            Room::Now | Room::Anywhere => None,
            Room::Later => Some(self.queueing.read().await),
        };
        let (at, lease) = (Timestamp::now(), self.lease_for(room));
        let (live, body) = self.fresh_task(call, served, &message, at, &lease)?;
        let job = Job::new(self.hub.hold(live.clone()), message, room == Room::Now);
        // Where another node may have a turn in the same context, nothing begins before the store has said so.
        let is_alone = is_new_context || !self.is_shared();
        let start = if room == Room::Now && is_alone && served.agent.is_pure() {
            let (control, engine) = (job.control.clone(), self.clone());
            let mut turn = boxed(|| engine.turn(job));
            // It waits for its events to be stored, unless this node may not write: then it is over, and has left its place.
            if !is_pending(turn.as_mut()).await {
                return Err(append_error(&AppendError::Fenced));
            }
            Start::Begun(control, turn)
        } else {
            Start::With(Box::new(job))
        };
        let new = self.new_row(&live, (body, at), lease, key, push);
        let seq = new.seq();
        let task_key = match self.store.create(new).await {
            Ok(Created::New(task_key)) if room != Room::Anywhere => task_key,
            Ok(Created::New(task_key) | Created::Waiting(task_key)) => {
                drop(start);
                live.stored(task_key, seq);
                let live = self.hub.insert(&live);
                return Ok(self.left_to_others(live, room, told));
            }
            other => {
                // A turn that waits for an answer has given up its place, and takes it back here.
                drop(start);
                self.unreserve(room, &call.scope, &context);
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
            self.hub.bell().ring(task_key);
        }
        tracing::debug!(task = %live.id, context = live.context_id.as_str(), "a task was accepted");
        match start {
            Start::With(job) => self.submit(*job, room),
            Start::Begun(control, mut turn) => {
                self.schedule.begun(task_key, control);
                // Whoever has ended what ran here may not have known of it.
                live.cut_off_late();
                // Often it has only waited for its end to be stored.
                if is_pending(turn.as_mut()).await {
                    tokio::spawn(turn);
                }
            }
        }
        Ok(Sent::Task(Handle::new(self.clone(), live)))
    }

    /// A task for a message in memory, and its first event. Nobody else has it yet.
    pub(in crate::engine) fn fresh_task(
        &self,
        call: &Call,
        served: &Served,
        message: &Message,
        at: Timestamp,
        lease: &Lease,
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
        let live = Live::fresh(call.scope.clone(), served.name.clone(), task, body.clone(), lease, &self.hub.ties);
        Ok((Arc::new(live), body))
    }

    /// What the store is to know of it, with what has happened already.
    pub(in crate::engine) fn new_row(
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

    /// Gives a place back that was not used.
    pub(in crate::engine) fn unreserve(self: &Arc<Self>, room: Room, scope: &Scope, context: &ContextId) {
        if let Some(next) = self.schedule.unreserve(room, scope, context) {
            self.start(next);
        }
    }

    pub(in crate::engine) fn submit(self: &Arc<Self>, job: Job, room: Room) {
        if let Some(job) = self.schedule.submit(job, room) {
            self.start(job);
        }
    }
}
