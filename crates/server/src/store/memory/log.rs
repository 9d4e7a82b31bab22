//! What the memory store holds, behind its one lock.

use crate::map::{ById, Map};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use nuncio_protocol::{PushId, TaskId};

use super::super::packed::{Found, pack, packed_len};
use super::super::{
    Append, AppendError, Backlog, Claim, Created, IdempotencyKey, Lease, ListPage, ListQuery, LogEvent, Micros,
    NewTask, Node, Older, PushConfig, Scope, Seq, Session, SessionKey, State, StoreError, TaskKey, TaskRow, WAITING,
};
use super::crew::Crew;
use super::shelf::Shelf;

/// A task with all that belongs to it.
pub(super) struct Entry {
    pub(super) row: TaskRow,
    /// The events that it came with, packed.
    first: Bytes,
    /// The others.
    later: Vec<Bytes>,
    pub(super) messages: Vec<(Seq, Bytes)>,
    pub(super) pushes: BTreeMap<PushId, PushConfig>,
    /// Who holds its lease; empty for nobody.
    pub(super) node: Node,
}

impl Entry {
    /// Events after `after`: at most `limit`, not many more than `room` bytes, at least one if there is one.
    pub(super) fn events(&self, after: Seq, limit: usize, room: usize) -> Result<Vec<LogEvent>, StoreError> {
        let mut found = Found::new(after, limit, room);
        let first = self.row.seq - self.later.len() as Seq;
        if after < first {
            found.take(1, self.first.clone(), None).map_err(|error| failed(&error.to_string()))?;
        }
        let skip = usize::try_from(after.saturating_sub(first)).unwrap_or(usize::MAX);
        for (seq, body) in (first + 1..).zip(&self.later).skip(skip) {
            if found.full() {
                break;
            }
            found.add(seq, body.clone());
        }
        Ok(found.events)
    }
}

/// What is kept of all that a new task comes with: its events, packed, and its snapshot, in one piece. Most tasks keep
/// nothing else, and one place for all costs less than many small ones.
pub(super) struct Kept {
    first: Bytes,
    snapshot: Option<(Seq, Bytes)>,
}

impl Kept {
    pub(super) fn of(task: &NewTask) -> Self {
        let bodies = || [&task.body].into_iter().chain(task.early.iter().map(|event| &event.body));
        let (seq, snapshot) = task.snapshot().map_or((0, &[][..]), |(seq, body)| (seq, body));
        let packed = bodies().map(|body| packed_len(body)).sum();
        let mut piece = Vec::with_capacity(packed + snapshot.len());
        bodies().for_each(|body| pack(&mut piece, body, None));
        piece.extend_from_slice(snapshot);
        let mut first = Bytes::from(piece);
        let behind = first.split_off(packed);
        Self { first, snapshot: (seq > 0).then_some((seq, behind)) }
    }
}

/// Where a caller's key was used, and when.
type KeyUse = (TaskKey, Seq, Micros);

/// Every task, and the orders in which tasks are looked for.
#[derive(Default)]
pub(super) struct Log {
    pub(super) closed: bool,
    last_key: i64,
    /// Boxed, so that little moves when it grows.
    pub(super) tasks: BTreeMap<TaskKey, Box<Entry>>,
    /// By tenant and id; the owner is compared afterwards.
    ids: Map<Arc<str>, ById<TaskKey>>,
    shelves: Map<Scope, Shelf>,
    /// Submitted and working tasks, oldest first.
    pub(super) active: BTreeSet<(Micros, TaskKey)>,
    /// Webhooks that wait, the longest waiting first.
    pub(super) due: BTreeSet<(Micros, TaskKey, PushId)>,
    keys: Map<Scope, ById<KeyUse>>,
    keys_by_age: BTreeSet<(Micros, Scope, Arc<str>)>,
    /// What agents remember, and when each was last used.
    pub(super) sessions: Map<SessionKey, (Session, Micros)>,
    /// What servers have in common, where several share the store.
    pub(super) crew: Option<Crew>,
}

impl Log {
    pub(super) fn open(&self) -> Result<(), StoreError> {
        if self.closed { Err(StoreError::Closed) } else { Ok(()) }
    }

    pub(super) fn create(&mut self, task: NewTask, kept: Kept) -> Result<Created, StoreError> {
        if let Some(key) = &task.key
            && let Some((known, seq)) = self.find_key(&task.scope, key)
        {
            return Ok(Created::Known(known, seq));
        }
        let ids = self.ids.entry(task.scope.tenant.clone()).or_default();
        let key = TaskKey(self.last_key + 1);
        if ids.add(task.id.as_str(), key).is_some() {
            return Err(failed("the task id exists"));
        }
        self.last_key = key.0;
        let (state, updated) = task.present();
        let Kept { first, snapshot } = kept;
        let seq = task.seq();
        let mut node = task.lease.node;
        let hopes = !node.is_empty() && !state.is_final();
        let waits = hopes && self.is_context_taken(&task.scope, &task.context_id, key);
        if self.crew.is_some() && (waits || state.is_final()) {
            node = "".into();
        }
        let row = TaskRow {
            key,
            scope: task.scope,
            id: task.id,
            context_id: task.context_id,
            agent: task.agent,
            state,
            seq,
            epoch: 1,
            leased: !node.is_empty(),
            writer: None,
            attempts: 0,
            snapshot_seq: snapshot.as_ref().map_or(0, |(seq, _)| *seq),
            snapshot: snapshot.map(|(_, body)| body),
            created: task.at,
            updated,
        };
        if let Some(used) = task.key {
            self.remember(&row.scope, used.key, (key, 1, task.at));
        }
        self.shelves.entry(row.scope.clone()).or_default().insert(&row);
        if row.state.is_active() {
            self.active.insert((row.created, key));
        }
        let (later, messages, pushes) = (Vec::new(), Vec::new(), BTreeMap::new());
        let entry = Entry { row, first, later, messages, pushes, node: node.clone() };
        self.tasks.insert(key, Box::new(entry));
        if self.crew.is_some() {
            self.set_lease(key, node);
        }
        if let Some(push) = task.push {
            self.put_push(key, push)?;
        }
        Ok(if waits { Created::Waiting(key) } else { Created::New(key) })
    }

    pub(super) fn append(&mut self, append: Append) -> Result<(), AppendError> {
        self.open()?;
        let entry = self.tasks.get(&append.task).ok_or(AppendError::Fenced)?;
        if entry.row.epoch != append.epoch || entry.row.seq + 1 != append.seq {
            return Err(AppendError::Fenced);
        }
        let scope = entry.row.scope.clone();
        if append.key.as_ref().is_some_and(|used| self.find_key(&scope, used).is_some()) {
            return Err(AppendError::KeyUsed);
        }
        if let Some((letter, crew)) = append.letter.zip(self.crew.as_mut()) {
            crew.take(letter, append.seq)?;
        }
        if let Some(used) = append.key {
            self.remember(&scope, used.key, (append.task, append.seq, append.at));
        }
        if let Some(state) = append.state {
            self.change_state(append.task, state, append.at);
        }
        let Some(entry) = self.tasks.get_mut(&append.task) else {
            return Err(AppendError::Fenced);
        };
        entry.row.seq = append.seq;
        entry.later.push(append.body);
        if let Some(snapshot) = append.snapshot {
            entry.row.snapshot = Some(snapshot);
            entry.row.snapshot_seq = append.seq;
        }
        if let Some(message) = append.message {
            entry.messages.push((append.seq, message));
        }
        Ok(())
    }

    fn change_state(&mut self, key: TaskKey, state: State, at: Micros) {
        let Some(row) = self.tasks.get_mut(&key).map(|entry| &mut entry.row) else {
            return;
        };
        let shelf = self.shelves.entry(row.scope.clone()).or_default();
        shelf.remove(row);
        row.state = state;
        row.updated = at;
        shelf.insert(row);
        if state.is_active() {
            self.active.insert((row.created, key));
        } else {
            self.active.remove(&(row.created, key));
        }
        if state.is_final() && self.crew.is_some() {
            self.set_lease(key, "".into());
        }
    }

    pub(super) fn claim(&mut self, key: TaskKey, epoch: i64, lease: Lease, retry: bool) -> Claim {
        if self.tasks.get(&key).is_none_or(|entry| entry.row.epoch != epoch) {
            return Claim::Lost;
        }
        if self.is_claim_busy(key, &lease.node) {
            return Claim::Busy;
        }
        let Some(row) = self.tasks.get_mut(&key).map(|entry| &mut entry.row) else { return Claim::Lost };
        row.epoch += 1;
        row.attempts = if retry { row.attempts + 1 } else { 0 };
        self.set_lease(key, lease.node);
        self.tasks.get(&key).map_or(Claim::Lost, |entry| Claim::Taken(Box::new(self.shown(entry))))
    }

    /// A task as it is told to whoever asks.
    pub(super) fn shown(&self, entry: &Entry) -> TaskRow {
        let writer = self.crew.as_ref().and_then(|crew| crew.writer(&entry.node));
        TaskRow { writer, ..entry.row.clone() }
    }

    pub(super) fn abandoned(&self, node: &str, limit: usize) -> Vec<TaskRow> {
        let entries = self.active.iter().filter_map(|(_, key)| Some(&**self.tasks.get(key)?));
        if self.crew.is_some() {
            return self.startable(entries, limit);
        }
        entries.filter(|entry| &*entry.node != node).take(limit).map(|entry| entry.row.clone()).collect()
    }

    pub(super) fn task(&self, scope: &Scope, id: &TaskId) -> Option<TaskRow> {
        let key = self.ids.get(&scope.tenant)?.get(id.as_str())?;
        self.tasks.get(key).filter(|entry| entry.row.scope == *scope).map(|entry| self.shown(entry))
    }

    pub(super) fn list(&self, query: &ListQuery) -> ListPage {
        let Some(shelf) = self.shelves.get(&query.scope) else {
            return ListPage::default();
        };
        let (keys, total) = shelf.page(query, |key| self.tasks.get(&key).map(|entry| &entry.row));
        let rows = keys.iter().filter_map(|key| self.tasks.get(key));
        ListPage::of(rows.map(|entry| self.shown(entry)), total, query)
    }

    /// A key whose task is gone counts as never used.
    pub(super) fn find_key(&self, scope: &Scope, key: &IdempotencyKey) -> Option<(TaskKey, Seq)> {
        let (task, seq, at) = *self.keys.get(scope)?.get(&key.key)?;
        (at >= key.since && self.tasks.contains_key(&task)).then_some((task, seq))
    }

    fn remember(&mut self, scope: &Scope, key: Arc<str>, used: KeyUse) {
        let keys = self.keys.entry(scope.clone()).or_default();
        if let Some((_, _, at)) = keys.insert(&key, used) {
            self.keys_by_age.remove(&(at, scope.clone(), key.clone()));
        }
        self.keys_by_age.insert((used.2, scope.clone(), key));
    }

    pub(super) fn put_push(&mut self, task: TaskKey, config: PushConfig) -> Result<(), StoreError> {
        let Some(entry) = self.tasks.get_mut(&task) else {
            return Err(failed("the task does not exist"));
        };
        let (id, due) = (config.id.clone(), config.due);
        let epoch = entry.pushes.get(&id).map_or(config.epoch, |old| config.epoch.max(old.epoch + 1));
        // Who has it in hand counts only where servers share the store.
        let node = config.node.filter(|_| self.crew.is_some());
        let old = entry.pushes.insert(id.clone(), PushConfig { epoch, node, ..config }).and_then(|old| old.due);
        self.reschedule(task, id, old, due);
        Ok(())
    }

    pub(super) fn delete_push(&mut self, task: TaskKey, id: &PushId) -> bool {
        let Some(old) = self.tasks.get_mut(&task).and_then(|entry| entry.pushes.remove(id)) else {
            return false;
        };
        self.reschedule(task, id.clone(), old.due, None);
        true
    }

    pub(super) fn advance_push(&mut self, task: TaskKey, config: PushConfig) -> bool {
        let counts = |push: &&mut PushConfig| push.acked <= config.acked && push.epoch == config.epoch;
        let entry = self.tasks.get_mut(&task);
        let Some(push) = entry.and_then(|entry| entry.pushes.get_mut(&config.id)).filter(counts) else {
            return false;
        };
        let (old, body, version, node) = (push.due, push.body.clone(), push.version.clone(), push.node.clone());
        let (id, due) = (config.id.clone(), config.due);
        *push = PushConfig { body, version, node, ..config };
        self.reschedule(task, id, old, due);
        true
    }

    pub(super) fn wake_pushes(&mut self, now: Micros) -> usize {
        let waiting: Vec<_> = self.due.iter().rev().take_while(|(due, ..)| *due == WAITING).cloned().collect();
        for (_, task, id) in &waiting {
            if let Some(push) = self.tasks.get_mut(task).and_then(|entry| entry.pushes.get_mut(id)) {
                push.due = Some(now);
            }
            self.reschedule(*task, id.clone(), Some(WAITING), Some(now));
        }
        waiting.len()
    }

    pub(super) fn replay_push(&mut self, task: TaskKey, id: &PushId, now: Micros) -> bool {
        let push = self.tasks.get_mut(&task).and_then(|entry| entry.pushes.get_mut(id));
        let Some((push, dead)) = push.and_then(|push| push.dead.take().map(|dead| (push, dead))) else {
            return false;
        };
        let old = push.due.replace(now);
        push.acked = push.acked.min(dead.from.saturating_sub(1));
        (push.attempts, push.since, push.told) = (0, None, None);
        push.epoch += 1;
        self.reschedule(task, id.clone(), old, Some(now));
        true
    }

    pub(super) fn push_backlog(&self) -> Backlog {
        let mut backlog = Backlog::default();
        for push in self.tasks.values().flat_map(|entry| entry.pushes.values()) {
            if push.due.is_some_and(|due| due < WAITING) {
                backlog.pending += 1;
                backlog.oldest = [backlog.oldest, push.since].into_iter().flatten().min();
            }
            backlog.dead += push.dead.map_or(0, |dead| dead.count);
        }
        backlog
    }

    pub(super) fn reschedule(&mut self, task: TaskKey, id: PushId, old: Option<Micros>, due: Option<Micros>) {
        if let Some(at) = old {
            self.due.remove(&(at, task, id.clone()));
        }
        if let Some(at) = due {
            self.due.insert((at, task, id));
        }
    }

    pub(super) fn due_pushes(&self, node: &str, now: Micros, limit: usize) -> Vec<(TaskKey, PushConfig)> {
        let waiting = self.due.iter().take_while(|(due, ..)| *due <= now);
        let config = |task, id| self.tasks.get(task)?.pushes.get(id);
        let found = waiting.filter_map(|(_, task, id)| Some((*task, config(task, id)?)));
        let own = |push: &PushConfig| self.crew.is_none() || push.node.as_deref() == Some(node);
        found.filter(|(_, push)| own(push)).take(limit).map(|(task, push)| (task, push.clone())).collect()
    }

    pub(super) fn trim(&mut self, than: &Older, limit: usize) -> usize {
        let before = than.before;
        let held = |entry: &Entry| self.crew.is_some() && !entry.node.is_empty();
        let takes = |entry: &Entry| than.takes(entry.row.state, entry.row.key) && !held(entry);
        let old = self.shelves.values().flat_map(|shelf| shelf.before(before));
        let keys: Vec<_> =
            old.filter(|key| self.tasks.get(key).is_some_and(|entry| takes(entry))).take(limit).collect();
        for key in &keys {
            self.remove(*key);
        }
        while self.keys_by_age.first().is_some_and(|(at, ..)| *at < than.keys) {
            let Some((_, scope, key)) = self.keys_by_age.pop_first() else {
                break;
            };
            if let Some(keys) = self.keys.get_mut(&scope) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.keys.remove(&scope);
                }
            }
        }
        // Where more tasks are to go, their conversations are looked at afterwards.
        if keys.len() < limit {
            let Self { sessions, shelves, tasks, .. } = self;
            let row = |key| tasks.get(&key).map(|entry| &entry.row);
            let has_task = |key: &SessionKey| shelves.get(&key.scope).is_some_and(|of| of.has(&key.context_id, row));
            sessions.retain(|key, (_, at)| *at >= before || has_task(key));
        }
        keys.len()
    }

    fn remove(&mut self, key: TaskKey) {
        let Some(entry) = self.tasks.remove(&key) else {
            return;
        };
        if let Some(ids) = self.ids.get_mut(&entry.row.scope.tenant) {
            ids.remove(entry.row.id.as_str());
            if ids.is_empty() {
                self.ids.remove(&entry.row.scope.tenant);
            }
        }
        if let Some(shelf) = self.shelves.get_mut(&entry.row.scope) {
            shelf.remove(&entry.row);
            if shelf.is_empty() {
                self.shelves.remove(&entry.row.scope);
            }
        }
        if let Some(crew) = &mut self.crew {
            crew.forget(&entry.row);
        }
        for push in entry.pushes.into_values() {
            self.reschedule(key, push.id, push.due, None);
        }
    }
}

fn failed(what: &str) -> StoreError {
    StoreError::Failed { at: "memory".into(), what: what.into() }
}
