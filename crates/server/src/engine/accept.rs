//! What a message means: a new task, the next turn of one, or an answer to a running one.

use std::sync::Arc;

use nuncio_protocol::{
    ContextId, Error, ErrorKind, Message, Metadata, SendMessageRequest, TaskId, TaskPushNotificationConfig,
};

use super::approval::HITL;
use super::arrival::Arrival;
use super::hub::Held;
use super::live::Incoming;
use super::roster::Served;
use super::{Engine, IdempotentSend, KEY_LIFE, carry_through, micros, now, shutting_down, store_error};
use crate::boxed::boxed;
use crate::call::Call;
use crate::store::{IdempotencyKey, ListQuery, Scope, Seq, TaskKey, TaskRow};

mod begin;
mod follow_up;
mod handle;

use begin::Begun;
pub(super) use follow_up::{check_decision, check_follow_up, follow_up_error, no_room, over};
pub use handle::{Handle, Sent};

/// The longest id or key that a caller may choose.
const LONGEST_ID: usize = 512;

impl Engine {
    /// Takes a message. When this returns, the message is durable and its turn runs or waits. Once
    /// begun it is carried through, even if nobody waits for it any more.
    pub async fn send(
        self: &Arc<Self>,
        call: &Call,
        request: impl Into<Box<SendMessageRequest>>,
    ) -> Result<Sent, Error> {
        let request = request.into();
        Error::check(request.violations())?;
        let (engine, call) = (self.clone(), call.clone());
        carry_through(boxed(|| engine.accept(call, request))).await
    }

    async fn accept(self: Arc<Self>, call: Call, request: Box<SendMessageRequest>) -> Result<Sent, Error> {
        let call = &call;
        if self.is_draining() {
            return Err(shutting_down());
        }
        self.check_tenant(&call.scope)?;
        let SendMessageRequest { message, configuration, metadata, .. } = *request;
        let mut message = message.ok_or_else(|| Error::invalid("message", "is required"))?;
        check_ids(&message)?;
        self.check_parts(&message)?;
        self.keep_extensions(call, &mut message);
        let push = configuration.and_then(|configuration| configuration.task_push_notification_config);
        push.as_ref().map_or(Ok(()), |push| self.check_inline(push))?;
        let key = self.idempotency_key(call, &message)?;
        let _turnstile = match &key {
            Some(key) => Some(self.keys.pass((call.scope.clone(), key.key.clone())).await),
            None => None,
        };
        if let Some(key) = &key
            && let Some(again) = self.said_before(&call.scope, key).await?
        {
            return Ok(again);
        }
        self.find_question(call, &mut message).await?;
        if message.task_id.is_empty() {
            let served = self.choose(call, &metadata, &message).await?;
            if let Some(parts) = served.agent.answer(&message).await {
                return Ok(Sent::Message(direct_answer(&message, parts)));
            }
            let is_new_context = message.context_id.is_empty();
            if is_new_context {
                message.context_id = ContextId::fresh();
            }
            let arrival = Arrival::new(&self, &call.scope, &served.name, &message, &metadata);
            let refused = match served.agent.admit(&arrival).await {
                Err(error) if self.is_for_a_task(&error) => Some(error.message.into_owned()),
                admitted => admitted.map(|()| None)?,
            };
            let kept = arrival.into_kept();
            let begun = Begun { message, is_new_context, key, push, kept, refused };
            return self.new_task(call, served, begun).await;
        }
        let incoming = Incoming { message, key: key.clone(), letter: None };
        let said = self.say_more(call, incoming, push, &metadata).await;
        // The same send may have come by another node as well, and have been the last thing that the task heard.
        if said.is_err()
            && let Some(key) = &key
            && let Ok(Some(again)) = self.said_before(&call.scope, key).await
        {
            return Ok(again);
        }
        said
    }

    /// A message for a task that exists.
    async fn say_more(
        self: &Arc<Self>,
        call: &Call,
        mut incoming: Incoming,
        push: Option<TaskPushNotificationConfig>,
        metadata: &Metadata,
    ) -> Result<Sent, Error> {
        let message = &mut incoming.message;
        let row = self.find(&call.scope, &message.task_id).await?;
        check_follow_up(&row, message)?;
        message.context_id = row.context_id.clone();
        if let Some(served) = self.roster.get(&row.agent) {
            let arrival = Arrival::new(self, &call.scope, &served.name, message, metadata);
            served.agent.admit(&arrival).await?;
            let kept = arrival.into_kept();
            self.keep(kept).await?;
        }
        let Some(push) = push else { return self.follow_up(&row, Box::new(incoming)).await };
        // It is there before the message is, so that no crash can take it away from a message that was taken.
        let push = self.webhook(call, &push, &row.id, row.seq, false)?;
        let before = self.store_webhook(&row, push.clone()).await?;
        let said = self.follow_up(&row, Box::new(incoming)).await;
        if said.is_err() {
            self.take_back_webhook(&row, &push, before).await;
        }
        said
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
                bytes: usize::MAX,
            };
            let page = self.store.list(query).await.map_err(|error| store_error(&error))?;
            talking_to = page.tasks.into_iter().next().map(|row| row.agent);
        }
        let chosen = self.roster.choose(&call.scope, request, message, talking_to.as_deref());
        chosen.ok_or_else(|| no_tenant(&call.scope))
    }

    /// What came of a send with this key before, if there was one.
    pub(super) async fn said_before(
        self: &Arc<Self>,
        scope: &Scope,
        key: &IdempotencyKey,
    ) -> Result<Option<Sent>, Error> {
        match self.store.find_key(scope, key).await.map_err(|error| store_error(&error))? {
            Some((task, from)) => self.repeat(task, from).await,
            None => Ok(None),
        }
    }

    /// The same send again: the task of the first time, unless it has been removed since.
    pub(super) async fn repeat(self: &Arc<Self>, task: TaskKey, from: Seq) -> Result<Option<Sent>, Error> {
        let row = self.store.task_by_key(task).await.map_err(|error| store_error(&error))?;
        let Some(row) = row else { return Ok(None) };
        let live = self.open(&row).await?;
        Ok(Some(Sent::Task(Handle::at(self.clone(), live, from))))
    }

    /// A task that does not exist for this caller.
    pub(super) async fn find(&self, scope: &Scope, id: &TaskId) -> Result<TaskRow, Error> {
        self.check_tenant(scope)?;
        let row = self.store.task(scope, id).await.map_err(|error| store_error(&error))?;
        row.ok_or_else(|| Error::task_not_found(id.as_str()))
    }

    /// The task in memory, its fold loaded.
    pub(super) async fn open(&self, row: &TaskRow) -> Result<Held, Error> {
        let live = self.hub.open(row);
        let mut loaded = live.loaded.get_or_try_init(|| self.fill(&live)).await.map(|()| live.clone());
        if loaded.is_ok() && self.cluster.is_some() {
            match Box::pin(self.caught_up(&live, row)).await {
                Ok(true) => {}
                Ok(false) => return Box::pin(self.open(row)).await,
                Err(error) => loaded = Err(error),
            }
        }
        if let Err(error) = loaded {
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

fn direct_answer(message: &Message, parts: Vec<nuncio_protocol::Part>) -> Message {
    let context_id = if message.context_id.is_empty() { ContextId::fresh() } else { message.context_id.clone() };
    Message { context_id, ..Message::from_agent(parts) }
}
