//! Opening a database: look first, and change nothing unless it is ours, free, sound and known.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::super::StoreError;
use super::error::At;
use super::{Durability, migrate};

/// How long to wait for another program that looks into the file, such as a backup.
const PATIENCE: Duration = Duration::from_secs(5);

/// An opened database: its writing connection, and the lock that keeps other processes out.
pub(super) struct Opened {
    pub(super) writer: Connection,
    pub(super) lock: File,
    pub(super) path: PathBuf,
    pub(super) file: FileId,
}

/// Tells a file from another that comes to have its name.
pub(super) type FileId = (u64, u64);

/// Which file has this name now.
#[cfg(unix)]
pub(super) fn file_id(path: &Path) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().map(|file| (file.dev(), file.ino()))
}

/// Elsewhere a file in use keeps its name.
#[cfg(not(unix))]
pub(super) fn file_id(path: &Path) -> io::Result<FileId> {
    path.metadata().map(|_| (0, 0))
}

/// Whether a file is still where it was.
pub(super) fn is_there((path, file): &(PathBuf, FileId)) -> io::Result<bool> {
    match file_id(path) {
        Ok(found) => Ok(found == *file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn open(path: &Path, durability: Durability, at: &At) -> Result<Opened, StoreError> {
    // Absolute, because SQLite gives names that start with "file:" a meaning of their own.
    let path = std::path::absolute(path).map_err(|error| at.io(&error))?;
    let lock = lock(&path, at)?;
    inspect(&path, at)?;
    let writer = writer(&path, durability).map_err(|error| at.sql(&error))?;
    let file = file_id(&path).map_err(|error| at.io(&error))?;
    Ok(Opened { writer, lock, path, file })
}

/// Takes the lock file beside the database. It is never deleted: whoever deleted it could remove the
/// lock of the next process.
fn lock(path: &Path, at: &At) -> Result<File, StoreError> {
    if let Some(folder) = path.parent() {
        create_folder(folder).map_err(|error| at.io(&error))?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = private_file(Path::new(&name)).map_err(|error| at.io(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(at.locked()),
        Err(TryLockError::Error(error)) => Err(at.io(&error)),
    }
}

/// Reads what is there, through a connection that cannot write: SQLite moves the write-ahead log
/// into the file when a writing connection closes, which a foreign file must not suffer.
fn inspect(path: &Path, at: &At) -> Result<(), StoreError> {
    let exists = path.metadata().is_ok_and(|file| file.len() > 0);
    if !exists {
        private_file(path).map_err(|error| at.io(&error))?;
        return Ok(());
    }
    let sql = |error: rusqlite::Error| at.sql(&error);
    let db = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_ONLY)).map_err(sql)?;
    db.busy_timeout(PATIENCE).map_err(sql)?;
    let found = migrate::version(&db).map_err(sql)?;
    let application: i64 = db.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sql)?;
    let objects: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sql)?;
    if objects > 0 && application != migrate::APPLICATION {
        return Err(at.corrupt("it belongs to another program"));
    }
    if found > migrate::KNOWN {
        return Err(at.newer(found, migrate::KNOWN));
    }
    probe(&db).map_err(sql)
}

/// Walks to both ends of every table. This finds a file that is cut off or mixed up in a few page
/// reads, whatever its size; damage elsewhere is reported by the read that meets it.
fn probe(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "cell_size_check", true)?;
    let mut tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let mut rows = tables.query([])?;
    while let Some(row) = rows.next()? {
        let table: String = row.get(0)?;
        for end in ["ASC", "DESC"] {
            // The first column leads a key of every table of ours.
            let sql = format!("SELECT * FROM \"{table}\" ORDER BY 1 {end} LIMIT 1");
            db.prepare(&sql)?.query([])?.next()?;
        }
    }
    Ok(())
}

fn writer(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let mut db = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    db.busy_timeout(PATIENCE)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", durability.pragma())?;
    db.pragma_update(None, "temp_store", "memory")?;
    db.pragma_update(None, "cell_size_check", true)?;
    // In KiB: holds the right-hand edges of all trees and the rows of many running tasks.
    db.pragma_update(None, "cache_size", -32_768)?;
    // After a burst the log file shrinks to this again.
    db.pragma_update(None, "journal_size_limit", 64 << 20)?;
    db.set_prepared_statement_cache_capacity(64);
    migrate::migrate(&mut db)?;
    Ok(db)
}

/// A connection that moves the log into the file as durably as the writer would.
pub(super) fn mover(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    db.pragma_update(None, "synchronous", durability.pragma())?;
    Ok(db)
}

/// A connection for reads only. No memory mapping: an I/O error in mapped memory kills the process.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_ONLY))?;
    db.busy_timeout(PATIENCE)?;
    db.pragma_update(None, "temp_store", "memory")?;
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "cache_size", -8_192)?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}

/// A connection beside those of a server that may be running.
pub(super) fn beside(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(path, flags(access))?;
    db.busy_timeout(PATIENCE)?;
    Ok(db)
}

fn flags(access: OpenFlags) -> OpenFlags {
    // Every connection is used by one thread at a time, which Rust checks; SQLite need not lock.
    access | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
