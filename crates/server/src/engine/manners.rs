//! Rules of conversation in which servers differ.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{ContextId, Error, ErrorKind, Message, Metadata, Part, TaskState, Timestamp};

use super::accept::{Handle, Sent, no_room};
use super::event::Update;
use super::live::Live;
use super::roster::Served;
use super::schedule::{Full, Room};
use super::{Engine, store_error};
use crate::call::Call;
use crate::present::{Presenter, Style};
use crate::store::{Created, IdempotencyKey, ListQuery, PushConfig, Scope, State};

/// How often, and after which pause, a busy conversation is looked at again: its turn may be over and only not yet
/// have left.
pub(super) const LOOKS: u32 = 50;
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// What servers do differently when a conversation is busy, a message is refused, or a task rests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manners {
    /// How reports look.
    pub style: Style,
    /// What becomes of a message whose conversation is busy: without words it waits, with them it fails with them.
    pub busy: Option<&'static str>,
    /// Whether a message that the agent does not admit becomes a task that failed, instead of an error.
    pub refusal_is_task: bool,
    /// Whether a task at rest is over for whoever wants to cancel or follow it, and goes when it is old.
    pub rest_is_over: bool,
    /// Whether a message without a task answers the question that its conversation waits with.
    pub answer_by_context: bool,
    /// Whether a stream stays open while its task waits for an answer.
    pub stream_waits: bool,
    /// Whether the schemes `bearer` and `basic` of webhooks are those of HTTP in any case, and what is given for
    /// `basic` is a name and a password, still to be encoded.
    pub known_schemes: bool,
}

/// Why there is no place for a turn.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoRoom {
    #[error("there is no place for more work")]
    Full(Full),
    /// The conversation is busy; what to say.
    #[error("{0}")]
    Busy(&'static str),
    /// The agent does not want the message.
    #[error("{0}")]
    Refused(String),
}

impl From<NoRoom> for Error {
    fn from(why: NoRoom) -> Self {
        match why {
            NoRoom::Full(full) => no_room(&full),
            why => Self::new(ErrorKind::UnsupportedOperation, why.to_string()),
        }
    }
}

impl Engine {
    /// A place for a turn of this conversation.
    pub(super) async fn room_for(self: &Arc<Self>, scope: &Scope, context: &ContextId) -> Result<Room, NoRoom> {
        if self.is_shared() {
            return Box::pin(self.room_anywhere(scope, context)).await;
        }
        let reserve = || self.schedule.reserve(scope, context).map_err(NoRoom::Full);
        let Some(words) = self.options.manners.busy else { return reserve() };
        for _ in 0..LOOKS {
            let room = reserve()?;
            if room == Room::Now || !self.schedule.is_busy(scope, context) {
                return Ok(room);
            }
            self.unreserve(room, scope, context);
            tokio::time::sleep(PAUSE).await;
        }
        Err(NoRoom::Busy(words))
    }

    /// Where a conversation is enough to answer a question, names the task that waits with it.
    pub(super) async fn find_question(&self, call: &Call, message: &mut Message) -> Result<(), Error> {
        if !self.options.manners.answer_by_context || !message.task_id.is_empty() || message.context_id.is_empty() {
            return Ok(());
        }
        let query = ListQuery {
            scope: call.scope.clone(),
            context_id: Some(message.context_id.clone()),
            state: Some(State(TaskState::InputRequired.number())),
            since: None,
            after: None,
            limit: 1,
            bytes: usize::MAX,
        };
        let page = self.store.list(query).await.map_err(|error| store_error(&error))?;
        if let Some(row) = page.tasks.into_iter().next() {
            message.task_id = row.id;
        }
        Ok(())
    }

    /// Refuses a message for a task whose turn is under way and has not asked for it.
    pub(super) async fn check_idle(&self, live: &Live) -> Result<(), Error> {
        let Some(words) = self.options.manners.busy else { return Ok(()) };
        let is_busy = || live.read(|task| !task.status.state.is_terminal() && !task.status.state.is_interrupted()).0;
        for _ in 0..LOOKS {
            if !is_busy() {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(NoRoom::Busy(words).into())
    }

    /// Whether an error of an agent that does not admit a message becomes a task.
    pub(super) fn is_for_a_task(&self, error: &Error) -> bool {
        self.options.manners.refusal_is_task && error.kind == ErrorKind::InvalidParams
    }

    /// A task that has failed before it began.
    pub(super) async fn failed_task(
        self: &Arc<Self>,
        call: &Call,
        message: Message,
        served: &Served,
        key: Option<IdempotencyKey>,
        push: Option<PushConfig>,
        words: &str,
    ) -> Result<Sent, Error> {
        let told = push.is_some();
        let (at, lease) = (Timestamp::now(), Self::no_lease());
        let (live, body) = self.fresh_task(call, served, &message, at, &lease)?;
        let said = Message::from_agent(vec![Part::text(words)]);
        let failed = Update::Status { state: TaskState::Failed, message: Some(said), metadata: Metadata::new() };
        live.write(failed).map_err(|_| Error::internal())?;
        let new = self.new_row(&live, (body, at), lease, key, push);
        let seq = new.seq();
        let task_key = match self.store.create(new).await.map_err(|error| store_error(&error))? {
            Created::New(task_key) | Created::Waiting(task_key) => task_key,
            Created::Known(task, from) => return self.repeat(task, from).await?.ok_or_else(Error::internal),
        };
        self.metrics.events.inc();
        live.stored(task_key, seq);
        let live = self.hub.insert(&live);
        if told {
            self.hub.bell().ring(task_key);
        }
        Ok(Sent::Task(Handle::new(self.clone(), live)))
    }

    /// The status of a task that is canceled where no turn could say so.
    pub(super) fn canceled(&self) -> Update {
        Presenter::new(self.options.manners.style, self.options.exposure).end(TaskState::Canceled, None).last
    }
}
