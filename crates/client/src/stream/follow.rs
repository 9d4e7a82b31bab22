//! Follows a task from one connection to the next.

use std::collections::VecDeque;
use std::time::Duration;

use nuncio_protocol::{ErrorKind, GetTaskRequest, StreamResponse, Task, TaskId, TaskState, TaskStatusUpdateEvent};

use super::known::Known;
use super::{Event, Origin};
use crate::client::Client;
use crate::error::ClientError;
use crate::wire::Feed;

/// After the last event a server closes the stream, perhaps behind one more snapshot. One that does not is not
/// waited for any longer than this.
const LINGER: Duration = Duration::from_secs(3);

/// What the events so far say about more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Open,
    /// The agent waits for the client.
    Waiting,
    /// Nothing of meaning can follow.
    Over,
}

/// Where events come from at the moment.
enum Source {
    /// A connection.
    Feed(Feed),
    /// Nowhere: a connection was lost.
    Lost,
    /// The agent lets nobody follow, so it is asked for the task, at once or after a pause.
    Polling { at_once: bool },
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

pub(super) struct Follow {
    client: Client,
    source: Source,
    origin: Origin,
    task: Option<TaskId>,
    known: Known,
    /// The highest number so far, as long as the agent's numbers make sense.
    last: Option<u64>,
    /// Whether the ids of events can be taken for their numbers.
    numbered: bool,
    /// The number after which the present connection was asked to go on.
    after: Option<u64>,
    /// Whether nothing has come over the present connection.
    silent: bool,
    /// Whether what is known begins in the middle of the task.
    partial: bool,
    /// Whether the next event is the first of a connection that replaces a lost one.
    resumed: bool,
    standing: Standing,
    /// Attempts to go on since there was progress.
    failures: u32,
    gap: Gap,
    ready: VecDeque<Event>,
    end: Option<End>,
}

impl Follow {
    pub(super) fn new(client: Client, feed: Option<Feed>, origin: Origin, last: Option<u64>) -> Self {
        let task = match &origin {
            Origin::Send { .. } => None,
            Origin::Subscribe { task } => Some(task.clone()),
        };
        Self {
            client,
            source: feed.map_or(Source::Polling { at_once: true }, Source::Feed),
            origin,
            task,
            known: Known::default(),
            last,
            numbered: true,
            after: last,
            silent: true,
            partial: last.is_some_and(|last| last > 0),
            resumed: false,
            standing: Standing::Open,
            failures: 0,
            gap: Gap::default(),
            ready: VecDeque::new(),
            end: None,
        }
    }

    pub(super) fn polling(client: Client, origin: Origin, first: Option<Event>) -> Self {
        let mut follow = Self::new(client, None, origin, None);
        if let Some(first) = first {
            follow.known.fold(&first.response);
            follow.pass_on(vec![first]);
            follow.source = Source::Polling { at_once: false };
            follow.end_of_look();
        }
        follow
    }

    pub(super) async fn next(mut self) -> Option<(Result<Event, ClientError>, Self)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some((Ok(event), self));
            }
            match self.end.take() {
                Some(End::Well) => return None,
                Some(End::Badly(error)) => {
                    self.end = Some(End::Well);
                    return Some((Err(error), self));
                }
                None => {}
            }
            let step = match self.source {
                Source::Feed(_) => self.read().await,
                Source::Lost => self.reconnect().await,
                Source::Polling { at_once } => self.poll(at_once).await,
            };
            if let Err(error) = step {
                self.end = Some(End::Badly(error));
            }
        }
    }

    /// The next event of the present connection.
    async fn read(&mut self) -> Result<(), ClientError> {
        let Source::Feed(feed) = &mut self.source else { return Ok(()) };
        let options = self.client.options();
        let next = if self.standing == Standing::Over {
            tokio::time::timeout(LINGER, feed.next()).await.unwrap_or(Ok(None))
        } else if let (Some(after), None, true) = (options.look, options.silence, options.resume) {
            match tokio::time::timeout(after, feed.next()).await {
                Ok(next) => next,
                Err(_) => {
                    self.look().await;
                    return Ok(());
                }
            }
        } else {
            feed.next().await
        };
        match next {
            Ok(Some(event)) => self.accept(event),
            Ok(None) => {
                let quiet = self.silent && self.after.is_some() && self.standing == Standing::Open;
                self.closed(None);
                if quiet {
                    // As a rule nothing came after that event because the task is over.
                    self.look_behind().await;
                }
            }
            // Whatever breaks behind the last event does not matter.
            Err(_) if self.standing == Standing::Over => self.end = Some(End::Well),
            Err(error) if is_loss(&error) => self.closed(Some(error)),
            // Some agents answer a subscription with a stream that holds nothing but a refusal.
            Err(error) if self.resumed && is_refusal(&error) => self.refused(&error),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Asks for a task that says nothing. Only if it is over is that used: events may be on their way.
    async fn look(&mut self) {
        if let Some(task) = self.over().await {
            self.catch_up(task, None);
            self.source = Source::Lost;
            self.end_of_look();
        }
    }

    /// The same where the server says that nothing came after the last event. Of a task whose beginning was not
    /// asked for, only the status is passed on: whoever follows it has the rest.
    async fn look_behind(&mut self) {
        let Some(task) = self.over().await else { return };
        if self.partial {
            let Task { id, context_id, status, .. } = task;
            let update = TaskStatusUpdateEvent { task_id: id, context_id, status, ..Default::default() };
            self.pass_on(vec![Event { seq: None, response: StreamResponse::StatusUpdate(update) }]);
        } else {
            self.catch_up(task, None);
        }
        self.end_of_look();
    }

    /// The task, if it is over.
    async fn over(&self) -> Option<Task> {
        let request = GetTaskRequest { id: self.task.clone()?, ..Default::default() };
        self.client.get(request).await.ok().filter(|task| task.status.state.is_terminal())
    }

    fn accept(&mut self, event: Event) {
        self.silent = false;
        let first = std::mem::take(&mut self.resumed);
        let old = matches!((event.seq, self.after), (Some(seq), Some(after)) if seq <= after);
        let snapshot = matches!(&event.response, StreamResponse::Task(task)
            if first && !(old && self.known.is_ahead_of(task)));
        if old && snapshot {
            // The agent counts anew on every connection.
            self.numbered = false;
        } else if old && !self.is_news(&event.response) {
            return;
        } else if matches!((event.seq, self.last), (Some(seq), Some(last)) if seq <= last && !old) {
            // Not numbers but, say, times, of which two events can have the same.
            self.numbered = false;
        }
        if !self.numbered {
            (self.last, self.after) = (None, None);
        } else if !old {
            self.last = self.last.max(event.seq);
        }
        match event.response {
            StreamResponse::Task(task) if snapshot => self.catch_up(task, event.seq),
            response => {
                // Without a number a snapshot proves nothing: every new connection begins with one.
                if event.seq.is_some() || !matches!(response, StreamResponse::Task(_)) {
                    self.failures = 0;
                }
                if self.client.options().resume {
                    self.known.fold(&response);
                }
                self.pass_on(vec![Event { seq: event.seq.filter(|_| self.numbered), response }]);
            }
        }
    }

    /// News that the task is over is passed on in any case: a server that counts anew on every connection must
    /// not look as if the task went on.
    fn is_news(&self, response: &StreamResponse) -> bool {
        meaning(response).1 == Some(Standing::Over) && self.standing != Standing::Over
    }

    /// Passes on what a look at the whole task adds.
    fn catch_up(&mut self, task: Task, seq: Option<u64>) {
        let missed = self.known.catch_up(task);
        if !missed.is_empty() {
            self.failures = 0;
        }
        let mut events: Vec<Event> = missed.into_iter().map(|response| Event { seq: None, response }).collect();
        if let Some(last) = events.last_mut() {
            last.seq = seq.filter(|_| self.numbered);
        }
        self.pass_on(events);
    }

    fn pass_on(&mut self, events: Vec<Event>) {
        for event in events {
            let (task, standing) = meaning(&event.response);
            if let Some(task) = task.filter(|task| !task.is_empty()) {
                self.task = Some(task.clone());
            }
            if self.standing != Standing::Over {
                self.standing = standing.unwrap_or(self.standing);
            }
            self.ready.push_back(event);
        }
    }

    /// The connection is gone, in good order or with an error.
    fn closed(&mut self, error: Option<ClientError>) {
        let asked = match std::mem::replace(&mut self.source, Source::Lost) {
            Source::Feed(feed) => feed.retry(),
            _ => None,
        };
        let well = match self.standing {
            Standing::Over => true,
            // The answer to a message is complete when the agent waits; whoever follows a task wants to see more.
            Standing::Waiting => error.is_none() || matches!(self.origin, Origin::Send { .. }),
            Standing::Open => false,
        };
        self.gap = Gap { pause: asked.max(error.as_ref().and_then(ClientError::retry_after)), error };
        if well {
            self.end = Some(End::Well);
        } else if !self.client.options().resume {
            self.end = Some(End::Badly(self.give_up()));
        }
    }

    /// One attempt to get a new connection, after a pause.
    async fn reconnect(&mut self) -> Result<(), ClientError> {
        if let Err(cut) = self.pause().await {
            // Some agents only break the connection of whoever follows a task that is over.
            self.look().await;
            return if self.end.is_some() { Ok(()) } else { Err(cut) };
        }
        let attempt = match (&self.task, &self.origin) {
            (Some(task), _) => self.client.open(task, self.last).await,
            (None, Origin::Send { again: Some(again) }) if again.1.may_repeat() => {
                self.client.send_again(&again.0, &again.1).await
            }
            (None, _) => return Err(self.give_up()),
        };
        match attempt {
            Ok(feed) => {
                self.source = Source::Feed(feed);
                self.after = self.last;
                self.silent = true;
                self.resumed = self.task.is_some();
            }
            Err(error) if self.task.is_some() && is_refusal(&error) => self.refused(&error),
            Err(error) => self.missed(error)?,
        }
        Ok(())
    }

    /// The agent does not let the task be followed.
    fn refused(&mut self, error: &ClientError) {
        if self.last.is_some() && error.kind() == Some(ErrorKind::InvalidParams) {
            // It may only be the number that it does not like.
            self.numbered = false;
            (self.last, self.after) = (None, None);
            self.source = Source::Lost;
        } else {
            // As a rule because the task is over by now.
            self.source = Source::Polling { at_once: true };
        }
    }

    /// Asks for the task, and passes on what is new.
    async fn poll(&mut self, at_once: bool) -> Result<(), ClientError> {
        if self.gap.error.is_some() {
            self.pause().await?;
        } else if !at_once {
            tokio::time::sleep(self.client.options().poll).await;
        }
        let Some(id) = self.task.clone() else { return Err(self.give_up()) };
        match self.client.get(GetTaskRequest { id, ..Default::default() }).await {
            Ok(task) => {
                self.source = Source::Polling { at_once: false };
                self.gap = Gap::default();
                self.failures = 0;
                self.catch_up(task, None);
                self.end_of_look();
            }
            Err(error) => self.missed(error)?,
        }
        Ok(())
    }

    /// Whether a look at the task was the last one.
    fn end_of_look(&mut self) {
        let waits = self.standing == Standing::Waiting && matches!(self.origin, Origin::Send { .. });
        if self.standing == Standing::Over || waits {
            self.end = Some(End::Well);
        }
    }

    /// Waits before another attempt, unless there were too many.
    async fn pause(&mut self) -> Result<(), ClientError> {
        let retry = self.client.options().retry;
        if self.failures >= retry.tries {
            return Err(self.give_up());
        }
        tokio::time::sleep(retry.pause(self.failures, self.gap.pause)).await;
        self.failures += 1;
        Ok(())
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

/// Whether a new connection may help.
fn is_loss(error: &ClientError) -> bool {
    error.is_transient() || matches!(error, ClientError::Timeout { .. })
}

/// Whether the agent understood and said no, so that it may well answer another question.
fn is_refusal(error: &ClientError) -> bool {
    match error {
        ClientError::Agent(_) | ClientError::Unsupported { .. } => !error.is_transient(),
        ClientError::Http { status, .. } => matches!(status, 400 | 404 | 405 | 406 | 409 | 410 | 422 | 501),
        _ => false,
    }
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
