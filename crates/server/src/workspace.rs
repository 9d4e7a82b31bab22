//! Where an agent may work, and what it gets of a message.
//!
//! A caller may ask for a folder; the configuration says below which roots. A folder that was checked is held
//! as a [`Workspace`], and files are opened beneath it only. Everything here may block on the disk: call it
//! from a thread that may.

mod beneath;
mod bounds;
mod folder;
mod media;
pub mod parts;
#[cfg(test)]
mod tests;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nuncio_protocol::{Metadata, Value};

pub use folder::{CwdHandle, Workspace};
pub use parts::{Accepts, Attachment, Limits, PartError, Prompt, read_parts};

use beneath::OpenError;
use bounds::Bounds;

/// The key of the metadata that asks for a folder: `{"path"}`, or the path alone.
pub const WORKSPACE: &str = "urn:nuncio:a2a:workspace:v1";

/// Why a folder was refused, or a configuration is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// A caller asked for a folder that it does not get. The text is all that the caller may read; why is
    /// [`WorkspaceError::reason`].
    #[error("Invalid A2A workspace metadata.")]
    Refused(String),
    /// The configuration names a folder that is none. For the operator.
    #[error("{path}: {what}")]
    Configuration {
        /// The folder.
        path: String,
        /// What is wrong with it.
        what: String,
    },
}

impl WorkspaceError {
    /// Why, for the log alone.
    pub fn reason(&self) -> String {
        match self {
            Self::Refused(reason) => reason.clone(),
            Self::Configuration { .. } => self.to_string(),
        }
    }

    fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }
}

/// The folders that callers may choose from.
#[derive(Clone, Debug)]
pub struct Workspaces {
    default: PathBuf,
    bounds: Arc<Bounds>,
    create_missing: bool,
}

impl Workspaces {
    /// `default` for whoever asks for none. Without `roots`, only that folder and what is below.
    pub fn new(default: impl AsRef<Path>, roots: Vec<PathBuf>) -> Result<Self, WorkspaceError> {
        let default = configured(default.as_ref())?;
        let mut all = vec![default.clone()];
        for root in roots {
            all.push(configured(&root)?);
        }
        let bounds = Arc::new(Bounds { roots: all, private: Vec::new() });
        Ok(Self { default, bounds, create_missing: false })
    }

    /// Files and folders of the server itself: no caller gets to them, wherever the roots are. A root below such
    /// a folder is none of it.
    #[must_use]
    pub fn private(mut self, private: Vec<PathBuf>) -> Self {
        Arc::make_mut(&mut self.bounds).private = private;
        self
    }

    /// Whether a folder that is missing is made, if it is below a root.
    #[must_use]
    pub fn create_missing(self, create_missing: bool) -> Self {
        Self { create_missing, ..self }
    }

    /// The folder for whoever asks for none.
    pub fn default_folder(&self) -> &Path {
        &self.default
    }

    /// The folder that a caller wants, if it may have it; without a wish, the default one.
    pub fn choose(&self, wanted: Option<&str>) -> Result<Workspace, WorkspaceError> {
        let Some(wanted) = wanted else { return self.hold(self.default.clone()) };
        let path = plain(wanted)?;
        let real = match beneath::real_path(&path) {
            Err(OpenError::Missing) if self.create_missing => self.create(&path)?,
            real => real.map_err(|error| WorkspaceError::refused(format!("{wanted:?}: {error}")))?,
        };
        self.hold(real)
    }

    fn hold(&self, real: PathBuf) -> Result<Workspace, WorkspaceError> {
        // Where agents work by default is for the configuration alone to say.
        if real != self.default {
            self.check(&real)?;
        }
        let name = real.display().to_string();
        let held = Workspace::hold(real, self.bounds.clone());
        held.map_err(|error| WorkspaceError::refused(format!("{name}: {error}")))
    }

    fn check(&self, real: &Path) -> Result<(), WorkspaceError> {
        let refused = |what: &str| Err(WorkspaceError::refused(format!("{} {what}", real.display())));
        if !self.bounds.allow(real) {
            return refused("is not below an allowed root");
        }
        if self.bounds.is_private(real) {
            return refused("belongs to the server itself");
        }
        Ok(())
    }

    /// Makes the missing end of a path, after its existing part was found to be allowed.
    fn create(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        let refused = |what: &dyn std::fmt::Display| WorkspaceError::refused(format!("{}: {what}", path.display()));
        for existing in path.ancestors().skip(1) {
            let real = match beneath::real_path(existing) {
                Err(OpenError::Missing) => continue,
                real => real.map_err(|error| refused(&error))?,
            };
            self.check(&real)?;
            let held = self.hold(real)?;
            let rest = path.strip_prefix(existing).map_err(|error| refused(&error))?;
            let dir = held.open_dir().map_err(|error| refused(&error))?;
            beneath::make_folders(dir, rest).map_err(|error| refused(&error))?;
            return Ok(held.path().join(rest));
        }
        Err(refused(&"there is nothing above it"))
    }
}

/// A folder of the configuration, free of links.
fn configured(path: &Path) -> Result<PathBuf, WorkspaceError> {
    let wrong = |what: String| WorkspaceError::Configuration { path: path.display().to_string(), what };
    let real = std::fs::canonicalize(path).map_err(|error| wrong(error.to_string()))?;
    if !real.is_dir() {
        return Err(wrong("is not a folder".into()));
    }
    Ok(real)
}

/// An absolute path without dots. Only its spelling is looked at.
fn plain(wanted: &str) -> Result<PathBuf, WorkspaceError> {
    let refused = |what: &str| Err(WorkspaceError::refused(format!("{wanted:?} {what}")));
    if wanted.contains('\0') {
        return refused("holds a NUL");
    }
    // Whoever decodes it later must find the same folder.
    if percent_encoding::percent_decode_str(wanted).ne(wanted.bytes()) {
        return refused("is percent-encoded");
    }
    let path = Path::new(wanted);
    if !path.is_absolute() {
        return refused("is not absolute");
    }
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            step => plain.push(step),
        }
    }
    Ok(plain)
}

/// The folder that a request asks for: its own metadata first, then that of its message.
pub fn wanted_workspace(
    request_metadata: &Metadata,
    message_metadata: &Metadata,
) -> Result<Option<String>, WorkspaceError> {
    for metadata in [request_metadata, message_metadata] {
        if let Some(wanted) = wanted_in(metadata)? {
            return Ok(Some(wanted));
        }
    }
    Ok(None)
}

fn wanted_in(metadata: &Metadata) -> Result<Option<String>, WorkspaceError> {
    let wrong = |key: &str| Err(WorkspaceError::refused(format!("{key} has the wrong type")));
    match metadata.get(WORKSPACE) {
        None | Some(Value::Null) => {}
        Some(Value::String(path)) => return Ok(Some(path.clone())),
        Some(value) => match value.get("path") {
            Some(Value::String(path)) => return Ok(Some(path.clone())),
            _ => return wrong(WORKSPACE),
        },
    }
    match metadata.get("iac_code") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(of)) => match of.get("cwd") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(path)) => Ok(Some(path.clone())),
            Some(_) => wrong("iac_code.cwd"),
        },
        Some(_) => wrong("iac_code"),
    }
}
