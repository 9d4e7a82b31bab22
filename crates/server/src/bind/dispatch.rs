//! From a decoded request to an answer, the same for every binding.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nuncio_protocol::{
    AgentCard, CancelTaskRequest, Error, ErrorKind, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, ListTasksResponse, Message, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig, TaskPushNotificationConfigRequest,
};

use tracing::Instrument;

use super::{App, StreamPlace};
use crate::audit::Note;
use crate::boxed::boxed;
use crate::call::{Call, Version};
use crate::engine::{Close, Handle, Over, Sent, Subscription, TaskJson, not_supported};
use crate::metrics::Operation;

/// The longest name of a tenant: it is kept with every task.
const LONGEST_TENANT: usize = 512;

/// Numbers the calls of this process, so that the lines of the log that belong together can be found.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// What is asked for.
pub(crate) enum Request {
    // The large ones are boxed: a request is handed on many times before it is carried out.
    Send(Box<SendMessageRequest>),
    Stream(Box<SendMessageRequest>),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    Subscribe(SubscribeToTaskRequest),
    PushCreate(Box<TaskPushNotificationConfig>),
    /// The same, with the token as a bearer token.
    PushCreateBearer(Box<TaskPushNotificationConfig>),
    PushGet(TaskPushNotificationConfigRequest),
    PushList(ListTaskPushNotificationConfigsRequest),
    PushDelete(TaskPushNotificationConfigRequest),
    /// Any of the four where there are no webhooks, unread.
    NoPush(Operation),
    /// The extended card, for whoever reaches the server at this address.
    ExtendedCard {
        tenant: String,
        root_url: String,
    },
}

/// What is answered.
pub(crate) enum Answer {
    /// A task that was asked for.
    Task(TaskJson),
    /// A task that a message started or continued; the handle has its tree, for whom the JSON is not enough.
    Sent(TaskJson, Handle),
    /// A direct answer.
    Message(Message),
    /// A page of tasks, and whether artifacts were asked for.
    List(ListTasksResponse, bool),
    /// A webhook.
    Push(TaskPushNotificationConfig),
    /// The webhooks of a task.
    PushList(Vec<TaskPushNotificationConfig>),
    /// A webhook is gone.
    PushDeleted,
    /// The extended card.
    Card(Arc<AgentCard>),
}

impl Answer {
    /// How many bytes it takes to write it: exact for the tasks of 1.0, a guess for all else.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Task(task) => task.0.len(),
            Self::Sent(task, _) => "{\"task\":}".len() + task.0.len(),
            _ => 512,
        }
    }
}

/// An answer, or a stream of events.
pub(crate) enum Outcome {
    Answer(Answer),
    Stream(Subscription, StreamPlace),
    /// A stream whose only event is a direct answer.
    StreamOfOne(Message),
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl Request {
    pub(crate) fn operation(&self) -> Operation {
        match self {
            Self::Send(_) => Operation::Send,
            Self::Stream(_) => Operation::Stream,
            Self::Get(_) => Operation::Get,
            Self::List(_) => Operation::List,
            Self::Cancel(_) => Operation::Cancel,
            Self::Subscribe(_) => Operation::Subscribe,
            Self::PushCreate(_) | Self::PushCreateBearer(_) => Operation::PushCreate,
            Self::PushGet(_) => Operation::PushGet,
            Self::PushList(_) => Operation::PushList,
            Self::PushDelete(_) => Operation::PushDelete,
            Self::NoPush(operation) => *operation,
            Self::ExtendedCard { .. } => Operation::ExtendedCard,
        }
    }

    /// The task and the context that it is about, as far as it says so.
    fn about(&self) -> (&str, &str) {
        match self {
            Self::Send(request) | Self::Stream(request) => match &request.message {
                Some(message) => (message.task_id.as_str(), message.context_id.as_str()),
                None => ("", ""),
            },
            Self::Get(request) => (request.id.as_str(), ""),
            Self::List(request) => ("", request.context_id.as_str()),
            Self::Cancel(request) => (request.id.as_str(), ""),
            Self::Subscribe(request) => (request.id.as_str(), ""),
            Self::PushCreate(request) | Self::PushCreateBearer(request) => (request.task_id.as_str(), ""),
            Self::PushGet(request) | Self::PushDelete(request) => (request.task_id.as_str(), ""),
            Self::PushList(request) => (request.task_id.as_str(), ""),
            Self::NoPush(_) | Self::ExtendedCard { .. } => ("", ""),
        }
    }

    /// The tenant that the request itself names.
    pub(crate) fn tenant(&self) -> &str {
        match self {
            Self::Send(request) | Self::Stream(request) => &request.tenant,
            Self::Get(request) => &request.tenant,
            Self::List(request) => &request.tenant,
            Self::Cancel(request) => &request.tenant,
            Self::Subscribe(request) => &request.tenant,
            Self::PushCreate(request) | Self::PushCreateBearer(request) => &request.tenant,
            Self::PushGet(request) | Self::PushDelete(request) => &request.tenant,
            Self::PushList(request) => &request.tenant,
            Self::ExtendedCard { tenant, .. } => tenant,
            Self::NoPush(_) => "",
        }
    }
}

/// Carries a request out. Boxed, so that connections hold its state only while it is under way, and nobody on the
/// way to here moves it about.
pub(crate) fn dispatch(
    app: &App,
    call: Call,
    request: Request,
) -> Pin<Box<impl Future<Output = Result<Outcome, Error>> + Send>> {
    boxed(|| supervise(app, call, request))
}

/// Carries a request out if it may be, and notes how it went.
async fn supervise(app: &App, call: Call, request: Request) -> Result<Outcome, Error> {
    if call.scope.tenant.len() > LONGEST_TENANT {
        return Err(Error::invalid("tenant", "is longer than 512 characters"));
    }
    app.profile.check(&request)?;
    let id = CALLS.fetch_add(1, Ordering::Relaxed);
    let (operation, version) = (request.operation(), call.version.as_str());
    let span = tracing::debug_span!("call", call = id, ?operation, version, caller = call.scope.to_string());
    let mut note = app.audit.as_ref().map(|audit| audit.begin(&call, operation, request.about()));
    let done = match call.grants.allow(operation) {
        true => carry_out(app, call, request, note.as_mut()).instrument(span).await,
        false => Err(not_allowed(operation)),
    };
    if let Some(note) = note {
        note.end(done.as_ref().map_or_else(|error| error.kind.reason(), |_| "ok"));
    }
    if let Err(error) = &done
        && matches!(error.kind, ErrorKind::Internal | ErrorKind::Unavailable)
    {
        tracing::warn!(call = id, ?operation, version, %error, "a call failed");
    }
    done
}

/// Said before anything is looked up, so that it tells nothing about what there is.
pub(crate) fn not_allowed(operation: Operation) -> Error {
    let text = format!("These credentials do not allow {}: ask for ones with the scope for it", operation.name());
    Error::new(ErrorKind::PermissionDenied, text).fact("operation", operation.name())
}

async fn carry_out(app: &App, call: Call, request: Request, note: Option<&mut Note>) -> Result<Outcome, Error> {
    tracing::debug!("call");
    match request {
        Request::Send(request) => send(app, &call, request, note).await,
        Request::Stream(request) => stream(app, &call, request, note).await,
        Request::Get(request) => {
            Error::check(request.violations())?;
            let task = app.engine.get(&call, &request.id).await?;
            Ok(Outcome::Answer(Answer::Task(task.with_history(request.history_length)?)))
        }
        Request::List(request) => {
            let page = Box::pin(app.engine.list(&call, &request)).await?;
            Ok(Outcome::Answer(Answer::List(page, request.include_artifacts == Some(true))))
        }
        Request::Cancel(request) => {
            Error::check(request.violations())?;
            // Boxed, as all that is rare and large: every call would carry it along.
            let canceled = match Box::pin(app.engine.cancel(&call, &request.id)).await {
                Err(error) if error.kind == ErrorKind::TaskNotCancelable && app.profile.may_cancel_again() => {
                    app.engine.get(&call, &request.id).await
                }
                canceled => canceled,
            };
            Ok(Outcome::Answer(Answer::Task(canceled?)))
        }
        Request::Subscribe(request) => Box::pin(subscribe(app, &call, &request)).await,
        Request::PushCreate(config) => {
            Ok(Answer::Push(Box::pin(app.engine.put_webhook(&call, &config, false)).await?).into())
        }
        Request::PushCreateBearer(config) => {
            Ok(Answer::Push(Box::pin(app.engine.put_webhook(&call, &config, true)).await?).into())
        }
        Request::PushGet(request) => {
            Ok(Answer::Push(app.engine.get_webhook(&call, &request.task_id, &request.id).await?).into())
        }
        Request::PushList(request) => {
            let all = app.engine.webhooks(&call, &request.task_id).await?;
            Ok(Outcome::Answer(Answer::PushList(all)))
        }
        Request::PushDelete(request) => {
            app.engine.delete_webhook(&call, &request.task_id, &request.id).await?;
            Ok(Outcome::Answer(Answer::PushDeleted))
        }
        Request::NoPush(_) => Err(not_supported()),
        Request::ExtendedCard { root_url, .. } => {
            app.engine.check_tenant(&call.scope)?;
            Ok(Answer::Card(app.card(&call.scope.tenant).extended(&root_url)?).into())
        }
    }
}

async fn send(
    app: &App,
    call: &Call,
    request: Box<SendMessageRequest>,
    note: Option<&mut Note>,
) -> Result<Outcome, Error> {
    check_send(app, call, &request)?;
    let configuration = request.configuration.as_ref();
    let history = configuration.and_then(|c| c.history_length);
    let at_once = configuration.is_some_and(|c| c.return_immediately);
    let handle = match app.engine.send(call, request).await? {
        Sent::Message(message) => return Ok(Outcome::Answer(Answer::Message(message))),
        Sent::Task(handle) => handle,
    };
    put_down(note, &handle);
    let task = if at_once {
        handle.now().await?
    } else if let Some(task) = handle.settled_already().await? {
        task
    } else {
        tokio::select! {
            biased;
            task = handle.settled() => task?,
            () = app.closing.cancelled() => return Err(interrupted(&handle)),
        }
    };
    Ok(Outcome::Answer(Answer::Sent(task.with_history(history)?, handle)))
}

/// Puts on record which task it became.
fn put_down(note: Option<&mut Note>, handle: &Handle) {
    if let Some(note) = note {
        note.about(handle.task_id().as_str(), handle.context_id().as_str());
    }
}

/// The message is stored and must not be sent again, so the caller is told where its answer will be.
fn interrupted(handle: &Handle) -> Error {
    let text = format!("The server is shutting down: get task {} from the next one", handle.task_id());
    Error::new(ErrorKind::Unavailable, text).fact("taskId", handle.task_id().as_str())
}

async fn stream(
    app: &App,
    call: &Call,
    request: Box<SendMessageRequest>,
    note: Option<&mut Note>,
) -> Result<Outcome, Error> {
    check_streaming(app, call)?;
    check_send(app, call, &request)?;
    // Before anything starts: whoever is told to come back must find that nothing was done.
    let place = app.stream_place(&call.caller)?;
    let history = request.configuration.as_ref().and_then(|c| c.history_length);
    match app.engine.send(call, request).await? {
        Sent::Message(message) => Ok(Outcome::StreamOfOne(message)),
        Sent::Task(handle) => {
            put_down(note, &handle);
            Ok(Outcome::Stream(handle.stream(history).await?, place))
        }
    }
}

async fn subscribe(app: &App, call: &Call, request: &SubscribeToTaskRequest) -> Result<Outcome, Error> {
    check_streaming(app, call)?;
    Error::check(request.violations())?;
    // 0.3 clients end their stream at a `final` status, which input-required is, and expect the task
    // of a finished one instead of an error.
    let (close, over) = match call.version {
        Version::V1 if app.engine.options.manners.rest_is_over => (Close::WhenInputRequired, Over::Refuse),
        Version::V1 => (Close::WhenOver, Over::Refuse),
        Version::V03 if app.engine.options.manners.stream_waits => (Close::WhenOver, Over::Show),
        Version::V03 => (Close::WhenInputRequired, Over::Show),
    };
    let place = app.stream_place(&call.caller)?;
    Ok(Outcome::Stream(app.engine.subscribe(call, &request.id, close, over).await?, place))
}

fn check_streaming(app: &App, call: &Call) -> Result<(), Error> {
    if app.card(&call.scope.tenant).streaming() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::UnsupportedOperation,
        "This agent does not stream: send without streaming, and poll the task",
    ))
}

fn check_send(app: &App, call: &Call, request: &SendMessageRequest) -> Result<(), Error> {
    if let Some(uri) = app.card(&call.scope.tenant).missing_extension(&call.extensions) {
        let text = format!("This agent needs clients that support {uri}: name it in the A2A-Extensions header");
        return Err(Error::new(ErrorKind::ExtensionSupportRequired, text).fact("uri", uri));
    }
    let push = request.configuration.as_ref().and_then(|c| c.task_push_notification_config.as_ref());
    if push.is_some() && !app.has_push() {
        let text = "This agent does not send push notifications: leave taskPushNotificationConfig out";
        return Err(Error::new(ErrorKind::PushNotificationNotSupported, text));
    }
    // A webhook that comes with the message is one all the same.
    if push.is_some() && !call.grants.allow(Operation::PushCreate) {
        return Err(not_allowed(Operation::PushCreate));
    }
    Ok(())
}
