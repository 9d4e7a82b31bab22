//! The environment variables of coding-agent-a2a that are no plain settings: programs by kind, the
//! generic command, and routing.

use nuncio_server::agent::process::classify::Profile as Work;
use nuncio_server::agent::process::words;

use super::Config;
use super::agents::AGENTS;
use super::layers::{Environment, Sources};
use super::problem::{Origin, Problem};
use super::types::{AgentEntry, AgentKind};

/// Where each program is, by kind.
const PROGRAMS: [(AgentKind, &str); 5] = [
    (AgentKind::Cursor, "CURSOR_AGENT_PATH"),
    (AgentKind::ClaudeCode, "CLAUDE_CODE_PATH"),
    (AgentKind::Vibe, "VIBE_BINARY_PATH"),
    (AgentKind::Codex, "CODEX_BINARY_PATH"),
    (AgentKind::OpenCode, "OPENCODE_BINARY_PATH"),
];

/// Fills in what the variables say and nothing else has said.
pub(super) fn apply(config: &mut Config, sources: &Sources, environment: &Environment, problems: &mut Vec<Problem>) {
    let set = |name: &str| environment.text(name).filter(|text| !text.is_empty());
    if config.command.is_empty() {
        config.command = match config.agent {
            AgentKind::Generic => generic(&set, problems),
            kind => program(kind, &set),
        };
    }
    let by_default = |key: &str| sources.get(key).is_none_or(|source| source.origin == Origin::Default);
    if config.agents.is_empty() && by_default("agents") {
        config.agents = routing(&set, problems);
    }
    for agent in config.agents.iter_mut().filter(|agent| agent.command.is_empty()) {
        agent.command = program(agent.kind, &set);
    }
}

fn program(kind: AgentKind, set: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let variable = PROGRAMS.iter().find(|(of, _)| *of == kind);
    variable.and_then(|(_, name)| set(name)).into_iter().collect()
}

/// `AGENT_BINARY` and `AGENT_ARGS`.
fn generic(set: &dyn Fn(&str) -> Option<String>, problems: &mut Vec<Problem>) -> Vec<String> {
    let Some(binary) = set("AGENT_BINARY") else { return Vec::new() };
    match words::split(&set("AGENT_ARGS").unwrap_or_default()) {
        Ok(args) => std::iter::once(binary).chain(args).collect(),
        Err(error) => {
            problems.push(Problem { line: None, text: format!("`AGENT_ARGS`: {error}") });
            vec![binary]
        }
    }
}

/// `ROUTING__COMPLEX__ADAPTER` and its like: all three profiles, or none.
fn routing(set: &dyn Fn(&str) -> Option<String>, problems: &mut Vec<Problem>) -> Vec<AgentEntry> {
    let variable = |work: Work, what: &str| format!("ROUTING__{}__{what}", work.name());
    // The middle one comes first: it is for whatever nothing else is for.
    let all = [Work::Mid, Work::Complex, Work::Routine];
    let any = all.iter().any(|work| ["ADAPTER", "MODEL"].iter().any(|what| set(&variable(*work, what)).is_some()));
    if !any {
        return Vec::new();
    }
    let mut agents = Vec::new();
    for work in all {
        let name = variable(work, "ADAPTER");
        let adapter = set(&name);
        let kind = adapter.as_deref().and_then(|adapter| AGENTS.names.iter().find(|(known, _)| *known == adapter));
        match kind {
            Some((_, kind)) => agents.push(AgentEntry {
                name: work.name().to_lowercase(),
                kind: *kind,
                work: Some(work),
                model: set(&variable(work, "MODEL")),
                ..AgentEntry::default()
            }),
            None => {
                let known = AGENTS.list();
                let text = match adapter {
                    Some(adapter) => format!("`{name}`: unknown agent `{adapter}`; supported values: {known}"),
                    None => format!("`{name}` is missing: routing needs an agent for COMPLEX, MID and ROUTINE"),
                };
                problems.push(Problem { line: None, text });
            }
        }
    }
    agents
}
