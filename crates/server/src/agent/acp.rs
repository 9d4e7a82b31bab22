//! Agents that speak the Agent Client Protocol (version 1, over stdio).
//!
//! ```text
//!   AcpAgent ── pool: one process per conversation, kept between turns
//!      └─ session: initialize, then resume, load or new
//!      └─ turn: prompt, updates, permissions, questions, cancel, end
//!   connection: the process and its queue ── peer: JSON-RPC, line by line; outbox: answers to it
//!      └─ desk: files (fs) and commands (terminal) of the workspace
//! ```

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1::ErrorCode;
use async_trait::async_trait;
use nuncio_protocol::{AgentCapabilities, AgentCard, AgentExtension, AgentSkill, Error};

mod connection;
mod desk;
mod elicit;
mod fs;
mod outbox;
pub(crate) mod peer;
mod permission;
mod pool;
mod prompt;
mod session;
mod terminal;
mod turn;
mod updates;

use self::connection::Connection;
use self::desk::Desk;
use self::pool::{Attached, Key, Pool};
use self::session::{OpenError, Opened, Opening};
use self::terminal::Terminals;
use self::turn::{End, Run};
use super::process::child::{Child, Start};
use super::process::environment::environment;
use super::process::kin::Kin;
use super::redact::redact;
use super::workplace::Workplace;
use super::{AFTER_A_CRASH, Agent, AgentError, Arrival, OnCrash, Pending, Session, Turn, told_of};
use crate::workspace::Workspace;

/// What the agent may ask of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offers {
    /// To read text files of the workspace.
    pub read: bool,
    /// To write them.
    pub write: bool,
    /// To run commands in the workspace.
    pub terminals: bool,
}

impl Default for Offers {
    fn default() -> Self {
        Self { read: true, write: true, terminals: true }
    }
}

/// How an agent is run.
#[derive(Clone, Debug)]
pub struct AcpOptions {
    /// The program and its arguments, for example `gemini --acp`.
    pub command: Vec<String>,
    /// Variables of the server's environment that it may see beside those of its kind.
    pub allowed_variables: Vec<String>,
    /// Variables to set for it.
    pub variables: Vec<(String, String)>,
    /// What it may ask of the server.
    pub offers: Offers,
    /// The way to authenticate; without one, the agent has to be signed in already.
    pub auth_method: Option<String>,
    /// How long it may take to be ready for a prompt.
    pub start_timeout: Duration,
    /// How long a stopped agent may take to end.
    pub grace: Duration,
    /// How long an agent waits for the next turn of its conversation.
    pub idle_timeout: Duration,
    /// How many agents may wait for their next turn.
    pub most_idle: usize,
    /// Where it works, and what it takes.
    pub workplace: Workplace,
    /// The programs of this server.
    pub kin: Kin,
}

impl AcpOptions {
    /// The usual options for a command.
    pub fn new(command: Vec<String>, workplace: Workplace, kin: Kin) -> Self {
        Self {
            command,
            allowed_variables: Vec::new(),
            variables: Vec::new(),
            offers: Offers::default(),
            auth_method: None,
            start_timeout: Duration::from_secs(120),
            grace: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30 * 60),
            most_idle: 32,
            workplace,
            kin,
        }
    }
}

/// An agent that is a program which speaks the Agent Client Protocol.
pub struct AcpAgent {
    options: AcpOptions,
    pool: Arc<Pool>,
}

impl AcpAgent {
    /// An agent that runs a command.
    pub fn new(options: AcpOptions) -> Self {
        let pool = Pool::new(options.idle_timeout, options.most_idle, options.grace);
        Self { options, pool }
    }

    /// What the program is called.
    fn name(&self) -> String {
        let program = self.options.command.first().map_or("", String::as_str);
        std::path::Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn start(&self, workspace: &Workspace) -> Result<Connection, AgentError> {
        let failed = |text: String| AgentError::Failed(text);
        let Some((program, args)) = self.options.command.split_first() else {
            return Err(failed("No command is configured for the agent".into()));
        };
        let own = variables_of(&self.options.command);
        let seen = environment(std::env::vars_os(), &own, &self.options.allowed_variables, &self.options.variables);
        let cwd = workspace.cwd().map_err(|error| {
            tracing::warn!(%error, "a workspace cannot be entered");
            failed("Invalid A2A workspace metadata.".into())
        })?;
        let start = Start { program, args, environment: &seen, cwd: cwd.path() };
        let child = Child::start(start, &self.options.kin).map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::NotFound => "it is not installed, or not on the server's PATH".to_owned(),
                std::io::ErrorKind::PermissionDenied => "it is not executable".to_owned(),
                _ => error.to_string(),
            };
            tracing::error!(program, %error, "an agent cannot be started");
            failed(format!("Failed to spawn \"{}\": {hint}", self.name()))
        })?;
        // Commands see less than the agent: not its credentials.
        let small: Vec<(OsString, OsString)> = environment(std::env::vars_os(), &[], &[], &[]);
        let terminals = Terminals::new(workspace.clone(), small, self.options.kin.clone());
        Ok(Connection::new(child, Desk::new(workspace.clone(), self.options.offers, terminals)))
    }

    /// The agent of the turn's conversation: the one that waits, or a new one that goes back to it.
    async fn attach(
        &self,
        turn: &mut Turn,
        key: &Key,
        workspace: &Workspace,
        session: &Session,
    ) -> Result<Option<(Attached, Opened)>, AgentError> {
        if let Some(mut attached) = self.pool.take(key) {
            if session.native.as_ref() == Some(&attached.session) {
                attached.connection.begin();
                return Ok(Some((attached, Opened::Continued)));
            }
            attached.connection.end_soon(self.options.grace);
        }
        let mut connection = self.start(workspace)?;
        connection.begin();
        let opening = Opening {
            offers: self.options.offers,
            auth_method: self.options.auth_method.as_deref(),
            workspace,
            session: session.native.as_deref(),
            timeout: self.options.start_timeout,
        };
        let opened = tokio::select! {
            biased;
            () = turn.cancelled() => return Err(AgentError::Stopped),
            opened = opening.open(connection) => opened,
        };
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(OpenError::Failed(text)) => Err(AgentError::Failed(redact(&text, workspace.path()))),
            Err(OpenError::AuthRequired(text)) => turn.require_auth(text).await.map(|()| None),
        }
    }

    /// Sends the prompt of a turn, and follows it to its end. Returns whether the agent can be kept.
    async fn prompt(
        &self,
        turn: &mut Turn,
        attached: &mut Attached,
        opened: Opened,
        workspace: &Workspace,
        session: Session,
    ) -> (bool, Result<(), AgentError>) {
        let blocks = match self.blocks(turn, attached, opened, workspace).await {
            Ok(blocks) => blocks,
            Err(error) => return (true, Err(error)),
        };
        let mut run = Run::begin(turn, attached, workspace.path(), blocks);
        let answer = match run.follow(self.options.grace).await {
            Ok(End::Answered(answer)) => answer,
            Ok(End::Gone(why)) => return (false, Err(AgentError::Failed(redact(&why, workspace.path())))),
            Ok(End::Stopped { quietly }) => return (quietly, Err(AgentError::Stopped)),
            Err(error) => return (false, Err(error)),
        };
        // A conversation that the agent does not find is looked for anew at the next turn.
        let is_lost = matches!(&answer, Err(error) if error.code == ErrorCode::ResourceNotFound);
        match run.finish(answer).await {
            Ok(true) => (true, Ok(())),
            // A conversation that nothing was said in yet begins anew after the sign-in.
            Ok(false) if opened != Opened::Continued => {
                (false, turn.keep_session(Session { native: None, ..session }).await)
            }
            Ok(false) => (false, Ok(())),
            Err(error) => (!is_lost, Err(error)),
        }
    }

    async fn blocks(
        &self,
        turn: &Turn,
        attached: &Attached,
        opened: Opened,
        workspace: &Workspace,
    ) -> Result<Vec<agent_client_protocol_schema::v1::ContentBlock>, AgentError> {
        let mut blocks = self.blocks_of_message(turn, attached, opened, workspace).await?;
        if turn.resumed() {
            blocks.insert(0, prompt::text_block(AFTER_A_CRASH));
        }
        Ok(blocks)
    }

    async fn blocks_of_message(
        &self,
        turn: &Turn,
        attached: &Attached,
        opened: Opened,
        workspace: &Workspace,
    ) -> Result<Vec<agent_client_protocol_schema::v1::ContentBlock>, AgentError> {
        if opened == Opened::Continued
            && let Some(Pending::Approval(Some(decision))) = turn.answering()
        {
            return Ok(vec![prompt::text_block(told_of(&decision))]);
        }
        let is_unseen = opened != Opened::Continued || turn.answering() == Some(Pending::Credentials);
        let parts = if is_unseen { turn.said_so_far() } else { turn.message().parts.clone() };
        let (workspace, takes) = (workspace.clone(), attached.can.prompt_capabilities.clone());
        let read = tokio::task::spawn_blocking(move || prompt::blocks(&parts, &workspace, &takes)).await;
        let read = read.map_err(|_| AgentError::Internal("the parts of a message could not be read".into()))?;
        read.map_err(|error| AgentError::Failed(error.to_string()))
    }
}

#[async_trait]
impl Agent for AcpAgent {
    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        let interrupted = || AgentError::Failed("The task was interrupted by a restart".into());
        let (workspace, mut session) = self.options.workplace.open(turn).await?;
        if turn.resumed() && session.native.is_none() {
            return Err(interrupted());
        }
        let key = Key {
            tenant: turn.tenant().to_owned(),
            caller: turn.caller().to_owned(),
            context: turn.context_id().as_str().to_owned(),
        };
        let Some((mut attached, opened)) = self.attach(turn, &key, &workspace, &session).await? else {
            return Ok(());
        };
        if opened != Opened::Continued {
            session.native = Some(attached.session.clone());
            turn.keep_session(session.clone()).await?;
        }
        if opened == Opened::Forgotten {
            if turn.resumed() {
                self.pool.keep(key, attached);
                return Err(interrupted());
            }
            turn.status("The agent cannot go back to this conversation: it begins a new one").await?;
        }
        let (keep, result) = self.prompt(turn, &mut attached, opened, &workspace, session).await;
        if keep {
            self.pool.keep(key, attached);
        } else {
            attached.connection.end_soon(self.options.grace / 2);
        }
        result
    }

    async fn admit(&self, arrival: &Arrival<'_>) -> Result<(), Error> {
        self.options.workplace.admit(arrival).await
    }

    /// Whether a conversation can be continued is known only when the agent runs again.
    fn on_crash(&self) -> OnCrash {
        OnCrash::Resume
    }

    fn card(&self) -> AgentCard {
        let name = self.name();
        let plan = AgentExtension {
            uri: updates::PLAN.into(),
            description: "The agent's plan, in the metadata of status messages".into(),
            ..AgentExtension::default()
        };
        AgentCard {
            description: format!("The coding agent {name}, in a workspace of this server"),
            name,
            version: env!("CARGO_PKG_VERSION").into(),
            capabilities: AgentCapabilities { extensions: vec![plan], ..AgentCapabilities::default() },
            default_input_modes: vec!["text/plain".into(), "application/json".into(), "image/*".into()],
            default_output_modes: vec!["text/plain".into(), "application/json".into()],
            skills: vec![AgentSkill {
                id: "code-task".into(),
                name: "Code task".into(),
                description: "Works on the code of its workspace as it is told".into(),
                tags: ["coding", "refactor", "edit", "test"].map(str::to_owned).to_vec(),
                examples: ["Fix the failing test", "Explain this repository"].map(str::to_owned).to_vec(),
                ..AgentSkill::default()
            }],
            ..AgentCard::default()
        }
    }
}

/// The variables that the well-known agents are configured by, as far as the command names one of them.
fn variables_of(command: &[String]) -> Vec<&'static str> {
    const KNOWN: &[(&str, &[&str])] = &[
        ("gemini", &["GEMINI_*", "GOOGLE_*"]),
        ("qwen", &["QWEN_*", "DASHSCOPE_*", "OPENAI_*"]),
        ("opencode", &["OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*"]),
        ("goose", &["GOOSE_*", "ANTHROPIC_*", "OPENAI_*", "GOOGLE_*", "OPENROUTER_*"]),
        ("vibe", &["VIBE_*", "MISTRAL_*"]),
        ("cursor-agent", &["CURSOR_*"]),
        ("copilot", &["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"]),
        ("kimi", &["KIMI_*", "MOONSHOT_*"]),
        ("claude", &["ANTHROPIC_*", "CLAUDE_*"]),
        ("codex", &["CODEX_*", "OPENAI_*"]),
    ];
    // Also where a launcher such as npx runs it.
    let is_named = |name: &str| command.iter().any(|word| word.contains(name));
    KNOWN.iter().filter(|(name, _)| is_named(name)).flat_map(|(_, variables)| variables.iter().copied()).collect()
}

#[cfg(test)]
mod tests;
