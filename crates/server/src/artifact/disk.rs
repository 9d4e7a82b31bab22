//! The shelf on disk.
//!
//! ```text
//!   ab/ab12…           every content once, by its hash
//!   tasks/7-…/ab12…    the same file again, for each task that has it
//!   tmp/…              what is being written
//! ```
//!
//! A task reads from its own folder alone; the names by hash only help to keep equal contents once. So a content
//! may lose that name at any moment, and no task notices. It goes when the last folder goes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::{Blob, Hash, Stored};

/// How old something half written is before it counts as left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(86_400);
/// How much is copied at once.
const PIECE: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct Disk {
    dir: PathBuf,
}

impl Disk {
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        make_folder(dir)?;
        // Its files may be named to others, who start elsewhere.
        let dir = dir.canonicalize()?;
        for part in ["tasks", "tmp"] {
            make_folder(&dir.join(part))?;
        }
        let disk = Self { dir };
        disk.clear_left_behind()?;
        Ok(disk)
    }

    fn clear_left_behind(&self) -> io::Result<()> {
        let now = SystemTime::now();
        for entry in fs::read_dir(self.dir.join("tmp"))? {
            let entry = entry?;
            let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| now.duration_since(at).ok());
            if age.is_some_and(|age| age > LEFT_BEHIND) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    pub(super) fn put(&self, folder: &str, from: impl Read, most: u64) -> io::Result<Stored> {
        let unfinished = Unfinished::new(self.dir.join("tmp").join(uuid::Uuid::new_v4().to_string()))?;
        let stored = unfinished.fill(from, most)?;
        let (mine, shared) = (self.path(folder, stored.sha256), self.shared(stored.sha256));
        let home = self.dir.join("tasks").join(folder);
        make_folder(&home)?;
        // Whatever keeps the file from being shared, the task gets one of its own.
        if let Err(error) = fs::hard_link(&shared, &mine)
            && error.kind() != ErrorKind::AlreadyExists
        {
            unfinished.rename(&mine)?;
            if let Some(parent) = shared.parent() {
                make_folder(parent)?;
            }
            if let Err(error) = fs::hard_link(&mine, &shared)
                && error.kind() != ErrorKind::AlreadyExists
            {
                tracing::debug!(%error, "a content is not shared");
            }
        }
        sync(&home)?;
        sync(&self.dir.join("tasks"))?;
        Ok(stored)
    }

    pub(super) fn get(&self, folder: &str, sha256: Hash) -> io::Result<Option<Blob>> {
        match File::open(self.path(folder, sha256)) {
            Ok(file) => {
                let size = file.metadata()?.len();
                Ok(Some(Blob::File(Arc::new(file), size)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn path(&self, folder: &str, sha256: Hash) -> PathBuf {
        self.dir.join("tasks").join(folder).join(sha256.to_string())
    }

    fn shared(&self, sha256: Hash) -> PathBuf {
        let name = sha256.to_string();
        self.dir.join(&name[..2]).join(name)
    }

    pub(super) fn untouched_since(&self, then: SystemTime) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.dir.join("tasks"))? {
            let entry = entry?;
            let is_old = entry.metadata().and_then(|meta| meta.modified()).is_ok_and(|at| at <= then);
            if is_old && let Ok(name) = entry.file_name().into_string() {
                found.push(name);
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    pub(super) fn remove(&self, folder: &str) -> io::Result<()> {
        let home = self.dir.join("tasks").join(folder);
        for entry in fs::read_dir(&home)? {
            let entry = entry?;
            // The shared name goes first: if we are interrupted in between, this folder is still found.
            if let Ok(sha256) = entry.file_name().to_string_lossy().parse::<Hash>()
                && entry.metadata()?.nlink() <= 2
            {
                gone(fs::remove_file(self.shared(sha256)))?;
            }
            gone(fs::remove_file(entry.path()))?;
        }
        gone(fs::remove_dir(home))
    }
}

/// A file that is being written; unless it is given its name, it goes again.
struct Unfinished {
    path: PathBuf,
    file: File,
}

impl Unfinished {
    fn new(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { path, file })
    }

    /// Copies and hashes, and waits until it is on disk.
    fn fill(&self, mut from: impl Read, most: u64) -> io::Result<Stored> {
        let (mut hash, mut size, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
        loop {
            let n = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            size += n as u64;
            if size > most {
                return Err(too_large(most));
            }
            hash.update(&piece[..n]);
            (&self.file).write_all(&piece[..n])?;
        }
        self.file.sync_all()?;
        Ok(Stored { sha256: Hash(hash.finalize().into()), size })
    }

    fn rename(&self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

pub(super) fn too_large(most: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("the file is larger than the {most} bytes that are kept"))
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A new name is durable once its folder is.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
