//! What several servers in one process have in common when they share a store in memory.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_protocol::{ContextId, PushId};
use tokio::time::Instant;

use super::super::{
    AppendError, Letter, LetterId, Micros, Node, Order, Posted, Progress, PushConfig, Scope, Seq, Shared, StoreError,
    TaskKey, TaskRow, WAITING,
};
use super::MemoryStore;
use super::log::{Entry, Log};
use crate::map::Map;

/// Nodes, and what they leave for each other.
#[derive(Default)]
pub(super) struct Crew {
    /// Until when each node is alive.
    nodes: BTreeMap<Node, Instant>,
    /// The contexts of tasks with a lease, each with its task.
    leases: Map<(Scope, ContextId), TaskKey>,
    cancels: HashSet<TaskKey>,
    letters: BTreeMap<LetterId, (TaskKey, Letter, Option<Seq>)>,
    last_letter: i64,
    /// Until when everything that a caller may use is used up.
    used: Map<String, Instant>,
}

impl Crew {
    fn is_alive(&self, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|until| *until > Instant::now())
    }

    /// The node that writes a task and is alive.
    pub(super) fn writer(&self, node: &Node) -> Option<Node> {
        self.is_alive(node).then(|| node.clone())
    }

    fn lease(&mut self, row: &TaskRow, node: &Node) {
        let context = (row.scope.clone(), row.context_id.clone());
        if !node.is_empty() {
            self.leases.insert(context, row.key);
        } else if self.leases.get(&context) == Some(&row.key) {
            self.leases.remove(&context);
        }
    }

    /// Takes a letter with the event `seq`.
    pub(super) fn take(&mut self, letter: LetterId, seq: Seq) -> Result<(), AppendError> {
        match self.letters.get_mut(&letter) {
            Some((_, _, taken @ None)) => {
                *taken = Some(seq);
                Ok(())
            }
            _ => Err(AppendError::Recalled),
        }
    }

    /// Forgets all that belongs to a task.
    pub(super) fn forget(&mut self, row: &TaskRow) {
        self.lease(row, &"".into());
        self.cancels.remove(&row.key);
        self.letters.retain(|_, (task, ..)| *task != row.key);
    }
}

impl Log {
    /// Makes a node the holder of a lease, or nobody.
    pub(super) fn set_lease(&mut self, key: TaskKey, node: Node) {
        let Some(entry) = self.tasks.get_mut(&key) else { return };
        entry.row.leased = !node.is_empty();
        if let Some(crew) = &mut self.crew {
            crew.lease(&entry.row, &node);
        }
        entry.node = node;
    }

    /// Whether a turn of another task keeps this context taken. A node that is gone keeps only what it worked on: what
    /// else it held is free, and it hears so if it was only slow.
    pub(super) fn is_context_taken(&mut self, scope: &Scope, context: &ContextId, but: TaskKey) -> bool {
        let Some(crew) = &self.crew else { return false };
        let Some(&holder) = crew.leases.get(&(scope.clone(), context.clone())) else { return false };
        let Some(entry) = self.tasks.get_mut(&holder).filter(|_| holder != but) else { return false };
        if crew.is_alive(&entry.node) || entry.row.state.is_active() {
            return true;
        }
        entry.row.epoch += 1;
        self.set_lease(holder, "".into());
        false
    }

    /// Whether another node that is alive stands in the way of a claim.
    pub(super) fn is_claim_busy(&mut self, key: TaskKey, node: &Node) -> bool {
        let Some((crew, entry)) = self.crew.as_ref().zip(self.tasks.get(&key)) else { return false };
        if entry.node != *node && crew.is_alive(&entry.node) {
            return true;
        }
        let (scope, context) = (entry.row.scope.clone(), entry.row.context_id.clone());
        !node.is_empty() && self.is_context_taken(&scope, &context, key)
    }

    /// The tasks that somebody should take up, of those that are active, oldest first.
    pub(super) fn startable<'a>(&self, active: impl Iterator<Item = &'a Entry>, limit: usize) -> Vec<TaskRow> {
        let Some(crew) = &self.crew else { return Vec::new() };
        let mut contexts = HashSet::new();
        let keeps = |key: &TaskKey| {
            self.tasks.get(key).is_some_and(|entry| crew.is_alive(&entry.node) || entry.row.state.is_active())
        };
        let is_startable = |entry: &&Entry| {
            if !entry.node.is_empty() {
                return !crew.is_alive(&entry.node);
            }
            let context = (entry.row.scope.clone(), entry.row.context_id.clone());
            let first = contexts.insert(context.clone());
            first && !crew.leases.get(&context).is_some_and(keeps)
        };
        active.filter(is_startable).take(limit).map(|entry| self.shown(entry)).collect()
    }

    fn orders(&self, node: &Node) -> Vec<Order> {
        let Some(crew) = &self.crew else { return Vec::new() };
        let held = |task: &TaskKey| self.tasks.get(task).is_some_and(|entry| entry.node == *node);
        let cancels = crew.cancels.iter().filter(|task| held(task)).map(|task| Order::Cancel(*task));
        let waiting = crew.letters.iter().filter(|(_, (task, _, taken))| taken.is_none() && held(task));
        let letters = waiting.map(|(id, (task, letter, _))| Order::Deliver(*task, *id, letter.clone()));
        cancels.chain(letters).collect()
    }

    fn take_push(&mut self, task: TaskKey, id: &PushId, node: &Node, now: Option<Micros>) -> Option<PushConfig> {
        let crew = self.crew.as_ref()?;
        let push = self.tasks.get_mut(&task)?.pushes.get_mut(id)?;
        if push.node.as_ref() == Some(node) {
            return Some(push.clone());
        }
        if push.node.as_ref().is_some_and(|other| crew.is_alive(other)) {
            return None;
        }
        push.node = Some(node.clone());
        push.epoch += 1;
        let (old, due) = (push.due, push.due.map(|due| if due == WAITING { now.unwrap_or(due) } else { due }));
        push.due = due;
        let taken = push.clone();
        self.reschedule(task, id.clone(), old, due);
        Some(taken)
    }

    fn take_pushes(&mut self, node: &Node, now: Micros, limit: usize) -> Vec<(TaskKey, PushConfig)> {
        let Some(crew) = &self.crew else { return Vec::new() };
        let left = |task: &TaskKey, id: &PushId| {
            let push = self.tasks.get(task).and_then(|entry| entry.pushes.get(id));
            push.is_some_and(|push| push.node.as_ref().is_none_or(|node| !crew.is_alive(node)))
        };
        let found = self.due.iter().filter(|(_, task, id)| left(task, id)).take(limit);
        let found: Vec<_> = found.map(|(_, task, id)| (*task, id.clone())).collect();
        let taken =
            found.into_iter().filter_map(|(task, id)| Some((task, self.take_push(task, &id, node, Some(now))?)));
        taken.collect()
    }

    fn load(&self, owner: &str) -> (usize, usize) {
        let Some(crew) = &self.crew else { return (0, 0) };
        let own = |entry: &&Entry| *entry.row.scope.owner == *owner;
        let held = crew.leases.values().filter_map(|task| Some(&**self.tasks.get(task)?));
        let running = held.filter(own).filter(|entry| crew.is_alive(&entry.node)).count();
        let active = self.active.iter().filter_map(|(_, task)| Some(&**self.tasks.get(task)?));
        (running, active.filter(own).filter(|entry| entry.node.is_empty()).count())
    }
}

impl MemoryStore {
    fn crew<T>(&self, work: impl FnOnce(&mut Crew) -> T) -> Result<T, StoreError> {
        let worked = self.write(|log| log.crew.as_mut().map(work))?;
        worked.ok_or_else(|| StoreError::Failed { at: "memory".into(), what: "the store is not shared".into() })
    }
}

#[async_trait]
impl Shared for MemoryStore {
    fn name(&self) -> &str {
        &self.name
    }

    async fn beat(&self, node: &Node, ttl: Duration) -> Result<bool, StoreError> {
        self.crew(|crew| {
            let was_alive = crew.is_alive(node);
            crew.nodes.insert(node.clone(), Instant::now() + ttl);
            was_alive
        })
    }

    async fn leave(&self, node: &Node) -> Result<(), StoreError> {
        self.crew(|crew| {
            crew.nodes.remove(node);
        })
    }

    async fn clock(&self) -> Result<Micros, StoreError> {
        Ok(nuncio_protocol::Timestamp::now().as_micros())
    }

    async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        self.crew(|crew| crew.nodes.keys().filter(|node| crew.is_alive(node)).cloned().collect())
    }

    async fn release(&self, task: TaskKey, epoch: i64) -> Result<(), StoreError> {
        self.write(|log| {
            if log.tasks.get(&task).is_some_and(|entry| entry.row.epoch == epoch) {
                log.set_lease(task, "".into());
            }
        })
    }

    async fn held(&self, node: &Node) -> Result<Vec<(TaskKey, i64)>, StoreError> {
        self.write(|log| {
            let leased = log.crew.iter().flat_map(|crew| crew.leases.values());
            let held = leased.filter_map(|task| log.tasks.get(task)).filter(|entry| entry.node == *node);
            held.map(|entry| (entry.row.key, entry.row.epoch)).collect()
        })
    }

    async fn progress(&self, tasks: &[TaskKey]) -> Result<Vec<Progress>, StoreError> {
        self.write(|log| {
            let of = |task: &TaskKey| {
                let Entry { row, node, .. } = &**log.tasks.get(task)?;
                let alive = log.crew.as_ref().is_some_and(|crew| crew.is_alive(node));
                Some(Progress { task: *task, epoch: row.epoch, seq: row.seq, state: row.state, alive })
            };
            tasks.iter().filter_map(of).collect()
        })
    }

    async fn orders(&self, node: &Node) -> Result<Vec<Order>, StoreError> {
        self.write(|log| log.orders(node))
    }

    async fn ask_cancel(&self, task: TaskKey) -> Result<(), StoreError> {
        self.write(|log| {
            let over = log.tasks.get(&task).is_none_or(|entry| entry.row.state.is_final());
            if let Some(crew) = log.crew.as_mut().filter(|_| !over) {
                crew.cancels.insert(task);
            }
        })
    }

    async fn is_cancel_asked(&self, task: TaskKey) -> Result<bool, StoreError> {
        self.crew(|crew| crew.cancels.contains(&task))
    }

    async fn post(&self, task: TaskKey, letter: Letter) -> Result<LetterId, StoreError> {
        self.crew(|crew| {
            crew.last_letter += 1;
            let id = LetterId(crew.last_letter);
            crew.letters.insert(id, (task, letter, None));
            id
        })
    }

    async fn posted(&self, letter: LetterId) -> Result<Posted, StoreError> {
        self.crew(|crew| match crew.letters.get(&letter) {
            Some((_, _, Some(seq))) => Posted::Taken(*seq),
            Some((_, _, None)) => Posted::Waits,
            None => Posted::Gone,
        })
    }

    async fn recall(&self, letter: LetterId) -> Result<Posted, StoreError> {
        self.crew(|crew| match crew.letters.get(&letter) {
            Some((_, _, Some(seq))) => Posted::Taken(*seq),
            Some((_, _, None)) => {
                crew.letters.remove(&letter);
                Posted::Waits
            }
            None => Posted::Gone,
        })
    }

    async fn take_pushes(
        &self,
        node: &Node,
        now: Micros,
        limit: usize,
    ) -> Result<Vec<(TaskKey, PushConfig)>, StoreError> {
        self.write(|log| log.take_pushes(node, now, limit))
    }

    async fn take_push(&self, task: TaskKey, id: &PushId, node: &Node) -> Result<bool, StoreError> {
        self.write(|log| log.take_push(task, id, node, None).is_some())
    }

    async fn load(&self, owner: &str) -> Result<(usize, usize), StoreError> {
        self.write(|log| log.load(owner))
    }

    async fn borrow(&self, who: &str, interval: Duration, slack: Duration, want: u32) -> Result<u32, StoreError> {
        self.crew(|crew| {
            let now = Instant::now();
            let until = crew.used.entry(who.to_owned()).or_insert(now);
            *until = (*until).max(now);
            let mut granted = 0;
            while granted < want && *until <= now + slack {
                *until += interval;
                granted += 1;
            }
            granted
        })
    }
}
