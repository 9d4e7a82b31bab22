//! A folder that was checked: where a process may start, and which files may be read and written.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::beneath::{self, Follow, OpenError};
use super::bounds::Bounds;

/// So many links to what is missing may follow each other.
const MOST_LINKS: usize = 8;

/// A folder that an agent may work in.
///
/// It holds the folder itself, not only its name: what is put in its place later is not mistaken for it.
/// All of its methods may block on the disk.
#[derive(Clone)]
pub struct Workspace {
    path: PathBuf,
    dir: Arc<OwnedFd>,
    bounds: Arc<Bounds>,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Workspace").field(&self.path).finish()
    }
}

impl Workspace {
    /// Holds the folder at a path without links.
    pub(super) fn hold(path: PathBuf, bounds: Arc<Bounds>) -> Result<Self, OpenError> {
        let dir = beneath::open_real_folder(&path)?;
        Ok(Self { path, dir: Arc::new(dir), bounds })
    }

    /// Its absolute path, free of links when it was checked.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder once more by its path. Refused when something else is there by now.
    pub fn open_dir(&self) -> io::Result<OwnedFd> {
        let now = beneath::open_real_folder(&self.path)?;
        let (before, after) = (rustix::fs::fstat(&self.dir)?, rustix::fs::fstat(&now)?);
        if (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino) {
            return Err(OpenError::Outside.into());
        }
        Ok(now)
    }

    /// The folder as the working directory of a process to start.
    pub fn cwd(&self) -> io::Result<CwdHandle> {
        let dir = self.open_dir()?;
        #[cfg(target_os = "linux")]
        let path = {
            use std::os::fd::AsRawFd;
            PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()))
        };
        #[cfg(not(target_os = "linux"))]
        let path = self.path.clone();
        Ok(CwdHandle { path, _dir: dir })
    }

    /// Opens a regular file for reading: a relative path, or an absolute one inside the folder.
    pub fn open_file(&self, path: impl AsRef<Path>) -> io::Result<File> {
        Ok(self.open_for_reading(path.as_ref())?)
    }

    /// Reads a regular file of at most `limit` bytes.
    pub fn read(&self, path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        Ok(self.read_file(path.as_ref(), limit)?)
    }

    /// Writes a file, which is made if it is missing, together with its folders.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        // Nothing is cut off before it is known that this is a file, and a pipe must not block.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let path = path.as_ref();
        let file = match self.open(path, flags, Mode::empty()) {
            Err(OpenError::Missing) => self.create(path, flags)?,
            opened => opened?,
        };
        let mut file = beneath::regular(file)?;
        file.set_len(0)?;
        file.write_all(bytes)
    }

    pub(super) fn read_file(&self, path: &Path, limit: u64) -> Result<Vec<u8>, OpenError> {
        let file = self.open_for_reading(path)?;
        let size = file.metadata()?.len();
        if size > limit {
            return Err(OpenError::TooLarge(limit));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        // It may grow while it is read.
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(OpenError::TooLarge(limit));
        }
        Ok(bytes)
    }

    fn open_for_reading(&self, path: &Path) -> Result<File, OpenError> {
        // A pipe that nobody writes to must not block.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        beneath::regular(self.open(path, flags, Mode::empty())?)
    }

    /// Makes a file and the folders that it is in, unless they would be in one of the server's own.
    fn create(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, OpenError> {
        let path = self.relative(path).ok_or(OpenError::Missing)?;
        let parent = path.parent().ok_or(OpenError::Missing)?;
        for existing in parent.ancestors() {
            match self.open(existing, beneath::FOLDER, Mode::empty()) {
                Err(OpenError::Missing) => {}
                opened => {
                    opened?;
                    break;
                }
            }
        }
        beneath::make_folders(&self.dir, parent)?;
        // A link to what is missing is followed here, since the kernel would make it wherever the link leads.
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            match self.open(&path, flags | OFlags::CREATE | OFlags::NOFOLLOW, Mode::from_raw_mode(0o666)) {
                Err(OpenError::Outside) => path = self.follow(&path).ok_or(OpenError::Outside)?,
                opened => return opened,
            }
        }
        Err(OpenError::Outside)
    }

    /// Where a link leads, if that is in a folder of this one that is there already and not the server's own.
    fn follow(&self, link: &Path) -> Option<PathBuf> {
        let parent = link.parent()?;
        let folder = self.open(parent, beneath::FOLDER, Mode::empty()).ok()?;
        let target = rustix::fs::readlinkat(&folder, link.file_name()?, Vec::new()).ok()?;
        let target = parent.join(OsStr::from_bytes(target.as_bytes()));
        self.open(target.parent()?, beneath::FOLDER, Mode::empty()).ok()?;
        Some(target)
    }

    /// Opens what is in the folder and not the server's own.
    fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, OpenError> {
        let file = self.open_inside(path, flags, mode)?;
        // Which links led to it is known only now.
        match self.bounds.is_private(&beneath::place(&file, &self.path.join(path))?) {
            true => Err(OpenError::Outside),
            false => Ok(file),
        }
    }

    fn open_inside(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, OpenError> {
        if let Some(relative) = self.relative(path) {
            match beneath::open(self.dir.as_fd(), relative, flags, mode, Follow::Inside) {
                // Perhaps an absolute link that does stay inside.
                Err(OpenError::Outside) => {}
                opened => return opened,
            }
        }
        // By its real name, so that whatever is swapped meanwhile is not followed.
        let real = beneath::real_path(&self.path.join(path)).map_err(|_| OpenError::Outside)?;
        let relative = real.strip_prefix(&self.path).map_err(|_| OpenError::Outside)?;
        beneath::open(self.dir.as_fd(), relative, flags, mode, Follow::Never)
    }

    /// The path below the folder, as far as its spelling says.
    fn relative<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        if path.is_absolute() { path.strip_prefix(&self.path).ok() } else { Some(path) }
    }
}

/// A folder to start a process in: give [`CwdHandle::path`] to `Command::current_dir`, and keep this until the
/// process has started.
#[derive(Debug)]
pub struct CwdHandle {
    path: PathBuf,
    _dir: OwnedFd,
}

impl CwdHandle {
    /// Leads to the folder that was checked, whatever its name leads to by now. Of use only in this process and,
    /// until it executes another program, in its child.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
