//! Reading tasks: one, or a page of them.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::{
    Error, ListTasksRequest, ListTasksResponse, StreamResponse, Task, TaskId, TaskState, Timestamp, codec,
};

use super::fold::{Fold, trim_history};
use super::live::Live;
use super::{Engine, append_error, store_error};
use crate::call::Call;
use crate::store::{ListCursor, ListQuery, LogEvent, Scope, Seq, State, StoreError, TaskKey, TaskRow};

/// How many events are read from the log at once.
const PAGE: usize = 512;
const PAGE_BYTES: usize = 4 << 20;
/// A page of tasks ends with the one that exceeds this, so that its length in memory does not depend on what they hold.
const LIST_BYTES: usize = 8 << 20;

/// A task as the JSON that is stored and sent.
#[derive(Clone, Debug)]
pub struct TaskJson(pub Bytes);

impl TaskJson {
    /// With at most so many messages of history.
    pub fn with_history(self, most: Option<i32>) -> Result<Self, Error> {
        if most.is_none() {
            return Ok(self);
        }
        let mut task = self.task()?;
        trim_history(&mut task, most);
        Ok(Self(codec::encode(&task)))
    }

    /// As a tree.
    pub fn task(&self) -> Result<Task, Error> {
        read_stored(&self.0)
    }
}

fn read_stored<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Result<T, Error> {
    codec::decode(json).map_err(|error| {
        tracing::error!(%error, "something stored cannot be read");
        Error::internal()
    })
}

/// Some events of a task, in order.
pub(crate) struct EventPage {
    pub(crate) events: Vec<LogEvent>,
    /// Whether there were more.
    pub(crate) more: bool,
}

impl Engine {
    /// The durable events of a task after this one, as many as fit a page, without waiting for any.
    pub(crate) async fn events_after(&self, scope: &Scope, id: &TaskId, after: Seq) -> Result<EventPage, Error> {
        let row = self.find(scope, id).await?;
        // Nothing yet. A store is not asked for numbers beyond what it can hold.
        if after >= row.seq {
            return Ok(EventPage { events: Vec::new(), more: false });
        }
        let events = self.store.events(row.key, after, PAGE, PAGE_BYTES).await.map_err(|error| store_error(&error))?;
        let more = events.last().is_some_and(|last| last.seq < row.seq);
        Ok(EventPage { events, more })
    }

    /// One task of the caller.
    pub async fn get(&self, call: &Call, id: &TaskId) -> Result<TaskJson, Error> {
        let row = self.find(&call.scope, id).await?;
        self.row_json(&row).await
    }

    /// A page of the caller's tasks, newest status first.
    pub async fn list(&self, call: &Call, request: &ListTasksRequest) -> Result<ListTasksResponse, Error> {
        Error::check(request.violations())?;
        self.check_tenant(&call.scope)?;
        let page_size = request.page_size.unwrap_or(ListTasksRequest::DEFAULT_PAGE);
        let query = ListQuery {
            scope: call.scope.clone(),
            context_id: (!request.context_id.is_empty()).then(|| request.context_id.clone()),
            state: (request.status != TaskState::Unspecified).then(|| State(request.status.number())),
            since: request.status_timestamp_after.map(Timestamp::as_micros_up),
            after: parse_token(&request.page_token)?,
            limit: usize::try_from(page_size).unwrap_or_default(),
            bytes: LIST_BYTES,
        };
        let page = self.store.list(query).await.map_err(|error| store_error(&error))?;
        let (mut tasks, mut bytes) = (Vec::with_capacity(page.tasks.len()), 0);
        let (mut more, mut token) = (page.more, String::new());
        for row in page.tasks {
            if bytes > LIST_BYTES {
                more = true;
                break;
            }
            let json = self.row_json(&row).await?;
            bytes += json.0.len();
            token = format!("{}.{}", row.updated, row.id);
            let mut task = json.task()?;
            // It may have moved on since the page was read.
            if request.status != TaskState::Unspecified && request.status != task.status.state {
                continue;
            }
            trim_history(&mut task, request.history_length);
            if request.include_artifacts != Some(true) {
                task.artifacts.clear();
            }
            tasks.push(task);
        }
        tasks.sort_by_key(|task| std::cmp::Reverse(task.status.timestamp));
        let total_size = i32::try_from(page.total).unwrap_or(i32::MAX);
        let next_page_token = if more { token } else { String::new() };
        Ok(ListTasksResponse { tasks, next_page_token, page_size, total_size })
    }

    /// A task with everything, for agents that refer to it.
    pub(crate) async fn whole_task(&self, scope: &Scope, id: &TaskId) -> Result<Task, Error> {
        let row = self.find(scope, id).await?;
        self.row_json(&row).await?.task()
    }

    /// The same, with the store's number for it.
    pub(crate) async fn known_task(&self, scope: &Scope, id: &TaskId) -> Result<(TaskKey, Task), Error> {
        let row = self.find(scope, id).await?;
        Ok((row.key, self.row_json(&row).await?.task()?))
    }

    async fn row_json(&self, row: &TaskRow) -> Result<TaskJson, Error> {
        if let Some(live) = self.hub.get(row.key)
            && live.loaded.initialized()
            && !live.is_lost()
            // Another node may have written since.
            && live.committed().0 >= row.seq
        {
            match self.current(&live).await {
                // Another node has just taken it over: what is stored counts.
                Err(_) if self.is_shared() => {}
                task => return task,
            }
        }
        match &row.snapshot {
            Some(snapshot) if row.snapshot_seq == row.seq => Ok(TaskJson(snapshot.clone())),
            _ => {
                let (fold, _) = self.fold(row).await.map_err(|error| store_error(&error))?;
                Ok(TaskJson(codec::encode(fold.task())))
            }
        }
    }

    /// The task in memory, shown only once all of it is durable.
    pub(super) async fn current(&self, live: &Arc<Live>) -> Result<TaskJson, Error> {
        if let Some((_, snapshot)) = live.snapshot() {
            return Ok(TaskJson(snapshot));
        }
        let (json, seq) = live.read(codec::encode);
        live.durable(seq).await.map_err(|error| append_error(&error))?;
        Ok(TaskJson(json))
    }

    /// Fills a task in memory from the log.
    pub(super) async fn fill(&self, live: &Arc<Live>) -> Result<(), StoreError> {
        let row = self.store.task_by_key(live.key()).await?.ok_or(StoreError::Closed)?;
        let (fold, seq) = self.fold(&row).await?;
        live.fill(fold, &row, seq);
        // Who puts a webhook here later finds this task in memory, and arms it.
        if self.push.is_some() && self.store.pushes(live.key()).await?.iter().any(|push| push.due.is_some()) {
            live.ringer.arm();
        }
        Ok(())
    }

    /// A task as it was when it had so many events.
    pub(super) async fn task_at(&self, live: &Live, seq: Seq) -> Result<Fold, Error> {
        let row = self.store.task_by_key(live.key()).await.map_err(|error| store_error(&error))?;
        let mut row = row.ok_or_else(|| Error::task_not_found(live.id.as_str()))?;
        row.seq = seq;
        if row.snapshot_seq > seq {
            (row.snapshot, row.snapshot_seq) = (None, 0);
        }
        self.fold(&row).await.map(|(fold, _)| fold).map_err(|error| store_error(&error))
    }

    /// The sum of a task's events, from its last snapshot on.
    pub(super) async fn fold(&self, row: &TaskRow) -> Result<(Fold, Seq), StoreError> {
        let unreadable = |what: String| StoreError::Corrupt { at: format!("task {}", row.id), what };
        let (mut fold, mut seq) = match &row.snapshot {
            Some(snapshot) => {
                let task = codec::decode(snapshot).map_err(|error| unreadable(error.to_string()))?;
                (Fold::new(task), row.snapshot_seq)
            }
            None => (Fold::default(), 0),
        };
        let said = if seq < row.seq { self.store.messages(row.key).await? } else { Vec::new() };
        let mut said = said.into_iter().filter(|(at, _)| *at > row.snapshot_seq).peekable();
        while seq < row.seq {
            let events = self.store.events(row.key, seq, PAGE, PAGE_BYTES).await?;
            if events.is_empty() {
                break;
            }
            // What came after the row was read may have come with a message that was not.
            for event in events.into_iter().take_while(|event| event.seq <= row.seq) {
                let change: StreamResponse =
                    codec::decode(&event.body).map_err(|error| unreadable(error.to_string()))?;
                fold.apply(change);
                seq = event.seq;
                while let Some((_, message)) = said.next_if(|(at, _)| *at == seq) {
                    fold.say(codec::decode(&message).map_err(|error| unreadable(error.to_string()))?);
                }
            }
        }
        Ok((fold, seq))
    }
}

fn parse_token(token: &str) -> Result<Option<ListCursor>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    let bad = || Error::invalid("pageToken", "is not one that this server made");
    let (updated, id) = token.split_once('.').ok_or_else(bad)?;
    let updated = updated.parse().map_err(|_| bad())?;
    Ok(Some(ListCursor { updated, id: id.into() }))
}
