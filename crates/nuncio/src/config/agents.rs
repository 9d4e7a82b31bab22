//! The keys that say which agents are served, and how.

use std::path::PathBuf;

use nuncio_server::agent::process::classify::Profile as Work;
use nuncio_server::agent::process::words;
use nuncio_server::engine::approval::Rule;
use serde_json::{Value as Json, json};

use super::choice::Choice;
use super::entry::record;
use super::kind::{Kind, Path, SecretText, Text, fail};
use super::list::{Hosts, items, list_or_null};
use super::node::{Node, Value};
use super::problem::{Problem, Spot};
use super::types::{AgentEntry, AgentKind, Skill, Variable};

/// The kinds of agents.
pub(crate) const AGENTS: Choice<AgentKind> = Choice {
    what: "agent",
    names: &[
        ("demo", AgentKind::Demo),
        ("claude-code", AgentKind::ClaudeCode),
        ("codex", AgentKind::Codex),
        ("codex-exec", AgentKind::CodexExec),
        ("cursor", AgentKind::Cursor),
        ("opencode", AgentKind::OpenCode),
        ("gemini", AgentKind::Gemini),
        ("qwen", AgentKind::Qwen),
        ("vibe", AgentKind::Vibe),
        ("goose", AgentKind::Goose),
        ("generic", AgentKind::Generic),
        ("acp", AgentKind::Acp),
        ("upstream", AgentKind::Upstream),
    ],
};

/// The kinds of work that an agent can be meant for.
const WORK: Choice<Work> =
    Choice { what: "profile", names: &[("COMPLEX", Work::Complex), ("MID", Work::Mid), ("ROUTINE", Work::Routine)] };

impl AgentKind {
    /// The kind of a command that everybody knows; any other is generic.
    pub(crate) fn of_command(command: &str) -> Self {
        let name = std::path::Path::new(command).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        match name {
            "claude" => Self::ClaudeCode,
            "codex" => Self::Codex,
            "cursor-agent" => Self::Cursor,
            "opencode" => Self::OpenCode,
            "gemini" => Self::Gemini,
            "qwen" => Self::Qwen,
            "vibe" => Self::Vibe,
            "goose" => Self::Goose,
            _ => Self::Generic,
        }
    }

    /// Its name in configurations.
    pub(crate) fn name(self) -> &'static str {
        AGENTS.name(self)
    }
}

/// A program with its arguments: a list, or one line with quotes where they are needed.
pub(crate) struct CommandLine;

impl Kind for CommandLine {
    type Value = Vec<String>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let words = match &node.value {
            Value::List(items) => items.iter().map(|item| item.text().map(str::to_owned)).collect(),
            _ => match node.text().map(words::split) {
                Some(Ok(words)) => Some(words),
                Some(Err(error)) => return fail(problems, spot.problem(error)),
                None => None,
            },
        };
        match words {
            Some(words) if words.first().is_some_and(|program| !program.is_empty()) => Some(words),
            _ => fail(problems, spot.wrong(node, "a command: text, or a list of texts")),
        }
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|word| word.as_str().into()).collect())
    }

    fn schema(&self) -> Json {
        json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]})
    }
}

/// The words of a list, or of one text with commas, each with its place.
fn each<'s>(node: &Node, spot: &Spot<'s>) -> Option<Vec<(Node, Spot<'s>)>> {
    match &node.value {
        Value::List(items) => {
            Some(items.iter().enumerate().map(|(n, item)| (item.clone(), spot.item(n, item.line))).collect())
        }
        _ => {
            let words = node.text()?.split(',').map(str::trim).filter(|word| !word.is_empty());
            Some(words.map(|word| (Node::loose(word), spot.clone())).collect())
        }
    }
}

/// Folders.
pub(crate) struct Folders;

impl Kind for Folders {
    type Value = Vec<PathBuf>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let Some(all) = each(node, spot) else {
            return fail(problems, spot.wrong(node, "a list of folders"));
        };
        all.iter().map(|(node, spot)| Path.read(node, spot, problems)).collect()
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|path| path.to_string_lossy().into()).collect())
    }

    fn schema(&self) -> Json {
        Hosts.schema()
    }
}

/// Rules that decide approvals.
pub(crate) struct Rules;

impl Kind for Rules {
    type Value = Vec<(String, Rule)>;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let Some(all) = each(node, spot) else {
            return fail(problems, spot.wrong(node, "a list of rules such as `Bash(git *)`"));
        };
        let mut rules = Vec::new();
        for (node, spot) in &all {
            let text = Text.read(node, spot, problems)?;
            match text.parse::<Rule>() {
                Ok(rule) => rules.push((text, rule)),
                Err(error) => problems.push(spot.problem(format_args!("`{text}` is no rule: {error}"))),
            }
        }
        (rules.len() == all.len()).then_some(rules)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        list_or_null(value.iter().map(|(text, _)| text.as_str().into()).collect())
    }

    fn schema(&self) -> Json {
        Hosts.schema()
    }
}

/// Variables for the agent's program: names to hand on, or `NAME=value` to set.
pub(crate) struct Variables;

impl Kind for Variables {
    type Value = Vec<Variable>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let items = items(node, "a list of `NAME` or `NAME=value`", spot, problems)?;
        let mut all = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let spot = spot.item(index, item.line);
            let Some(text) = item.text() else {
                problems.push(spot.problem("expected `NAME` or `NAME=value`"));
                continue;
            };
            let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.trim_end_matches('*').chars().all(is_name) {
                problems.push(spot.problem("expected `NAME` or `NAME=value`"));
            } else {
                all.push(match value {
                    Some(value) => Variable::Set(name.into(), value.into()),
                    None => Variable::Pass(name.into()),
                });
            }
        }
        (all.len() == items.len()).then_some(all)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        let one = |variable: &Variable| match variable {
            Variable::Pass(name) => name.as_str().into(),
            // A value may well be a key.
            Variable::Set(name, _) => format!("{name}=***").into(),
        };
        list_or_null(value.iter().map(one).collect())
    }

    fn schema(&self) -> Json {
        json!({"type": "array", "items": {"type": "string"}})
    }
}

/// Several agents.
pub(crate) struct AgentList;

const FIELDS: [&str; 15] = [
    "name",
    "kind",
    "command",
    "tenant",
    "path",
    "profile",
    "skills",
    "description",
    "model",
    "workspace",
    "workspace-roots",
    "env",
    "upstream",
    "upstream-token",
    "auth-method",
];

impl Kind for AgentList {
    type Value = Vec<AgentEntry>;
    const IN_ENVIRONMENT: bool = false;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Self::Value> {
        let items = items(node, "a list of agents", spot, problems)?;
        let mut agents: Vec<AgentEntry> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let spot = spot.item(index, item.line);
            let Some(agent) = agent(item, &spot, problems) else { continue };
            if agents.iter().any(|known| known.name == agent.name) {
                problems.push(spot.problem(format_args!("the name `{}` is taken; names must differ", agent.name)));
            } else {
                agents.push(agent);
            }
        }
        (agents.len() == items.len()).then_some(agents)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn show(&self, value: &Self::Value) -> Json {
        let one = |agent: &AgentEntry| {
            let mut all = json!({"name": agent.name, "kind": AGENTS.name(agent.kind)});
            let mut put = |key: &str, value: Json| {
                if !value.is_null() {
                    all[key] = value;
                }
            };
            put("command", CommandLine.show(&agent.command));
            put("tenant", agent.tenant.as_deref().into());
            put("profile", agent.work.map(|work| WORK.name(work)).into());
            put("model", agent.model.as_deref().into());
            put("description", agent.description.as_deref().into());
            put("skills", list_or_null(agent.skills.iter().map(|skill| json!(skill)).collect()));
            put("workspace", agent.workspace.as_ref().map(|path| path.to_string_lossy()).into());
            put("workspace-roots", Folders.show(&agent.workspace_roots));
            put("env", Variables.show(&agent.env));
            put("upstream", agent.upstream.as_deref().into());
            put("upstream-token", agent.upstream_token.as_ref().map(|token| json!(token)).unwrap_or_default());
            put("auth-method", agent.auth_method.as_deref().into());
            all
        };
        list_or_null(value.iter().map(one).collect())
    }

    fn schema(&self) -> Json {
        let mut properties = serde_json::Map::new();
        for field in FIELDS {
            let schema = match field {
                "kind" => AGENTS.schema(),
                "command" => CommandLine.schema(),
                "profile" => WORK.schema(),
                "skills" => json!({"type": "array"}),
                "workspace-roots" => Folders.schema(),
                "env" => Variables.schema(),
                _ => json!({"type": "string"}),
            };
            properties.insert(field.to_owned(), schema.clone());
            if field.contains('-') {
                properties.insert(field.replace('-', "_"), schema);
            }
        }
        json!({"type": "array", "items": {
            "type": "object", "properties": properties, "required": ["name"], "additionalProperties": false,
        }})
    }
}

fn agent(node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<AgentEntry> {
    let fields = record(node, spot, &FIELDS, problems)?;
    let before = problems.len();
    let mut agent = AgentEntry::default();
    let mut kind = None;
    for (name, field) in fields {
        let spot = spot.child(name, field.line);
        let node = &field.node;
        let mut text = || Text.read(node, &spot, problems);
        match name {
            "name" => agent.name = text().unwrap_or_default(),
            "tenant" | "path" => {
                agent.tenant = text().map(|text| text.trim_matches('/').to_owned());
                if agent.tenant.as_ref().is_some_and(|tenant| tenant.contains('/')) {
                    problems.push(spot.problem("a tenant's name is one step of a path: no `/` in it"));
                }
            }
            "description" => agent.description = text(),
            "model" => agent.model = text(),
            "upstream" => agent.upstream = text(),
            "auth-method" => agent.auth_method = text(),
            "kind" => kind = AGENTS.read(node, &spot, problems),
            "profile" => agent.work = WORK.read(node, &spot, problems),
            "command" => agent.command = CommandLine.read(node, &spot, problems).unwrap_or_default(),
            "skills" => agent.skills = skills(node, &spot, problems).unwrap_or_default(),
            "workspace" => agent.workspace = Path.read(node, &spot, problems),
            "workspace-roots" => agent.workspace_roots = Folders.read(node, &spot, problems).unwrap_or_default(),
            "env" => agent.env = Variables.read(node, &spot, problems).unwrap_or_default(),
            _ => agent.upstream_token = SecretText.read(node, &spot, problems),
        }
    }
    let guessed = || match (&agent.upstream, agent.command.first()) {
        (Some(_), _) => AgentKind::Upstream,
        (None, Some(program)) => AgentKind::of_command(program),
        (None, None) => AgentKind::Demo,
    };
    agent.kind = kind.unwrap_or_else(guessed);
    agent.is_bare = kind.is_none() && agent.command.is_empty() && agent.upstream.is_none();
    if problems.len() == before && agent.name.is_empty() {
        problems.push(spot.problem("`name` is missing"));
    }
    (problems.len() == before).then_some(agent)
}

/// Skills for the card: ids, or mappings.
pub(super) fn skills(node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<Vec<Skill>> {
    let listed = items(node, "a list of skills", spot, problems)?;
    let mut all = Vec::new();
    for (index, item) in listed.iter().enumerate() {
        let spot = spot.item(index, item.line);
        if let Some(id) = item.text() {
            all.push(Skill { id: id.into(), name: id.into(), ..Skill::default() });
            continue;
        }
        let mut skill = Skill::default();
        for (name, field) in record(item, &spot, &["id", "name", "description", "tags", "examples"], problems)? {
            let (spot, node) = (spot.child(name, field.line), &field.node);
            let texts = |problems: &mut Vec<Problem>| {
                let items = items(node, "a list of texts", &spot, problems)?;
                items.iter().map(|item| Text.read(item, &spot, problems)).collect::<Option<Vec<String>>>()
            };
            match name {
                "id" => skill.id = Text.read(node, &spot, problems)?,
                "name" => skill.name = Text.read(node, &spot, problems)?,
                "description" => skill.description = Text.read(node, &spot, problems)?,
                "tags" => skill.tags = texts(problems)?,
                _ => skill.examples = texts(problems)?,
            }
        }
        if skill.id.is_empty() {
            problems.push(spot.problem("`id` is missing"));
        }
        all.push(skill);
    }
    Some(all)
}
