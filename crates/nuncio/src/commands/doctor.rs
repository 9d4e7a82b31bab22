//! `nuncio doctor`: is everything that this configuration needs really there?

use std::path::Path;

use nuncio_server::metrics::Metrics;
use nuncio_server::store::Store;
use tokio::net::TcpListener;

use crate::cli::ServeArgs;
use crate::commands::serve;
use crate::config::{self, Config};
use crate::failure::Failure;
use crate::output::print;

/// Runs the command.
pub(crate) async fn run(_args: &ServeArgs, config: &Config) -> Result<(), Failure> {
    let checks = [
        ("configuration", Ok("every key is known and has a value that fits".to_owned())),
        ("address", address(config).await),
        ("data folder", data_folder(config)),
        ("store", store(config).await),
        ("access", Ok(access(config))),
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
    let (host, port) = (&config.host, config.port);
    match TcpListener::bind((host.as_str(), port)).await {
        Ok(_) => Ok(format!("{host}:{port} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Err(format!("{host}:{port} is taken: stop the process that listens there, or choose another port"))
        }
        Err(error) => Err(format!("{host}:{port} cannot be used: {error}")),
    }
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
    let opened = serve::open_store(config, &Metrics::new()).await;
    let store: std::sync::Arc<dyn Store> = opened.map_err(|failure| failure.to_string())?;
    let checked = store.check().await.map_err(|error| error.to_string());
    store.close().await;
    checked.map(|()| "opens, and takes writes".into())
}

fn access(config: &Config) -> String {
    match config.callers.len() {
        0 => format!("open to everyone who reaches {}", config.host),
        n => format!("{n} bearer token(s)"),
    }
}
