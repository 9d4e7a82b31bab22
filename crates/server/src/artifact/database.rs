//! The shelf in the database that servers share: every server hands out every file.
//!
//! A content is written piece by piece at a place of its own, and gets its name, the hash, together with the first task
//! that has it. Whatever breaks off before that is swept a day later.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::disk::too_large;
use super::{Blob, Hash, Stored};
use crate::store::PostgresStore;

/// How long a piece is. Readers get one at a time.
const PIECE: usize = 256 << 10;

pub(super) struct Database(Arc<PostgresStore>);

impl Database {
    pub(super) fn new(store: Arc<PostgresStore>) -> Self {
        Self(store)
    }

    pub(super) async fn put(&self, folder: &str, bytes: Bytes) -> io::Result<Stored> {
        let stored = Stored { sha256: Hash(Sha256::digest(&bytes).into()), size: bytes.len() as u64 };
        if self.0.link_content(folder, stored.sha256.0).await.map_err(io::Error::other)? {
            return Ok(stored);
        }
        let place = self.0.begin_content().await.map_err(io::Error::other)?;
        for (n, piece) in (0..).zip(bytes.chunks(PIECE)) {
            self.0.put_piece(place, n, piece).await.map_err(io::Error::other)?;
        }
        self.finish(folder, place, stored).await
    }

    pub(super) async fn put_file(&self, folder: &str, file: File, most: u64) -> io::Result<Stored> {
        let place = self.0.begin_content().await.map_err(io::Error::other)?;
        let (mut file, mut hash, mut size) = (file, Sha256::new(), 0);
        for n in 0.. {
            let piece;
            (file, piece) = blocking(file).await?;
            if piece.is_empty() {
                break;
            }
            size += piece.len() as u64;
            if size > most {
                self.0.drop_content(place).await.map_err(io::Error::other)?;
                return Err(too_large(most));
            }
            hash.update(&piece);
            self.0.put_piece(place, n, &piece).await.map_err(io::Error::other)?;
        }
        self.finish(folder, place, Stored { sha256: Hash(hash.finalize().into()), size }).await
    }

    /// Names a content. If another has the same name by now, that one is as good.
    async fn finish(&self, folder: &str, place: i64, stored: Stored) -> io::Result<Stored> {
        let sha256 = stored.sha256.0;
        loop {
            if self.0.name_content(folder, place, sha256, stored.size).await.map_err(io::Error::other)? {
                return Ok(stored);
            }
            if self.0.link_content(folder, sha256).await.map_err(io::Error::other)? {
                self.0.drop_content(place).await.map_err(io::Error::other)?;
                return Ok(stored);
            }
        }
    }

    pub(super) async fn get(&self, folder: &str, sha256: Hash) -> io::Result<Option<Blob>> {
        let found = self.0.find_content(folder, sha256.0).await.map_err(io::Error::other)?;
        let pieces = found.map(|(place, size)| Pieces { store: self.0.clone(), place, size });
        Ok(pieces.map(|pieces| Blob::Pieces(Arc::new(pieces))))
    }

    pub(super) async fn untouched_since(&self, then: SystemTime, after: &str, most: usize) -> io::Result<Vec<String>> {
        self.0.sweep_unfinished().await.map_err(io::Error::other)?;
        let mut found = self.0.old_folders(then, after, most).await.map_err(io::Error::other)?;
        if found.len() < most {
            // Around to the beginning.
            let left = most - found.len();
            let first = self.0.old_folders(then, "", left).await.map_err(io::Error::other)?;
            found.extend(first.into_iter().filter(|folder| folder.as_str() <= after));
            found.sort_unstable();
        }
        Ok(found)
    }

    pub(super) async fn remove(&self, folder: &str) -> io::Result<()> {
        self.0.remove_folder(folder).await.map_err(io::Error::other)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Database")
    }
}

/// The next piece of a file; the file goes along, because reading blocks.
async fn blocking(mut file: File) -> io::Result<(File, Vec<u8>)> {
    let read = tokio::task::spawn_blocking(move || {
        let mut piece = Vec::with_capacity(PIECE);
        (&mut file).take(PIECE as u64).read_to_end(&mut piece)?;
        Ok((file, piece))
    });
    read.await.map_err(io::Error::other)?
}

/// A content in the database.
pub struct Pieces {
    store: Arc<PostgresStore>,
    place: i64,
    size: u64,
}

impl Pieces {
    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Some of it from there on: at most so many bytes, and nothing only when it is gone.
    pub async fn read(&self, at: u64, most: u64) -> io::Result<Bytes> {
        let n = i32::try_from(at / PIECE as u64).map_err(io::Error::other)?;
        let piece = self.store.piece(self.place, n).await.map_err(io::Error::other)?;
        let length = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(piece.len());
        let start = at % PIECE as u64;
        Ok(piece.slice(length(start)..length(start.saturating_add(most))))
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("place", &self.place).field("size", &self.size).finish_non_exhaustive()
    }
}
