//! Which kind of agent is meant where nobody says so, and what does not go with the kind that is.

use super::Config;
use super::check::spot;
use super::layers::Sources;
use super::problem::{Origin, Problem, Source};
use super::types::AgentKind;

/// A command, or an address, says what it is, unless somebody as near has said `agent`.
pub(super) fn choose(config: &mut Config, sources: &mut Sources) {
    // A value that is wrong has no source, and a problem of its own.
    let Some(agent) = sources.get("agent") else { return };
    if !matches!(agent.origin, Origin::Profile(_) | Origin::Default) {
        return;
    }
    let mut nearest = agent.clone();
    let mut nearer = |key: &str| match sources.get(key) {
        Some(source) if source.rank() < nearest.rank() => {
            nearest = source.clone();
            true
        }
        _ => false,
    };
    if config.upstream.is_some() && nearer("upstream") {
        config.agent = AgentKind::Upstream;
    }
    if let Some(program) = config.command.first()
        && nearer("command")
    {
        config.agent = AgentKind::of_command(program);
    }
    sources.insert("agent", nearest);
}

/// An entry without a command runs the one that stands above, which may say what it is.
pub(super) fn inherit(config: &mut Config) {
    let Some(program) = config.command.first() else { return };
    for entry in &mut config.agents {
        if entry.is_bare {
            entry.kind = AgentKind::of_command(program);
        }
        let runs = !matches!(entry.kind, AgentKind::Demo | AgentKind::Upstream);
        if entry.command.is_empty() && runs {
            entry.command.clone_from(&config.command);
        }
    }
}

/// What the agent has no use for is a mistake, unless it only comes from further away than the agent.
pub(super) fn check(config: &Config, sources: &Sources, problems: &mut Vec<Problem>) {
    let rank = |key: &'static str| sources.get(key).map(Source::rank);
    let set = |key: &'static str| rank(key).is_some_and(|there| rank("agent").is_some_and(|agent| there <= agent));
    let kind = config.agent;
    let mut refuse = |key: &str, why: &str| {
        let text = format!("`{}` {why}, yet `{key}` is set; leave one of them out", kind.name());
        problems.push(spot(sources, "agent").problem(text));
    };
    if config.agents.is_empty() {
        if !config.command.is_empty() && matches!(kind, AgentKind::Demo | AgentKind::Upstream) && set("command") {
            refuse("command", "runs no command");
        }
        if config.upstream.is_some() && kind != AgentKind::Upstream && set("upstream") {
            refuse("upstream", "is no agent at another address");
        }
        return;
    }
    let beside =
        |key: &&'static str| rank(key).is_some_and(|there| rank("agents").is_some_and(|agents| there <= agents));
    let upstream = config.upstream.as_ref().map(|_| "upstream");
    let token = config.upstream_token.as_ref().map(|_| "upstream-token");
    for key in upstream.into_iter().chain(token).filter(beside) {
        let text = "it goes with one agent: set it in the entry of `agents` that it is meant for";
        problems.push(spot(sources, key).problem(text));
    }
    for (index, entry) in config.agents.iter().enumerate() {
        let known = |tenant: &String| config.tenants.is_empty() || config.tenants.contains(tenant);
        if let Some(tenant) = entry.tenant.as_ref().filter(|tenant| !known(tenant)) {
            let text =
                format!("`{}` serves the tenant `{tenant}`, which is not in `tenants`: add it there", entry.name);
            problems.push(spot(sources, "agents").item(index, None).problem(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::layers::Environment;
    use super::super::{Inputs, Loaded, resolve};

    fn load(
        flags: &[(&'static str, &str)],
        command: &[&str],
        variables: &[(&str, &str)],
        file: &str,
    ) -> Result<Loaded, Vec<String>> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        let loaded = resolve(Inputs {
            settings: flags.iter().map(|(key, value)| (*key, vec![(*value).to_owned()])).collect(),
            command: &command,
            file: Some((PathBuf::from("nuncio.yml"), file)),
            environment: Environment { variables: variables.collect(), home: Some("/home/me".into()) },
        });
        loaded.map_err(|problems| problems.into_iter().map(|problem| problem.text).collect())
    }

    #[test]
    fn a_command_or_an_address_says_what_it_is_wherever_it_is_set() {
        let kind = |flags: &[(&'static str, &str)], command: &[&str], variables: &[(&str, &str)], file: &str| {
            let loaded = load(flags, command, variables, file).unwrap();
            (loaded.config.agent.name(), loaded.sources["agent"].rank())
        };
        assert_eq!(kind(&[], &["claude"], &[], ""), ("claude-code", 0));
        assert_eq!(kind(&[("agent", "acp")], &["gemini", "--acp"], &[], ""), ("acp", 0));
        assert_eq!(kind(&[("upstream", "http://a/")], &[], &[], ""), ("upstream", 0));
        assert_eq!(kind(&[], &[], &[("NUNCIO_COMMAND", "codex app-server")], ""), ("codex", 1));
        assert_eq!(kind(&[], &[], &[("NUNCIO_UPSTREAM", "http://a/")], ""), ("upstream", 1));
        assert_eq!(kind(&[], &[], &[], "command: ./mine --json"), ("generic", 2));
        assert_eq!(kind(&[], &[], &[], "upstream: http://a/"), ("upstream", 2));
        assert_eq!(kind(&[("profile", "coding-agent")], &[], &[], "command: qwen"), ("qwen", 2));
        assert_eq!(kind(&[("profile", "coding-agent")], &[], &[], ""), ("cursor", 3));
        assert_eq!(kind(&[], &[], &[], ""), ("demo", 4));
        // What somebody has said stands, and the nearer one wins.
        assert_eq!(kind(&[], &["gemini", "--acp"], &[], "agent: acp"), ("acp", 2));
        assert_eq!(kind(&[], &["gemini", "--acp"], &[("NUNCIO_AGENT", "acp")], ""), ("acp", 1));
        assert_eq!(kind(&[], &["claude"], &[], "upstream: http://a/"), ("claude-code", 0));
        assert_eq!(kind(&[("upstream", "http://a/")], &[], &[], "command: claude"), ("upstream", 0));
        assert_eq!(kind(&[("agent", "demo")], &[], &[], "command: claude\nagent: claude-code"), ("demo", 0));
    }

    #[test]
    fn entries_have_what_stands_above_but_no_address_of_others() {
        let file = "command: claude --verbose\nauth-method: key\nagents:\n- name: a\n- {name: b, command: codex}\n\
                    - {name: c, kind: acp}\n- {name: d, kind: demo}\n- {name: e, upstream: 'http://e/'}\n";
        let entries = crate::commands::serve::agents::entries(&load(&[], &[], &[], file).unwrap().config);
        let all: Vec<String> =
            entries.iter().map(|entry| format!("{} {}", entry.kind.name(), entry.command.join(" "))).collect();
        assert_eq!(all, ["claude-code claude --verbose", "codex codex", "acp claude --verbose", "demo ", "upstream "]);
        assert_eq!(entries[2].auth_method.as_deref(), Some("key"));
        for key in ["upstream: http://a/", "upstream-token: secret"] {
            let told = load(&[], &[], &[], &format!("{key}\nagents: [name: a]\n")).unwrap_err().join("\n");
            assert!(told.contains("nuncio.yml, line 1: it goes with one agent"), "{told}");
        }
    }

    #[test]
    fn tenants_that_nobody_could_reach_are_refused() {
        let told = |file: &str| load(&[], &[], &[], file).unwrap_err().join("\n");
        let slash = told("agents:\n- name: a\n  path: /a/b\n");
        assert_eq!(
            slash,
            "`agents[0].path` in nuncio.yml, line 3: a tenant's name is one step of a path: no `/` in it"
        );
        let unknown = told("tenants: [one]\nagents:\n- {name: a, tenant: two}\n");
        assert!(unknown.contains("line 2") && unknown.contains("`two`, which is not in `tenants`"), "{unknown}");
        assert!(load(&[], &[], &[], "tenants: [one]\nagents: [{name: a, path: /one/}]").is_ok());
    }

    #[test]
    fn what_would_be_ignored_is_told() {
        let problem = |flags: &[(&'static str, &str)], command: &[&str], file: &str| {
            load(flags, command, &[], file).unwrap_err().join("\n")
        };
        let told = problem(&[], &[], "agent: demo\ncommand: claude");
        assert_eq!(
            told,
            "`agent` in nuncio.yml, line 1: `demo` runs no command, yet `command` is set; leave one of them out"
        );
        assert!(problem(&[("agent", "demo")], &["claude"], "").starts_with("`--agent`: `demo` runs no command"));
        assert!(problem(&[("upstream", "http://a/")], &["claude"], "").contains("`upstream` runs no command"));
        assert!(problem(&[], &[], "agent: acp\ncommand: x\nupstream: http://a/").contains("`acp` is no agent at"));
    }
}
