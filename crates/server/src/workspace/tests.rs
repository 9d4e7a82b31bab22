//! Everything that a caller may try in order to leave the workspace.

mod choose;
mod files;
mod hostile;
mod parts;

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode};

use super::{Workspace, Workspaces};

/// What must never be seen.
const SECRET: &str = "the secret of somebody else";

/// A folder with files and traps, and something outside of it that the traps lead to.
struct Tree {
    _all: tempfile::TempDir,
    outside: PathBuf,
    inside: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let all = tempfile::tempdir().expect("a temporary folder");
        let root = all.path().canonicalize().expect("it exists");
        let (outside, inside) = (root.join("outside"), root.join("inside"));
        fs::create_dir_all(inside.join("sub/deep")).expect("made");
        fs::create_dir_all(&outside).expect("made");
        fs::write(outside.join("secret.txt"), SECRET).expect("written");
        fs::write(inside.join("plain.txt"), "plain").expect("written");
        fs::write(inside.join("sub/deep/note.txt"), "note").expect("written");
        let tree = Self { _all: all, outside, inside };
        tree.link("../outside", "up");
        tree.link("../outside/secret.txt", "file-up");
        tree.link(&tree.outside, "absolute");
        tree.link("/", "root");
        tree.link("/proc/self/cwd", "magic");
        tree.link("/proc/self/root", "magic-root");
        tree.link("sub/deep", "within");
        tree.link(tree.inside.join("sub"), "absolute-within");
        tree.link("loop", "loop");
        rustix::fs::mkfifoat(CWD, tree.inside.join("pipe"), Mode::from_raw_mode(0o600)).expect("a pipe");
        tree
    }

    fn link(&self, to: impl AsRef<Path>, name: &str) {
        symlink(to, self.inside.join(name)).expect("a link");
    }

    fn workspaces(&self) -> Workspaces {
        Workspaces::new(self.inside.clone(), Vec::new()).expect("a folder")
    }

    fn workspace(&self) -> Workspace {
        self.workspaces().choose(None).expect("the default")
    }

    fn secret(&self) -> PathBuf {
        self.outside.join("secret.txt")
    }

    /// Exchanges the link `flip` between a file inside and one outside, or a folder each, until told to stop.
    fn flipping<T>(&self, inside: &str, outside: &str, work: impl FnOnce() -> T) -> T {
        use std::sync::atomic::{AtomicBool, Ordering};
        let stop = AtomicBool::new(false);
        let (flip, next) = (self.inside.join("flip"), self.inside.join("flip.next"));
        symlink(inside, &flip).expect("a link");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for to in [outside, inside].into_iter().cycle() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    symlink(to, &next).expect("a link");
                    fs::rename(&next, &flip).expect("exchanged");
                }
            });
            // The other thread ends also when the work fails.
            let done = catch_unwind(AssertUnwindSafe(work));
            stop.store(true, Ordering::Relaxed);
            done.unwrap_or_else(|failed| resume_unwind(failed))
        })
    }
}
