//! What the server shows of itself to those who know it, and how it proves that it is itself.

use std::sync::Arc;

use nuncio_protocol::AgentSkill;
use nuncio_server::engine::PerCaller;
use nuncio_server::{Audit, CardSigning, ExtendedCard, Rate};

use crate::config::{self, Config};
use crate::failure::Failure;

/// The keys that cards are signed with, if there are any.
pub(super) fn signing(config: &Config) -> Result<Option<Arc<CardSigning>>, Failure> {
    let keys = config.signing_keys().map_err(|message| Failure::usage(vec![message]))?;
    let signing = CardSigning { keys, sdk_form: config.signing_sdk_form };
    Ok((!signing.keys.is_empty()).then(|| Arc::new(signing)))
}

/// Where it is put on record who did what.
pub(super) fn audit(config: &Config) -> Result<Option<Arc<Audit>>, Failure> {
    let Some(path) = &config.audit_log else { return Ok(None) };
    if path.as_os_str() == "stderr" {
        return Ok(Some(Audit::to_stderr()));
    }
    let audit = Audit::to_file(path);
    let unusable = |error| Failure::usage(vec![format!("audit-log: cannot write to `{}`: {error}", path.display())]);
    audit.map(Some).map_err(unusable)
}

/// How often one caller may call.
pub(super) fn rate(config: &Config) -> Option<Rate> {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let per_second = number(config.rate_limit?);
    Some(Rate { per_second, burst: config.rate_burst.map_or(per_second, number) })
}

/// How many turns one caller may have.
pub(super) fn per_caller(config: &Config) -> PerCaller {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    PerCaller {
        running: config.max_running_turns_per_caller.map(size),
        queued: config.max_queued_turns_per_caller.map(size),
    }
}

/// What known callers are shown.
pub(super) fn extended(config: &Config) -> ExtendedCard {
    let shown = match config.extended_card {
        config::ExtendedCard::On => true,
        config::ExtendedCard::Off => false,
        config::ExtendedCard::Auto => !config.is_open(),
    };
    if shown { ExtendedCard::Skills(vec![runtime_details(config)]) } else { ExtendedCard::Off }
}

/// How tasks are run and kept here: what a caller wants to know before relying on it.
fn runtime_details(config: &Config) -> AgentSkill {
    let webhooks = if config.push_notifications {
        format!("Webhooks: up to {} per task.", config.max_webhooks)
    } else {
        "No webhooks.".to_owned()
    };
    let turns = config.max_running_turns_per_caller.unwrap_or(config.max_running_turns);
    let kept = match &config.store {
        config::Store::Memory => "until the server stops".to_owned(),
        config::Store::Sqlite | config::Store::Postgres(_) => {
            format!("for {} hours after their end", config.retention.as_secs() / 3600)
        }
    };
    AgentSkill {
        id: "runtime_details".into(),
        name: "Runtime details".into(),
        description: format!(
            "Details for authenticated callers about tasks, webhooks and this server. Tasks are kept {kept}. Up to \
             {turns} turns run at a time, others wait. A message has up to {} bytes and {} parts. {webhooks}",
            config.max_body, config.max_parts
        ),
        tags: vec!["runtime".into(), "a2a".into()],
        examples: vec!["List my current A2A tasks.".into()],
        ..AgentSkill::default()
    }
}
