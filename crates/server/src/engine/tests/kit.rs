//! An agent whose message is its script, and short ways to call an engine.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_protocol::{
    Artifact, ArtifactId, ContextId, Error, Message, Part, SendMessageRequest, Task, TaskId, TaskState, codec,
};
use parking_lot::Mutex;

use crate::agent::{Agent, AgentError, OnCrash, ToolCall, Turn, Usage};
use crate::call::{Call, Version, Way};
use crate::engine::turn::ToolStep;
use crate::engine::{Engine, EngineOptions, Exposure, Handle, Sent};
use crate::metrics::Metrics;
use crate::store::{Scope, Seq, Store};

/// Does one word of its message after the other; `sleep:20` is a word with a number.
pub(super) struct Scripted {
    on_crash: OnCrash,
    pure: bool,
    /// The contexts that a turn works in at this moment, on whatever node.
    inside: Arc<Mutex<HashSet<ContextId>>>,
    /// Whether a task that is over leaves its context to others, whatever its agent still does: so it is on several nodes.
    leaves: bool,
    /// How often two turns worked in one context.
    pub(super) overlaps: Arc<AtomicUsize>,
    /// The text of every turn that was begun.
    pub(super) begun: Mutex<Vec<String>>,
}

impl Scripted {
    pub(super) fn new(on_crash: OnCrash) -> Arc<Self> {
        Self::with(on_crash, false)
    }

    /// One that may begin before its task is stored, if `pure`.
    pub(super) fn with(on_crash: OnCrash, pure: bool) -> Arc<Self> {
        let (inside, overlaps) = (Arc::default(), Arc::default());
        Arc::new(Self { on_crash, pure, leaves: false, inside, overlaps, begun: Mutex::default() })
    }

    /// One like it on another node, which must not work where this one does.
    pub(super) fn beside(&self) -> Arc<Self> {
        let (inside, overlaps) = (self.inside.clone(), self.overlaps.clone());
        let (on_crash, pure) = (self.on_crash, self.pure);
        Arc::new(Self { on_crash, pure, leaves: true, inside, overlaps, begun: Mutex::default() })
    }
}

struct Inside<'a>(&'a Scripted, ContextId);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.lock().remove(&self.1);
    }
}

#[async_trait]
impl Agent for Scripted {
    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        self.begun.lock().push(turn.text_in());
        let context = turn.context_id().clone();
        // On several nodes, a turn that is ahead of its task, in a context that was made for it, may be left behind in
        // mid-air by a node that is cut off. It has no effect.
        let is_watched = !(self.leaves && self.pure && !context.as_str().starts_with('c'));
        if is_watched && !self.inside.lock().insert(context.clone()) {
            self.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        let mut inside = Some(Inside(self, context));
        for word in turn.text_in().split_whitespace() {
            let stepped = step(turn, word).await;
            if self.leaves && ["complete", "fail", "reject"].contains(&word) {
                inside = None;
            }
            stepped?;
        }
        drop(inside);
        Ok(())
    }

    fn on_crash(&self) -> OnCrash {
        self.on_crash
    }

    fn is_pure(&self) -> bool {
        self.pure
    }
}

async fn step(turn: &mut Turn, word: &str) -> Result<(), AgentError> {
    let (word, number) = word.split_once(':').unwrap_or((word, "1"));
    let number: u64 = number.parse().unwrap_or(1);
    let time = Duration::from_millis(number);
    match word {
        "text" => turn.text("a piece").await,
        "last" => turn.last_text("the last piece").await,
        "burst" => {
            for _ in 0..number {
                turn.text("x").await?;
            }
            Ok(())
        }
        "status" => turn.status("still here").await,
        "artifact" => turn.artifact(artifact(number)).await,
        "append" => turn.chunk(artifact(number), true, false).await,
        "think" => turn.think("hm").await,
        "tool" => turn.tool(ToolCall { id: "1", name: "t", step: ToolStep::Started }).await,
        "usage" => {
            turn.usage(Usage { input_tokens: number, ..Usage::default() });
            Ok(())
        }
        "yield" => {
            tokio::task::yield_now().await;
            Ok(())
        }
        "sleep" => {
            tokio::time::sleep(time).await;
            Ok(())
        }
        "ask" => turn.ask("which?").await.map(drop),
        "askbriefly" => {
            let _ = tokio::time::timeout(time, turn.ask("which?")).await;
            Ok(())
        }
        "approve" => {
            let decision = turn.approve("this").await?;
            turn.text(if decision.approved { "Approved" } else { "Denied" }).await
        }
        "complete" => turn.complete(vec![Part::text("done")]).await,
        "fail" => turn.fail("no").await,
        "reject" => turn.reject("never").await,
        "input" => turn.require_input("more").await,
        "auth" => turn.require_auth("who?").await,
        "error" => Err(AgentError::Failed("broken".into())),
        "internal" => Err(AgentError::Internal("secret".into())),
        "unanswered" => Err(AgentError::Unanswered),
        "panic" => panic!("as the script says"),
        "hold" => {
            turn.cancelled().await;
            Err(AgentError::Stopped)
        }
        "hang" => std::future::pending().await,
        _ => Ok(()),
    }
}

fn artifact(number: u64) -> Artifact {
    let artifact_id = ArtifactId::from(format!("artifact-{number}").as_str());
    let metadata = [("n".to_owned(), number.into())].into_iter().collect();
    Artifact { artifact_id, parts: vec![Part::text("part")], metadata, ..Artifact::default() }
}

/// Small limits, so that every one of them is met.
pub(super) fn options() -> EngineOptions {
    EngineOptions {
        max_running_turns: 2,
        max_queued_turns: 100,
        turn_timeout: Duration::from_secs(60),
        approval_timeout: Duration::from_secs(20),
        cancel_grace: Duration::from_secs(1),
        lease_ttl: Duration::from_secs(3),
        exposure: Exposure { thinking: true, ..Exposure::default() },
        ..EngineOptions::default()
    }
}

pub(super) fn engine(agent: &Arc<Scripted>, store: Arc<dyn Store>) -> Arc<Engine> {
    engine_with(agent, store, options())
}

pub(super) fn engine_with(agent: &Arc<Scripted>, store: Arc<dyn Store>, options: EngineOptions) -> Arc<Engine> {
    Engine::new(crate::engine::roster::Roster::one("agent", agent.clone()), store, options, Metrics::new())
}

/// Keeps deadlines, leases and abandoned tasks looked after for as long as the runtime lives.
pub(super) fn tend(engine: &Arc<Engine>) {
    tokio::spawn(engine.clone().tend(tokio_util::sync::CancellationToken::new()));
}

pub(super) fn call() -> Call {
    call_after(None)
}

pub(super) fn call_after(after: Option<Seq>) -> Call {
    Call {
        scope: Scope::default(),
        version: Version::V1,
        extensions: Vec::new(),
        idempotency_key: None,
        traceparent: None,
        after,
        grants: crate::auth::Grants::ALL,
        caller: "".into(),
        way: Way::default(),
        tone: None,
    }
}

pub(super) fn message(script: &str) -> Message {
    Message::from_user(vec![Part::text(script)])
}

pub(super) async fn say(engine: &Arc<Engine>, call: &Call, message: Message) -> Result<Handle, Error> {
    let request = SendMessageRequest { message: Some(message), ..SendMessageRequest::default() };
    match engine.send(call, request).await? {
        Sent::Task(handle) => Ok(handle),
        Sent::Message(_) => panic!("the agent never answers directly"),
    }
}

/// A new task.
pub(super) async fn send(engine: &Arc<Engine>, script: &str) -> Handle {
    say(engine, &call(), message(script)).await.unwrap()
}

/// A new task in a context.
pub(super) async fn send_in(engine: &Arc<Engine>, context: &str, script: &str) -> Handle {
    let message = Message { context_id: ContextId::from(context), ..message(script) };
    say(engine, &call(), message).await.unwrap()
}

/// Another message for a task.
pub(super) async fn follow_up(engine: &Arc<Engine>, task: &TaskId, script: &str) -> Result<Handle, Error> {
    say(engine, &call(), Message { task_id: task.clone(), ..message(script) }).await
}

pub(super) async fn get(engine: &Engine, task: &TaskId) -> Task {
    engine.get(&call(), task).await.unwrap().task().unwrap()
}

pub(super) async fn settled(handle: &Handle) -> TaskState {
    let settled = tokio::time::timeout(Duration::from_secs(300), handle.settled()).await;
    settled.expect("a blocking sender is answered").unwrap().task().unwrap().status.state
}

/// Every state that the log of a task says.
pub(super) async fn states(store: &dyn Store, task: &TaskId) -> Vec<TaskState> {
    use nuncio_protocol::StreamResponse;
    let row = store.task(&Scope::default(), task).await.unwrap().unwrap();
    let events = store.events(row.key, 0, usize::MAX, usize::MAX).await.unwrap();
    let events = events.iter().map(|event| codec::decode::<StreamResponse>(&event.body).unwrap());
    let state = |event| match event {
        StreamResponse::Task(task) => Some(task.status.state),
        StreamResponse::StatusUpdate(update) => Some(update.status.state),
        _ => None,
    };
    events.filter_map(state).collect()
}

pub(super) async fn a_while() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
