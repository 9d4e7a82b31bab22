//! Runs a program for a turn: starts it, hands its reports to the turn, and ends it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_protocol::{AgentCard, AgentSkill, Error};

use super::child::{Child, Patience, Start};
use super::context_pack::augment;
use super::environment::environment;
use super::kin::Kin;
use super::lines::Read;
use super::report::{Dialect, File, Input, Launch, Order, Program, Report, Step};
use crate::agent::redact::redact;
use crate::agent::workplace::Workplace;
use crate::agent::{
    AFTER_A_CRASH, Agent, AgentError, Approval, Arrival, OnCrash, Pending, Session, ToolCall, ToolStep, Turn, told_of,
};
use crate::workspace::{Attachment, Workspace};

mod waiting;

use waiting::{Waiting, settles};

/// How long a program is silent in the middle of a line before that counts as a question.
const HESITATION: Duration = Duration::from_millis(200);
/// How much a program may report while an answer is awaited, before it has to wait too.
const BACKLOG: usize = 1000;

/// How a program is run.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// The program and its first arguments; without one, the usual name of its kind.
    pub command: Vec<String>,
    /// The model to ask for.
    pub model: Option<String>,
    /// Whether the program may do everything without asking.
    pub force: bool,
    /// Variables of the server's environment that it may see beside those of its kind.
    pub allowed_variables: Vec<String>,
    /// Variables to set for it.
    pub variables: Vec<(String, String)>,
    /// Whether the program is told about the repository that it works in.
    pub context_pack: bool,
    /// How long a stopped program may take to end.
    pub grace: Duration,
    /// Where it works, and what it takes.
    pub workplace: Workplace,
    /// The programs of this server.
    pub kin: Kin,
}

/// An agent that is a program, started once per turn.
pub struct ProcessAgent {
    program: Arc<dyn Program>,
    options: ProcessOptions,
}

impl ProcessAgent {
    /// An agent that runs `program`.
    pub fn new(program: Arc<dyn Program>, options: ProcessOptions) -> Self {
        Self { program, options }
    }

    fn binary(&self) -> &str {
        self.options.command.first().map_or_else(|| self.program.binary(), String::as_str)
    }

    /// What the program is asked to do.
    async fn order(&self, turn: &Turn, workspace: &Workspace, session: &Session) -> Result<Order, AgentError> {
        let (prompt, attachments) = match turn.answering() {
            // What had asked is gone, and what would be started knows nothing of it.
            Some(Pending::Approval(_)) if !self.program.can_resume() => return Err(interrupted()),
            Some(Pending::Approval(Some(decision))) if session.native.is_some() => (told_of(&decision), Vec::new()),
            _ => {
                let is_unseen = self.program.can_resume() && session.native.is_none();
                let parts = if is_unseen { turn.said_so_far() } else { turn.message().parts.clone() };
                let prompt = self.options.workplace.prompt(parts, workspace).await?;
                let text = match self.options.context_pack {
                    true => augment(workspace.path(), &prompt.text).await,
                    false => prompt.text,
                };
                (text, prompt.attachments)
            }
        };
        let prompt = if turn.resumed() { format!("{AFTER_A_CRASH}\n\n{prompt}") } else { prompt };
        Ok(Order {
            prompt,
            attachments: attachments.into_iter().map(file).collect(),
            session: session.native.clone().filter(|_| self.program.can_resume()),
            model: self.options.model.clone(),
            force: self.options.force,
            workspace: workspace.path().to_owned(),
        })
    }

    fn start(&self, launch: &Launch, workspace: &Workspace) -> Result<Child, AgentError> {
        let own = self.options.command.get(1..).unwrap_or_default();
        let args: Vec<String> = own.iter().chain(&launch.args).cloned().collect();
        let set: Vec<(String, String)> = launch.env.iter().chain(&self.options.variables).cloned().collect();
        let environment =
            environment(std::env::vars_os(), self.program.variables(), &self.options.allowed_variables, &set);
        let cwd = workspace.cwd().map_err(|error| {
            tracing::warn!(%error, "a workspace cannot be entered");
            AgentError::Failed("Invalid A2A workspace metadata.".into())
        })?;
        let start = Start { program: self.binary(), args: &args, environment: &environment, cwd: cwd.path() };
        Child::start(start, &self.options.kin).map_err(|error| {
            let name = std::path::Path::new(self.binary()).file_name().unwrap_or_default().display().to_string();
            let hint = match error.kind() {
                std::io::ErrorKind::NotFound => "it is not installed, or not on the server's PATH".to_owned(),
                std::io::ErrorKind::PermissionDenied => "it is not executable".to_owned(),
                std::io::ErrorKind::ArgumentListTooLong => {
                    "the prompt is too long for an argument; a command that reads it from its input takes any \
                     (prompt-by: stdin)"
                        .to_owned()
                }
                _ => error.to_string(),
            };
            tracing::error!(program = self.binary(), %error, "an agent cannot be started");
            AgentError::Failed(format!("Failed to spawn \"{name}\": {hint}"))
        })
    }

    /// One run of the program.
    async fn attempt(&self, turn: &mut Turn, workspace: &Workspace, session: &Session) -> Result<Ended, AgentError> {
        if turn.resumed() && session.native.is_none() {
            return Err(interrupted());
        }
        let order = self.order(turn, workspace, session).await?;
        let (launch, dialect) = self.program.start(&order);
        let mut child = self.start(&launch, workspace)?;
        match launch.input {
            Input::Closed => child.close_input(),
            Input::All(bytes) => {
                child.write(bytes);
                child.close_input();
            }
            Input::Open(bytes) => child.write(bytes),
        }
        let mut drive = Drive {
            turn,
            child,
            dialect,
            session: session.clone(),
            resumes: order.session.is_some(),
            knows: false,
            model: None,
            queue: VecDeque::new(),
            verdict: None,
            grace: self.options.grace,
        };
        drive.follow().await?;
        drive.finish().await
    }
}

#[async_trait]
impl Agent for ProcessAgent {
    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        let (workspace, mut session) = self.options.workplace.open(turn).await?;
        while self.attempt(turn, &workspace, &session).await.map_err(|error| told(error, &workspace))? == Ended::Lost {
            session.native = None;
            turn.keep_session(session.clone()).await?;
            turn.status("The conversation could not be continued, a new one begins").await?;
        }
        Ok(())
    }

    async fn admit(&self, arrival: &Arrival<'_>) -> Result<(), Error> {
        self.options.workplace.admit(arrival).await
    }

    fn on_crash(&self) -> OnCrash {
        if self.program.can_resume() { OnCrash::Resume } else { OnCrash::Fail }
    }

    fn card(&self) -> AgentCard {
        let name = self.program.name();
        let text = || vec!["text/plain".to_owned()];
        AgentCard {
            name: name.into(),
            description: format!("The coding agent {name}, in a workspace of this server"),
            version: env!("CARGO_PKG_VERSION").into(),
            default_input_modes: vec!["text/plain".into(), "application/json".into()],
            default_output_modes: vec!["text/plain".into(), "application/json".into()],
            skills: vec![AgentSkill {
                id: "code-task".into(),
                name: "Code task".into(),
                description: "Works on the code of its workspace as it is told".into(),
                tags: ["coding", "refactor", "edit", "test"].map(str::to_owned).to_vec(),
                examples: ["Fix the failing test", "Explain this repository", "Add an endpoint for health checks"]
                    .map(str::to_owned)
                    .to_vec(),
                input_modes: text(),
                output_modes: vec!["text/plain".into(), "application/json".into()],
                ..AgentSkill::default()
            }],
            ..AgentCard::default()
        }
    }
}

fn interrupted() -> AgentError {
    AgentError::Failed("The task was interrupted by a restart".into())
}

/// What the caller learns of a failure.
fn told(error: AgentError, workspace: &Workspace) -> AgentError {
    match error {
        AgentError::Failed(text) => AgentError::Failed(redact(&text, workspace.path())),
        other => other,
    }
}

/// How the program said that its turn ended.
enum Verdict {
    Done,
    Failed(String),
    AuthRequired(String),
    Rejected(String),
    Lost(String),
}

/// How a run ended that did not fail.
#[derive(PartialEq, Eq)]
enum Ended {
    Over,
    /// The conversation to be continued is not there any more, and nothing was done.
    Lost,
}

/// One run of a program.
struct Drive<'a> {
    turn: &'a mut Turn,
    child: Child,
    dialect: Box<dyn Dialect>,
    session: Session,
    /// Whether it continues a conversation of its own.
    resumes: bool,
    /// Whether it has said which conversation this is.
    knows: bool,
    /// The model that it says it uses.
    model: Option<String>,
    /// What the program reported and nobody has handled yet.
    queue: VecDeque<Report>,
    verdict: Option<Verdict>,
    grace: Duration,
}

impl Drive<'_> {
    /// Follows the program until it has said how its turn ended, or is gone.
    async fn follow(&mut self) -> Result<(), AgentError> {
        while self.verdict.is_none() {
            self.handle_queue().await?;
            if self.verdict.is_some() {
                break;
            }
            let stopped = self.turn.cancelled();
            let read = tokio::select! {
                biased;
                () = stopped => return self.stop().await,
                read = self.child.read(HESITATION) => read.map_err(unreadable)?,
            };
            self.turn.sign_of_life();
            match read {
                Read::Line(line) => self.take(&line),
                Read::Pause => {
                    let text = String::from_utf8_lossy(self.child.unfinished()).into_owned();
                    let mut out = Vec::new();
                    self.dialect.partial(&text, &mut out);
                    self.queue.extend(out);
                }
                Read::End => break,
            }
        }
        Ok(())
    }

    /// A line, and all others that are there already: what was said at once is reported at once.
    fn take(&mut self, line: &[u8]) {
        let mut out = Vec::new();
        self.dialect.line(&String::from_utf8_lossy(line), &mut out);
        while out.len() < BACKLOG
            && let Some(line) = self.child.buffered_line()
        {
            self.dialect.line(&String::from_utf8_lossy(&line), &mut out);
        }
        self.queue.extend(out);
    }

    async fn handle_queue(&mut self) -> Result<(), AgentError> {
        while let Some(report) = self.queue.pop_front() {
            if self.verdict.is_some() {
                // The turn is over for its caller; what the program still wants is told to it alone.
                self.tell(report);
                continue;
            }
            match self.handle(report).await {
                Err(AgentError::Stopped) => return self.stop().await,
                other => other?,
            }
        }
        Ok(())
    }

    fn tell(&mut self, report: Report) {
        match report {
            Report::Write(bytes) => self.child.write(bytes),
            Report::CloseInput => self.child.close_input(),
            _ => {}
        }
    }

    async fn handle(&mut self, report: Report) -> Result<(), AgentError> {
        match report {
            Report::Text(text) => {
                let text = self.more_text(text);
                self.turn.text(text).await
            }
            Report::Think(text) => self.turn.think(&text).await,
            Report::Tool { id, name, step } => tool(self.turn, &id, &name, &step).await,
            Report::Status(text) => self.turn.status(text).await,
            Report::Artifact(artifact) => self.turn.artifact(artifact).await,
            Report::Usage(usage) => {
                self.turn.usage(usage);
                Ok(())
            }
            Report::Session(id) => {
                self.remember(id).await?;
                self.introduce().await
            }
            Report::Model(model) => {
                self.model = Some(model);
                self.introduce().await
            }
            Report::Approve { id, approval } => self.approve(&id, approval).await,
            Report::Ask { id, question } => self.ask(&id, &question).await,
            Report::Withdraw { .. } => Ok(()),
            report @ (Report::Write(_) | Report::CloseInput) => {
                self.tell(report);
                Ok(())
            }
            Report::Done => self.end_with(Verdict::Done),
            Report::Failed(text) => self.end_with(Verdict::Failed(text)),
            Report::AuthRequired(text) => self.end_with(Verdict::AuthRequired(text)),
            Report::Rejected(text) => self.end_with(Verdict::Rejected(text)),
            Report::Lost(text) => self.end_with(Verdict::Lost(text)),
        }
    }

    #[allow(clippy::unnecessary_wraps)] // one of many answers
    fn end_with(&mut self, verdict: Verdict) -> Result<(), AgentError> {
        self.verdict = Some(verdict);
        Ok(())
    }

    /// Text that was said at once is one event.
    fn more_text(&mut self, mut text: String) -> String {
        while let Some(Report::Text(more)) = self.queue.front() {
            text.push_str(more);
            self.queue.pop_front();
        }
        text
    }

    async fn remember(&mut self, id: String) -> Result<(), AgentError> {
        self.knows = true;
        if self.session.native.as_deref() == Some(&*id) {
            return Ok(());
        }
        self.session.native = Some(id);
        self.turn.keep_session(self.session.clone()).await
    }

    /// Tells who the program is, once it has said all of that.
    async fn introduce(&mut self) -> Result<(), AgentError> {
        if let Some(Report::Session(_) | Report::Model(_)) = self.queue.front() {
            return Ok(());
        }
        let session = self.session.native.as_deref().filter(|_| self.knows);
        self.turn.introduce(session, self.model.as_deref()).await
    }

    async fn approve(&mut self, id: &str, approval: Approval) -> Result<(), AgentError> {
        if self.queue.iter().any(|report| settles(report, id)) {
            return Ok(());
        }
        let waiting = Waiting { child: &mut self.child, dialect: &mut *self.dialect, queue: &mut self.queue };
        let decision = waiting.while_asking(id, self.turn.approve(approval)).await;
        match decision {
            Some(decision) => {
                let mut out = Vec::new();
                self.dialect.decided(id, &decision?, &mut out);
                self.first(out);
                Ok(())
            }
            None => self.turn.working().await,
        }
    }

    async fn ask(&mut self, id: &str, question: &str) -> Result<(), AgentError> {
        if self.queue.iter().any(|report| settles(report, id)) {
            return Ok(());
        }
        let waiting = Waiting { child: &mut self.child, dialect: &mut *self.dialect, queue: &mut self.queue };
        let answer = match waiting.while_asking(id, self.turn.ask(question)).await {
            Some(Ok(answer)) => Some(answer.text()),
            Some(Err(AgentError::Unanswered)) => {
                self.turn.working().await?;
                None
            }
            Some(Err(error)) => return Err(error),
            None => return self.turn.working().await,
        };
        let mut out = Vec::new();
        self.dialect.answered(id, answer.as_deref(), &mut out);
        self.first(out);
        Ok(())
    }

    /// What answers the program goes before what it said meanwhile.
    fn first(&mut self, reports: Vec<Report>) {
        for report in reports.into_iter().rev() {
            self.queue.push_front(report);
        }
    }

    /// The turn is to stop: tells the program, and ends it within the grace.
    async fn stop(&mut self) -> Result<(), AgentError> {
        let mut out = Vec::new();
        self.dialect.interrupt(&mut out);
        // Whoever cannot be told gets a signal at once. The end of its input might pass for a yes.
        let patience = if out.is_empty() { Patience::at_once(self.grace) } else { Patience::within(self.grace) };
        for report in out {
            self.tell(report);
        }
        self.child.end(patience).await;
        Err(AgentError::Stopped)
    }

    /// Ends the program, and the turn as it said.
    async fn finish(&mut self) -> Result<Ended, AgentError> {
        if self.verdict.is_none() {
            // It may have closed its output before it is done.
            let stopped = self.turn.cancelled();
            tokio::select! {
                () = self.child.exited() => {}
                () = stopped => return self.stop().await.map(|()| Ended::Over),
            }
        }
        let stopped = self.turn.cancelled();
        let leaving = async {
            tokio::select! {
                exit = self.child.end(Patience::DONE) => exit,
                () = stopped => self.child.end(Patience::within(self.grace)).await,
            }
        };
        let exit = if self.verdict.is_some() { self.turn.off_the_clock(leaving).await } else { leaving.await };
        if self.verdict.is_none() {
            let mut out = Vec::new();
            self.dialect.end(&exit, &mut out);
            self.queue.extend(out);
            while let Some(report) = self.queue.pop_front() {
                // Nobody is there any more to hear an answer.
                if !matches!(report, Report::Approve { .. } | Report::Ask { .. }) && self.verdict.is_none() {
                    self.handle(report).await?;
                }
            }
        }
        match self.verdict.take() {
            Some(Verdict::Done) => {}
            Some(Verdict::Lost(_)) if self.resumes => return Ok(Ended::Lost),
            Some(Verdict::Failed(text)) if self.resumes && !self.knows && is_about_a_lost_session(&text) => {
                return Ok(Ended::Lost);
            }
            Some(Verdict::Failed(text) | Verdict::Lost(text)) => return Err(AgentError::Failed(text)),
            Some(Verdict::AuthRequired(text)) => self.turn.require_auth(text).await?,
            Some(Verdict::Rejected(text)) => self.turn.reject(text).await?,
            None => return Err(AgentError::Failed(exit.describe())),
        }
        Ok(Ended::Over)
    }
}

fn unreadable(error: std::io::Error) -> AgentError {
    match error.kind() {
        std::io::ErrorKind::InvalidData => AgentError::Failed("The agent printed a line that is too long".into()),
        _ => error.into(),
    }
}

async fn tool(turn: &mut Turn, id: &str, name: &str, step: &Step) -> Result<(), AgentError> {
    let step = match step {
        Step::Started => ToolStep::Started,
        Step::Input(input) => ToolStep::Input(input),
        Step::Delta(text) => ToolStep::Delta(text),
        Step::Completed(output) => ToolStep::Completed(output),
        Step::Failed(error) => ToolStep::Failed(error),
    };
    turn.tool(ToolCall { id, name, step }).await
}

/// Whether an explanation says that the program does not know the conversation it was to continue.
fn is_about_a_lost_session(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    let is_about = ["session", "conversation", "chat", "thread", "rollout"].iter().any(|word| reason.contains(word));
    let signs = ["not found", "no session", "no conversation", "no rollout", "invalid session", "does not exist"];
    is_about && signs.iter().any(|sign| reason.contains(sign))
}

fn file(attachment: Attachment) -> File {
    File { name: attachment.filename, media_type: attachment.media_type, bytes: attachment.bytes.into() }
}
