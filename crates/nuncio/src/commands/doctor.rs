//! `nuncio doctor`: is everything that this configuration needs really there?

use std::path::Path;
use std::time::Duration;

use nuncio_server::auth::validity;
use nuncio_server::metrics::Metrics;
use nuncio_server::store::Store;
use nuncio_server::tls::read_certificates;
use nuncio_server::{UnixOptions, UnixSocket};
use tokio::net::TcpListener;

use crate::cli::ServeArgs;
use crate::commands::serve::{self, door};
use crate::config::{self, Config, Transport};
use crate::failure::Failure;
use crate::output::print;

/// Runs the command.
pub(crate) async fn run(_args: &ServeArgs, config: &Config) -> Result<(), Failure> {
    let checks = [
        ("configuration", Ok("every key is known and has a value that fits".to_owned())),
        ("address", address(config).await),
        ("socket", socket(config).await),
        ("data folder", data_folder(config)),
        ("store", store(config).await),
        ("cluster", cluster(config).await),
        ("access", access(config)),
        ("certificate", certificate(config)),
    ];
    let mut failed = 0;
    for (name, result) in &checks {
        let (mark, text) = match result {
            Ok(text) => ("ok  ", text),
            Err(text) => {
                failed += 1;
                ("FAIL", text)
            }
        };
        print(&format!("{mark}  {name:13}  {text}\n"))?;
    }
    if failed == 0 { Ok(()) } else { Err(Failure::failed(format!("{failed} of {} checks failed", checks.len()))) }
}

async fn address(config: &Config) -> Result<String, String> {
    if !config.has_http_port() {
        return Ok("not needed: HTTP is not served".into());
    }
    let (host, port) = (&config.host, config.port);
    match TcpListener::bind((host.as_str(), port)).await {
        Ok(_) => Ok(format!("{host}:{port} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Err(format!("{host}:{port} is taken: stop the process that listens there, or choose another port"))
        }
        Err(error) => Err(format!("{host}:{port} cannot be used: {error}")),
    }
}

/// Opens the socket as `serve` would, and closes it again.
async fn socket(config: &Config) -> Result<String, String> {
    let Some(path) = config.socket_path.as_ref().filter(|_| config.serves(Transport::Unix)) else {
        return Ok("not needed: no Unix socket is served".into());
    };
    let opened = UnixSocket::open(path, UnixOptions::default()).await;
    opened.map(|socket| format!("{} can be opened", socket.path().display())).map_err(|error| error.to_string())
}

fn data_folder(config: &Config) -> Result<String, String> {
    if config.store == config::Store::Memory {
        return Ok("not needed: everything is kept in memory".into());
    }
    let folder = &config.data_dir;
    let at = nearest_existing(folder);
    let probe = at.join(format!(".nuncio-doctor-{}", std::process::id()));
    let written = std::fs::write(&probe, b"probe").and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) if at == folder => Ok(format!("{} can be written", folder.display())),
        Ok(()) => Ok(format!("{} will be made at the first start", folder.display())),
        Err(error) => Err(format!("{} cannot be written: {error}; choose another data-dir", at.display())),
    }
}

fn nearest_existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.is_dir()).unwrap_or_else(|| Path::new("/"))
}

/// Opens the store as `serve` would, but makes none where there is none yet.
async fn store(config: &Config) -> Result<String, String> {
    if config.store == config::Store::Sqlite && !config.data_dir.join("nuncio.db").exists() {
        return Ok("none yet: the first start makes it".into());
    }
    let opened = serve::open_store(config, &Metrics::new()).await.map_err(|failure| failure.to_string())?;
    let checked = opened.store.check().await.map_err(|error| error.to_string());
    let examined = match &opened.postgres {
        None => Ok(None),
        Some(postgres) => postgres.examine().await.map(Some).map_err(|error| error.to_string()),
    };
    opened.store.close().await;
    checked?;
    let Some(found) = examined? else { return Ok("opens, and takes writes".into()) };
    let text = format!("opens, and takes writes: {}", found.about);
    if found.warnings.is_empty() { Ok(text) } else { Err(format!("{text}; {}", found.warnings.join("; "))) }
}

/// How far apart clocks may be: webhooks are tried again and events are stamped by the clock of each server.
const APART: i64 = 2_000_000;
/// How long the bus may take to be there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The other servers on the same store, the bus between them, and whether they agree on the time.
async fn cluster(config: &Config) -> Result<String, String> {
    if !config.store.is_shared() {
        return Ok("not needed: this server is alone with its store".into());
    }
    let opened = serve::open_store(config, &Metrics::new()).await;
    let store = opened.map_err(|failure| failure.to_string())?.store;
    let looked = look_around(config, &*store).await;
    store.close().await;
    looked
}

async fn look_around(config: &Config, store: &dyn Store) -> Result<String, String> {
    let shared = store.shared().ok_or("the store cannot be shared")?;
    let nodes = shared.nodes().await.map_err(|error| error.to_string())?.len();
    let before = now();
    let clock = shared.clock().await.map_err(|error| error.to_string())?;
    let apart = (before - clock).max(clock - now()).max(0);
    if apart > APART {
        let seconds = apart / 1_000_000;
        return Err(format!("this machine's clock and the database's are {seconds} s apart: set them by NTP"));
    }
    let bus = match serve::bus::open(config, store).map_err(|failure| failure.to_string())? {
        None => "no bus: changes elsewhere are seen within a second".to_owned(),
        Some(bus) => {
            let well = async {
                while bus.trouble().is_some() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            let kind = bus.kind();
            tokio::time::timeout(PATIENCE, well)
                .await
                .map_err(|_| format!("the bus ({kind}) does not answer: start it, or set `bus` to one that does"))?;
            format!("the bus ({kind}) answers")
        }
    };
    let nodes = if nodes == 1 { "1 server is".to_owned() } else { format!("{nodes} servers are") };
    Ok(format!("{nodes} alive; {bus}; the clocks agree"))
}

fn now() -> i64 {
    nuncio_protocol::Timestamp::now().as_micros()
}

/// Reads everything that callers are checked with, as `serve` would.
fn access(config: &Config) -> Result<String, String> {
    door::auth(config).map_err(|failure| failure.to_string())?;
    Ok(door::describe(config))
}

/// How long before its end a certificate is worth a word.
const SOON: i64 = 14 * 24 * 60 * 60;

fn certificate(config: &Config) -> Result<String, String> {
    let Some(files) = &config.tls else { return Ok("none: HTTP is plain".into()) };
    door::tls(config).map_err(|failure| failure.to_string())?;
    let all = read_certificates(&files.cert).map_err(|error| error.to_string())?;
    let validity = all.first().and_then(|first| validity(first)).ok_or("its dates cannot be read")?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let left = validity.until - i64::try_from(now).unwrap_or(i64::MAX);
    let days = left / (24 * 60 * 60);
    let cert = files.cert.display();
    match left {
        left if left <= 0 => Err(format!("{cert} has expired: get a new one")),
        _ if validity.until - left < validity.from => Err(format!("{cert} is not valid yet: check the clock")),
        left if left < SOON => Ok(format!("{cert} is good for {days} more days: renew it soon")),
        _ => Ok(format!("{cert} is good for {days} more days")),
    }
}
