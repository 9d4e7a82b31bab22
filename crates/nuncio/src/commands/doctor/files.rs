//! Whether what is written can be written.

use std::path::Path;

use super::{Check, Found};
use crate::config::{Config, Store};

/// With less than this, a server does not go on for long.
const ENOUGH: u64 = 100 << 20;

/// Every folder that the server writes to.
pub(super) fn all(config: &Config) -> Vec<Check> {
    let data = match config.store {
        Store::Memory => Ok("not needed: everything is kept in memory".to_owned()),
        _ => folder("data-dir", &config.data_dir),
    };
    let mut all = vec![("data folder".to_owned(), data)];
    let more = [("artifact-dir", &config.artifact_dir), ("keyring-dir", &config.keyring_dir)];
    for (key, path) in more {
        all.extend(path.iter().map(|path| (key.to_owned(), folder(key, path))));
    }
    if let Some(path) = config.audit_log.as_ref().filter(|path| path.as_os_str() != "stderr") {
        all.push(("audit-log".to_owned(), log(path)));
    }
    all
}

/// A folder that is there, or can be made.
fn folder(key: &str, path: &Path) -> Found {
    let shown = path.display();
    let path = std::path::absolute(path).map_err(|error| format!("{shown}: {error}"))?;
    let at = path.ancestors().find(|path| path.exists()).unwrap_or(&path);
    if !at.is_dir() {
        return Err(format!("{} is no folder: choose another {key}", at.display()).into());
    }
    let probe = at.join(format!(".nuncio-doctor-{}", std::process::id()));
    let written = std::fs::write(&probe, b"probe").and_then(|()| std::fs::remove_file(&probe));
    written.map_err(|error| {
        format!("{} cannot be written: {error}; give it to this user, or choose another {key}", at.display())
    })?;
    let space = rustix::fs::statvfs(at).map_err(|error| format!("{}: {error}", at.display()))?;
    let (free, mib) = (space.f_bavail.saturating_mul(space.f_frsize), 1 << 20);
    if free < ENOUGH {
        let text = format!("{shown} has only {} MiB left: make room, or choose another {key}", free / mib);
        return Err(text.into());
    }
    let state = if at == path { "can be written" } else { "will be made at the first start" };
    Ok(format!("{shown} {state}; {} MiB are free", free / mib))
}

/// A file that lines are added to.
fn log(path: &Path) -> Found {
    let shown = path.display();
    if !path.exists() {
        let path = std::path::absolute(path).map_err(|error| format!("{shown}: {error}"))?;
        let parent = path.parent().unwrap_or(&path);
        if !parent.is_dir() {
            return Err(format!("{} is missing: make it, or choose another audit-log", parent.display()).into());
        }
        return folder("audit-log", parent);
    }
    let opened = std::fs::OpenOptions::new().append(true).open(path);
    opened.map_err(|error| format!("{shown} cannot be written: {error}; choose another audit-log"))?;
    Ok(format!("{shown} can be written"))
}
