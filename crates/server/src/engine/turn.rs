//! A turn as the agent sees it.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{
    Artifact, ContextId, Message, MessageId, Metadata, Part, Task, TaskId, TaskState, Timestamp, Value, json,
};

use tokio::time::Instant;

use super::Engine;
use super::approval::{Approval, DecidedBy, Decision, HITL, Request};
use super::event::Update;
use super::live::{Live, WriteError};
use super::schedule::{Control, Cue};
use crate::agent::AgentError;
use crate::present::{Ending, INPUT, Presenter};
use crate::store::{Seq, Session, SessionKey};

mod files;
mod past;
mod relay;
mod report;

pub use past::Pending;
pub use report::{ToolCall, ToolStep, Usage};

/// How often an answer that is no answer is asked for again.
const ASK_AGAIN: u32 = 5;
/// What is longer than this is told piece by piece: a client reads events up to a length only, ours up to 16 MiB.
const LONGEST_TEXT: usize = 8 << 20;

/// All that an agent needs to work on one message.
pub struct Turn {
    engine: Arc<Engine>,
    live: Arc<Live>,
    control: Arc<Control>,
    message: Message,
    /// When the message came, if the task waited for its caller then.
    woke: Option<Timestamp>,
    resumed: bool,
    presenter: Presenter,
    /// Whether the agent has said how the turn ends.
    ended: bool,
}

/// What somebody answered to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The whole message.
    pub message: Message,
}

impl Answer {
    /// Its text.
    pub fn text(&self) -> String {
        self.message.text()
    }
}

impl Turn {
    pub(crate) fn new(engine: Arc<Engine>, live: Arc<Live>, control: Arc<Control>, cue: Cue, resumed: bool) -> Self {
        let presenter = Presenter::new(engine.options.manners.style, engine.options.exposure);
        let Cue { message, woke } = cue;
        Self { engine, live, control, message, woke, resumed, presenter, ended: false }
    }

    /// The message to work on.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Its text.
    pub fn text_in(&self) -> String {
        self.message.text()
    }

    /// The task's id.
    pub fn task_id(&self) -> &TaskId {
        &self.live.id
    }

    /// The conversation that the task belongs to.
    pub fn context_id(&self) -> &ContextId {
        &self.live.context_id
    }

    /// The authenticated caller; empty when nothing is protected.
    pub fn caller(&self) -> &str {
        &self.live.scope.owner
    }

    /// The tenant; empty for the default one.
    pub fn tenant(&self) -> &str {
        &self.live.scope.tenant
    }

    /// The task as it is now, with its history and artifacts.
    pub fn task(&self) -> Task {
        self.live.read(Task::clone).0
    }

    /// The tasks that the message refers to, as far as they exist and are the caller's.
    pub async fn references(&self) -> Vec<Task> {
        let mut found = Vec::new();
        for id in &self.message.reference_task_ids {
            if let Ok(task) = self.engine.whole_task(&self.live.scope, id).await {
                found.push(task);
            }
        }
        found
    }

    /// Whether a crash interrupted this turn and the agent is to go on with its own session.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Whether the turn is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.control.stop.is_cancelled()
    }

    /// Resolves when the turn is to stop. The agent then has a short while to clean up.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.control.stop.clone().cancelled_owned()
    }

    /// The agent works, though there is nothing to tell of it: it is not silent.
    pub fn sign_of_life(&self) {
        self.control.sign_of_life();
    }

    /// Lets a program leave that has said how its turn ends: that takes none of the turn's time.
    pub(crate) async fn off_the_clock<T>(&self, leaving: impl Future<Output = T>) -> T {
        self.control.wait();
        let left = leaving.await;
        self.control.go_on();
        left
    }

    /// Answers with a piece of text.
    pub async fn text(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        self.say(text.into(), false).await
    }

    /// Answers with the last piece of text.
    pub async fn last_text(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        self.say(text.into(), true).await
    }

    async fn say(&mut self, text: String, last: bool) -> Result<(), AgentError> {
        if let Some(opening) = self.presenter.opening() {
            self.emit(opening).await?;
        }
        let mut rest = &*text;
        while rest.len() > LONGEST_TEXT {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LONGEST_TEXT));
            rest = after;
            let update = self.presenter.text(piece.to_owned(), false);
            self.emit(update).await?;
        }
        let rest = if rest.len() == text.len() { text } else { rest.to_owned() };
        let update = self.presenter.text(rest, last);
        self.emit(update).await
    }

    /// Reports thinking.
    pub async fn think(&mut self, text: &str) -> Result<(), AgentError> {
        let update = self.presenter.think(text);
        self.emit_some(update).await
    }

    /// Reports a step of a tool call.
    pub async fn tool(&mut self, call: ToolCall<'_>) -> Result<(), AgentError> {
        if let Some(file) = self.presenter.tool_file(&call) {
            self.file(&file.name, &file.media_type, file.bytes).await?;
        }
        let update = self.presenter.tool(call);
        self.emit_some(update).await
    }

    /// Reports what the turn does, in words.
    pub async fn status(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        self.note(text, Metadata::new()).await
    }

    /// The same, with more for those who know the extensions of `metadata`.
    pub async fn note(&mut self, text: impl Into<String>, metadata: Metadata) -> Result<(), AgentError> {
        let message = Message { metadata, ..Message::from_agent(vec![Part::text(text)]) };
        let update = self.presenter.note(message);
        self.emit_some(update).await
    }

    /// Hands over a whole artifact.
    pub async fn artifact(&mut self, artifact: Artifact) -> Result<(), AgentError> {
        let artifact = self.keep_apart(artifact, false).await?;
        let update = self.presenter.artifact(artifact, false, true);
        self.emit(update).await
    }

    /// Hands over a piece of an artifact; `append` adds it to the one with the same id.
    pub async fn chunk(&mut self, artifact: Artifact, append: bool, last: bool) -> Result<(), AgentError> {
        let artifact = self.keep_apart(artifact, append).await?;
        let update = self.presenter.artifact(artifact, append, last);
        self.emit(update).await
    }

    /// Reports which conversation and which model of its own the agent uses.
    pub async fn introduce(&mut self, session: Option<&str>, model: Option<&str>) -> Result<(), AgentError> {
        let update = self.presenter.introduced(session, model);
        self.emit_some(update).await
    }

    /// Reports usage; the last report counts.
    pub fn usage(&mut self, usage: Usage) {
        self.presenter.usage(usage);
    }

    /// Ends the turn as completed, with words.
    pub async fn complete(&mut self, parts: Vec<Part>) -> Result<(), AgentError> {
        self.finish(TaskState::Completed, parts).await
    }

    /// Ends the turn as failed.
    pub async fn fail(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        self.finish(TaskState::Failed, vec![Part::text(text)]).await
    }

    /// Refuses the task.
    pub async fn reject(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        self.finish(TaskState::Rejected, vec![Part::text(text)]).await
    }

    /// Ends the turn; the task waits for credentials that come by another way.
    pub async fn require_auth(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        let mut message = Message::from_agent(vec![Part::text(text)]);
        message.metadata.insert(INPUT.into(), json!({ "kind": "credentials", "id": MessageId::fresh().as_str() }));
        self.finish_with(TaskState::AuthRequired, Some(message)).await
    }

    /// Ends the turn; the next message on the task begins another.
    pub async fn require_input(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        self.finish(TaskState::InputRequired, vec![Part::text(text)]).await
    }

    /// Asks a question and waits for the answer.
    pub async fn ask(&mut self, question: &str) -> Result<Answer, AgentError> {
        let about = json!({ "kind": "question", "id": MessageId::fresh().as_str() });
        let asked = self.put_question(question, about).await?;
        let wait = self.engine.options.approval_timeout;
        let message = self.wait_for_answer(asked, wait).await?.ok_or(AgentError::Unanswered)?;
        Ok(Answer { message })
    }

    /// Asks whether something may be done, and waits for the decision. Rules of the configuration answer
    /// first; nobody there to decide, or nobody in time: the answer is no. Every decision is logged.
    ///
    /// An agent that no longer wants to know drops the future and says [`Turn::working`].
    pub async fn approve(&mut self, approval: impl Into<Approval>) -> Result<Decision, AgentError> {
        let wait = self.engine.options.approval_timeout;
        let request = Request::new(approval.into(), wait);
        let decision = match self.engine.options.approvals.decide(&request.approval) {
            Some(decision) => decision,
            None => self.ask_for(&request, wait).await?,
        };
        match self.presenter.decided(&request, &decision) {
            // Whatever is shown of the decision: nobody waits for it any more.
            None if self.state().is_interrupted() => self.working().await?,
            update => self.emit_some(update).await?,
        }
        Ok(decision)
    }

    async fn ask_for(&mut self, request: &Request, wait: Duration) -> Result<Decision, AgentError> {
        let hitl = self.message.extensions.iter().any(|uri| uri == HITL);
        let deadline = Instant::now() + wait;
        for _ in 0..ASK_AGAIN {
            let asked = self.put_message(request.message(INPUT, hitl), Some(request)).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(message) = self.wait_for_answer(asked, left).await? else { break };
            if let Some(decision) = request.decided_by(&message) {
                return Ok(decision);
            }
        }
        Ok(request.approval.decide(false, DecidedBy::Nobody))
    }

    /// Says that the turn goes on, after it waited for something that is no longer wanted.
    pub async fn working(&mut self) -> Result<(), AgentError> {
        self.emit(Update::state(TaskState::Working)).await
    }

    /// What this agent remembers of the conversation.
    pub async fn session(&self) -> Result<Session, AgentError> {
        let session = self.engine.store.session(&self.session_key()).await;
        session.map(Option::unwrap_or_default).map_err(|error| AgentError::Internal(error.to_string()))
    }

    /// Remembers something of the conversation, for the next turn and beyond a restart.
    pub async fn keep_session(&mut self, session: Session) -> Result<(), AgentError> {
        let kept = self.engine.store.put_session(&self.session_key(), session, super::now()).await;
        kept.map_err(|error| AgentError::Internal(error.to_string()))
    }

    fn session_key(&self) -> SessionKey {
        SessionKey {
            scope: self.live.scope.clone(),
            context_id: self.live.context_id.clone(),
            agent: self.live.agent.clone(),
        }
    }

    async fn put_question(&mut self, text: &str, about: Value) -> Result<Seq, AgentError> {
        let mut message = Message::from_agent(vec![Part::text(text)]);
        message.metadata.insert(INPUT.into(), about);
        self.put_message(message, None).await
    }

    async fn put_message(&mut self, mut message: Message, approval: Option<&Request>) -> Result<Seq, AgentError> {
        message.task_id = self.live.id.clone();
        message.context_id = self.live.context_id.clone();
        let update = self.presenter.asked(message, approval);
        self.put(update).await
    }

    /// Lets others run while it waits; `None` when the time is over.
    async fn wait_for_answer(&self, asked: Seq, most: Duration) -> Result<Option<Message>, AgentError> {
        let waiting = Waiting::begin(&self.engine, &self.control);
        let answer = tokio::select! {
            answer = tokio::time::timeout(most, self.answer_after(asked)) => answer.ok().flatten(),
            () = self.control.stop.cancelled() => None,
        };
        drop(waiting);
        if self.is_cancelled() || self.live.is_lost() {
            return Err(AgentError::Stopped);
        }
        Ok(answer)
    }

    /// `None` when no answer can come any more.
    async fn answer_after(&self, asked: Seq) -> Option<Message> {
        loop {
            if let Some(message) = self.live.next_message(asked) {
                return Some(message);
            }
            if self.live.is_lost() {
                return None;
            }
            self.live.answered.notified().await;
        }
    }

    async fn finish(&mut self, state: TaskState, parts: Vec<Part>) -> Result<(), AgentError> {
        let message = (!parts.is_empty()).then(|| Message::from_agent(parts));
        self.finish_with(state, message).await
    }

    async fn finish_with(&mut self, state: TaskState, message: Option<Message>) -> Result<(), AgentError> {
        let Ending { before, last } = self.presenter.end(state, message);
        for update in before {
            self.emit(update).await?;
        }
        self.emit(last).await?;
        self.ended = true;
        Ok(())
    }

    async fn emit_some(&mut self, update: Option<Update>) -> Result<(), AgentError> {
        match update {
            Some(update) => self.emit(update).await,
            // What nobody is shown is a sign of life all the same.
            None => {
                self.control.sign_of_life();
                Ok(())
            }
        }
    }

    async fn emit(&mut self, update: Update) -> Result<(), AgentError> {
        self.put(update).await.map(drop)
    }

    async fn put(&mut self, update: Update) -> Result<Seq, AgentError> {
        if self.ended {
            return Err(AgentError::Internal("the agent reported something after the end of its turn".into()));
        }
        let seq = self.write(update)?;
        self.control.sign_of_life();
        self.live.keep_pace(seq).await.map_err(|_| AgentError::Stopped)?;
        Ok(seq)
    }

    fn write(&self, update: Update) -> Result<Seq, AgentError> {
        self.live.write(update).map_err(|error: WriteError| {
            tracing::debug!(task = %self.live.id, %error, "the turn cannot write");
            AgentError::Stopped
        })
    }

    /// Whether the agent has said how the turn ends.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// What ends the turn when the agent has not said how.
    pub(crate) fn closing(&mut self, state: TaskState, message: Option<Message>) -> Ending {
        self.presenter.end(state, message)
    }

    /// Goes on with a message that arrived meanwhile. Its answer is an artifact of its own.
    pub(crate) fn take(&mut self, message: Message) {
        let options = &self.engine.options;
        self.presenter = Presenter::new(options.manners.style, options.exposure);
        self.message = message;
        self.woke = None;
        self.resumed = false;
        self.ended = false;
    }
}

/// A turn that waits for an answer: its place is another's, and no deadline runs. However the waiting
/// ends, also when the agent gives it up, the turn takes its place again.
struct Waiting<'a> {
    engine: &'a Engine,
    control: &'a Control,
}

impl<'a> Waiting<'a> {
    fn begin(engine: &'a Arc<Engine>, control: &'a Control) -> Self {
        control.wait();
        engine.pause();
        Self { engine, control }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.engine.schedule.resume();
        self.control.go_on();
    }
}
