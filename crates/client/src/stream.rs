//! The events of a task, which survive lost connections.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use nuncio_protocol::{ErrorKind, GetTaskRequest, SendMessageRequest, StreamResponse, Task, TaskId, TaskState};

use crate::client::Client;
use crate::error::ClientError;
use crate::options::SendOptions;
use crate::wire::Feed;

/// After the last event a server closes the stream, perhaps behind one more snapshot. One that does not is not
/// waited for any longer than this.
const LINGER: Duration = Duration::from_secs(3);

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number in the task, where the agent numbers its events: what to continue after.
    pub seq: Option<u64>,
    /// What happened.
    pub response: StreamResponse,
}

/// The events of a task, or the message that answers instead of one.
///
/// A connection that is lost before the task is over is replaced by a new one, a limited number of times in a
/// row. Where the agent numbers its events nothing is lost or repeated; where it does not, the whole task comes
/// as an event after the gap, so a [`StreamResponse::Task`] may come anywhere and replaces what is known.
///
/// It ends after a message, after a terminal state, and where the agent ends it because it waits for the client.
/// An error is the last item.
pub struct EventStream {
    inner: Pin<Box<dyn Stream<Item = Result<Event, ClientError>> + Send>>,
}

impl EventStream {
    /// Goes on from a connection that is open, and from an event that is known.
    pub(crate) fn new(client: Client, feed: Feed, origin: Origin, last: Option<u64>) -> Self {
        let task = match &origin {
            Origin::Send { .. } => None,
            Origin::Subscribe { task } => Some(task.clone()),
        };
        let follow = Follow {
            client,
            feed: Some(feed),
            origin,
            task,
            last,
            standing: Standing::Open,
            failures: 0,
            gap: Gap::default(),
            end: None,
        };
        Self { inner: Box::pin(stream::unfold(follow, Follow::next)) }
    }

    /// Ends with a task to which nobody can subscribe.
    pub(crate) fn ending(task: Task) -> Self {
        let (event, error) = last_event(task);
        Self { inner: Box::pin(stream::iter(std::iter::once(Ok(event)).chain(error.map(Err)))) }
    }
}

impl Stream for EventStream {
    type Item = Result<Event, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.inner.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

/// How a stream began.
pub(crate) enum Origin {
    /// With a message, which may be sent again only under its key.
    Send { again: Option<Box<(SendMessageRequest, SendOptions)>> },
    /// With the wish to follow a task.
    Subscribe { task: TaskId },
}

/// What the events so far say about more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Open,
    /// The agent waits for the client.
    Waiting,
    /// Nothing of meaning can follow.
    Over,
}

/// What is known about the connection that was lost.
#[derive(Default)]
struct Gap {
    error: Option<ClientError>,
    /// The server asks to stay away for so long.
    pause: Option<Duration>,
}

/// How the stream ends.
enum End {
    Well,
    Badly(ClientError),
}

struct Follow {
    client: Client,
    feed: Option<Feed>,
    origin: Origin,
    task: Option<TaskId>,
    /// The highest number so far.
    last: Option<u64>,
    standing: Standing,
    /// Attempts to reconnect since there was progress.
    failures: u32,
    gap: Gap,
    end: Option<End>,
}

impl Follow {
    async fn next(mut self) -> Option<(Result<Event, ClientError>, Self)> {
        loop {
            match self.end.take() {
                Some(End::Well) => return None,
                Some(End::Badly(error)) => {
                    self.end = Some(End::Well);
                    return Some((Err(error), self));
                }
                None => {}
            }
            let step = if self.feed.is_some() { self.read().await } else { self.reconnect().await };
            match step {
                Ok(Some(event)) => return Some((Ok(event), self)),
                Ok(None) => {}
                Err(error) => self.end = Some(End::Badly(error)),
            }
        }
    }

    /// The next event of the present connection, unless it is known already.
    async fn read(&mut self) -> Result<Option<Event>, ClientError> {
        let Some(feed) = &mut self.feed else { return Ok(None) };
        let next = if self.standing == Standing::Over {
            tokio::time::timeout(LINGER, feed.next()).await.unwrap_or(Ok(None))
        } else {
            feed.next().await
        };
        match next {
            Ok(Some(event)) => Ok(self.accept(event)),
            Ok(None) => {
                self.closed(None);
                Ok(None)
            }
            // Whatever breaks behind the last event does not matter.
            Err(_) if self.standing == Standing::Over => {
                self.end = Some(End::Well);
                Ok(None)
            }
            Err(error) if is_loss(&error) => {
                self.closed(Some(error));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn accept(&mut self, event: Event) -> Option<Event> {
        let (task, standing) = meaning(&event.response);
        if let Some(task) = task.filter(|task| !task.is_empty()) {
            self.task = Some(task.clone());
        }
        // News that the task is over is passed on in any case: a server that counts anew on every connection
        // must not look as if the task went on.
        let is_news = standing == Some(Standing::Over) && self.standing != Standing::Over;
        let known = matches!((event.seq, self.last), (Some(seq), Some(last)) if seq <= last);
        if known && !is_news {
            return None;
        }
        if self.standing != Standing::Over {
            self.standing = standing.unwrap_or(self.standing);
        }
        self.last = self.last.max(event.seq);
        // A snapshot comes with every new connection and proves nothing, unless it has a new number.
        if event.seq.is_some() || !matches!(event.response, StreamResponse::Task(_)) {
            self.failures = 0;
        }
        Some(event)
    }

    /// The connection is gone, in good order or with an error.
    fn closed(&mut self, error: Option<ClientError>) {
        let asked = self.feed.take().and_then(|feed| feed.retry());
        let well = match self.standing {
            Standing::Over => true,
            // The answer to a message is complete when the agent waits; whoever follows a task wants to see more.
            Standing::Waiting => error.is_none() || matches!(self.origin, Origin::Send { .. }),
            Standing::Open => false,
        };
        if well {
            self.end = Some(End::Well);
        }
        self.gap = Gap { pause: asked.max(error.as_ref().and_then(ClientError::retry_after)), error };
    }

    /// One attempt to get a new connection, after a pause.
    async fn reconnect(&mut self) -> Result<Option<Event>, ClientError> {
        let retry = self.client.retry();
        if self.failures >= retry.tries {
            return Err(self.give_up());
        }
        tokio::time::sleep(retry.pause(self.failures, self.gap.pause)).await;
        self.failures += 1;
        let attempt = match (&self.task, &self.origin) {
            (Some(task), _) => self.client.open(task, self.last).await,
            (None, Origin::Send { again: Some(again) }) => self.client.send_again(&again.0, &again.1).await,
            (None, _) => return Err(self.give_up()),
        };
        match attempt {
            Ok(feed) => self.feed = Some(feed),
            Err(error) if error.kind() == Some(ErrorKind::UnsupportedOperation) && self.task.is_some() => {
                return self.look().await;
            }
            Err(error) => self.missed(error)?,
        }
        Ok(None)
    }

    /// The agent offers no subscription, as a rule because the task is over by now.
    async fn look(&mut self) -> Result<Option<Event>, ClientError> {
        let Some(id) = self.task.clone() else { return Err(self.give_up()) };
        match self.client.get(GetTaskRequest { id, ..Default::default() }).await {
            Ok(task) => {
                let (event, error) = last_event(task);
                self.end = Some(error.map_or(End::Well, End::Badly));
                Ok(Some(event))
            }
            Err(error) => self.missed(error).map(|()| None),
        }
    }

    /// An attempt failed; only some failures deserve another.
    fn missed(&mut self, error: ClientError) -> Result<(), ClientError> {
        if !is_loss(&error) {
            return Err(error);
        }
        self.gap = Gap { pause: error.retry_after(), error: Some(error) };
        Ok(())
    }

    fn give_up(&mut self) -> ClientError {
        ClientError::Cut { task: self.task.clone(), cause: self.gap.error.take().map(Box::new) }
    }
}

/// A task as the last event, and the error behind it if the task is not over.
fn last_event(task: Task) -> (Event, Option<ClientError>) {
    let state = task.status.state;
    let over = state.is_terminal() || state.is_interrupted();
    let error = (!over).then(|| ClientError::Cut { task: Some(task.id.clone()), cause: None });
    (Event { seq: None, response: StreamResponse::Task(task) }, error)
}

/// Whether a new connection may help.
fn is_loss(error: &ClientError) -> bool {
    error.is_transient() || matches!(error, ClientError::Timeout { .. })
}

/// The task that an event speaks of, and what it says about more events.
fn meaning(response: &StreamResponse) -> (Option<&TaskId>, Option<Standing>) {
    let standing = |state: TaskState| match state {
        state if state.is_terminal() => Standing::Over,
        state if state.is_interrupted() => Standing::Waiting,
        _ => Standing::Open,
    };
    match response {
        StreamResponse::Task(task) => (Some(&task.id), Some(standing(task.status.state))),
        StreamResponse::StatusUpdate(update) => (Some(&update.task_id), Some(standing(update.status.state))),
        StreamResponse::ArtifactUpdate(update) => (Some(&update.task_id), None),
        StreamResponse::Message(_) => (None, Some(Standing::Over)),
    }
}
