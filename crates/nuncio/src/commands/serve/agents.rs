//! The agents that a configuration asks for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{AgentCard, AgentSkill, Error, Message, Part};
use nuncio_server::agent::acp::{AcpAgent, AcpOptions};
use nuncio_server::agent::demo::Demo;
use nuncio_server::agent::process::claude::ClaudeCode;
use nuncio_server::agent::process::codex::Codex;
use nuncio_server::agent::process::codex_exec::CodexExec;
use nuncio_server::agent::process::cursor::Cursor;
use nuncio_server::agent::process::drive::{ProcessAgent, ProcessOptions};
use nuncio_server::agent::process::gemini::Gemini;
use nuncio_server::agent::process::generic::{Approvals, Generic, PromptAt};
use nuncio_server::agent::process::goose::Goose;
use nuncio_server::agent::process::kin::Kin;
use nuncio_server::agent::process::opencode::OpenCode;
use nuncio_server::agent::process::qwen::QwenCode;
use nuncio_server::agent::process::report::Program;
use nuncio_server::agent::process::vibe::Vibe;
use nuncio_server::agent::upstream::UpstreamAgent;
use nuncio_server::agent::workplace::Workplace;
use nuncio_server::agent::{Agent, AgentError, Arrival, OnCrash, Turn};
use nuncio_server::engine::roster::{Roster, Served};
use nuncio_server::workspace::{Accepts, Workspaces};

use crate::config::{AgentEntry, AgentKind, Config, PromptBy, Skill, Variable};

/// So long a start waits for the card of an agent elsewhere.
const INTRODUCTION: Duration = Duration::from_secs(2);

const NO_ACP_COMMAND: &str = "an ACP agent needs a command: nuncio serve --agent acp -- gemini --acp";
const NO_ADDRESS: &str = "an upstream agent needs an address: nuncio serve --agent upstream --upstream https://…";

/// The programs of the server with this configuration: the same after a restart, if its data is.
pub(crate) fn kin(config: &Config) -> Kin {
    let folder = std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
    Kin::new(&folder.to_string_lossy())
}

/// What is served, in a few words.
pub(crate) fn describe(config: &Config) -> String {
    let names: Vec<String> = entries(config)
        .iter()
        .map(|entry| {
            let kind = entry.kind.name();
            if entry.name == kind { kind.to_owned() } else { format!("{} ({kind})", entry.name) }
        })
        .collect();
    names.join(", ")
}

/// Every agent, each with all that it needs.
pub(crate) async fn roster(config: &Config, kin: &Kin) -> Result<Roster, String> {
    let mut all = Vec::new();
    for entry in entries(config) {
        let agent = build(config, &entry, kin).await.map_err(|text| format!("agent `{}`: {text}", entry.name))?;
        all.push(Served {
            name: entry.name.as_str().into(),
            agent: Arc::new(Named {
                agent,
                name: card_name(config, &entry),
                door: door(config, &entry)?,
                entry: entry.clone(),
                config: config.clone(),
            }),
            tenant: entry.tenant.as_deref().map(Into::into),
            profile: entry.work,
        });
    }
    Roster::new(all).ok_or_else(|| "no agent is configured".into())
}

/// The list of agents, or the one that the other keys describe. What an entry lacks comes from those.
pub(crate) fn entries(config: &Config) -> Vec<AgentEntry> {
    let one = AgentEntry {
        name: config.agent.name().into(),
        kind: config.agent,
        command: config.command.clone(),
        auth_method: config.auth_method.clone(),
        upstream: config.upstream.clone(),
        upstream_token: config.upstream_token.clone(),
        ..AgentEntry::default()
    };
    let all = if config.agents.is_empty() { vec![one] } else { config.agents.clone() };
    let fill = |entry: AgentEntry| AgentEntry {
        model: entry.model.or_else(|| config.model.clone()),
        auth_method: entry.auth_method.or_else(|| config.auth_method.clone()),
        workspace: Some(entry.workspace.unwrap_or_else(|| config.workspace.clone())),
        workspace_roots: match entry.workspace_roots.is_empty() {
            true => config.workspace_roots.clone(),
            false => entry.workspace_roots,
        },
        env: config.env.iter().chain(&entry.env).cloned().collect(),
        ..entry
    };
    all.into_iter().map(fill).collect()
}

fn card_name(config: &Config, entry: &AgentEntry) -> Option<String> {
    match config.agents.is_empty() {
        true => config.name.clone(),
        false => Some(entry.name.clone()),
    }
}

async fn build(config: &Config, entry: &AgentEntry, kin: &Kin) -> Result<Arc<dyn Agent>, String> {
    match entry.kind {
        AgentKind::Demo => Ok(Arc::new(Demo)),
        AgentKind::Acp => acp(config, entry, kin),
        AgentKind::Upstream => upstream(entry).await,
        _ => {
            let program = program(config, entry)?;
            let accepts = Accepts { images: program.takes_images(), ..accepts(config) };
            let options = process_options(config, entry, kin, accepts)?;
            Ok(Arc::new(ProcessAgent::new(program, options)))
        }
    }
}

fn acp(config: &Config, entry: &AgentEntry, kin: &Kin) -> Result<Arc<dyn Agent>, String> {
    if entry.command.is_empty() {
        return Err(NO_ACP_COMMAND.into());
    }
    let workplace = workplace(config, entry, Accepts { images: true, ..accepts(config) })?;
    Ok(Arc::new(AcpAgent::new(AcpOptions {
        allowed_variables: passed(&entry.env),
        variables: set(&entry.env),
        auth_method: entry.auth_method.clone(),
        grace: config.cancel_grace,
        idle_timeout: config.context_idle_timeout,
        ..AcpOptions::new(command(&entry.command), workplace, kin.clone())
    })))
}

/// The agent behind another address. Its card is waited for a moment; a server without it starts all the same.
async fn upstream(entry: &AgentEntry) -> Result<Arc<dyn Agent>, String> {
    let (url, options) = upstream_of(entry)?;
    let agent = UpstreamAgent::new(url, options).map_err(|error| format!("upstream: {error}"))?;
    let agent = Arc::new(agent);
    agent.clone().introduce(INTRODUCTION).await;
    Ok(agent)
}

/// Where that agent is, and how to come in there.
pub(crate) fn upstream_of(entry: &AgentEntry) -> Result<(&str, nuncio_client::Options), String> {
    let url = entry.upstream.as_deref().ok_or(NO_ADDRESS)?;
    let options = match &entry.upstream_token {
        Some(token) => nuncio_client::Options::bearer(token.expose()),
        None => nuncio_client::Options::default(),
    };
    Ok((url, options))
}

fn process_options(config: &Config, entry: &AgentEntry, kin: &Kin, accepts: Accepts) -> Result<ProcessOptions, String> {
    Ok(ProcessOptions {
        command: command(&entry.command),
        model: entry.model.clone(),
        force: super::policy(config).never_asks(),
        allowed_variables: passed(&entry.env),
        variables: set(&entry.env),
        grace: config.cancel_grace,
        context_pack: config.context_pack,
        workplace: workplace(config, entry, accepts)?,
        kin: kin.clone(),
    })
}

fn program(config: &Config, entry: &AgentEntry) -> Result<Arc<dyn Program>, String> {
    Ok(match entry.kind {
        AgentKind::ClaudeCode => Arc::new(ClaudeCode),
        AgentKind::Codex => Arc::new(Codex),
        AgentKind::CodexExec => Arc::new(CodexExec),
        AgentKind::Cursor => Arc::new(Cursor),
        AgentKind::OpenCode => Arc::new(OpenCode),
        AgentKind::Gemini => Arc::new(Gemini),
        AgentKind::Qwen => Arc::new(QwenCode),
        AgentKind::Vibe => Arc::new(Vibe),
        AgentKind::Goose => Arc::new(Goose),
        AgentKind::Demo | AgentKind::Acp | AgentKind::Upstream | AgentKind::Generic => {
            let Some(binary) = entry.command.first() else {
                return Err("a generic agent needs a command: nuncio serve -- COMMAND".into());
            };
            let approvals = Approvals::new(config.approval_pattern.as_deref(), Some(&config.approval_response))
                .map_err(|error| format!("approval-pattern: {error}"))?;
            let prompt_at = match config.prompt_by {
                PromptBy::Argument => PromptAt::Argument,
                PromptBy::Stdin => PromptAt::Stdin,
                PromptBy::Line => PromptAt::Line,
            };
            Arc::new(Generic::new(binary).prompt_at(prompt_at).approvals(approvals))
        }
    })
}

/// The program that an agent runs, if it runs one.
pub(crate) fn program_of(config: &Config, entry: &AgentEntry) -> Result<Option<String>, String> {
    let usual = match entry.kind {
        AgentKind::Demo | AgentKind::Upstream => return Ok(None),
        AgentKind::Acp if entry.command.is_empty() => return Err(NO_ACP_COMMAND.into()),
        AgentKind::Acp => String::new(),
        _ => program(config, entry)?.binary().to_owned(),
    };
    Ok(Some(command(&entry.command).into_iter().next().unwrap_or(usual)))
}

/// Whether the folders of an agent are there.
pub(crate) fn check_folders(config: &Config, entry: &AgentEntry) -> Result<(), String> {
    workplace(config, entry, accepts(config)).map(drop)
}

/// A program given by a path is found from the server's folder, not from the agent's.
fn command(command: &[String]) -> Vec<String> {
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut()
        && program.contains('/')
        && let Ok(path) = std::path::absolute(Path::new(program))
    {
        *program = path.to_string_lossy().into_owned();
    }
    command
}

fn workplace(config: &Config, entry: &AgentEntry, accepts: Accepts) -> Result<Workplace, String> {
    let folder = entry.workspace.clone().unwrap_or_else(|| ".".into());
    let mut roots = entry.workspace_roots.clone();
    if roots.is_empty() && config.dialect.works_in_temp() {
        roots.push(std::env::temp_dir());
    }
    let workspaces = Workspaces::new(folder, roots).map_err(|error| error.to_string())?;
    let workspaces = workspaces.create_missing(config.workspace_create).private(own_files(config));
    Ok(Workplace::new(workspaces, accepts))
}

/// Files and folders with the server's data and secrets.
fn own_files(config: &Config) -> Vec<PathBuf> {
    let files = [&config.file, &config.keyring_dir, &config.store_password_file, &config.audit_log];
    let mut all: Vec<PathBuf> = files.into_iter().flatten().cloned().collect();
    all.push(config.data_dir.clone());
    all.extend(config.callers.iter().filter_map(|caller| caller.file.clone()));
    all.extend(config.tls.iter().map(|tls| tls.key.clone()));
    all.extend(config.signing_keys.iter().map(|key| key.file.clone()));
    all
}

/// What the agents take of a message.
fn accepts(config: &Config) -> Accepts {
    Accepts {
        strict: config.dialect.is_strict(),
        text_types: config.text_types.clone(),
        binary_types: config.binary_types.clone(),
        ..Accepts::default()
    }
}

fn passed(variables: &[Variable]) -> Vec<String> {
    let name = |variable: &Variable| match variable {
        Variable::Pass(name) => Some(name.clone()),
        Variable::Set(..) => None,
    };
    variables.iter().filter_map(name).collect()
}

fn set(variables: &[Variable]) -> Vec<(String, String)> {
    let pair = |variable: &Variable| match variable {
        Variable::Set(name, value) => Some((name.clone(), value.clone())),
        Variable::Pass(_) => None,
    };
    variables.iter().filter_map(pair).collect()
}

/// An agent whose card says what the configuration says.
struct Named {
    agent: Arc<dyn Agent>,
    /// Looks at messages for an agent that takes any.
    door: Option<Workplace>,
    name: Option<String>,
    entry: AgentEntry,
    config: Config,
}

#[async_trait::async_trait]
impl Agent for Named {
    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        self.agent.run(turn).await
    }

    async fn answer(&self, message: &Message) -> Option<Vec<Part>> {
        self.agent.answer(message).await
    }

    async fn admit(&self, arrival: &Arrival<'_>) -> Result<(), Error> {
        if let Some(door) = &self.door {
            door.admit(arrival).await?;
        }
        self.agent.admit(arrival).await
    }

    async fn canceled(&self, rest: &Turn) {
        self.agent.canceled(rest).await;
    }

    fn is_pure(&self) -> bool {
        self.agent.is_pure()
    }

    fn on_crash(&self) -> OnCrash {
        self.agent.on_crash()
    }

    fn revision(&self) -> u64 {
        self.agent.revision()
    }

    fn card(&self) -> AgentCard {
        let card = self.agent.card();
        let description = self.entry.description.clone().or_else(|| self.config.description.clone());
        AgentCard {
            name: self.name.clone().unwrap_or(card.name),
            description: description.unwrap_or(card.description),
            version: self.config.agent_version.clone().unwrap_or(card.version),
            skills: match [&self.entry.skills, &self.config.skills].into_iter().find(|skills| !skills.is_empty()) {
                Some(skills) => skills.iter().map(skill).collect(),
                None => card.skills,
            },
            default_input_modes: self.input_modes(card.default_input_modes),
            default_output_modes: or(&self.config.output_modes, card.default_output_modes),
            ..card
        }
    }
}

impl Named {
    fn input_modes(&self, own: Vec<String>) -> Vec<String> {
        let mut modes = or(&self.config.input_modes, own);
        let mut more: Vec<&String> = self.config.text_types.iter().chain(&self.config.binary_types).collect();
        more.sort_unstable();
        for mode in more {
            if !modes.contains(mode) {
                modes.push(mode.clone());
            }
        }
        modes
    }
}

/// The demo agent takes whatever comes; where rules are strict, somebody else looks at it.
fn door(config: &Config, entry: &AgentEntry) -> Result<Option<Workplace>, String> {
    let strict = entry.kind == AgentKind::Demo && config.dialect.is_strict();
    strict.then(|| workplace(config, entry, accepts(config))).transpose()
}

fn or(configured: &[String], own: Vec<String>) -> Vec<String> {
    if configured.is_empty() { own } else { configured.to_vec() }
}

fn skill(skill: &Skill) -> AgentSkill {
    AgentSkill {
        id: skill.id.clone(),
        name: if skill.name.is_empty() { skill.id.clone() } else { skill.name.clone() },
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        ..AgentSkill::default()
    }
}
