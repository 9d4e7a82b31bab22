//! The shelf in memory.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::disk::too_large;
use super::{Blob, Hash, Stored};

#[derive(Debug)]
pub(super) struct Memory {
    most: u64,
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    /// Every content once, and how many tasks have it.
    contents: HashMap<Hash, (Bytes, usize)>,
    folders: HashMap<String, (SystemTime, HashSet<Hash>)>,
    used: u64,
}

impl Memory {
    pub(super) fn new(most: u64) -> Self {
        Self { most, all: Mutex::default() }
    }

    pub(super) fn put(&self, folder: String, bytes: Bytes) -> io::Result<Stored> {
        let sha256 = Hash(Sha256::digest(&bytes).into());
        let size = bytes.len() as u64;
        let mut all = self.all.lock();
        let all = &mut *all;
        let new = !all.contents.contains_key(&sha256);
        if new && all.used + size > self.most {
            return Err(io::Error::new(ErrorKind::StorageFull, "no room for files is left in memory"));
        }
        let (touched, held) = all.folders.entry(folder).or_insert_with(|| (SystemTime::now(), HashSet::new()));
        *touched = SystemTime::now();
        if held.insert(sha256) {
            all.contents.entry(sha256).or_insert((bytes, 0)).1 += 1;
        }
        if new {
            all.used += size;
        }
        Ok(Stored { sha256, size })
    }

    pub(super) fn put_file(&self, folder: String, file: File, most: u64) -> io::Result<Stored> {
        let most = most.min(self.most);
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(too_large(most));
        }
        self.put(folder, bytes.into())
    }

    pub(super) fn get(&self, folder: &str, sha256: Hash) -> Option<Blob> {
        let all = self.all.lock();
        all.folders.get(folder).filter(|(_, held)| held.contains(&sha256))?;
        all.contents.get(&sha256).map(|(bytes, _)| Blob::Bytes(bytes.clone()))
    }

    pub(super) fn untouched_since(&self, then: SystemTime) -> Vec<String> {
        let all = self.all.lock();
        let old = all.folders.iter().filter(|(_, (touched, _))| *touched <= then);
        let mut found: Vec<_> = old.map(|(name, _)| name.clone()).collect();
        found.sort_unstable();
        found
    }

    pub(super) fn remove(&self, folder: &str) {
        let mut all = self.all.lock();
        let Some((_, held)) = all.folders.remove(folder) else { return };
        for sha256 in held {
            if let Some((bytes, holders)) = all.contents.get_mut(&sha256) {
                *holders -= 1;
                if *holders == 0 {
                    let size = bytes.len() as u64;
                    all.contents.remove(&sha256);
                    all.used -= size;
                }
            }
        }
    }
}
