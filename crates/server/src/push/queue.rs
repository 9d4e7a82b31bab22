//! Jobs in Redis: which webhooks have something to do, for all workers of one store.
//!
//! A job names a webhook and nothing else. What is sent, and in which order, the log and the cursor in the store say:
//! a job that is lost, doubled or late loses, doubles and disorders nothing. No secret and no event is in Redis.
//!
//! | key | |
//! |---|---|
//! | the stream | jobs, read by the consumer group; done ones are deleted |
//! | the sorted set | jobs for later, by the millisecond at which they are due |
//! | the dead stream | a line for each event that was given up |
//! | `STREAM:queued:JOB` | there while a job is in the stream that nobody has taken |
//! | `STREAM:held:JOB` | who delivers, for as long as the lease goes |

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nuncio_protocol::PushId;
use redis::streams::StreamId;
use redis::{RedisError, Script, cmd};
use tokio::sync::Notify;

use super::desk::{Slot, now};
use crate::group::Group;
use crate::store::{Micros, TaskKey};

/// Where the jobs are. The servers of one store share all of it but the name; those of another store share none.
#[derive(Clone)]
pub struct RedisOptions {
    /// `redis://` or `rediss://`; it may hold a password.
    pub url: String,
    /// The stream of jobs.
    pub stream: String,
    /// The sorted set of jobs for later.
    pub retry: String,
    /// The stream of what was given up.
    pub dead: String,
    /// The consumer group.
    pub group: String,
    /// The name of this worker. No two that run may have the same; one that is started again should have its old one.
    pub consumer: String,
    /// How long a worker that is no longer heard of keeps what it has in hand.
    pub lease: Duration,
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// Beyond so many jobs, the oldest are dropped; the store finds them again.
const LONGEST: usize = 1_000_000;
/// So many lines about given up events stay.
const LONGEST_DEAD: usize = 10_000;

static OFFER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("queue/offer.lua")));
static PROMOTE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("queue/promote.lua")));
static HOLD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("queue/hold.lua")));
static KEEP: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("queue/keep.lua")));
static DONE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("queue/done.lua")));

/// A job that this worker has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) slot: Slot,
}

/// The right to deliver to a webhook, until it is given back or not kept up.
pub(super) struct Held(String);

/// The jobs of all workers.
pub struct Queue {
    pub(super) options: RedisOptions,
    pub(super) group: Group,
    /// Numbers what is held, beyond the life of this process.
    number: AtomicU64,
    /// A job may be due earlier than was known.
    pub(super) sooner: Notify,
}

impl Queue {
    /// Jobs at this place. Redis need not be there yet; the URL must be one. Needs a Tokio runtime.
    pub fn new(options: RedisOptions) -> Result<Self, RedisError> {
        let RedisOptions { url, stream, group, consumer, lease, .. } = &options;
        Ok(Self {
            group: Group::new(url, stream, group, consumer, *lease)?,
            number: AtomicU64::new(now().unsigned_abs()),
            sooner: Notify::new(),
            options,
        })
    }

    /// Adds jobs, except those that are already there. What comes of looking at the store instead of news leaves out
    /// what another worker has in hand.
    pub(super) async fn offer(&self, slots: &[Slot], is_news: bool) -> Result<(), RedisError> {
        if slots.is_empty() {
            return Ok(());
        }
        let mut call = OFFER.key(&self.options.stream);
        call.arg(self.lease()).arg(LONGEST).arg(if is_news { "" } else { &self.options.consumer });
        for slot in slots {
            call.arg(name(slot));
        }
        call.invoke_async(&mut self.group.redis()).await
    }

    /// Adds a job for later.
    pub(super) async fn later(&self, slot: &Slot, at: Micros) -> Result<(), RedisError> {
        let mut add = cmd("ZADD");
        add.arg(&self.options.retry).arg("LT").arg(at / 1000).arg(name(slot));
        let () = add.query_async(&mut self.group.redis()).await?;
        self.sooner.notify_one();
        Ok(())
    }

    /// Makes jobs of what is due, and says when more is.
    pub(super) async fn promote(&self) -> Result<Option<Micros>, RedisError> {
        let mut call = PROMOTE.key(&self.options.stream);
        call.key(&self.options.retry).arg(now() / 1000).arg(self.lease()).arg(LONGEST);
        let next: Option<f64> = call.invoke_async(&mut self.group.redis()).await?;
        #[allow(clippy::cast_possible_truncation)] // milliseconds of our own time
        Ok(next.map(|at| at as Micros * 1000))
    }

    /// Waits a moment for new jobs.
    pub(super) async fn next(&self, most: usize) -> Result<Vec<Job>, RedisError> {
        self.take(self.group.next(most).await?).await
    }

    /// Jobs that this worker took and has not finished, after this id, and the last id.
    pub(super) async fn own(&self, most: usize, after: &str) -> Result<(Vec<Job>, Option<String>), RedisError> {
        let found = self.group.own(most, after).await?;
        let last = found.last().map(|entry| entry.id.clone());
        Ok((self.take(found).await?, last))
    }

    /// Takes jobs over from workers that are no longer heard of.
    pub(super) async fn claim(&self, most: usize) -> Result<Vec<Job>, RedisError> {
        self.take(self.group.claim(most).await?).await
    }

    /// Reads jobs. From here on news of their webhooks makes new ones, as they may come too late for these.
    async fn take(&self, found: Vec<StreamId>) -> Result<Vec<Job>, RedisError> {
        let (mut jobs, mut unmark) = (Vec::new(), cmd("DEL"));
        for StreamId { id, map, .. } in found {
            let webhook = map.get("webhook").and_then(|value| redis::from_redis_value_ref::<String>(value).ok());
            if let Some(slot) = webhook.as_deref().and_then(slot) {
                unmark.arg(format!("{}:queued:{}", self.options.stream, name(&slot)));
                jobs.push(Job { id, slot });
                continue;
            }
            if !map.is_empty() {
                // Of an earlier program, perhaps. It stays where an operator finds it.
                tracing::warn!(entry = id, "an entry of the stream of jobs is none, and was moved to the dead ones");
                self.move_to_dead(&map).await?;
            }
            self.group.finish(&id).await?;
        }
        if !jobs.is_empty() {
            let () = unmark.query_async(&mut self.group.redis()).await?;
        }
        Ok(jobs)
    }

    /// The right to deliver, unless another worker has it.
    pub(super) async fn hold(&self, slot: &Slot) -> Result<Option<Held>, RedisError> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let held = format!("{number}/{}", self.options.consumer);
        let mut call = HOLD.key(self.held(slot));
        call.arg(&held).arg(&self.options.consumer).arg(self.lease());
        let free: bool = call.invoke_async(&mut self.group.redis()).await?;
        Ok(free.then_some(Held(held)))
    }

    /// Keeps the right for another lease. False when it is lost.
    pub(super) async fn keep(&self, job: &Job, held: &Held) -> Result<bool, RedisError> {
        let RedisOptions { group, consumer, stream, .. } = &self.options;
        let mut call = KEEP.key(self.held(&job.slot));
        call.key(stream).arg(&held.0).arg(self.lease()).arg(group).arg(consumer).arg(&job.id);
        call.invoke_async(&mut self.group.redis()).await
    }

    /// Gives the right back; the job is done.
    pub(super) async fn done(&self, job: &Job, held: &Held) -> Result<(), RedisError> {
        let mut call = DONE.key(self.held(&job.slot));
        call.key(&self.options.stream).arg(&held.0).arg(&self.options.group).arg(&job.id);
        call.invoke_async(&mut self.group.redis()).await
    }

    /// Notes an event that was given up.
    pub(super) async fn bury(&self, slot: &Slot, event: &str, why: &str) -> Result<(), RedisError> {
        let mut add = cmd("XADD");
        add.arg(&self.options.dead).arg("MAXLEN").arg("~").arg(LONGEST_DEAD).arg("*");
        add.arg("webhook").arg(slot.1.as_str()).arg("event").arg(event).arg("error").arg(why);
        add.query_async(&mut self.group.redis()).await
    }

    async fn move_to_dead(&self, fields: &HashMap<String, redis::Value>) -> Result<(), RedisError> {
        let mut add = cmd("XADD");
        add.arg(&self.options.dead).arg("MAXLEN").arg("~").arg(LONGEST_DEAD).arg("*");
        for (name, value) in fields {
            let bytes: Vec<u8> = redis::from_redis_value_ref(value).unwrap_or_default();
            add.arg(name).arg(bytes);
        }
        add.query_async(&mut self.group.redis()).await
    }

    fn held(&self, slot: &Slot) -> String {
        format!("{}:held:{}", self.options.stream, name(slot))
    }

    fn lease(&self) -> u64 {
        self.group.lease()
    }
}

/// A webhook as jobs name it.
fn name((task, id): &Slot) -> String {
    format!("{}/{id}", task.0)
}

fn slot(name: &str) -> Option<Slot> {
    let (task, id) = name.split_once('/')?;
    Some((TaskKey(task.parse().ok()?), PushId::from(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_name_webhooks_whatever_their_ids_are() {
        for id in ["p", "a/b", "", "ü:1"] {
            let webhook = (TaskKey(7), PushId::from(id));
            assert_eq!(slot(&name(&webhook)), Some(webhook));
        }
        for strange in ["", "7", "x/p", "{\"jobId\":1}"] {
            assert_eq!(slot(strange), None, "{strange}");
        }
    }
}
