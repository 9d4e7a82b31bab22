//! One turn with an agent: the prompt, everything that the agent says and wants meanwhile, and the end.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CancelNotification, ContentBlock, Error, ErrorCode, PromptRequest, RequestPermissionRequest,
};
use nuncio_protocol::{Artifact, ArtifactId, Metadata, Part, Value, codec, json};

use super::connection::{Connection, Event, Heard};
use super::elicit::Question;
use super::peer::{Incoming, words};
use super::permission;
use super::pool::Attached;
use super::session::how_to_sign_in;
use super::updates::{PLAN, Said, Step, Updates};
use crate::agent::{AgentError, ToolCall, ToolStep, Turn};

/// How much of what an agent said at once is reported at once.
const AT_ONCE: usize = 1000;
/// How often an answer that is no answer is asked for again.
const ASK_AGAIN: u32 = 5;

/// How a prompt ended.
pub(crate) enum End {
    Answered(Result<Value, Error>),
    /// The agent is gone.
    Gone(String),
    /// The turn is to stop; whether the agent has stopped too.
    Stopped {
        quietly: bool,
    },
}

/// A turn with an agent.
pub(crate) struct Run<'a> {
    turn: &'a mut Turn,
    attached: &'a mut Attached,
    updates: Updates,
    /// What the agent said while somebody was asked.
    backlog: VecDeque<Heard>,
    /// The artifact that changes go to.
    changes: Option<ArtifactId>,
    /// The number of the prompt.
    prompt: u64,
}

impl<'a> Run<'a> {
    /// Sends a prompt.
    pub(crate) fn begin(
        turn: &'a mut Turn,
        attached: &'a mut Attached,
        root: &Path,
        blocks: Vec<ContentBlock>,
    ) -> Self {
        let updates = Updates::new(root, attached.cost);
        // Some agents still tell of the past when they have said that they are ready.
        attached.connection.forget();
        let prompt =
            attached.connection.request("session/prompt", &PromptRequest::new(attached.session.clone(), blocks));
        Self { turn, attached, updates, backlog: VecDeque::new(), changes: None, prompt }
    }

    /// Follows the agent until it answers the prompt, is gone, or has to stop. It then has `grace`.
    pub(crate) async fn follow(&mut self, grace: Duration) -> Result<End, AgentError> {
        loop {
            let heard = match self.backlog.pop_front() {
                Some(heard) => heard,
                None => tokio::select! {
                    biased;
                    () = self.turn.cancelled() => return Ok(self.stop(grace).await),
                    heard = self.attached.connection.next() => heard,
                },
            };
            if self.turn.is_cancelled() {
                self.backlog.push_front(heard);
                return Ok(self.stop(grace).await);
            }
            self.turn.sign_of_life();
            let done = match heard.event {
                Event::Gone(why) => return Ok(End::Gone(why)),
                Event::Said(Incoming::Answer { id, result }) if id == self.prompt => {
                    self.attached.cost = self.updates.cost();
                    return Ok(End::Answered(result));
                }
                Event::Said(Incoming::Notification { method, params }) if method == "session/update" => {
                    self.report(params).await
                }
                Event::Said(Incoming::Request { id, method, params }) => self.decide(id, &method, params).await,
                Event::Said(_) => Ok(()),
            };
            match done {
                Err(AgentError::Stopped) => return Ok(self.stop(grace).await),
                other => other?,
            }
        }
    }

    /// Reports an update, and with it all that are there already.
    async fn report(&mut self, params: Value) -> Result<(), AgentError> {
        let mut said = Vec::new();
        self.read(params, &mut said);
        while said.len() < AT_ONCE
            && let Some(heard) = self.backlog.pop_front().or_else(|| self.attached.connection.next_if_said())
        {
            match heard.event {
                Event::Said(Incoming::Notification { method, params }) if method == "session/update" => {
                    self.read(params, &mut said);
                }
                _ => {
                    self.backlog.push_front(heard);
                    break;
                }
            }
        }
        for one in joined(said) {
            self.tell(one).await?;
        }
        Ok(())
    }

    fn read(&mut self, params: Value, said: &mut Vec<Said>) {
        // Agents inside of the agent may have conversations of their own.
        if params["sessionId"].as_str().is_some_and(|session| session != self.attached.session) {
            return;
        }
        let connection = &self.attached.connection;
        self.updates.read(update_of(params), &|terminal| connection.printed(terminal), said);
    }

    async fn tell(&mut self, said: Said) -> Result<(), AgentError> {
        match said {
            Said::Text(text) => self.turn.text(text).await,
            Said::Think(text) => self.turn.think(&text).await,
            Said::Status(text) => self.turn.status(text).await,
            Said::Plan { text, entries } => {
                self.turn.note(text, Metadata::from_iter([(PLAN.to_owned(), entries)])).await
            }
            Said::Tool { id, name, step } => {
                let step = match &step {
                    Step::Started => ToolStep::Started,
                    Step::Input(input) => ToolStep::Input(input),
                    Step::Delta(text) => ToolStep::Delta(text),
                    Step::Completed(output) => ToolStep::Completed(output),
                    Step::Failed(error) => ToolStep::Failed(error),
                };
                self.turn.tool(ToolCall { id: &id, name: &name, step }).await
            }
            Said::Change(part) => {
                let append = self.changes.is_some();
                let artifact_id = self.changes.get_or_insert_with(ArtifactId::fresh).clone();
                let name = "changes".to_owned();
                let artifact = Artifact { artifact_id, name, parts: vec![part], ..Artifact::default() };
                self.turn.chunk(artifact, append, false).await
            }
            Said::Artifact(artifact) => self.turn.artifact(artifact).await,
        }
    }

    /// Handles what somebody has to decide.
    async fn decide(&mut self, id: Value, method: &str, params: Value) -> Result<(), AgentError> {
        let answer = match method {
            "session/request_permission" => self.permit(&id, &params).await,
            "elicitation/create" => self.ask(&id, &params).await,
            _ => Ok(Err(Error::method_not_found())),
        };
        match answer {
            Ok(answer) => {
                self.attached.connection.answer(&id, answer);
                Ok(())
            }
            Err(error) => {
                // Whoever stops the turn answers it, after telling the agent why.
                let event = Event::Said(Incoming::Request { id, method: method.to_owned(), params });
                self.backlog.push_front(Heard::again(event));
                Err(error)
            }
        }
    }

    async fn permit(&mut self, id: &Value, params: &Value) -> Result<Result<Value, Error>, AgentError> {
        let request = match codec::from_value::<RequestPermissionRequest>(known_options(params.clone())) {
            Ok(request) => request,
            Err(error) => return Ok(Err(Error::invalid_params().data(json!(error.to_string())))),
        };
        // Some agents tell of a call only here.
        self.announce(&request).await?;
        let approval = permission::approval(&request, &self.updates.calls);
        let decision = self.turn.approve(approval.clone());
        let waiting = Waiting { connection: &mut self.attached.connection, backlog: &mut self.backlog };
        match waiting.for_answer(id, None, self.prompt, decision).await {
            Waited::Answer(decision) => {
                let decision = decision?;
                if !decision.approved {
                    self.updates.calls.deny(&approval.call);
                }
                Ok(Ok(permission::outcome(&approval, &decision)))
            }
            Waited::Withdrawn | Waited::Done => {
                self.turn.working().await?;
                Ok(Err(Error::request_cancelled()))
            }
        }
    }

    async fn announce(&mut self, request: &RequestPermissionRequest) -> Result<(), AgentError> {
        let (connection, mut said) = (&self.attached.connection, Vec::new());
        let printed = |terminal: &str| connection.printed(terminal);
        self.updates.announce(request.tool_call.clone(), &printed, &mut said);
        for one in joined(said) {
            self.tell(one).await?;
        }
        Ok(())
    }

    async fn ask(&mut self, id: &Value, params: &Value) -> Result<Result<Value, Error>, AgentError> {
        let Some(question) = Question::read(params) else {
            return Ok(Err(Error::invalid_params().data(json!("this mode is not known"))));
        };
        let mut text = question.text.clone();
        for _ in 0..ASK_AGAIN {
            let answer = self.turn.ask(&text);
            let waiting = Waiting { connection: &mut self.attached.connection, backlog: &mut self.backlog };
            let answer = match waiting.for_answer(id, question.link.as_deref(), self.prompt, answer).await {
                Waited::Answer(Ok(answer)) => question.answer(&answer.message),
                Waited::Answer(Err(AgentError::Unanswered)) => break,
                Waited::Answer(Err(error)) => return Err(error),
                Waited::Done => Ok(json!({ "action": "accept" })),
                Waited::Withdrawn => {
                    self.turn.working().await?;
                    return Ok(Err(Error::request_cancelled()));
                }
            };
            match answer {
                Ok(answer) => {
                    self.turn.working().await?;
                    return Ok(Ok(answer));
                }
                Err(why) => text = format!("{why}\n{}", question.text),
            }
        }
        self.turn.working().await?;
        Ok(Ok(json!({ "action": "cancel" })))
    }

    /// Tells the agent to stop, leaves nobody waiting, and gives it half of the grace to say that it did.
    async fn stop(&mut self, grace: Duration) -> End {
        let connection = &mut self.attached.connection;
        connection.notify("session/cancel", &CancelNotification::new(self.attached.session.clone()));
        connection.stop_commands();
        let prompt = self.prompt;
        let is_end = |event: &Event| match event {
            Event::Said(Incoming::Answer { id, .. }) if *id == prompt => Some(true),
            Event::Gone(_) => Some(false),
            Event::Said(_) => None,
        };
        for heard in self.backlog.drain(..) {
            if let Some(quietly) = is_end(&heard.event) {
                return End::Stopped { quietly };
            }
            connection.decline(&heard.event);
        }
        let quiet = async {
            loop {
                let heard = connection.next().await;
                if let Some(quietly) = is_end(&heard.event) {
                    return quietly;
                }
                connection.decline(&heard.event);
            }
        };
        End::Stopped { quietly: tokio::time::timeout(grace / 2, quiet).await.unwrap_or(false) }
    }

    /// Ends the turn as the agent's answer says. False if the agent needs credentials first.
    pub(crate) async fn finish(self, answer: Result<Value, Error>) -> Result<bool, AgentError> {
        let turn = self.turn;
        if let Some(usage) = self.updates.usage(answer.as_ref().ok().and_then(|answer| answer.get("usage"))) {
            turn.usage(usage);
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if error.code == ErrorCode::AuthRequired => {
                turn.require_auth(how_to_sign_in(&error, &self.attached.auth_methods)).await?;
                return Ok(false);
            }
            Err(error) => return Err(AgentError::Failed(words(&error))),
        };
        let completed = |text: &str| vec![Part::text(text)];
        match answer["stopReason"].as_str() {
            Some("max_tokens") => turn.complete(completed("The agent stopped at its limit of tokens")).await?,
            Some("max_turn_requests") => turn.complete(completed("The agent stopped at its limit of requests")).await?,
            Some("refusal") => turn.reject("The agent refuses to go on").await?,
            Some("cancelled") => return Err(AgentError::Stopped),
            _ => {}
        }
        Ok(true)
    }
}

/// What is needed of a run while somebody is asked.
struct Waiting<'a> {
    connection: &'a mut Connection,
    backlog: &'a mut VecDeque<Heard>,
}

enum Waited<T> {
    Answer(T),
    /// The agent no longer wants to know.
    Withdrawn,
    /// What the link leads to is done.
    Done,
}

impl Waiting<'_> {
    /// Waits for an answer to the request `id` while the agent talks on.
    async fn for_answer<T>(
        self,
        id: &Value,
        link: Option<&str>,
        prompt: u64,
        answer: impl Future<Output = T>,
    ) -> Waited<T> {
        let over = |event: &Event| match event {
            Event::Gone(_) => Some(Waited::Withdrawn),
            Event::Said(Incoming::Answer { id, .. }) if *id == prompt => Some(Waited::Withdrawn),
            Event::Said(Incoming::Notification { method, params }) => match method.as_str() {
                "$/cancel_request" if params["requestId"] == *id => Some(Waited::Withdrawn),
                "elicitation/complete" if link.is_some() && params["elicitationId"].as_str() == link => {
                    Some(Waited::Done)
                }
                _ => None,
            },
            Event::Said(_) => None,
        };
        // It may be over already: said while somebody was asked for something else.
        if let Some(over) = self.backlog.iter().find_map(|heard| over(&heard.event)) {
            return over;
        }
        let mut answer = std::pin::pin!(answer);
        loop {
            let heard = tokio::select! {
                biased;
                answer = &mut answer => return Waited::Answer(answer),
                heard = self.connection.next() => heard,
            };
            let over = over(&heard.event);
            self.backlog.push_back(heard);
            if let Some(over) = over {
                return over;
            }
        }
    }
}

/// The update in the parameters of a notification, whatever these are.
pub(super) fn update_of(mut params: Value) -> Value {
    params.get_mut("update").map(Value::take).unwrap_or_default()
}

/// Options of a kind that nobody knows are as good as none.
pub(super) fn known_options(mut params: Value) -> Value {
    let known = |kind: &str| matches!(kind, "allow_once" | "allow_always" | "reject_once" | "reject_always");
    if let Some(options) = params.get_mut("options").and_then(Value::as_array_mut) {
        options.retain(|option| option["kind"].as_str().is_some_and(known));
    }
    params
}

/// Text that was said at once is one event.
fn joined(said: Vec<Said>) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::with_capacity(said.len());
    for one in said {
        match (all.last_mut(), one) {
            (Some(Said::Text(before)), Said::Text(more)) | (Some(Said::Think(before)), Said::Think(more)) => {
                before.push_str(&more);
            }
            (_, one) => all.push(one),
        }
    }
    all
}
