//! The log: a task is an append-only list of events numbered 1, 2, 3, …
//!
//! ```text
//!   task T   ┌───┬───┬───┬───┬───┬───┐
//!            │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ ◀── append (epoch 2)
//!            └───┴───┴───┴───┴───┴───┘
//!              ▲       ▲           ▲
//!              │       │           └── seq: the last durable number
//!              │       └── snapshot_seq: the task as it was here is stored in one piece
//!              └── always the submitted task itself
//! ```
//!
//! Four promises, kept by every implementation and checked by `suite`:
//!
//! 1. When an append is acknowledged, that event and every earlier one are durable.
//! 2. The numbers of a task are 1, 2, 3, … without gaps.
//! 3. One writer per task: an append under an old lease epoch changes nothing and says so.
//! 4. The cost of an event does not grow with the task, its artifacts or its readers.
//!
//! A store knows nothing of A2A beyond the numbers of task states; bodies are opaque bytes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use nuncio_protocol::{ContextId, PushId, TaskId};

mod finished;
pub mod memory;
pub mod operator;
mod packed;
pub mod postgres;
pub mod sqlite;
#[cfg(any(test, feature = "test-util"))]
pub mod suite;

pub use memory::MemoryStore;
pub use postgres::{PostgresOptions, PostgresStore};
pub use sqlite::{Durability, OnCommit, SqliteOptions, SqliteStore};

/// The number of an event inside its task, from 1. Zero means "before the first".
pub type Seq = u64;

/// Microseconds since 1970.
pub type Micros = i64;

/// The store's own number for a task, handed out when the task is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(pub i64);

/// Whose tasks: part of every lookup, so that a foreign task and a missing one are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The tenant, empty for the default one.
    pub tenant: Arc<str>,
    /// The authenticated caller, empty when nothing is protected.
    pub owner: Arc<str>,
}

/// One state of a task, by its number in the protocol, and the groups that the store must tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State(pub u8);

impl TaskKey {
    /// The number of no task.
    pub(crate) const NONE: Self = Self(0);
}

impl State {
    /// Submitted or working: somebody must be writing, and a lease says who.
    pub fn is_active(self) -> bool {
        matches!(self.0, 1 | 2)
    }

    /// Input or authentication required: it goes on when somebody says more.
    pub fn is_at_rest(self) -> bool {
        matches!(self.0, 6 | 8)
    }

    /// Completed, failed, canceled or rejected: no event follows.
    pub fn is_final(self) -> bool {
        matches!(self.0, 3 | 4 | 5 | 7)
    }
}

/// An event as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// Its number.
    pub seq: Seq,
    /// The encoded event.
    pub body: Bytes,
}

/// What is known of a task without reading its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// The store's number for it.
    pub key: TaskKey,
    /// Tenant and caller it belongs to.
    pub scope: Scope,
    /// Its id on the wire.
    pub id: TaskId,
    /// The conversation it belongs to.
    pub context_id: ContextId,
    /// Which of the served agents works on it.
    pub agent: Arc<str>,
    /// Its present state.
    pub state: State,
    /// The number of its last event.
    pub seq: Seq,
    /// Raised by every claim; only appends that carry it count.
    pub epoch: i64,
    /// Whether a node holds its lease; a task that found no room waits without one.
    pub leased: bool,
    /// The node that holds its lease and is alive, where servers share the store.
    pub writer: Option<Node>,
    /// How often its present turn was started again after a crash.
    pub attempts: u32,
    /// The whole task as it was at [`TaskRow::snapshot_seq`], if it was stored.
    pub snapshot: Option<Bytes>,
    /// The event that the snapshot includes last; zero without one.
    pub snapshot_seq: Seq,
    /// When it was created.
    pub created: Micros,
    /// When its state last changed.
    pub updated: Micros,
}

/// A server process, for as long as it lives.
pub type Node = Arc<str>;

/// Who may write to a task. It holds for as long as the node is alive ([`Shared::beat`]), and ends with the task, a
/// [`Shared::release`] or the claim of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The process that writes; empty for nobody.
    pub node: Node,
}

/// What makes a repeated request recognisable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The caller's key; unique per tenant and caller.
    pub key: Arc<str>,
    /// Keys used before this moment are forgotten.
    pub since: Micros,
}

/// A task to create, with its first events, in one transaction.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Tenant and caller.
    pub scope: Scope,
    /// Its id; fresh.
    pub id: TaskId,
    /// Its conversation.
    pub context_id: ContextId,
    /// Which agent is to work on it.
    pub agent: Arc<str>,
    /// The state that the first event says.
    pub state: State,
    /// Event 1.
    pub body: Bytes,
    /// When.
    pub at: Micros,
    /// Who will write; the epoch of a new task is 1.
    pub lease: Lease,
    /// Makes a retry return the first task.
    pub key: Option<IdempotencyKey>,
    /// A webhook to register in the same transaction, so that it misses nothing.
    pub push: Option<PushConfig>,
    /// What has happened to it already: event 2 and on.
    pub early: Vec<Early>,
}

/// An event of a task that is not stored yet.
#[derive(Clone, Debug)]
pub struct Early {
    /// The encoded event.
    pub body: Bytes,
    /// When it happened.
    pub at: Micros,
    /// The state that the task is in from here on, if this event says so.
    pub state: Option<State>,
    /// The whole task including this event, where a turn ends or rests.
    pub snapshot: Option<Bytes>,
}

impl NewTask {
    /// The number of its last event.
    pub(crate) fn seq(&self) -> Seq {
        1 + self.early.len() as Seq
    }

    /// The state in which its events leave it, and since when.
    pub(crate) fn present(&self) -> (State, Micros) {
        let last = self.early.iter().rev().find_map(|event| Some((event.state?, event.at)));
        last.unwrap_or((self.state, self.at))
    }

    /// The last of the snapshots, and the event that it includes last.
    pub(crate) fn snapshot(&self) -> Option<(Seq, &Bytes)> {
        (2..).zip(&self.early).filter_map(|(seq, event)| Some((seq, event.snapshot.as_ref()?))).last()
    }
}

/// What became of a [`NewTask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// The task exists now and the events that it came with are durable.
    New(TaskKey),
    /// The same, but without the lease: another node runs a turn of the same context.
    Waiting(TaskKey),
    /// The same caller used the same key before: this task, and the event that its message brought.
    Known(TaskKey, Seq),
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The node holds the lease now; the task as it is.
    Taken(Box<TaskRow>),
    /// Somebody else was first, or the task is gone.
    Lost,
    /// The epoch is right, but a node that is alive writes this task, or runs another turn of its context. Nothing has
    /// changed. Only where servers share the store.
    Busy,
}

impl Claim {
    /// The task, if the claim was good.
    pub fn taken(self) -> Option<TaskRow> {
        match self {
            Self::Taken(row) => Some(*row),
            Self::Lost | Self::Busy => None,
        }
    }
}

/// One event to append.
///
/// Appends of one task are made in the order of their numbers; stores may write many at once.
pub struct Append {
    /// The task.
    pub task: TaskKey,
    /// The epoch under which the writer holds the lease.
    pub epoch: i64,
    /// The event's number: one above the last.
    pub seq: Seq,
    /// The encoded event.
    pub body: Bytes,
    /// When it happened.
    pub at: Micros,
    /// The state that the task is in from here on, if this event says so.
    pub state: Option<State>,
    /// The whole task including this event, where a turn ends or rests.
    pub snapshot: Option<Bytes>,
    /// The caller's message that arrived with this event.
    pub message: Option<Bytes>,
    /// The key under which that message came, and whose it is.
    pub key: Option<IdempotencyKey>,
    /// The letter that brought that message: taken with this event, or not at all.
    pub letter: Option<LetterId>,
    /// Told when the event is durable or refused.
    pub ack: Arc<dyn Acknowledge>,
}

/// Hears what became of appends. Called from the store's own thread: it must be quick and must not block.
pub trait Acknowledge: Send + Sync {
    /// Every event of the task up to `seq` is durable.
    fn committed(&self, seq: Seq);
    /// The event `seq` and all later ones that were handed over changed nothing.
    fn refused(&self, seq: Seq, why: AppendError);
}

/// Why an append changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Another writer holds a newer lease, or the number is not the next one.
    #[error("another writer has taken over this task")]
    Fenced,
    /// The same key was used before by this caller.
    #[error("the idempotency key was used before")]
    KeyUsed,
    /// The letter was recalled before it was taken.
    #[error("the sender has taken the message back")]
    Recalled,
    /// The store could not write.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Which tasks to list; all conditions must hold.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// Whose tasks.
    pub scope: Scope,
    /// Only of this conversation.
    pub context_id: Option<ContextId>,
    /// Only in this state.
    pub state: Option<State>,
    /// Only tasks whose state changed at this moment or later.
    pub since: Option<Micros>,
    /// Continue below this task (exclusive).
    pub after: Option<ListCursor>,
    /// At most so many.
    pub limit: usize,
    /// None more after snapshots of more bytes than this: a page may be shorter than `limit`, but is never empty for it.
    pub bytes: usize,
}

/// A place in the listing order: newest state change first, then the larger id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListCursor {
    /// [`TaskRow::updated`] of the last task seen.
    pub updated: Micros,
    /// Its id.
    pub id: TaskId,
}

/// A page of tasks.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// The tasks, with their snapshots.
    pub tasks: Vec<TaskRow>,
    /// How many match on all pages together.
    pub total: u64,
    /// Whether more follow.
    pub more: bool,
}

impl ListPage {
    /// The page that begins with these tasks, which are in order.
    pub(crate) fn of(rows: impl IntoIterator<Item = TaskRow>, total: u64, query: &ListQuery) -> Self {
        let mut page = Self { total, ..Self::default() };
        let mut bytes = 0;
        for row in rows {
            if page.tasks.len() >= query.limit || bytes > query.bytes {
                page.more = true;
                break;
            }
            bytes += row.snapshot.as_ref().map_or(0, Bytes::len);
            page.tasks.push(row);
        }
        page
    }
}

/// A webhook of a task and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushConfig {
    /// Its id inside the task.
    pub id: PushId,
    /// The configuration as the caller gave it, secrets sealed by the layer above.
    pub body: Bytes,
    /// The protocol version it was registered in, and thus the one it is delivered in.
    pub version: Arc<str>,
    /// The last event that the receiver has taken.
    pub acked: Seq,
    /// Failed attempts since then.
    pub attempts: u32,
    /// When to try next: [`WAITING`] until the task goes on, `None` when there is nothing more to do.
    pub due: Option<Micros>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// Raised by the store when the webhook is replaced or replayed; only reports that carry it count.
    pub epoch: i64,
    /// Since when attempts fail.
    pub since: Option<Micros>,
    /// The state that the receiver was told last.
    pub told: Option<State>,
    /// What was given up.
    pub dead: Option<Dead>,
    /// The node that has it in hand, where servers share the store.
    pub node: Option<Node>,
}

/// When a webhook is due that has everything there is: whenever its task goes on.
pub const WAITING: Micros = Micros::MAX;

/// The events that a webhook did not get. They are still in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dead {
    /// The first of them.
    pub from: Seq,
    /// How many.
    pub count: u64,
    /// When the last one was given up.
    pub at: Micros,
}

/// What all webhooks together wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Webhooks with something to deliver or to try again.
    pub pending: u64,
    /// Since when the one that fails longest fails.
    pub oldest: Option<Micros>,
    /// Events given up, of all webhooks.
    pub dead: u64,
}

/// Whose memory of which conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// Tenant and caller.
    pub scope: Scope,
    /// The conversation.
    pub context_id: ContextId,
    /// Which of the served agents.
    pub agent: Arc<str>,
}

/// What an agent remembers of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The agent's own name for it.
    pub native: Option<String>,
    /// The folder that it works in.
    pub workspace: Option<String>,
}

/// A message for a task whose turn another node runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The encoded message.
    pub message: Bytes,
    /// Makes a retry return what the first one brought.
    pub key: Option<IdempotencyKey>,
    /// When it was sent.
    pub at: Micros,
}

/// The store's own number for a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LetterId(pub i64);

/// What a node is asked to do with a task that it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// End it.
    Cancel(TaskKey),
    /// Hand this to its turn.
    Deliver(TaskKey, LetterId, Letter),
}

/// What became of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// Nobody has taken it.
    Waits,
    /// It came with this event.
    Taken(Seq),
    /// It is not there any more.
    Gone,
}

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which.
    pub task: TaskKey,
    /// Under which lease.
    pub epoch: i64,
    /// Its last event.
    pub seq: Seq,
    /// Its state.
    pub state: State,
    /// Whether the node that holds its lease is alive.
    pub alive: bool,
}

/// What servers that share a store have in common. All times are told by the store's own clock.
///
/// A lease holds as long as its node is alive, whatever the task's state: a turn that waits for an answer keeps it. It
/// ends when the task is over, when it is released, or when the node is not alive any more.
#[async_trait]
pub trait Shared: Send + Sync {
    /// What tells this store from all others, for names elsewhere.
    fn name(&self) -> &str;

    /// The node is alive for `ttl` from now on. False when it was not alive any more, or not known: others may have
    /// taken over what it held.
    async fn beat(&self, node: &Node, ttl: Duration) -> Result<bool, StoreError>;

    /// The node ends: what it holds is abandoned at once.
    async fn leave(&self, node: &Node) -> Result<(), StoreError>;

    /// What time it is for the store.
    async fn clock(&self) -> Result<Micros, StoreError>;

    /// The nodes that are alive.
    async fn nodes(&self) -> Result<Vec<Node>, StoreError>;

    /// The turn that held the lease under this epoch is over, and the task rests.
    async fn release(&self, task: TaskKey, epoch: i64) -> Result<(), StoreError>;

    /// The tasks whose lease `node` holds, each with its epoch.
    async fn held(&self, node: &Node) -> Result<Vec<(TaskKey, i64)>, StoreError>;

    /// How far these tasks have come; those that are gone are missing.
    async fn progress(&self, tasks: &[TaskKey]) -> Result<Vec<Progress>, StoreError>;

    /// What is asked of the tasks whose lease `node` holds. A cancellation is told until the task is over, a letter until
    /// it is taken or recalled.
    async fn orders(&self, node: &Node) -> Result<Vec<Order>, StoreError>;

    /// Asks whoever writes this task, now or after a takeover, to end it. See [`Shared::is_cancel_asked`].
    async fn ask_cancel(&self, task: TaskKey) -> Result<(), StoreError>;

    /// Whether somebody has asked to end this task.
    async fn is_cancel_asked(&self, task: TaskKey) -> Result<bool, StoreError>;

    /// Leaves a message for the node that writes this task.
    async fn post(&self, task: TaskKey, letter: Letter) -> Result<LetterId, StoreError>;

    /// What became of a letter.
    async fn posted(&self, letter: LetterId) -> Result<Posted, StoreError>;

    /// Takes a letter back, unless it was taken: then it says so. [`Posted::Waits`] means that it is back and gone.
    async fn recall(&self, letter: LetterId) -> Result<Posted, StoreError>;

    /// Takes webhooks in hand that still have something to do, or to wait for, and that no node which is alive has:
    /// raises their epochs, makes those due that were waiting. At most `limit`.
    async fn take_pushes(
        &self,
        node: &Node,
        now: Micros,
        limit: usize,
    ) -> Result<Vec<(TaskKey, PushConfig)>, StoreError>;

    /// Takes one webhook in hand. False when another node which is alive has it. Raises its epoch if another had it.
    async fn take_push(&self, task: TaskKey, id: &PushId, node: &Node) -> Result<bool, StoreError>;

    /// How many turns of this caller run and wait, on all nodes.
    async fn load(&self, owner: &str) -> Result<(usize, usize), StoreError>;

    /// Lets `who` use something up to `want` times: once per `interval`, and so often as fits into `slack` ahead of
    /// time, on all nodes together. Returns how often.
    async fn borrow(&self, who: &str, interval: Duration, slack: Duration, want: u32) -> Result<u32, StoreError>;
}

/// The numbered log of every task. See the module for the four promises.
///
/// Implementations are shared by all bindings and must be cheap to call from many tasks at once.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Creates a task with its first events, or finds the one that the same key created.
    /// When this returns, these events are durable.
    async fn create(&self, task: NewTask) -> Result<Created, StoreError>;

    /// Hands over one event. Returns at once; [`Append::ack`] hears the outcome.
    fn append(&self, append: Append);

    /// Makes `lease.node` the only writer: raises the epoch, if it is still `epoch`.
    /// `retry` counts the claim as one more attempt at the same turn; otherwise attempts start at zero.
    async fn claim(&self, task: TaskKey, epoch: i64, lease: Lease, retry: bool) -> Result<Claim, StoreError>;

    /// Active tasks that somebody should take up: their writer is gone, or they have none and wait. For an embedded
    /// store every writer but `node` is gone; for a shared one, those that are not alive, and of the waiting tasks only
    /// the oldest of each context in which no turn runs. Oldest first, at most `limit`.
    async fn abandoned(&self, node: &str, limit: usize) -> Result<Vec<TaskRow>, StoreError>;

    /// The task with this id in this scope.
    async fn task(&self, scope: &Scope, id: &TaskId) -> Result<Option<TaskRow>, StoreError>;

    /// The task with this key.
    async fn task_by_key(&self, key: TaskKey) -> Result<Option<TaskRow>, StoreError>;

    /// Events after `after`, in order: at most `limit`, and not many more than `bytes` in all, but at
    /// least one if there is one.
    async fn events(&self, task: TaskKey, after: Seq, limit: usize, bytes: usize) -> Result<Vec<LogEvent>, StoreError>;

    /// The callers' messages that came after the first, each with the number of the event it came with.
    async fn messages(&self, task: TaskKey) -> Result<Vec<(Seq, Bytes)>, StoreError>;

    /// The task, and the event of its message, that this caller's key belongs to.
    async fn find_key(&self, scope: &Scope, key: &IdempotencyKey) -> Result<Option<(TaskKey, Seq)>, StoreError>;

    /// A page of tasks, newest state change first.
    async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError>;

    /// Stores a webhook, replacing one with the same id: then its epoch is above the old one's.
    async fn put_push(&self, task: TaskKey, config: PushConfig) -> Result<(), StoreError>;

    /// The webhooks of a task, by id.
    async fn pushes(&self, task: TaskKey) -> Result<Vec<PushConfig>, StoreError>;

    /// Removes a webhook; says whether it was there.
    async fn delete_push(&self, task: TaskKey, id: &PushId) -> Result<bool, StoreError>;

    /// Webhooks that are due at `now`, longest waiting first. Of a shared store, only those that `node` has in hand.
    async fn due_pushes(&self, node: &str, now: Micros, limit: usize)
    -> Result<Vec<(TaskKey, PushConfig)>, StoreError>;

    /// Records how far a webhook has come. The cursor never moves back, and a webhook that was deleted,
    /// replaced or replayed meanwhile stays as it is; then the answer is false.
    async fn advance_push(&self, task: TaskKey, config: PushConfig) -> Result<bool, StoreError>;

    /// Makes every webhook due that waits for its task, for events that nobody told of. Returns how many.
    async fn wake_pushes(&self, now: Micros) -> Result<usize, StoreError>;

    /// Moves a webhook back before the first event that was given up, and makes it due. False when none was.
    async fn replay_push(&self, task: TaskKey, id: &PushId, now: Micros) -> Result<bool, StoreError>;

    /// What all webhooks together wait for.
    async fn push_backlog(&self) -> Result<Backlog, StoreError>;

    /// What an agent remembers of a conversation.
    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, StoreError>;

    /// Replaces what an agent remembers of a conversation.
    async fn put_session(&self, key: &SessionKey, session: Session, at: Micros) -> Result<(), StoreError>;

    /// Removes what is older than that: at most `limit` tasks, with all that belongs to them; returns how many. A call that
    /// finds fewer forgets sessions as well.
    async fn trim(&self, than: Older, limit: usize) -> Result<usize, StoreError>;

    /// Whether the store can take writes now.
    async fn check(&self) -> Result<(), StoreError>;

    /// Waits until everything handed over is durable, then stops taking writes.
    async fn close(&self);

    /// What several servers on this store have in common. An embedded store has one server.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
}

/// Says whether somebody in this process has a task in hand. Asked in the middle of a transaction, so it must be quick.
pub type InHand = Arc<dyn Fn(TaskKey) -> bool + Send + Sync>;

/// What is old enough to be removed.
#[derive(Clone)]
pub struct Older {
    /// Finished tasks whose state last changed before this moment, and sessions of before whose conversations have no task.
    pub before: Micros,
    /// Keys, and messages between nodes, of before this moment.
    pub keys: Micros,
    /// Where a rest is an end, tasks at rest as well, but none that a living node holds the lease of or that is in hand.
    /// A store that servers share looks at the leases, an embedded one asks here.
    pub at_rest: Option<InHand>,
}

impl Older {
    /// Everything that is older than this moment, without tasks at rest.
    pub fn than(before: Micros) -> Self {
        Self { before, keys: before, at_rest: None }
    }

    /// Whether a task in this state may be removed, as far as this process knows.
    fn takes(&self, state: State, task: TaskKey) -> bool {
        let is_over = |in_hand: &InHand| state.is_at_rest() && !in_hand(task);
        state.is_final() || self.at_rest.as_ref().is_some_and(is_over)
    }
}

/// What can be wrong with a store. The texts are for the operator; none of them goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The schema is from a later release.
    #[error(
        "{at} was written by a newer release (schema {found}, this one knows {known}): start that release, or point data-dir to another folder"
    )]
    Newer {
        /// Where.
        at: String,
        /// The schema version found.
        found: i64,
        /// The newest one known.
        known: i64,
    },
    /// Another process has it open.
    #[error("{at} is in use by another process: stop that one, or point data-dir to another folder")]
    Locked {
        /// Where.
        at: String,
    },
    /// No room left.
    #[error(
        "no space left for {at}: free some space; nothing that was confirmed is lost, and writing goes on by itself"
    )]
    Full {
        /// Where.
        at: String,
    },
    /// The file is not a database or is damaged.
    #[error("{at} is damaged or not a database ({what}): restore a backup, or move the file away to start anew")]
    Corrupt {
        /// Where.
        at: String,
        /// What the database said.
        what: String,
    },
    /// Anything else.
    #[error("{at}: {what}")]
    Failed {
        /// Where.
        at: String,
        /// What happened.
        what: String,
    },
    /// The store was closed.
    #[error("the store is closed: the server is shutting down")]
    Closed,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.owner)
    }
}
