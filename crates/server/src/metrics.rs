//! Numbers for operators.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::call::Version;
use crate::store::{Backlog, Micros};

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    PushCreate,
    PushGet,
    PushList,
    PushDelete,
    ExtendedCard,
    Unknown,
}

impl Operation {
    /// Every one that there is.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 12] = {
        let mut all = [Self::Unknown; 12];
        let mut n = 0;
        while n < all.len() {
            all[n] = OPERATIONS[n].0;
            n += 1;
        }
        all
    };

    /// The name that A2A 1.0 has for it.
    pub fn name(self) -> &'static str {
        OPERATIONS.iter().find(|(operation, _)| *operation == self).map_or("unknown", |(_, name)| name)
    }

    /// The operation with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = OPERATIONS.iter().find(|(operation, known)| *known == name && *operation != Self::Unknown);
        found.map(|(operation, _)| *operation)
    }
}

/// How a call came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Binding {
    JsonRpc,
    Rest,
    Grpc,
}

const OPERATIONS: [(Operation, &str); 12] = [
    (Operation::Send, "SendMessage"),
    (Operation::Stream, "SendStreamingMessage"),
    (Operation::Get, "GetTask"),
    (Operation::List, "ListTasks"),
    (Operation::Cancel, "CancelTask"),
    (Operation::Subscribe, "SubscribeToTask"),
    (Operation::PushCreate, "CreateTaskPushNotificationConfig"),
    (Operation::PushGet, "GetTaskPushNotificationConfig"),
    (Operation::PushList, "ListTaskPushNotificationConfigs"),
    (Operation::PushDelete, "DeleteTaskPushNotificationConfig"),
    (Operation::ExtendedCard, "GetExtendedAgentCard"),
    (Operation::Unknown, "unknown"),
];

const BINDINGS: [(Binding, &str); 3] =
    [(Binding::JsonRpc, "jsonrpc"), (Binding::Rest, "rest"), (Binding::Grpc, "grpc")];
const VERSIONS: [Version; 2] = [Version::V03, Version::V1];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    operation: Name,
    binding: Name,
    version: Name,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name(&'static str);

impl EncodeLabelValue for Name {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }
}

/// What webhooks do.
#[derive(Default)]
pub struct PushMetrics {
    /// Events that receivers took.
    pub delivered: Counter,
    /// Attempts that failed.
    pub failed: Counter,
    /// Events given up.
    pub given_up: Counter,
    pending: Gauge,
    dead: Gauge,
    oldest: Gauge,
}

impl PushMetrics {
    fn register(&self, r: &mut Registry) {
        r.register("push_delivered", "Events that webhooks took", self.delivered.clone());
        r.register("push_failed_attempts", "Attempts at webhooks that failed", self.failed.clone());
        r.register("push_given_up", "Events given up since the start", self.given_up.clone());
        r.register("push_pending", "Webhooks with something to deliver or to try again", self.pending.clone());
        r.register("push_dead", "Events given up and not replayed", self.dead.clone());
        r.register("push_oldest_seconds", "How long the webhook that fails longest fails", self.oldest.clone());
    }

    /// Takes up what the store counts.
    pub(crate) fn backlog(&self, backlog: Backlog, now: Micros) {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.pending.set(number(backlog.pending));
        self.dead.set(number(backlog.dead));
        self.oldest.set(backlog.oldest.map_or(0, |since| (now - since).max(0) / 1_000_000));
    }
}

/// What comes by Redis.
#[derive(Default)]
pub struct RedisMetrics {
    /// Entries that were carried out.
    pub requests: Counter,
    /// Entries that were no requests.
    pub malformed: Counter,
    /// Entries that were taken over from workers that are gone.
    pub taken_over: Counter,
    /// Entries that nobody could finish.
    pub given_up: Counter,
}

impl RedisMetrics {
    fn register(&self, r: &mut Registry) {
        r.register("redis_requests", "Entries of the request stream carried out", self.requests.clone());
        r.register("redis_malformed", "Entries of the request stream that were none", self.malformed.clone());
        r.register("redis_taken_over", "Entries taken over from workers that are gone", self.taken_over.clone());
        r.register("redis_given_up", "Entries that no worker could finish", self.given_up.clone());
    }
}

/// What servers on the same store do for each other.
#[derive(Clone, Default)]
pub struct ClusterMetrics {
    /// Hints sent.
    pub told: Counter,
    /// Hints received.
    pub heard: Counter,
    /// Tasks that had gone on without a hint.
    pub missed: Counter,
    /// Tasks taken over from nodes that are gone.
    pub taken_over: Counter,
    /// Letters left for other nodes.
    pub posted: Counter,
    /// Letters of other nodes handed to turns here.
    pub delivered: Counter,
    /// How often this node was not heard of in time.
    pub lost: Counter,
    /// Tasks of other nodes that are followed here.
    pub followed: Gauge,
    /// Turns that this node holds the leases of.
    pub leases: Gauge,
    /// Tasks accepted here that wait for a place anywhere.
    pub waiting: Gauge,
    /// Nodes that are alive.
    pub alive: Gauge,
    /// Whether the bus works.
    pub bus: Gauge,
    info: Family<NodeLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    node: String,
}

impl ClusterMetrics {
    fn register(&self, r: &mut Registry) {
        r.register("hints_sent", "Hints sent to other servers", self.told.clone());
        r.register("hints_received", "Hints received from other servers", self.heard.clone());
        r.register("hints_missed", "Tasks that had gone on elsewhere without a hint", self.missed.clone());
        r.register("takeovers", "Tasks taken over from servers that are gone", self.taken_over.clone());
        r.register("letters_sent", "Messages left for turns on other servers", self.posted.clone());
        r.register("letters_taken", "Messages of other servers handed to turns here", self.delivered.clone());
        r.register("lives_lost", "How often this server was not heard of in time", self.lost.clone());
        r.register("tasks_followed", "Tasks of other servers that are followed here", self.followed.clone());
        r.register("leases_held", "Turns that this server holds the leases of", self.leases.clone());
        r.register("tasks_waiting", "Tasks accepted here that wait for a place anywhere", self.waiting.clone());
        r.register("nodes_alive", "Servers on this store that are alive", self.alive.clone());
        r.register("bus_up", "Whether the bus carries hints", self.bus.clone());
        r.register("node", "This server, by its present name", self.info.clone());
    }

    /// Which node this is.
    pub(crate) fn node(&self, node: &str) {
        let labels = NodeLabels { node: node.to_owned() };
        if self.info.get(&labels).is_none() {
            self.info.clear();
        }
        self.info.get_or_create(&labels).set(1);
    }
}

/// Everything that is counted.
pub struct Metrics {
    registry: Registry,
    /// One counter per operation, binding and version, looked up without hashing.
    calls: Vec<Counter>,
    /// Calls that ended in an error.
    pub errors: Counter,
    /// Events written.
    pub events: Counter,
    /// Open streams.
    pub subscribers: Gauge,
    /// Open connections.
    pub connections: Gauge,
    /// Connections turned away.
    pub refused: Counter,
    /// What webhooks do.
    pub push: PushMetrics,
    /// What comes by Redis.
    pub redis: RedisMetrics,
    /// What servers on the same store do for each other.
    pub cluster: ClusterMetrics,
    running: Gauge,
    paused: Gauge,
    queued: Gauge,
    in_memory: Gauge,
    batch_events: Histogram,
    batch_seconds: Histogram,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("nuncio");
        let family = Family::<CallLabels, Counter>::default();
        let mut calls = Vec::new();
        for (_, operation) in OPERATIONS {
            for (_, binding) in BINDINGS {
                for version in VERSIONS {
                    let labels = CallLabels {
                        operation: Name(operation),
                        binding: Name(binding),
                        version: Name(version.as_str()),
                    };
                    calls.push(family.get_or_create(&labels).clone());
                }
            }
        }
        registry.register("calls", "Calls by operation, binding and version", family);
        let metrics = Self {
            calls,
            errors: Counter::default(),
            events: Counter::default(),
            subscribers: Gauge::default(),
            connections: Gauge::default(),
            refused: Counter::default(),
            push: PushMetrics::default(),
            redis: RedisMetrics::default(),
            cluster: ClusterMetrics::default(),
            running: Gauge::default(),
            paused: Gauge::default(),
            queued: Gauge::default(),
            in_memory: Gauge::default(),
            batch_events: Histogram::new([0.0].into_iter().chain(exponential_buckets(1.0, 2.0, 12))),
            batch_seconds: Histogram::new(exponential_buckets(0.000_05, 2.0, 16)),
            registry,
        };
        Arc::new(metrics.register())
    }

    fn register(mut self) -> Self {
        let r = &mut self.registry;
        r.register("call_errors", "Calls that ended in an error", self.errors.clone());
        r.register("events", "Events written to the log", self.events.clone());
        r.register("subscribers", "Open streams", self.subscribers.clone());
        r.register("connections", "Open connections", self.connections.clone());
        r.register("connections_refused", "Connections turned away at the limit", self.refused.clone());
        self.push.register(r);
        self.redis.register(r);
        self.cluster.register(r);
        r.register("turns_running", "Turns under way", self.running.clone());
        r.register("turns_paused", "Turns waiting for an answer", self.paused.clone());
        r.register("turns_queued", "Turns waiting for a place", self.queued.clone());
        r.register("tasks_in_memory", "Tasks that somebody writes or follows", self.in_memory.clone());
        r.register("commit_events", "Events per commit of the store", self.batch_events.clone());
        r.register("commit_seconds", "Time per commit of the store", self.batch_seconds.clone());
        self
    }

    /// Counts a call.
    pub fn call(&self, operation: Operation, binding: Binding, version: Version) {
        let index = (operation as usize * BINDINGS.len() + binding as usize) * VERSIONS.len() + version as usize;
        if let Some(counter) = self.calls.get(index) {
            counter.inc();
        }
    }

    /// Counts a commit of the store.
    #[allow(clippy::cast_precision_loss)] // a histogram needs no more
    pub fn commit(&self, events: usize, time: Duration) {
        self.batch_events.observe(events as f64);
        self.batch_seconds.observe(time.as_secs_f64());
    }

    /// All of it in the Prometheus text form.
    pub fn render(&self, (running, queued): (usize, usize), paused: usize, in_memory: usize) -> String {
        let set = |gauge: &Gauge, n: usize| gauge.set(i64::try_from(n).unwrap_or(i64::MAX));
        set(&self.running, running);
        set(&self.paused, paused);
        set(&self.queued, queued);
        set(&self.in_memory, in_memory);
        let mut out = String::new();
        if encode(&mut out, &self.registry).is_err() {
            out.clear();
        }
        out
    }
}
