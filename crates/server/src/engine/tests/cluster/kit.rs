//! Nodes that share a store, each with a line of its own.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{Error, Message, TaskState};

use super::super::kit::{Scripted, engine_with, tend};
use super::super::line::{Line, Member, Way, Wire};
use crate::agent::OnCrash;
use crate::call::Call;
use crate::engine::{Engine, EngineOptions, Handle, Subscription};
use crate::store::{MemoryStore, Seq};

pub(super) use super::super::kit::{
    a_while, call, call_after, follow_up, get, message, options, say, send, send_in, settled, states,
};

/// One server.
pub(super) struct Server {
    pub(super) engine: Arc<Engine>,
    pub(super) agent: Arc<Scripted>,
    pub(super) line: Arc<Line>,
    pub(super) bus: Arc<Member>,
}

impl Server {
    /// It is gone, as with kill -9.
    pub(super) fn die(&self) {
        self.line.set(Way::Dead);
        self.bus.cut(true);
    }

    pub(super) fn begun(&self) -> usize {
        self.agent.begun.lock().len()
    }
}

/// A store for several servers.
pub(super) struct Place {
    pub(super) store: Arc<MemoryStore>,
    pub(super) wire: Arc<Wire>,
    pub(super) on_crash: OnCrash,
    /// Whether turns begin before their tasks are stored.
    pub(super) pure: bool,
    /// How long a question to the store is under way.
    pub(super) lag: Duration,
    pub(super) options: EngineOptions,
}

impl Place {
    pub(super) fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::shared()),
            wire: Arc::default(),
            on_crash: OnCrash::Fail,
            pure: false,
            lag: Duration::from_millis(1),
            options: options(),
        }
    }

    pub(super) async fn server(&self) -> Server {
        self.server_with(self.options.clone()).await
    }

    pub(super) async fn server_with(&self, options: EngineOptions) -> Server {
        let (line, bus) = (Line::to(&self.store, self.lag), self.wire.join());
        let agent = Scripted::with(self.on_crash, self.pure);
        let options = EngineOptions { bus: Some(bus.clone()), ..options };
        let engine = engine_with(&agent, line.clone(), options);
        engine.recover().await.unwrap();
        tend(&engine);
        Server { engine, agent, line, bus }
    }

    pub(super) async fn servers<const N: usize>(&self) -> [Server; N] {
        let mut all = Vec::new();
        for _ in 0..N {
            all.push(self.server().await);
        }
        all.try_into().unwrap_or_else(|_| panic!("as many as were asked for"))
    }
}

/// Reads to the end.
pub(super) async fn read_all(reader: &mut Subscription) -> Vec<Seq> {
    let (mut batch, mut seen) = (Vec::new(), Vec::new());
    while tokio::time::timeout(Duration::from_secs(100), reader.next(&mut batch)).await.unwrap().unwrap() {
        seen.extend(batch.drain(..).map(|event| event.seq));
    }
    seen
}

/// The same message again has the same key.
pub(super) async fn say_with_key(engine: &Arc<Engine>, message: Message) -> Result<Handle, Error> {
    say(engine, &Call { idempotency_key: Some("k".into()), ..call() }, message).await
}

/// Longer than a lease, and than anybody takes to notice that it is over.
pub(super) async fn a_lease() {
    tokio::time::sleep(options().lease_ttl + Duration::from_secs(3)).await;
}

pub(super) fn is_over(state: TaskState) -> bool {
    state.is_terminal()
}
