//! The bytes of artifacts that are too large for the log.
//!
//! They are kept once per content and task; the log holds a URL, the size and the hash. Which task refers to
//! which bytes is in the task's own events, and in its folder on the shelf, which goes when the task has gone.
//!
//! * [`ArtifactStore`]: the shelf, on disk, in memory or, where servers share one, in the database.
//! * `attach`: large parts of an artifact become URLs.
//! * `content`: what a URL of an artifact stands for.
//! * `sweep`: folders of tasks that no longer exist are removed.

mod attach;
pub(crate) mod content;
mod database;
mod disk;
mod hash;
mod memory;
mod sweep;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bytes::Bytes;
use nuncio_protocol::TaskId;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

pub use attach::FileContent;
pub(crate) use attach::Place;
pub use hash::Hash;

use crate::store::{PostgresStore, TaskKey};
use crate::workspace::parts::hex;
use database::Database;
pub use database::Pieces;
use disk::Disk;
use memory::Memory;

/// The key of the metadata of a part whose bytes are kept apart: `{"sha256", "size", "url"?}`.
pub const FILE: &str = "urn:nuncio:a2a:file:v1";

/// What the shelf in memory holds unless told otherwise.
const IN_MEMORY: u64 = 64 << 20;

/// Where the bytes of artifacts go, and how they are shown.
#[derive(Clone, Debug)]
pub struct Artifacts {
    /// The shelf.
    pub store: Arc<ArtifactStore>,
    /// The largest content, in bytes, that stays in the events.
    pub inline_max: usize,
    /// The largest content, in bytes, that is kept at all.
    pub file_max: u64,
    /// Whether URLs name the kept file itself, for clients on the same machine.
    pub file_urls: bool,
    /// Where clients reach this server.
    base: Arc<OnceLock<String>>,
}

impl Artifacts {
    /// On this shelf, with the usual limits.
    pub fn new(store: ArtifactStore) -> Self {
        let store = Arc::new(store);
        Self { store, inline_max: 256 << 10, file_max: 1 << 30, file_urls: false, base: Arc::default() }
    }

    /// Says where clients reach the server. The first to say so counts.
    pub(crate) fn reached_at(&self, url: &str) {
        self.base.get_or_init(|| url.trim_end_matches('/').to_owned());
    }

    /// The same, where nothing but the listening address is known.
    pub(crate) fn listening_at(&self, address: SocketAddr, https: bool) {
        let mut address = SocketAddr::new(address.ip().to_canonical(), address.port());
        // Every address of the machine is none that a client can name.
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() {
                [127, 0, 0, 1].into()
            } else {
                std::net::Ipv6Addr::LOCALHOST.into()
            });
        }
        self.base.get_or_init(|| format!("{}://{address}", if https { "https" } else { "http" }));
    }
}

impl Default for Artifacts {
    fn default() -> Self {
        Self::new(ArtifactStore::in_memory(IN_MEMORY))
    }
}

/// A content that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name.
    pub sha256: Hash,
    /// Its size in bytes.
    pub size: u64,
}

/// A content that is there to be read.
#[derive(Clone, Debug)]
pub enum Blob {
    /// In memory.
    Bytes(Bytes),
    /// On disk.
    File(Arc<File>, u64),
    /// In the database.
    Pieces(Arc<Pieces>),
}

impl Blob {
    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, size) => *size,
            Self::Pieces(pieces) => pieces.size(),
        }
    }
}

/// A shelf of contents, one folder for each task.
#[derive(Debug)]
pub struct ArtifactStore {
    shelf: Shelf,
    /// Where the last sweep stopped.
    swept: Mutex<String>,
}

#[derive(Debug)]
enum Shelf {
    Disk(Disk),
    Memory(Memory),
    Database(Database),
}

/// The folder of a task. No other task, not even of another database, ever has the same.
pub(crate) fn folder(key: TaskKey, id: &TaskId) -> String {
    let tag = Sha256::digest(id.as_str().as_bytes());
    format!("{}-{}", key.0, hex(&tag[..16]))
}

impl ArtifactStore {
    /// A shelf on disk, which is made if it is missing. Blocks.
    pub fn open(dir: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { shelf: Shelf::Disk(Disk::open(dir.as_ref())?), swept: Mutex::default() })
    }

    /// A shelf that ends with the process and holds at most so many bytes.
    pub fn in_memory(most: u64) -> Self {
        Self { shelf: Shelf::Memory(Memory::new(most)), swept: Mutex::default() }
    }

    /// A shelf in the database that servers share.
    pub fn in_database(store: Arc<PostgresStore>) -> Self {
        Self { shelf: Shelf::Database(Database::new(store)), swept: Mutex::default() }
    }

    /// Keeps some bytes for a task. When this returns, they are durable.
    pub async fn put(self: &Arc<Self>, key: TaskKey, id: &TaskId, bytes: Bytes) -> io::Result<Stored> {
        let folder = folder(key, id);
        if let Shelf::Database(database) = &self.shelf {
            return database.put(&folder, bytes).await;
        }
        self.blocking(move |shelf| match shelf {
            Shelf::Disk(disk) => disk.put(&folder, &*bytes, u64::MAX),
            Shelf::Memory(memory) => memory.put(folder, bytes),
            Shelf::Database(_) => Err(elsewhere()),
        })
        .await
    }

    /// Keeps the content of a file, of at most `most` bytes, from where it is read to its end.
    pub async fn put_file(self: &Arc<Self>, key: TaskKey, id: &TaskId, file: File, most: u64) -> io::Result<Stored> {
        let folder = folder(key, id);
        if let Shelf::Database(database) = &self.shelf {
            return database.put_file(&folder, file, most).await;
        }
        self.blocking(move |shelf| match shelf {
            Shelf::Disk(disk) => disk.put(&folder, file, most),
            Shelf::Memory(memory) => memory.put_file(folder, file, most),
            Shelf::Database(_) => Err(elsewhere()),
        })
        .await
    }

    /// A content that was kept for this task; `None` for one that was not.
    pub async fn get(self: &Arc<Self>, key: TaskKey, id: &TaskId, sha256: Hash) -> io::Result<Option<Blob>> {
        let folder = folder(key, id);
        if let Shelf::Database(database) = &self.shelf {
            return database.get(&folder, sha256).await;
        }
        self.blocking(move |shelf| match shelf {
            Shelf::Disk(disk) => disk.get(&folder, sha256),
            Shelf::Memory(memory) => Ok(memory.get(&folder, sha256)),
            Shelf::Database(_) => Err(elsewhere()),
        })
        .await
    }

    /// Where a content lies, if it is on disk.
    pub fn path(&self, key: TaskKey, id: &TaskId, sha256: Hash) -> Option<PathBuf> {
        match &self.shelf {
            Shelf::Disk(disk) => Some(disk.path(&folder(key, id), sha256)),
            Shelf::Memory(_) | Shelf::Database(_) => None,
        }
    }

    /// The folders to which nothing was added since, in order; of a database, at most so many behind `after`.
    async fn untouched_since(self: &Arc<Self>, then: SystemTime, after: &str, most: usize) -> io::Result<Vec<String>> {
        if let Shelf::Database(database) = &self.shelf {
            return database.untouched_since(then, after, most).await;
        }
        self.blocking(move |shelf| match shelf {
            Shelf::Disk(disk) => disk.untouched_since(then),
            Shelf::Memory(memory) => Ok(memory.untouched_since(then)),
            Shelf::Database(_) => Err(elsewhere()),
        })
        .await
    }

    /// Removes a folder, and the contents that no other one holds.
    async fn remove(self: &Arc<Self>, folder: String) -> io::Result<()> {
        if let Shelf::Database(database) = &self.shelf {
            return database.remove(&folder).await;
        }
        self.blocking(move |shelf| match shelf {
            Shelf::Disk(disk) => disk.remove(&folder),
            Shelf::Memory(memory) => {
                memory.remove(&folder);
                Ok(())
            }
            Shelf::Database(_) => Err(elsewhere()),
        })
        .await
    }

    /// Disks block; the runtime must not.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Shelf) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || work(&this.shelf)).await.map_err(io::Error::other)?
    }
}

/// The database does not block, so nothing of it comes this way.
fn elsewhere() -> io::Error {
    io::Error::other("the database is not asked in this way")
}
