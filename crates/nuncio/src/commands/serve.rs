//! `nuncio serve`.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::AgentExtension;
use nuncio_server::artifact::{ArtifactStore, Artifacts};
use nuncio_server::auth::read_secret;
use nuncio_server::engine::approval::{Policy, Rule};
use nuncio_server::engine::{EngineOptions, Exposure, IdempotentSend, Manners};
use nuncio_server::metrics::Metrics;
use nuncio_server::push::guard::{Guard, Openings};
use nuncio_server::push::keyring::{KeyError, Keyring};
use nuncio_server::push::sign::Signer;
use nuncio_server::push::{PushEvents, PushOptions, Queue, RedisOptions, Retry};
use nuncio_server::store::operator::KeyKind;
use nuncio_server::store::{
    Durability, MemoryStore, OnCommit, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store, StoreError,
};
use nuncio_server::{AuthOptions, CardFormat, CardOptions, HttpOptions, Server, ServerOptions};
use tokio::net::TcpListener;

use crate::cli::ServeArgs;
use crate::config::{self, Config, PushBackend};
use crate::failure::{Failure, Kind};

pub(crate) mod agents;
pub(crate) mod bus;
pub(crate) mod check;
pub(crate) mod door;
mod trust;
mod ways;

/// Runs the command.
pub(crate) async fn run(_args: &ServeArgs, config: &Config) -> Result<(), Failure> {
    let metrics = Metrics::new();
    let opened = open_store(config, &metrics).await?;
    let artifacts = open_artifacts(config, &opened).await?;
    let listeners = ways::open(config, &*opened.store).await?;
    let http = listeners.http.as_ref().map(TcpListener::local_addr).transpose();
    let address = http.map_err(|error| Failure::failed(error.to_string()))?;
    let kin = agents::kin(config);
    let left = kin.end_orphans().await;
    if left > 0 {
        tracing::warn!(processes = left, "programs that an earlier server left running were ended");
    }
    let roster = agents::roster(config, &kin).await.map_err(|text| Failure::usage(vec![text]))?;
    let mut options = options(config, artifacts, door::auth(config)?);
    options.tls = door::tls(config)?;
    options.engine.push = push(config, address, &opened).await?;
    options.engine.bus = bus::open(config, &*opened.store)?;
    options.card.signing = trust::signing(config)?;
    options.audit = trust::audit(config)?;
    let server = Server::with_agents(roster, opened.store, options, metrics);
    ways::announce(config, address);
    door::reload_on_hangup(server.reloader());
    server.run(listeners, stop_signal()).await.map_err(|error| Failure::failed(error.to_string()))
}

/// A store, and what it is beyond one.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The same, if it is one that servers share.
    pub(crate) postgres: Option<Arc<PostgresStore>>,
}

impl Opened {
    fn embedded(store: impl Store) -> Self {
        Self { store: Arc::new(store), postgres: None }
    }
}

/// Opens the store that the configuration names.
pub(crate) async fn open_store(config: &Config, metrics: &Arc<Metrics>) -> Result<Opened, Failure> {
    let durability = match config.durability {
        config::Durability::Full => Durability::Full,
        config::Durability::Normal => Durability::Normal,
    };
    let metrics = metrics.clone();
    let on_commit: Option<OnCommit> = Some(Arc::new(move |events, time| metrics.commit(events, time)));
    let opened = match &config.store {
        config::Store::Memory => return Ok(Opened::embedded(MemoryStore::new())),
        config::Store::Sqlite => {
            let path = config.data_dir.join("nuncio.db");
            let cache = usize::try_from(config.task_cache).unwrap_or(usize::MAX);
            let options = SqliteOptions { durability, cache, on_commit, ..SqliteOptions::default() };
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path, options)).await;
            opened.map_err(|error| Failure::failed(error.to_string()))?.map(Opened::embedded)
        }
        config::Store::Postgres(url) => {
            let options = postgres_options(config, durability, on_commit)?;
            PostgresStore::open(url.expose(), options).await.map(|store| {
                let store = Arc::new(store);
                Opened { store: store.clone(), postgres: Some(store) }
            })
        }
    };
    opened.map_err(|error| match error {
        StoreError::Newer { .. } | StoreError::Locked { .. } => Failure::new(Kind::Usage, error.to_string()),
        _ => Failure::failed(error.to_string()),
    })
}

/// The password of the database, if it is in a file.
pub(crate) fn store_password(config: &Config) -> Result<Option<String>, Failure> {
    let read = config.store_password_file.as_ref().map(|path| read_secret(path)).transpose();
    read.map_err(|what| Failure::usage(vec![format!("store-password-file: {what}")]))
}

/// How to use the database.
pub(crate) fn postgres_options(
    config: &Config,
    durability: Durability,
    on_commit: Option<OnCommit>,
) -> Result<PostgresOptions, Failure> {
    let password = store_password(config)?;
    // A server that is silent for longer has lost its turns anyway.
    Ok(PostgresOptions { durability, password, patience: config.lease_ttl, on_commit })
}

/// Opens the folder for the files of artifacts; tasks in memory have theirs in memory, those in PostgreSQL have them there.
async fn open_artifacts(config: &Config, opened: &Opened) -> Result<Artifacts, Failure> {
    let folder = match (&config.artifact_dir, &config.store) {
        (Some(path), _) => Some(path.clone()),
        (None, config::Store::Memory | config::Store::Postgres(_)) => None,
        (None, config::Store::Sqlite) => Some(config.data_dir.join("artifacts")),
    };
    let mut artifacts = match (folder, &opened.postgres) {
        (Some(path), _) => {
            let at = path.display().to_string();
            let opened = tokio::task::spawn_blocking(move || ArtifactStore::open(path)).await;
            let opened = opened.map_err(|error| Failure::failed(error.to_string()))?;
            Artifacts::new(opened.map_err(|error| Failure::failed(format!("{at}: {error}")))?)
        }
        (None, Some(postgres)) => Artifacts::new(ArtifactStore::in_database(postgres.clone())),
        (None, None) => Artifacts::default(),
    };
    artifacts.inline_max = inline_max(config);
    artifacts.file_urls = config.artifact_file_urls;
    Ok(artifacts)
}

/// The largest file that events carry. Where nobody could download one, that is as much as a request may have too.
fn inline_max(config: &Config) -> usize {
    let can_download = config.has_http_port() || config.public_url.is_some() || config.artifact_file_urls;
    // In JSON, three bytes are four characters.
    let most = if can_download { 0 } else { config.max_body / 4 * 3 };
    usize::try_from(config.artifact_inline_max.max(most)).unwrap_or(usize::MAX)
}

fn options(config: &Config, artifacts: Artifacts, auth: AuthOptions) -> ServerOptions {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    ServerOptions {
        engine: EngineOptions {
            max_running_turns: size(config.max_running_turns),
            max_queued_turns: size(config.max_queued_turns),
            per_caller: trust::per_caller(config),
            max_parts: size(config.max_parts),
            max_history: size(config.max_history),
            max_history_bytes: size(config.max_body.saturating_mul(4)),
            max_webhooks: size(config.max_webhooks),
            turn_timeout: config.turn_timeout.unwrap_or_default(),
            silence_timeout: config.silence_timeout.unwrap_or_default(),
            approval_timeout: config.approval_timeout,
            cancel_grace: config.cancel_grace,
            lease_ttl: config.lease_ttl,
            retention: config.retention,
            idempotent_send: match config.idempotent_send {
                config::IdempotentSend::Key => IdempotentSend::Key,
                config::IdempotentSend::MessageId => IdempotentSend::MessageId,
            },
            approvals: policy(config),
            exposure: exposure(config),
            manners: Manners { style: config.presenter, ..config.dialect.manners() },
            tenants: (!config.tenants.is_empty()).then(|| config.tenants.iter().cloned().collect::<HashSet<_>>()),
            artifacts,
            push: None,
            bus: None,
        },
        http: HttpOptions {
            max_body: size(config.max_body),
            max_header: size(config.max_header),
            max_streams: size(config.max_streams),
            max_streams_per_caller: config.max_streams_per_caller.map(size),
            rate: trust::rate(config),
            max_connections: size(config.max_connections),
            header_timeout: config.header_timeout,
            body_timeout: config.body_timeout,
            idle_timeout: config.idle_timeout,
            keep_alive: config.keep_alive,
            lenient_version: config.lenient_version,
            allowed_hosts: config.allowed_hosts.clone(),
            cors_origins: config.cors_origins.clone(),
            ws_path: Some(config.ws_path.clone()),
        },
        card: CardOptions {
            format: match config.card_format {
                config::CardFormat::Union => CardFormat::Union,
                config::CardFormat::V1_0 => CardFormat::V1,
                config::CardFormat::V0_3 => CardFormat::V03,
            },
            public_url: config.public_url.clone(),
            trusted_proxies: config.trusted_proxies.clone(),
            extensions: config.extensions.iter().map(extension).collect(),
            no_streaming: false,
            extended: trust::extended(config),
            signing: None,
            https: false,
        },
        profile: config.dialect,
        auth,
        tls: None,
        audit: None,
        drain_timeout: config.drain_timeout,
    }
}

/// How webhooks are served, if they are.
async fn push(config: &Config, address: Option<SocketAddr>, opened: &Opened) -> Result<Option<PushOptions>, Failure> {
    if !config.push_notifications {
        return Ok(None);
    }
    let openings = Openings {
        hosts: config.push_allowed_hosts.clone(),
        cidrs: config.push_allowed_cidrs.clone(),
        ..Openings::default()
    };
    let guard = Guard::new(openings).map_err(|error| Failure::usage(vec![error.to_string()]))?;
    let mut options = PushOptions::new(guard);
    options.events = match config.push_events {
        config::PushEvents::All => PushEvents::All,
        config::PushEvents::Status => PushEvents::Status,
        config::PushEvents::Terminal => PushEvents::Terminal,
    };
    options.interval = config.push_interval;
    options.token_as_bearer = config.push_token_as_bearer;
    options.timeout = config.push_timeout;
    options.retry = Retry {
        first: config.push_retry_delay,
        longest: config.push_retry_max_delay,
        attempts: u32::try_from(config.push_attempts).unwrap_or(u32::MAX),
        age: config.push_max_age,
    };
    options.concurrent = usize::try_from(config.push_concurrency).unwrap_or(usize::MAX);
    options.per_host = usize::try_from(config.push_per_host).unwrap_or(usize::MAX);
    let environment = |name: &str| std::env::var(name).ok();
    let unusable = |error: KeyError| Failure::new(Kind::Usage, error.to_string());
    // What is only in memory has no key on the disk either.
    if config.store != config::Store::Memory {
        let folder = config.keyring_dir.as_ref().unwrap_or(&config.data_dir);
        let keyring = Keyring::open_in(folder, environment).map_err(unusable)?;
        agree(opened, KeyKind::Keyring, keyring.fingerprints()).await?;
        options.keyring = Some(Arc::new(keyring));
        let own = || Some(format!("{}://{}", door::scheme(config), address?));
        let issuer = config.public_url.clone().or_else(own);
        let issuer = issuer.unwrap_or_else(|| "nuncio".to_owned());
        let signer = Signer::open_in(folder, environment, issuer).map_err(unusable)?;
        agree(opened, KeyKind::Signing, signer.fingerprints()).await?;
        options.signer = Some(Arc::new(signer));
    }
    options.queue = queue(config, address)?;
    Ok(Some(options))
}

/// Whether this server has the keys of the others on its store.
async fn agree(opened: &Opened, kind: KeyKind, keys: Vec<(String, String)>) -> Result<(), Failure> {
    let Some(postgres) = &opened.postgres else { return Ok(()) };
    postgres.agree(kind, &keys).await.map_err(|error| Failure::new(Kind::Usage, error.to_string()))
}

/// Where the jobs of webhooks are, if not in this process.
fn queue(config: &Config, address: Option<SocketAddr>) -> Result<Option<Arc<Queue>>, Failure> {
    let Some(url) = config.push_redis_url.as_ref().filter(|_| config.push_backend == PushBackend::RedisStreams) else {
        return Ok(None);
    };
    // The same after a restart, so that a worker takes up again what it had in hand.
    let own_name = || {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let place = address.map_or_else(|| "local".to_owned(), |address| address.port().to_string());
        format!("nuncio-{}-{place}", host.trim())
    };
    let queue = Queue::new(RedisOptions {
        url: url.expose().to_owned(),
        stream: config.push_stream.clone(),
        retry: config.push_retry_key.clone(),
        dead: config.push_dead_stream.clone(),
        group: config.push_consumer_group.clone(),
        consumer: config.push_consumer_name.clone().unwrap_or_else(own_name),
        lease: Duration::from_millis(config.push_lease_timeout_ms),
    });
    // What is wrong with it may quote it, with its password.
    let unusable = |_| Failure::usage(vec!["push-redis-url: not the URL of a Redis server".to_owned()]);
    Ok(Some(Arc::new(queue.map_err(unusable)?)))
}

/// Which approvals are decided without asking.
pub(super) fn policy(config: &Config) -> Policy {
    let rules = |rules: &[(String, Rule)]| rules.iter().map(|(_, rule)| rule.clone()).collect();
    Policy {
        allow: rules(&config.allow_tools),
        deny: rules(&config.deny_tools),
        auto_approve: config.auto_approve_permissions,
        refuse_rest: !config.interactive_permissions,
    }
}

fn exposure(config: &Config) -> Exposure {
    Exposure {
        thinking: config.thinking_exposure.contains(&config::Thinking::Raw),
        tools: config.thinking_exposure.contains(&config::Thinking::ToolTrace),
        summaries: config.tool_input_summary,
        no_paths: config.safe_mode,
    }
}

fn extension(extension: &config::Extension) -> AgentExtension {
    AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone().unwrap_or_default(),
        required: extension.required,
        params: extension.params.clone().unwrap_or_default().into(),
    }
}

async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        tracing::error!("signals cannot be received; stop the server with SIGKILL");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}
