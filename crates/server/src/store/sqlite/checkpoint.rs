//! Moves the write-ahead log into the file, beside the writer.
//!
//! Done by the writer, it holds up everybody for as long as ten commits take. So another thread does it while the writer
//! goes on, and the writer moves only what has come meanwhile: little enough to be done at once, after which the log
//! begins anew.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::{Durability, open};

/// Pages after which the log is moved: 4 MB.
const EVERY: i32 = 1_000;

/// Pages after which the writer waits for nobody: the disk cannot keep up, or the other thread is gone.
const TOO_MANY: i32 = 8 * EVERY;

/// Lets the log of this connection be moved.
pub(super) fn begin(db: &mut Connection, path: PathBuf, durability: Durability) -> rusqlite::Result<()> {
    let mut mover = Mover { aside: Aside::start(path, durability), asked: false, due: EVERY, last: 0 };
    db.wal_hook(Some(move |wal: &mut Wal, pages| {
        // What could not be moved stays in the log, from which it is read as well.
        mover.committed(pages, || _ = wal.checkpoint());
        Ok(())
    }))
}

/// Waits until nothing is moved any more.
pub(super) fn end(db: &mut Connection) -> rusqlite::Result<()> {
    db.wal_hook(None::<fn(&mut Wal, i32) -> rusqlite::Result<()>>)
}

/// Decides after every commit, on the writing thread.
struct Mover {
    aside: Option<Aside>,
    /// Whether the other thread was asked and has not answered.
    asked: bool,
    /// The size of the log, in pages, at which it is moved next.
    due: i32,
    /// Its size after the commit before.
    last: i32,
}

impl Mover {
    fn committed(&mut self, pages: i32, here: impl FnOnce()) {
        if pages < self.last {
            self.due = EVERY;
        }
        self.last = pages;
        let is_done = self.asked && self.aside.as_ref().is_none_or(Aside::is_done);
        if is_done || pages >= self.due.saturating_add(TOO_MANY) {
            self.asked &= !is_done;
            here();
            // The log begins anew with the next commit, unless somebody reads what is old in it.
            self.due = pages.saturating_add(EVERY);
        } else if pages >= self.due && !self.asked {
            self.asked = self.aside.as_ref().is_some_and(Aside::ask);
            if !self.asked {
                here();
                self.due = pages.saturating_add(EVERY);
            }
        }
    }
}

/// The other thread, with a connection of its own.
struct Aside {
    /// None when it shall end.
    ask: Option<SyncSender<()>>,
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Aside {
    fn start(path: PathBuf, durability: Durability) -> Option<Self> {
        let (ask, asked) = sync_channel(1);
        let done = Arc::<AtomicBool>::default();
        let thread = thread::Builder::new().name("nuncio-checkpoint".into());
        let work = Work { path, durability, asked, done: done.clone() };
        let thread = thread.spawn(move || work.run()).ok()?;
        Some(Self { ask: Some(ask), done, thread: Some(thread) })
    }

    fn ask(&self) -> bool {
        self.ask.as_ref().is_some_and(|ask| ask.try_send(()).is_ok())
    }

    fn is_done(&self) -> bool {
        self.done.swap(false, Ordering::Acquire)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    path: PathBuf,
    durability: Durability,
    asked: Receiver<()>,
    done: Arc<AtomicBool>,
}

impl Work {
    fn run(self) {
        let mut db = None;
        while self.asked.recv().is_ok() {
            // It opens when it is needed: a start need not wait for it.
            if db.is_none() {
                db = open::mover(&self.path, self.durability).ok();
            }
            if let Some(open) = &db
                && let Err(error) = open.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            {
                tracing::debug!(%error, "the write-ahead log was not moved");
                db = None;
            }
            self.done.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mover without another thread, and how often it did it itself.
    fn alone(sizes: &[i32]) -> Vec<i32> {
        let mut mover = Mover { aside: None, asked: false, due: EVERY, last: 0 };
        let mut moved = Vec::new();
        for &pages in sizes {
            mover.committed(pages, || moved.push(pages));
        }
        moved
    }

    #[test]
    fn the_writer_does_it_itself_where_it_has_no_help() {
        assert_eq!(alone(&[10, EVERY - 1, EVERY, 5, 700, EVERY + 3]), [EVERY, EVERY + 3]);
    }

    #[test]
    fn a_log_that_cannot_begin_anew_is_not_moved_with_every_commit() {
        let sizes: Vec<i32> = (1..40).map(|n| n * EVERY / 4).collect();
        assert_eq!(alone(&sizes), [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|n| n * EVERY));
    }

    #[test]
    fn the_writer_does_not_wait_for_help_for_ever() {
        let (ask, _asked) = sync_channel(1);
        let done = Arc::<AtomicBool>::default();
        let aside = Some(Aside { ask: Some(ask), done: done.clone(), thread: None });
        let mut mover = Mover { aside, asked: false, due: EVERY, last: 0 };
        let moved = AtomicBool::new(false);
        let mut commit = |pages| {
            mover.committed(pages, || moved.store(true, Ordering::Relaxed));
            moved.swap(false, Ordering::Relaxed)
        };
        assert!(!commit(EVERY) && !commit(2 * EVERY), "it was asked and works");
        assert!(commit(EVERY + TOO_MANY));
        done.store(true, Ordering::Release);
        assert!(commit(EVERY + TOO_MANY + 1), "the rest is the writer's");
        assert!(!commit(10) && !commit(EVERY - 1));
    }

    #[test]
    fn the_other_thread_moves_all_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let db = Connection::open(&path).unwrap();
        db.pragma_update(None, "journal_mode", "wal").unwrap();
        db.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        db.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(1 << 20))").unwrap();
        let size = || path.metadata().unwrap().len();
        assert!(size() < 1 << 20, "all is in the log");
        let aside = Aside::start(path.clone(), Durability::Full).unwrap();
        assert!(aside.ask());
        for _ in 0..1000 {
            if aside.is_done() {
                assert!(size() >= 1 << 20);
                return;
            }
            thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("it never came back");
    }
}
