//! What `serve` would refuse, found without starting anything.

use nuncio_server::agent::upstream::UpstreamAgent;
use nuncio_server::{RedisStreams, Streams};

use super::{agents, door, ways};
use crate::config::{AgentEntry, AgentKind, Config, Transport};
use crate::failure::Failure;

/// Every refusal, with the key that is to be changed. Needs a Tokio runtime, and asks nobody.
pub(crate) fn refusals(config: &Config) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = Vec::new();
    let key = if config.agents.is_empty() { "agent" } else { "agents" };
    for entry in agents::entries(config) {
        all.extend(agent(config, &entry).err().map(|text| (key, format!("agent `{}`: {text}", entry.name))));
    }
    let mut look = |key, found: Result<(), Failure>| all.extend(found.err().map(|failure| (key, failure.to_string())));
    look("oidc", door::auth(config).map(drop));
    look("tls", door::tls(config).map(drop));
    if config.serves(Transport::RedisStreams)
        && let Some(url) = &config.redis_url
    {
        let streams = Streams::new(RedisStreams::new(url.expose().to_owned(), None));
        look("redis-url", streams.map(drop).map_err(|_| ways::no_redis_url()));
    }
    if config.push_notifications {
        look("push-redis-url", super::queue(config, None).map(drop));
    }
    all
}

fn agent(config: &Config, entry: &AgentEntry) -> Result<(), String> {
    if entry.kind != AgentKind::Upstream {
        return agents::program_of(config, entry).map(drop);
    }
    let (url, options) = agents::upstream_of(entry)?;
    UpstreamAgent::new(url, options).map(drop).map_err(|error| format!("upstream: {error}"))
}
