//! Whether the agents could start.

use std::path::{Path, PathBuf};

use nuncio_client::Client;
use nuncio_server::agent::upstream::UpstreamAgent;

use super::{Check, Found, PATIENCE, Trouble};
use crate::commands::serve::agents;
use crate::config::{AgentEntry, AgentKind, Config, Variable};

/// Every agent, with what it needs.
pub(super) async fn all(config: &Config) -> Vec<Check> {
    let mut all = Vec::new();
    for entry in agents::entries(config) {
        let found = match entry.kind {
            AgentKind::Demo => Ok("the demo agent is built in".to_owned()),
            AgentKind::Upstream => upstream(&entry).await,
            _ => program(config, &entry),
        };
        all.push((format!("agent {}", entry.name), found));
    }
    all
}

/// Fetches the card of an agent elsewhere.
async fn upstream(entry: &AgentEntry) -> Found {
    let (url, options) = agents::upstream_of(entry).map_err(Trouble::Wrong)?;
    UpstreamAgent::new(url, options.clone()).map_err(|error| Trouble::Wrong(format!("upstream: {error}")))?;
    let next = "start that agent, or correct `upstream` or `upstream-token`";
    match tokio::time::timeout(PATIENCE, Client::fetch_card(url, options)).await {
        Ok(Ok(_)) => Ok(format!("{url} shows its card")),
        Ok(Err(error)) => Err(format!("{url} shows no card: {error} Next: {next}").into()),
        Err(_) => Err(format!("{url} does not answer: {next}").into()),
    }
}

/// Looks for the program, and for the folders it works in.
fn program(config: &Config, entry: &AgentEntry) -> Found {
    let Some(program) = agents::program_of(config, entry).map_err(Trouble::Wrong)? else {
        return Ok("needs no program".into());
    };
    let Some(path) = find(&program, entry) else {
        let what = if program.contains('/') { "is no program that can be run" } else { "is not on the PATH" };
        return Err(format!("`{program}` {what}: install it, or set `command` to where it is").into());
    };
    agents::check_folders(config, entry)?;
    Ok(format!("{} can be run", path.display()))
}

/// Where a program is, as the system would find it.
fn find(program: &str, entry: &AgentEntry) -> Option<PathBuf> {
    let can_run = |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| can_run(path));
    }
    let own = entry.env.iter().rev().find_map(|variable| match variable {
        Variable::Set(name, value) if name == "PATH" => Some(value.into()),
        _ => None,
    });
    let path = own.or_else(|| std::env::var_os("PATH"))?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| can_run(path))
}
