//! What of the disk callers may use: everything below some folders, but nothing that is the server's own.

use std::path::{Path, PathBuf};

/// The folders that callers may use, and what they never get.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Free of links; the default folder is among them.
    pub(super) roots: Vec<PathBuf>,
    /// Files and folders of the server, as they are configured.
    pub(super) private: Vec<PathBuf>,
}

impl Bounds {
    /// Whether a path without links is below a root.
    pub(super) fn allow(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    /// Whether a path without links is, or is below, something of the server's own. A root nearer to it than
    /// that is meant to be used.
    ///
    /// Things are known by what they are, not by their names: keys that were replaced meanwhile and other ways to
    /// the same folder count too.
    pub(super) fn is_private(&self, real: &Path) -> bool {
        let private: Vec<_> = self.private.iter().filter_map(|path| identity(path)).collect();
        for place in real.ancestors() {
            if identity(place).is_some_and(|one| private.contains(&one)) {
                return true;
            }
            if self.roots.iter().any(|root| root == place) {
                return false;
            }
        }
        false
    }
}

/// The device and the number of what a path leads to.
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
