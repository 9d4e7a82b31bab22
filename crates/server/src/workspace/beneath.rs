//! Opening what lies beneath a folder, and nothing else.
//!
//! The kernel does the checking while it walks the path, so that nobody can swap a link between a check
//! and its use. Where the kernel cannot, the path is walked here, step by step and without any link.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    /// Those that stay beneath the folder.
    Inside,
    /// None.
    Never,
}

/// Why something was not opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("it is outside of the workspace")]
    Outside,
    #[error("there is no such file")]
    Missing,
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            // A link that leaves the folder, a magic link, or a link where none may be.
            Errno::XDEV | Errno::LOOP | Errno::MLINK => Self::Outside,
            // Also what the kernel cannot even read as a path.
            Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::NAMETOOLONG => Self::Missing,
            other => Self::Io(other.into()),
        }
    }
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::Outside => io::ErrorKind::PermissionDenied,
            OpenError::Missing => io::ErrorKind::NotFound,
            OpenError::NotAFile => io::ErrorKind::InvalidInput,
            OpenError::TooLarge(_) => io::ErrorKind::FileTooLarge,
            OpenError::Io(_) => {
                let OpenError::Io(error) = error else { return io::ErrorKind::Other.into() };
                return error;
            }
        };
        Self::new(kind, error)
    }
}

/// A folder is opened for its place alone where the system can do that.
#[cfg(target_os = "linux")]
pub(super) const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A folder is opened for its place alone where the system can do that.
#[cfg(not(target_os = "linux"))]
pub(super) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens `path`, which is relative to `dir`.
pub(super) fn open(
    dir: impl AsFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    follow: Follow,
) -> Result<OwnedFd, OpenError> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = flags | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if follow == Follow::Never {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        // The kernel gives up when folders are moved while it walks, and asks to be asked again.
        for _ in 0..64 {
            match rustix::fs::openat2(dir.as_fd(), path, flags, mode, resolve) {
                Ok(file) => return Ok(file),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // An old kernel, or a sandbox that does not know the call.
                Err(Errno::NOSYS | Errno::PERM) => return walk(dir.as_fd(), path, flags, mode),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(OpenError::Outside)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = follow;
        walk(dir.as_fd(), path, flags, mode)
    }
}

/// Opens `path` one step after the other, following no link at all.
pub(super) fn walk(dir: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, OpenError> {
    let mut steps = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => steps.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(OpenError::Outside),
        }
    }
    let Some((last, before)) = steps.split_last() else {
        return Ok(rustix::fs::openat(dir, ".", flags, mode)?);
    };
    let mut at: Option<OwnedFd> = None;
    for name in before {
        let here = at.as_ref().map_or(dir, AsFd::as_fd);
        let next = rustix::fs::openat(here, *name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
        at = Some(next.map_err(|errno| link_or(here, name, errno))?);
    }
    let here = at.as_ref().map_or(dir, AsFd::as_fd);
    rustix::fs::openat(here, *last, flags | OFlags::NOFOLLOW, mode).map_err(|errno| link_or(here, last, errno))
}

/// A folder that is a link is "not a folder" to the system; to us it leads outside.
fn link_or(dir: BorrowedFd<'_>, name: &std::ffi::OsStr, errno: Errno) -> OpenError {
    let is_link = rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink());
    if is_link { OpenError::Outside } else { errno.into() }
}

/// Opens a folder by its absolute path, which must hold no link.
pub(super) fn open_real_folder(path: &Path) -> Result<OwnedFd, OpenError> {
    let root = rustix::fs::open("/", FOLDER, Mode::empty())?;
    let relative = path.strip_prefix("/").map_err(|_| OpenError::Outside)?;
    open(root, relative, FOLDER, Mode::empty(), Follow::Never)
}

/// The absolute path without links and dots. Links of the system that lead to whatever a process has
/// open, such as those below `/proc/self`, are refused: they name a place without saying which.
pub(super) fn real_path(path: &Path) -> Result<PathBuf, OpenError> {
    refuse_magic(path)?;
    std::fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => OpenError::Missing,
        _ => OpenError::Outside,
    })
}

#[cfg(target_os = "linux")]
fn refuse_magic(path: &Path) -> Result<(), OpenError> {
    use rustix::fs::{CWD, ResolveFlags};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        // A system that cannot tell: no link at all may be on the way.
        Err(Errno::NOSYS | Errno::PERM) => {
            let relative = path.strip_prefix("/").map_err(|_| OpenError::Outside)?;
            let root = rustix::fs::open("/", FOLDER, Mode::empty())?;
            walk(root.as_fd(), relative, flags, Mode::empty()).map(drop)
        }
        opened => Ok(opened.map(drop)?),
    }
}

#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps)] // there are no such links here
fn refuse_magic(_: &Path) -> Result<(), OpenError> {
    Ok(())
}

/// Makes the folders of `path` beneath `dir` that are missing.
pub(super) fn make_folders(dir: impl AsFd, path: &Path) -> Result<(), OpenError> {
    let mut made = PathBuf::new();
    for component in path.components() {
        let Component::Normal(name) = component else { return Err(OpenError::Missing) };
        let parent = open(dir.as_fd(), &made, FOLDER, Mode::empty(), Follow::Inside)?;
        made.push(name);
        match open(parent.as_fd(), Path::new(name), FOLDER, Mode::empty(), Follow::Never) {
            // A link: whether it stays inside is seen with the next step.
            Ok(_) | Err(OpenError::Outside) => {}
            Err(OpenError::Missing) => match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            },
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Where something lies that was opened by this path.
#[cfg(target_os = "linux")]
pub(super) fn place(file: &OwnedFd, _: &Path) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Where something lies that was opened by this path.
#[cfg(not(target_os = "linux"))]
pub(super) fn place(_: &OwnedFd, path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// What was opened, if it is a regular file.
pub(super) fn regular(file: OwnedFd) -> Result<File, OpenError> {
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode).is_file() {
        true => Ok(file.into()),
        false => Err(OpenError::NotAFile),
    }
}
