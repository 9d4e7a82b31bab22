//! What SQLite says, in the words of the store.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rusqlite::ErrorCode;

use super::super::StoreError;

/// A shared-memory index that cannot grow: the disk is full, though SQLite calls it an I/O error.
const IOERR_SHMSIZE: i32 = 10 | (19 << 8);

/// Names the database in errors.
#[derive(Clone)]
pub(super) struct At(Arc<str>);

impl At {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.display().to_string().into())
    }

    pub(super) fn failed(&self, what: impl std::fmt::Display) -> StoreError {
        StoreError::Failed { at: self.0.to_string(), what: what.to_string() }
    }

    pub(super) fn corrupt(&self, what: impl std::fmt::Display) -> StoreError {
        StoreError::Corrupt { at: self.0.to_string(), what: what.to_string() }
    }

    pub(super) fn newer(&self, found: i64, known: i64) -> StoreError {
        StoreError::Newer { at: self.0.to_string(), found, known }
    }

    pub(super) fn locked(&self) -> StoreError {
        StoreError::Locked { at: self.0.to_string() }
    }

    pub(super) fn io(&self, error: &io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { at: self.0.to_string() },
            _ => self.failed(error),
        }
    }

    pub(super) fn sql(&self, error: &rusqlite::Error) -> StoreError {
        let Some(cause) = error.sqlite_error() else {
            return self.failed(error);
        };
        match cause.code {
            ErrorCode::DiskFull => StoreError::Full { at: self.0.to_string() },
            _ if cause.extended_code == IOERR_SHMSIZE => StoreError::Full { at: self.0.to_string() },
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => self.corrupt(error),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => self.locked(),
            _ => self.failed(error),
        }
    }
}
