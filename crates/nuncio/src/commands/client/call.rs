//! `nuncio client call`: sends a message, prints the answer as it comes, asks what the agent asks.

use std::time::Duration;

use futures_util::StreamExt;
use nuncio_client::{Client, ClientError, EventStream, SendOptions};
use nuncio_protocol::{
    Artifact, CancelTaskRequest, GetTaskRequest, Message, Metadata, Part, SendMessageRequest, SendMessageResponse,
    StreamResponse, Task, TaskId, TaskState, TaskStatus, codec,
};
use nuncio_server::present::USAGE;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::again::Again;
use super::answer::{Answer, IAC_CODE, Piece};
use super::args::CallArgs;
use super::ask::Question;
use super::connect::{Agent, Card, connect, failure};
use super::kinds::{bad_end, state_name};
use super::notes::{Note, notes};
use super::settings::Settings;
use super::{parts, print_json, save};
use crate::failure::{Failure, Kind};
use crate::terminal::{Keyboard, Screen, Typed, is_interactive, one_line};

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(120);

/// Runs the command.
pub(crate) async fn run(settings: &Settings, args: &CallArgs) -> Result<(), Failure> {
    let parts = parts::read(settings.prompt.as_deref(), &args.file, &args.data)?;
    let cwd = cwd(settings)?;
    // Set by somebody, it is a limit for all of it; the default only limits the wait for each answer.
    let deadline = settings.is_set("timeout").then(|| Instant::now() + settings.timeout);
    let Agent { client, address } = connect(settings, Card::Needed).await?;
    let answer = known(settings, &client).await;
    let message = first(settings, parts, cwd, &client);
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut call = Call {
        again: Again::new(settings, &address),
        answer,
        interactive: !args.no_input && !settings.is_json() && is_interactive(),
        screen: Screen::new(),
        task: None,
        status: TaskStatus::default(),
        asked: Metadata::new(),
        direct: None,
        canceling: false,
        settings,
        client,
        // Until here Ctrl-C ends the process; from here on there is a task to think of.
        keyboard: Keyboard::new()?,
        deadline,
        tick,
    };
    let done = call.converse(message, args.idempotency_key.as_deref()).await;
    let ended = call.screen.end_answer();
    call.screen.close();
    done.and(ended)
}

/// The folder to work in, in full.
fn cwd(settings: &Settings) -> Result<Option<String>, Failure> {
    let Some(folder) = &settings.cwd else { return Ok(None) };
    // Not resolved further: the agent may be on another machine, where links are other ones.
    let full = std::path::absolute(folder)
        .map_err(|error| Failure::usage(vec![format!("cannot use `{}` as --cwd: {error}", folder.display())]))?;
    Ok(Some(full.display().to_string()))
}

/// Whoever continues a task knows what it made before.
async fn known(settings: &Settings, client: &Client) -> Answer {
    let mut answer = Answer::of(client.card());
    if let Some(id) = settings.task_id.as_deref() {
        let request = GetTaskRequest { id: id.into(), history_length: Some(0), ..GetTaskRequest::default() };
        // If that fails, sending fails as well, and says why.
        if let Ok(task) = client.get(request).await {
            answer.know(&task);
        }
    }
    answer
}

fn first(settings: &Settings, parts: Vec<Part>, cwd: Option<String>, client: &Client) -> Message {
    let mut message = Message::from_user(parts);
    message.context_id = settings.context_id.as_deref().unwrap_or_default().into();
    message.task_id = settings.task_id.as_deref().unwrap_or_default().into();
    message.metadata = settings.metadata.clone();
    // Where nobody says so, only agents hear of this machine's folders that are made to be told.
    let here = || std::env::current_dir().ok().map(|here| here.display().to_string());
    let cwd = cwd.or_else(|| declares(client, IAC_CODE).then(here).flatten());
    if let Some(cwd) = cwd {
        let own = message.metadata.entry("iac_code").or_insert_with(|| nuncio_protocol::json!({}));
        if let Some(own) = own.as_object_mut() {
            own.insert("cwd".into(), cwd.into());
        }
    }
    message
}

fn declares(client: &Client, uri: &str) -> bool {
    client.card().is_some_and(|card| card.capabilities.extensions.iter().any(|extension| extension.uri == uri))
}

/// One conversation with an agent.
struct Call<'a> {
    settings: &'a Settings,
    client: Client,
    again: Again,
    screen: Screen,
    keyboard: Keyboard,
    answer: Answer,
    /// The task, as soon as the agent has named it.
    task: Option<Task>,
    status: TaskStatus,
    /// The metadata of the update that interrupted the task.
    asked: Metadata,
    /// An answer without a task.
    direct: Option<Message>,
    interactive: bool,
    canceling: bool,
    deadline: Option<Instant>,
    tick: Interval,
}

impl Call<'_> {
    /// Sends the message, and what the person answers to questions.
    async fn converse(&mut self, mut message: Message, key: Option<&str>) -> Result<(), Failure> {
        let mut key = key.map(str::to_owned);
        loop {
            self.turn(message, key.take()).await?;
            if self.is_left() {
                return Ok(());
            }
            let Some(question) = self.question().filter(|_| self.interactive) else { break };
            let Some(parts) = self.ask(&question).await? else { break };
            message = Message::from_user(parts);
            if let Some(task) = &self.task {
                (message.task_id, message.context_id) = (task.id.clone(), task.context_id.clone());
            }
            self.answer.next_turn();
        }
        let mut keyboard = Keyboard::new()?;
        let done = tokio::select! {
            done = self.finish() => Some(done),
            () = keyboard.interrupt() => None,
        };
        done.unwrap_or_else(|| Err(self.left()))
    }

    /// Whether nobody wants any more of the answer. The task goes on.
    fn is_left(&self) -> bool {
        self.screen.is_left() && self.settings.save.is_none()
    }

    /// What the agent waits for, if it does.
    fn question(&self) -> Option<Question> {
        let question = Question::of(&self.status, &self.asked);
        let waits = self.status.state == TaskState::InputRequired;
        question.filter(|question| waits && (question.is_choice() || !self.answer.rests_on_input()))
    }

    /// Sends one message and follows what it starts until the task is over or waits.
    async fn turn(&mut self, message: Message, key: Option<String>) -> Result<(), Failure> {
        // Servers that declare this run messages with the same key once, so that a send may be repeated.
        let key = key.or_else(|| declares(&self.client, USAGE).then(|| message.message_id.to_string()));
        let how = SendOptions { idempotency_key: key, ..SendOptions::default() };
        let request = SendMessageRequest { message: Some(message), ..SendMessageRequest::default() };
        let client = self.client.clone();
        let mut events = self.opened(Box::pin(client.stream_with(request, &how))).await?;
        while let Some(response) = self.next(&mut events).await? {
            self.show(&response)?;
            self.remember(response);
            if self.is_left() || self.status.state.is_interrupted() {
                break;
            }
        }
        Ok(())
    }

    /// Waits for the beginning of the answer.
    async fn opened(
        &mut self,
        mut opening: impl Future<Output = Result<EventStream, ClientError>> + Unpin,
    ) -> Result<EventStream, Failure> {
        loop {
            tokio::select! {
                events = &mut opening => return events.map_err(failure),
                () = self.keyboard.interrupt() => return Err(self.left()),
                () = until(self.deadline) => return Err(self.late()),
                _ = self.tick.tick() => self.screen.tick(),
            }
        }
    }

    async fn next(&mut self, events: &mut EventStream) -> Result<Option<StreamResponse>, Failure> {
        loop {
            tokio::select! {
                event = events.next() => {
                    let event = event.transpose().map_err(|error| self.cut(error))?;
                    return Ok(event.map(|event| event.response));
                }
                () = self.keyboard.interrupt() => self.interrupted().await?,
                () = until(self.deadline) => return Err(self.late()),
                _ = self.tick.tick() => self.screen.tick(),
            }
        }
    }

    fn show(&mut self, response: &StreamResponse) -> Result<(), Failure> {
        if self.settings.is_json() {
            if self.settings.stream {
                let line = format!("{}\n", String::from_utf8_lossy(&codec::encode(response)));
                self.screen.answer(&line)?;
            }
            return Ok(());
        }
        if let StreamResponse::StatusUpdate(update) = response {
            for note in notes(&update.metadata) {
                match note {
                    Note::Thinking(text) => self.screen.think(&text),
                    Note::Line(text) => self.screen.note(&text),
                }
            }
        }
        for piece in self.answer.event(response) {
            self.tell(piece)?;
        }
        Ok(())
    }

    fn tell(&mut self, piece: Piece) -> Result<(), Failure> {
        match piece {
            Piece::Answer(text) => self.screen.answer(&text),
            Piece::Talk(text) => {
                self.screen.note(&text);
                Ok(())
            }
        }
    }

    fn remember(&mut self, response: StreamResponse) {
        match response {
            StreamResponse::Message(message) => self.direct = Some(message),
            StreamResponse::Task(task) => {
                self.status = task.status.clone();
                self.asked = task.metadata.clone();
                self.task = Some(task);
            }
            StreamResponse::StatusUpdate(update) => {
                let task = self.task.get_or_insert_with(Task::default);
                (task.id, task.context_id) = (update.task_id, update.context_id);
                (self.status, self.asked) = (update.status, update.metadata);
            }
            StreamResponse::ArtifactUpdate(update) => {
                let task = self.task.get_or_insert_with(Task::default);
                (task.id, task.context_id) = (update.task_id, update.context_id);
            }
        }
    }

    /// Asks the person. Nothing means that nobody wants to answer now.
    async fn ask(&mut self, question: &Question) -> Result<Option<Vec<Part>>, Failure> {
        self.screen.end_answer()?;
        self.screen.say(&question.text);
        loop {
            self.screen.ask(&question.hint());
            let typed = tokio::select! {
                typed = self.keyboard.typed() => typed,
                () = until(self.deadline) => return Err(self.late()),
            };
            self.screen.typed();
            match typed {
                Typed::Line(line) => match question.reply(&line) {
                    Some(parts) => return Ok(Some(parts)),
                    None => self.screen.say("That is not one of the answers."),
                },
                Typed::Interrupt => {
                    self.interrupted().await?;
                    if self.canceling {
                        return Ok(None);
                    }
                }
                Typed::End => {
                    self.screen.interrupted();
                    return Ok(None);
                }
            }
        }
    }

    /// Ctrl-C: asks whether to cancel. A second one leaves.
    async fn interrupted(&mut self) -> Result<(), Failure> {
        let Some(id) = self.task_id().filter(|_| self.interactive && !self.canceling) else { return Err(self.left()) };
        self.screen.interrupted();
        self.screen.ask("Cancel the task? y/n (Ctrl-C again leaves it running):");
        let typed = self.keyboard.typed().await;
        self.screen.typed();
        match typed {
            Typed::Line(line) if matches!(line.trim().to_lowercase().as_str(), "y" | "yes") => {}
            Typed::Line(_) => return Ok(()),
            Typed::Interrupt | Typed::End => {
                self.screen.interrupted();
                return Err(self.left());
            }
        }
        self.canceling = true;
        let client = self.client.clone();
        let canceled = tokio::select! {
            canceled = client.cancel(CancelTaskRequest { id, ..CancelTaskRequest::default() }) => canceled,
            () = self.keyboard.interrupt() => return Err(self.left()),
        };
        match canceled {
            Ok(task) => {
                self.status = task.status;
                self.screen.note("The agent was asked to stop.");
            }
            Err(error) => self.screen.say(&error.to_string()),
        }
        Ok(())
    }

    /// Everything was said: the rest of the answer, the files, the verdict.
    async fn finish(&mut self) -> Result<(), Failure> {
        self.screen.close();
        let whole = match self.task_id().filter(|_| self.needs_whole()) {
            Some(id) => {
                Some(self.client.get(GetTaskRequest { id, ..GetTaskRequest::default() }).await.map_err(failure)?)
            }
            None => None,
        };
        if self.settings.is_json() {
            if !self.settings.stream {
                self.document(whole.as_ref())?;
            }
        } else {
            self.rest_of_answer(whole.as_ref())?;
        }
        self.screen.end_answer()?;
        self.save(whole.as_ref()).await?;
        self.verdict()
    }

    fn task_id(&self) -> Option<TaskId> {
        self.task.as_ref().map(|task| task.id.clone())
    }

    /// Whether the events do not suffice.
    fn needs_whole(&self) -> bool {
        let untold = self.answer.is_empty() && self.status.message.is_none() && bad_end(self.status.state).is_none();
        self.settings.save.is_some() || if self.settings.is_json() { !self.settings.stream } else { untold }
    }

    /// One document for machines.
    fn document(&self, whole: Option<&Task>) -> Result<(), Failure> {
        let response = match (whole, &self.direct) {
            (Some(task), _) => SendMessageResponse::Task(task.clone()),
            (None, Some(message)) => SendMessageResponse::Message(message.clone()),
            (None, None) => return Err(Failure::failed("the agent answered with nothing")),
        };
        print_json(&response)
    }

    fn rest_of_answer(&mut self, whole: Option<&Task>) -> Result<(), Failure> {
        let done = self.status.state == TaskState::Completed
            || (self.status.state == TaskState::InputRequired && self.answer.rests_on_input());
        if !done {
            return Ok(());
        }
        let words = self.answer.last(&self.status.clone());
        let said = whole.filter(|_| self.answer.is_empty()).and_then(|task| self.answer.history(task));
        words.or(said).map_or(Ok(()), |piece| self.tell(piece))
    }

    async fn save(&mut self, whole: Option<&Task>) -> Result<(), Failure> {
        let Some(folder) = &self.settings.save else { return Ok(()) };
        let direct = self.direct.as_ref().map(|message| Artifact {
            artifact_id: message.message_id.as_str().into(),
            parts: message.parts.clone(),
            ..Artifact::default()
        });
        let artifacts = whole.map_or_else(|| direct.into_iter().collect(), |task| task.artifacts.clone());
        for line in save::save(folder, &artifacts, &self.client).await? {
            self.screen.say(&line);
        }
        Ok(())
    }

    /// Says where the task stands and how to go on; a task that failed is a failed command.
    fn verdict(&mut self) -> Result<(), Failure> {
        let Some(task) = &self.task else { return Ok(()) };
        let (id, context) = (one_line(task.id.as_str()), one_line(task.context_id.as_str()));
        let said = self.status.message.as_ref().map(Message::text).unwrap_or_default();
        let state = state_name(self.status.state);
        if let Some(end) = bad_end(self.status.state) {
            let words = if said.is_empty() { String::new() } else { format!(": {}", one_line(&said)) };
            return Err(Failure::failed(format!("{end}{words}")));
        }
        let waits = self.question().is_some() || self.status.state == TaskState::AuthRequired;
        if waits {
            if !self.interactive {
                let text = self.question().map_or(said, |question| question.text);
                self.screen.say(&text);
            }
            let line = self.again.line("call", &[("--task-id", &id), ("--context-id", &context)]);
            self.screen.say(&format!("The task waits ({state}). Answer with:\n  {line} --prompt '…'"));
            return Ok(());
        }
        self.screen.note(&format!("task {id}, context {context}: {state}"));
        Ok(())
    }

    fn follow_line(&self) -> Option<String> {
        let id = one_line(self.task_id()?.as_str());
        Some(self.again.line("task-subscribe", &[("--task-id", &id)]))
    }

    /// The person left. The task goes on.
    fn left(&self) -> Failure {
        let goes_on = self.follow_line().map(|line| format!("; the task goes on, follow it with:\n  {line}"));
        Failure::new(Kind::Interrupted, format!("interrupted{}", goes_on.unwrap_or_default()))
    }

    /// The time is over. The task goes on.
    fn late(&self) -> Failure {
        let goes_on = match self.follow_line() {
            Some(line) => format!("The task goes on; follow it with:\n  {line}"),
            None => "The message may have arrived all the same: look at the agent's tasks.".into(),
        };
        Failure::new(Kind::Timeout, format!("no end within {:?}. {goes_on}", self.settings.timeout))
    }

    /// The events ended in the middle.
    fn cut(&self, error: ClientError) -> Failure {
        let failed = failure(error);
        match self.follow_line() {
            Some(line) => failed.with(&format!("follow the task with:\n  {line}")),
            None => failed,
        }
    }
}

/// Waits until then; for ever without a time.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
