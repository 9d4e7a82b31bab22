//! Short tasks on the disk ahead of the database.
//!
//! ```text
//!   create ──▶ block in the making ──▶ one write, durable when it is through ──▶ answer
//!                                              └──▶ queue ──▶ writer, many of them in one transaction
//! ```
//!
//! A commit for one caller costs more than all the rest of a call: two switches of threads, eight pages, a sync. A short task
//! needs none of that to be safe. It is written to a file beside the database, by the thread that answers, in one write
//! that nobody waits for but the caller; and the database gets it a few milliseconds later, together with others. Whoever
//! reads in between has it put there first. A start reads from the file what a crash has kept from the database.
//!
//! The file is used round and round. Up to where the database has everything stands in the database.
//!
//! Whatever is in the way of such a write, from a full file to a disk that is slow just now, the task goes to the database
//! directly, as if nothing of this were there.

mod block;
mod file;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nuncio_direct::{Direct, News, PAGE, Pages};
use nuncio_protocol::TaskId;
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;

use super::super::{NewTask, Scope, StoreError, TaskKey, TaskRow};
use super::OnCommit;
use super::error::At;
use super::log::Places;
use super::open::{FileId, file_id, is_there};
use super::queue::{How, Queue};
use super::short::Short;
use super::writer::{Batch, Job};
use block::{Block, LARGEST, SLOTS};

/// How often others get a turn before a write begins without those who were served last.
const TURNS: usize = 4;

/// A write takes a tenth of this. What is slower was held up by the disk, or by somebody who keeps the processor from the
/// kernel's thread that ends a write; once in a while that is a commit of the database on the same processor.
const SLOW: Duration = Duration::from_micros(1_500);

/// When so many more writes were slow than not, commits are quicker.
const MANY: u32 = 24;

/// For how long everything goes to the database then.
const PAUSE: Duration = Duration::from_secs(30);

/// How far the database is behind.
#[derive(Default)]
pub(super) struct Progress {
    /// The slot up to which it has everything.
    done: AtomicU64,
    /// How many tasks it has not got.
    missing: AtomicUsize,
    /// These, by the slot behind them.
    blocks: Mutex<VecDeque<(u64, Tasks)>>,
}

/// The tasks of a block.
pub(super) type Tasks = Arc<Vec<Short>>;

impl Progress {
    /// Whether a reader has to wait for something.
    pub(super) fn is_behind(&self) -> bool {
        self.missing.load(Ordering::Acquire) > 0
    }

    /// Up to this slot there is more now than the database has.
    fn add(&self, tasks: &Tasks, slot: u64) {
        self.missing.fetch_add(tasks.len(), Ordering::Release);
        self.blocks.lock().push_back((slot, tasks.clone()));
    }

    /// The database has so many tasks more, and everything up to this slot.
    pub(super) fn advance(&self, tasks: usize, slot: Option<u64>) {
        if let Some(slot) = slot {
            let mut blocks = self.blocks.lock();
            let done = blocks.iter().take_while(|(end, _)| *end <= slot).count();
            blocks.drain(..done);
            drop(blocks);
            self.done.store(slot, Ordering::Release);
        }
        self.missing.fetch_sub(tasks, Ordering::Release);
    }

    /// A task that is over and that the database has not got: who has just made it must not have to wait for that.
    pub(super) fn find(&self, scope: &Scope, id: &TaskId) -> Option<TaskRow> {
        if !self.is_behind() {
            return None;
        }
        let blocks = self.blocks.lock();
        let mut tasks = blocks.iter().rev().flat_map(|(_, tasks)| tasks.iter());
        tasks.find(|task| task.id == *id && task.scope == *scope && task.state.is_final())?.row()
    }
}

/// What a start finds.
pub(super) struct Found {
    /// Tasks that were confirmed and are not in the database.
    pub(super) tasks: Vec<Short>,
    /// The slot behind them.
    pub(super) next: u64,
    path: PathBuf,
}

/// Looks for what a crash has kept from the database.
pub(super) fn recover(db: &Connection, path: &Path, at: &At) -> Result<Found, StoreError> {
    let path = file::path(path);
    let (database, next) = marks(db).map_err(|error| at.sql(&error))?;
    let Some(database) = database else { return Ok(Found { tasks: Vec::new(), next, path }) };
    let found = file::recover(&path, database, next).map_err(|error| at.io(&error))?;
    if found.is_damaged {
        let what =
            format!("{} has lost tasks that were confirmed; without that file the others can be had", path.display());
        return Err(at.corrupt(what));
    }
    Ok(Found { tasks: found.tasks, next: found.next, path })
}

/// The number by which the file knows this database, and the slot up to which it has everything.
fn marks(db: &Connection) -> rusqlite::Result<(Option<u64>, u64)> {
    let mut get = db.prepare("SELECT value FROM mark WHERE name = ?1")?;
    let mut get = |name| get.query_row([name], |row| row.get::<_, i64>(0).map(i64::cast_unsigned)).optional();
    Ok((get("database")?, get("ahead")?.unwrap_or(0)))
}

/// Gives the database another number. What stands in the file from before is not taken for what comes then, as it would
/// be beside an older copy of the database that somebody has put back.
fn rename(db: &Connection) -> rusqlite::Result<u64> {
    let number: i64 = db.query_row("SELECT random()", [], |row| row.get(0))?;
    db.execute("INSERT OR REPLACE INTO mark (name, value) VALUES ('database', ?1)", [number])?;
    Ok(number.cast_unsigned())
}

/// Part of the transaction that makes it true.
pub(super) fn remember(batch: &Batch<'_>, slot: u64) -> rusqlite::Result<()> {
    let mut upsert = batch.db.prepare_cached("INSERT OR REPLACE INTO mark (name, value) VALUES ('ahead', ?1)")?;
    upsert.execute([slot.cast_signed()])?;
    Ok(())
}

/// What it works with.
pub(super) struct Tools {
    pub(super) places: Places,
    pub(super) queue: Arc<Queue<Job>>,
    pub(super) progress: Arc<Progress>,
    pub(super) on_commit: Option<OnCommit>,
}

/// Where short tasks are written.
pub(super) struct Ahead {
    tools: Tools,
    database: u64,
    file: (PathBuf, FileId),
    desk: Mutex<Desk>,
    /// Locked before the desk.
    disk: Mutex<Disk>,
    /// Rung when there is something to write and nobody to begin with it.
    bell: Notify,
    /// Rung when no more will come.
    end: Notify,
}

/// Where callers leave their tasks.
struct Desk {
    block: Block,
    tasks: Vec<Short>,
    /// Who waits for them. Those who are not told that their task is through go elsewhere.
    callers: Vec<oneshot::Sender<()>>,
    /// Whether a write is on its way, or somebody is about to begin one, and how many it was for.
    is_busy: bool,
    company: usize,
    /// The slot behind the last block.
    next: u64,
    /// How many more writes were slow than not, what is slow, and until when there are none because of that.
    delays: u32,
    slow: Duration,
    paused: Option<Instant>,
    closed: bool,
}

struct Disk {
    direct: Direct,
    flight: Option<Flight>,
    spare: Option<Block>,
}

/// What is being written.
struct Flight {
    tasks: Vec<Short>,
    callers: Vec<oneshot::Sender<()>>,
    /// The slot behind it.
    next: u64,
    began: Instant,
}

impl Ahead {
    /// None where it cannot be had: outside a runtime, elsewhere than on Linux, or on a file system that knows no such
    /// writes. Everything goes to the database directly then.
    pub(super) fn start(db: &Connection, found: &Found, tools: Tools) -> Option<Arc<Self>> {
        let runtime = Handle::try_current().ok()?;
        match Self::open(db, found, tools) {
            Ok((ahead, news)) => {
                runtime.spawn(drive(ahead.clone(), news));
                Some(ahead)
            }
            Err(error) => {
                tracing::debug!(%error, "no task is written ahead of the database");
                None
            }
        }
    }

    /// What was found is in the database by now.
    fn open(db: &Connection, found: &Found, tools: Tools) -> io::Result<(Arc<Self>, News)> {
        let database = rename(db).map_err(io::Error::other)?;
        file::prepare(&found.path)?;
        let direct = Direct::open(&found.path)?;
        let news = direct.news()?;
        let file = (found.path.clone(), file_id(&found.path)?);
        tools.progress.done.store(found.next, Ordering::Release);
        let ahead = Self {
            tools,
            database,
            file,
            desk: Mutex::new(Desk::new(found.next)),
            disk: Mutex::new(Disk { direct, flight: None, spare: Some(Block::new()) }),
            bell: Notify::new(),
            end: Notify::new(),
        };
        // What does not take such writes says so here.
        ahead.probe()?;
        Ok((Arc::new(ahead), news))
    }

    /// Writes nothing where the next block will be.
    fn probe(&self) -> io::Result<()> {
        let disk = &mut *self.disk.lock();
        let next = self.desk.lock().next;
        disk.direct.begin(Pages::new(1), PAGE, block::place(next))?;
        disk.direct.wait().map_or(Err(io::ErrorKind::Other.into()), |(_, outcome)| outcome)
    }

    /// Stores a task, if it is short and there is room. None where it has to go to the database directly.
    pub(super) async fn create(&self, task: &NewTask) -> Option<TaskKey> {
        let mut short = Short::of(task)?;
        let (caller, stored) = oneshot::channel();
        let (key, is_busy, company) = {
            let desk = &mut *self.desk.lock();
            if !desk.is_open() || !desk.block.has_room(&short) {
                return None;
            }
            // A block may begin anew at the beginning of the file, and another one may be on its way.
            let used = desk.next + 3 * LARGEST as u64 - self.tools.progress.done.load(Ordering::Acquire);
            if used > SLOTS {
                return None;
            }
            let key = TaskKey(self.tools.places.next());
            short.key = key;
            desk.block.put(&short);
            desk.tasks.push(short);
            desk.callers.push(caller);
            (key, desk.is_busy, desk.company)
        };
        match (is_busy, company) {
            // Whoever is writing sees to it.
            (true, _) => {}
            (false, 0 | 1) => self.begin(),
            // More are likely to come.
            (false, _) => self.bell.notify_one(),
        }
        stored.await.ok().map(|()| key)
    }

    /// Those who were served together come back together: gives way to them while that brings any.
    async fn gather(&self) {
        let (company, mut waiting) = {
            let desk = self.desk.lock();
            (desk.company, desk.tasks.len())
        };
        let enough = waiting + company;
        let mut turns = if company > 1 { TURNS } else { 0 };
        while turns > 0 && waiting < enough {
            yield_now().await;
            let now = self.desk.lock().tasks.len();
            turns = if now > waiting { TURNS } else { turns - 1 };
            waiting = now;
        }
    }

    /// Begins to write what is there, if nothing is on its way.
    fn begin(&self) {
        self.begin_on(&mut self.disk.lock());
    }

    fn begin_on(&self, disk: &mut Disk) {
        if disk.flight.is_some() {
            return;
        }
        let (block, slot, after, tasks, callers) = {
            let desk = &mut *self.desk.lock();
            desk.is_busy = !desk.tasks.is_empty();
            if !desk.is_busy {
                return;
            }
            let block = mem::replace(&mut desk.block, disk.spare.take().unwrap_or_else(Block::new));
            let (after, slot) = (desk.next, block::begin(desk.next, block.slots()));
            desk.next = slot + block.slots() as u64;
            desk.company = desk.tasks.len();
            (block, slot, after, mem::take(&mut desk.tasks), mem::take(&mut desk.callers))
        };
        let next = slot + block.slots() as u64;
        let (pages, length) = block.seal(self.database, slot, after);
        disk.flight = Some(Flight { tasks, callers, next, began: Instant::now() });
        if let Err(error) = disk.direct.begin(pages, length, block::place(slot)) {
            self.through(disk, None, Err(error));
        }
    }

    /// Whether what was begun is through.
    fn is_through(&self) -> bool {
        let disk = &mut *self.disk.lock();
        if let Some((pages, outcome)) = disk.direct.finished() {
            self.through(disk, Some(pages), outcome);
        }
        disk.flight.is_none()
    }

    /// What is through is the writer's next, and then the caller's.
    fn through(&self, disk: &mut Disk, pages: Option<Pages>, outcome: io::Result<()>) {
        disk.spare = pages.map(Block::of);
        let Some(Flight { tasks, callers, next, began }) = disk.flight.take() else { return };
        match outcome {
            Ok(()) => {
                let took = began.elapsed();
                self.desk.lock().note(took);
                if let Some(hook) = &self.tools.on_commit {
                    hook(tasks.iter().map(|task| task.seq).sum::<u64>() as usize, took);
                }
                let (load, tasks) = (tasks.len(), Arc::new(tasks));
                self.tools.progress.add(&tasks, next);
                // A queue that is closed leaves them to the next start.
                let _ = self.tools.queue.push(Job::Ahead(tasks, Some(next)), How::Patient(load));
                for caller in callers {
                    let _ = caller.send(());
                }
            }
            Err(error) => {
                tracing::warn!(%error, file = %self.file.0.display(), "tasks go to the database directly from here on");
                // It may be there all the same, and must not come back: first that is made sure of, and then its callers
                // go to the database, as do those whose tasks were not begun.
                let _ = self.tools.queue.push(Job::Ahead(Tasks::default(), Some(next)), How::Patient(0));
                let desk = &mut *self.desk.lock();
                desk.closed = true;
                (desk.tasks, desk.callers) = (Vec::new(), Vec::new());
            }
        }
    }

    /// Takes nothing more, and waits until everything is through that was taken: as long as a write takes, or two.
    pub(super) fn settle(&self) {
        self.desk.lock().closed = true;
        let disk = &mut *self.disk.lock();
        loop {
            if let Some((pages, outcome)) = disk.direct.wait() {
                self.through(disk, Some(pages), outcome);
            }
            self.begin_on(disk);
            if disk.flight.is_none() {
                break;
            }
        }
        self.end.notify_one();
    }

    /// Whether the file is still where it was.
    pub(super) fn is_there(&self) -> io::Result<bool> {
        is_there(&self.file)
    }
}

impl Desk {
    fn new(next: u64) -> Self {
        let (block, tasks, callers) = (Block::new(), Vec::new(), Vec::new());
        Self {
            block,
            tasks,
            callers,
            is_busy: false,
            company: 0,
            next,
            delays: 0,
            slow: SLOW,
            paused: None,
            closed: false,
        }
    }

    /// Whether it takes tasks.
    fn is_open(&mut self) -> bool {
        if self.paused.is_some_and(|until| Instant::now() >= until) {
            (self.paused, self.delays) = (None, 0);
        }
        !self.closed && self.paused.is_none()
    }

    /// A write took so long.
    fn note(&mut self, took: Duration) {
        self.delays = if took > self.slow { self.delays + 1 } else { self.delays.saturating_sub(1) };
        if self.delays == MANY && self.paused.is_none() {
            tracing::debug!(?took, "writes are slow: tasks go to the database directly for a while");
            self.paused = Some(Instant::now() + PAUSE);
        }
    }
}

/// Writes one block after the other until the end is rung.
async fn drive(ahead: Arc<Ahead>, news: News) {
    // However it ends, nobody is left waiting.
    let ahead = Leaving(ahead);
    let ahead = &*ahead.0;
    tokio::select! {
        _ = write(ahead, &news) => {}
        () = ahead.end.notified() => {}
    }
}

async fn write(ahead: &Ahead, news: &News) -> io::Result<()> {
    loop {
        tokio::select! {
            biased;
            come = news.come() => {
                come?;
                if !ahead.is_through() {
                    continue;
                }
            }
            () = ahead.bell.notified() => {}
        }
        ahead.gather().await;
        ahead.begin();
    }
}

struct Leaving(Arc<Ahead>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.settle();
    }
}
