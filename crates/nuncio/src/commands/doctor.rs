//! `nuncio doctor`: is everything that this configuration needs really there?

mod agents;
mod files;
mod ports;

use std::time::Duration;

use nuncio_server::auth::validity;
use nuncio_server::bus::{Bus, RedisBus};
use nuncio_server::metrics::Metrics;
use nuncio_server::store::Store;
use nuncio_server::tls::read_certificates;
use serde_json::json;

use crate::cli::{DoctorArgs, DoctorOutput};
use crate::commands::serve::{self, door};
use crate::config::{self, Config, Loaded, Transport, masked};
use crate::failure::{Failure, Kind};
use crate::output::print;

/// What is not as it should be.
enum Trouble {
    /// The configuration cannot work.
    Wrong(String),
    /// It could, but something that it needs is not there.
    Missing(String),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure.kind() {
            Kind::Usage => Self::Wrong(failure.to_string()),
            _ => Self::Missing(failure.to_string()),
        }
    }
}

impl<T: Into<String>> From<T> for Trouble {
    fn from(text: T) -> Self {
        Self::Missing(text.into())
    }
}

type Found = Result<String, Trouble>;
type Check = (String, Found);

/// Runs the command.
pub(crate) async fn run(args: &DoctorArgs, config: &Config) -> Result<(), Failure> {
    let mut checks: Vec<Check> = vec![
        ("configuration".into(), Ok("every key is known and has a value that fits".into())),
        ("address".into(), ports::http(config).await),
    ];
    if config.has_grpc_port() {
        checks.push(("grpc address".into(), ports::grpc(config).await));
    }
    checks.push(("socket".into(), ports::socket(config).await));
    checks.extend(files::all(config));
    checks.push(("store".into(), store(config).await));
    checks.push(("cluster".into(), cluster(config).await));
    checks.push(("access".into(), access(config)));
    checks.extend(providers(config).await);
    checks.push(("certificate".into(), certificate(config)));
    checks.extend(redis(config).await);
    checks.extend(agents::all(config).await);
    report(args.output, &checks)
}

/// Says what is wrong with a configuration that nothing else can be asked about.
pub(crate) fn unloadable(args: &DoctorArgs, failure: Failure) -> Result<Loaded, Failure> {
    if args.output == DoctorOutput::Json {
        // That it has failed is what the failure itself says.
        let _ = report(args.output, &[("configuration".into(), Err(Trouble::Wrong(failure.to_string())))]);
    }
    Err(failure)
}

fn report(output: DoctorOutput, checks: &[Check]) -> Result<(), Failure> {
    let said = |found: &Found| match found {
        Ok(text) => ("ok", masked(text)),
        Err(Trouble::Missing(text)) => ("missing", masked(text)),
        Err(Trouble::Wrong(text)) => ("wrong", masked(text)),
    };
    let failed = checks.iter().filter(|(_, found)| found.is_err()).count();
    if output == DoctorOutput::Json {
        let one = |(name, found): &Check| {
            let (status, text) = said(found);
            json!({ "name": name, "status": status, "text": text })
        };
        let all = json!({ "ok": failed == 0, "checks": checks.iter().map(one).collect::<Vec<_>>() });
        print(&format!("{all:#}\n"))?;
    } else {
        let width = checks.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        for (name, found) in checks {
            let mark = if found.is_ok() { "ok  " } else { "FAIL" };
            print(&format!("{mark}  {name:width$}  {}\n", said(found).1))?;
        }
    }
    if failed == 0 {
        return Ok(());
    }
    let is_wrong = checks.iter().any(|(_, found)| matches!(found, Err(Trouble::Wrong(_))));
    let kind = if is_wrong { Kind::Usage } else { Kind::Failed };
    Err(Failure::new(kind, format!("{failed} of {} checks failed", checks.len())))
}

/// Opens the store as `serve` would, but makes none where there is none yet.
async fn store(config: &Config) -> Found {
    if config.store == config::Store::Sqlite && !config.data_dir.join("nuncio.db").exists() {
        return Ok("none yet: the first start makes it".into());
    }
    let opened = serve::open_store(config, &Metrics::new()).await?;
    let checked = opened.store.check().await.map_err(|error| error.to_string());
    let examined = match &opened.postgres {
        None => Ok(None),
        Some(postgres) => postgres.examine().await.map(Some).map_err(|error| error.to_string()),
    };
    opened.store.close().await;
    checked?;
    let Some(found) = examined? else { return Ok("opens, and takes writes".into()) };
    let text = format!("opens, and takes writes: {}", found.about);
    if found.warnings.is_empty() { Ok(text) } else { Err(format!("{text}; {}", found.warnings.join("; ")).into()) }
}

/// How far apart clocks may be: webhooks are tried again and events are stamped by the clock of each server.
const APART: i64 = 2_000_000;
/// How long the bus may take to be there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The other servers on the same store, the bus between them, and whether they agree on the time.
async fn cluster(config: &Config) -> Found {
    if !config.store.is_shared() {
        return Ok("not needed: this server is alone with its store".into());
    }
    let store = serve::open_store(config, &Metrics::new()).await?.store;
    let looked = look_around(config, &*store).await;
    store.close().await;
    looked
}

async fn look_around(config: &Config, store: &dyn Store) -> Found {
    let shared = store.shared().ok_or("the store cannot be shared")?;
    let nodes = shared.nodes().await.map_err(|error| error.to_string())?.len();
    let before = now();
    let clock = shared.clock().await.map_err(|error| error.to_string())?;
    let apart = (before - clock).max(clock - now()).max(0);
    if apart > APART {
        let seconds = apart / 1_000_000;
        return Err(format!("this machine's clock and the database's are {seconds} s apart: set them by NTP").into());
    }
    let bus = match serve::bus::open(config, store)? {
        None => "no bus: changes elsewhere are seen within a second".to_owned(),
        Some(bus) => {
            let kind = bus.kind();
            if !is_well(&*bus).await {
                return Err(format!("the bus ({kind}) does not answer: start it, or set `bus` to one that does").into());
            }
            format!("the bus ({kind}) answers")
        }
    };
    let nodes = if nodes == 1 { "1 server is".to_owned() } else { format!("{nodes} servers are") };
    Ok(format!("{nodes} alive; {bus}; the clocks agree"))
}

async fn is_well(bus: &dyn Bus) -> bool {
    let well = async {
        while bus.trouble().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, well).await.is_ok()
}

/// The Redis servers that requests and jobs of webhooks come by.
async fn redis(config: &Config) -> Vec<Check> {
    let requests = config.redis_url.as_ref().filter(|_| config.serves(Transport::RedisStreams));
    let jobs = config.push_redis_url.as_ref().filter(|_| config.push_backend == config::PushBackend::RedisStreams);
    let mut all = Vec::new();
    for (key, url) in [("redis-url", requests), ("push-redis-url", jobs)] {
        let Some(url) = url else { continue };
        let found = match RedisBus::open(&[url.expose().to_owned()], "doctor") {
            // What is wrong with it may quote it, with its password.
            Err(_) => Err(Trouble::Wrong(format!("{key}: not the URL of a Redis server"))),
            Ok(redis) if is_well(&redis).await => Ok("it answers".to_owned()),
            Ok(_) => Err(format!("it does not answer: start it, or correct `{key}`").into()),
        };
        all.push((key.to_owned(), found));
    }
    all
}

fn now() -> i64 {
    nuncio_protocol::Timestamp::now().as_micros()
}

/// Reads everything that callers are checked with, as `serve` would.
fn access(config: &Config) -> Found {
    door::auth(config)?;
    Ok(door::describe(config))
}

/// Whether the keys of the providers of identities can be had.
async fn providers(config: &Config) -> Vec<Check> {
    let mut all = Vec::new();
    // Where this fails, `access` says why.
    let issuers = door::auth(config).map(|auth| auth.issuers).unwrap_or_default();
    for (issuer, oidc) in issuers.iter().zip(&config.oidc) {
        let at = &oidc.issuer;
        let found = match issuer.has_keys().await {
            true => Ok(format!("the keys of {at} are there")),
            false => {
                Err(format!("the keys of {at} cannot be had: correct `issuer` or `jwks-url`, or open the way").into())
            }
        };
        all.push((oidc.name.clone(), found));
    }
    all
}

/// How long before its end a certificate is worth a word.
const SOON: i64 = 14 * 24 * 60 * 60;

fn certificate(config: &Config) -> Found {
    let Some(files) = &config.tls else { return Ok("none: HTTP is plain".into()) };
    door::tls(config)?;
    let all = read_certificates(&files.cert).map_err(|error| error.to_string())?;
    let validity = all.first().and_then(|first| validity(first)).ok_or("its dates cannot be read")?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let left = validity.until - i64::try_from(now).unwrap_or(i64::MAX);
    let days = left / (24 * 60 * 60);
    let cert = files.cert.display();
    match left {
        left if left <= 0 => Err(format!("{cert} has expired: get a new one").into()),
        _ if validity.until - left < validity.from => Err(format!("{cert} is not valid yet: check the clock").into()),
        left if left < SOON => Ok(format!("{cert} is good for {days} more days: renew it soon")),
        _ => Ok(format!("{cert} is good for {days} more days")),
    }
}
