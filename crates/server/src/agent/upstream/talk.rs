//! One turn from the first message to the last event.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use nuncio_client::{Client, ClientError, Event, EventStream, SendOptions};
use nuncio_protocol::{
    CancelTaskRequest, ContextId, ErrorKind, GetTaskRequest, Message, MessageId, SendMessageRequest, StreamResponse,
    TaskId,
};
use tokio_util::task::AbortOnDropHandle;

use super::failure::told;
use super::incoming::{Step, pass_on};
use super::memory::Memory;
use super::outgoing::{activated, message_id, translate};
use crate::agent::{AgentError, Turn};
use crate::store::Seq;

/// An agent that does not stream may work before it answers.
const SEND_TIMEOUT: Duration = Duration::from_secs(600);
/// So long the agent has to hear that a task is to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

type Events = Pin<Box<dyn Stream<Item = Result<Event, ClientError>> + Send>>;

/// Where a conversation with the agent stands.
pub(super) struct Talk<'a> {
    client: Client,
    /// This agent among those that a message passes through.
    id: &'a str,
    ours: TaskId,
    memory: Memory,
    /// A message on its way, until the agent begins to answer.
    opening: Option<AbortOnDropHandle<Result<EventStream, ClientError>>>,
    /// Whether messages are no longer sent, not even once more.
    given_up: Arc<AtomicBool>,
    events: Events,
    /// The number of the agent's last event, where it numbers them.
    last: Option<u64>,
    /// The message that is being answered, by its name at the agent.
    sent: MessageId,
    /// How the task is followed while it waits for the caller.
    watch: Watch,
}

/// Following gets humbler when the agent ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// The answer to the message itself.
    Answer,
    /// A subscription.
    Subscription,
    /// Asking again and again.
    Polling,
}

impl<'a> Talk<'a> {
    pub(super) async fn new(client: Client, id: &'a str, turn: &Turn) -> Result<Self, AgentError> {
        Ok(Self {
            client,
            id,
            ours: turn.task_id().clone(),
            memory: Memory::of(turn).await?,
            opening: None,
            given_up: Arc::default(),
            events: Box::pin(stream::empty()),
            last: None,
            sent: MessageId::default(),
            watch: Watch::Answer,
        })
    }

    /// Sends the turn's message, or goes on with what a crash interrupted, and passes on what comes.
    pub(super) async fn run(&mut self, turn: &mut Turn) -> Result<(), AgentError> {
        let message = turn.message().clone();
        self.sent = message_id(turn, &message);
        let pair = self.memory.pair(&self.ours);
        match pair.filter(|pair| turn.resumed() && pair.heard == self.sent && !pair.theirs.is_empty()) {
            Some(pair) => self.follow(pair.theirs.clone(), None).await,
            None => self.send(turn, &message).await?,
        }
        let mut asked = None;
        loop {
            let event = match asked {
                None => self.events.next().await,
                Some(seq) => match self.event_or_reply(turn, seq).await? {
                    Heard::Event(event) => *event,
                    Heard::Reply(message) => {
                        asked = None;
                        self.send(turn, &message).await?;
                        continue;
                    }
                },
            };
            match (event, asked) {
                (Some(Ok(event)), _) => match self.take(turn, event).await? {
                    Step::Over => return Ok(()),
                    Step::Next(message) => {
                        asked = None;
                        self.part(turn).await?;
                        self.send(turn, &message).await?;
                    }
                    Step::Asked(seq) => asked = Some(seq),
                    Step::On => asked = None,
                    Step::Same => {}
                },
                (_, Some(_)) => self.watch_on().await,
                (Some(Err(error)), None) => return Err(told(&error)),
                (None, None) => return Err(told(&ClientError::Cut { task: None, cause: None })),
            }
        }
    }

    /// Whatever comes first while the agent waits for the caller: it may also go on by itself.
    async fn event_or_reply(&mut self, turn: &Turn, asked: Seq) -> Result<Heard, AgentError> {
        tokio::select! {
            biased;
            reply = turn.reply(asked) => reply?.map(Box::new).map(Heard::Reply).ok_or(AgentError::Unanswered),
            event = self.events.next() => Ok(Heard::Event(Box::new(event))),
        }
    }

    /// Sends a message and begins to read the answer.
    async fn send(&mut self, turn: &Turn, message: &Message) -> Result<(), AgentError> {
        self.sent = message_id(turn, message);
        let task = self.memory.theirs(&self.ours).unwrap_or_default();
        let how = SendOptions {
            idempotency_key: Some(self.sent.to_string()),
            timeout: Some(SEND_TIMEOUT),
            given_up: self.given_up.clone(),
        };
        let client = self.client.activating(&activated(message, &self.client)).map_err(|error| told(&error))?;
        self.client = client.clone();
        let message = translate(message, self.sent.clone(), task.clone(), &self.memory, &client, self.id);
        let request = SendMessageRequest { message: Some(message), ..SendMessageRequest::default() };
        (self.watch, self.last) = (Watch::Answer, None);
        // A task of its own: if the turn is canceled meanwhile, there is an answer to wait for.
        let opening = tokio::spawn(async move { client.stream_with(request, &how).await });
        let opened = self.opening.insert(AbortOnDropHandle::new(opening)).await;
        self.opening = None;
        match opened.map_err(|error| AgentError::Internal(error.to_string()))? {
            Ok(events) => self.events = boxed(events),
            // The agent may have given up waiting: then its task says how that went.
            Err(error) if !task.is_empty() && error.kind() == Some(ErrorKind::UnsupportedOperation) => {
                let found = self.client.get(GetTaskRequest { id: task, ..GetTaskRequest::default() }).await;
                let found = found.ok().filter(|task| task.status.state.is_terminal()).ok_or_else(|| told(&error))?;
                let only = Event { seq: None, response: StreamResponse::Task(found) };
                self.events = boxed(stream::iter([Ok(only)]));
            }
            Err(error) => return Err(told(&error)),
        }
        Ok(())
    }

    /// The agent's task is over, but not ours: the next message begins another there.
    async fn part(&mut self, turn: &mut Turn) -> Result<(), AgentError> {
        self.memory.pair_mut(&self.ours).theirs = TaskId::default();
        self.memory.keep(turn).await
    }

    /// Follows a task that the agent has named.
    async fn follow(&mut self, task: TaskId, after: Option<u64>) {
        match self.client.subscribe(task.clone(), after).await {
            Ok(events) => (self.watch, self.events) = (Watch::Subscription, boxed(events)),
            // It is over, or cannot be followed, or not at the moment.
            Err(error) => {
                tracing::debug!(%error, "the upstream task cannot be followed; it is asked for instead");
                (self.watch, self.events) = (Watch::Polling, boxed(self.client.watch(task)));
            }
        }
    }

    /// The agent waits, and its stream has ended: keeps an eye on the task in another way.
    async fn watch_on(&mut self) {
        let Some(task) = self.memory.theirs(&self.ours) else {
            self.events = Box::pin(stream::pending());
            return;
        };
        match self.watch {
            Watch::Answer => self.follow(task, self.last).await,
            Watch::Subscription => (self.watch, self.events) = (Watch::Polling, boxed(self.client.watch(task))),
            Watch::Polling => self.events = Box::pin(stream::pending()),
        }
    }

    /// Takes one event in.
    async fn take(&mut self, turn: &mut Turn, event: Event) -> Result<Step, AgentError> {
        self.last = event.seq.or(self.last);
        let (task, context) = names(&event.response);
        if self.learn(task, context) {
            // Before anything is passed on: what a crash interrupts after this is gone on with, not sent again.
            self.memory.keep(turn).await?;
        }
        pass_on(turn, &self.memory, event.response).await
    }

    /// Remembers how the agent calls things. True when that is new.
    fn learn(&mut self, task: Option<&TaskId>, context: &ContextId) -> bool {
        let mut new = false;
        if !context.is_empty() && *context != self.memory.context {
            self.memory.context = context.clone();
            new = true;
        }
        let known = self.memory.pair(&self.ours);
        if let Some(task) = task.filter(|task| !task.is_empty())
            && known.is_none_or(|pair| pair.theirs != *task || pair.heard != self.sent)
        {
            let pair = self.memory.pair_mut(&self.ours);
            (pair.theirs, pair.heard) = (task.clone(), self.sent.clone());
            new = true;
        }
        new
    }

    /// Ends the task at the agent, if there is one by now. It is carried through when nobody waits for it. A message
    /// whose answer is still out is waited for, as the task has no name before, but not sent again.
    pub(super) async fn cancel(mut self) {
        self.given_up.store(true, Ordering::Release);
        let known = self.memory.theirs(&self.ours);
        let (client, opening) = (self.client.clone(), self.opening.take());
        let mut events = std::mem::replace(&mut self.events, Box::pin(stream::empty()));
        let ending = tokio::spawn(tokio::time::timeout(CANCEL_TIMEOUT, async move {
            let id = match (known, opening) {
                (Some(id), _) => id,
                (None, Some(opening)) => {
                    events = boxed(opening.await.ok()?.ok()?);
                    named(&mut events).await?
                }
                (None, None) => named(&mut events).await?,
            };
            if let Err(error) = client.cancel(CancelTaskRequest { id, ..CancelTaskRequest::default() }).await {
                tracing::debug!(%error, "the upstream task was not canceled");
            }
            Some(())
        }));
        let _ = ending.await;
    }
}

/// What comes while the agent waits.
enum Heard {
    Event(Box<Option<Result<Event, ClientError>>>),
    Reply(Box<Message>),
}

/// The task and the conversation that an event speaks of.
fn names(event: &StreamResponse) -> (Option<&TaskId>, &ContextId) {
    match event {
        StreamResponse::Task(task) => (Some(&task.id), &task.context_id),
        StreamResponse::StatusUpdate(update) => (Some(&update.task_id), &update.context_id),
        StreamResponse::ArtifactUpdate(update) => (Some(&update.task_id), &update.context_id),
        StreamResponse::Message(message) => (None, &message.context_id),
    }
}

/// The first task that is named.
async fn named(events: &mut Events) -> Option<TaskId> {
    while let Some(Ok(event)) = events.next().await {
        if let (Some(task), _) = names(&event.response) {
            return Some(task.clone());
        }
    }
    None
}

/// Events that may be asked for again behind their end.
fn boxed(events: impl Stream<Item = Result<Event, ClientError>> + Send + 'static) -> Events {
    Box::pin(events.fuse())
}
