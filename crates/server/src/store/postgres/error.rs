//! What PostgreSQL says, in the words of the store.

use std::error::Error as _;
use std::fmt::Display;
use std::sync::Arc;

use deadpool_postgres::PoolError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::super::StoreError;

/// Names the database in errors, without its password.
#[derive(Clone)]
pub(super) struct At(Arc<str>);

/// What an error means for what was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The connection, or the server behind it, is gone. What was under way may have happened.
    Away,
    /// Nothing has happened, and the same may work now.
    Again,
    /// Trying again would not help.
    Wrong,
}

impl At {
    pub(super) fn new(at: String) -> Self {
        Self(at.into())
    }

    /// The database, as it may be shown.
    pub(super) fn shown(&self) -> &str {
        &self.0
    }

    pub(super) fn failed(&self, what: impl Display) -> StoreError {
        StoreError::Failed { at: self.0.to_string(), what: what.to_string() }
    }

    pub(super) fn newer(&self, found: i64, known: i64) -> StoreError {
        StoreError::Newer { at: self.0.to_string(), found, known }
    }

    pub(super) fn sql(&self, error: &Error) -> StoreError {
        if error.code() == Some(&SqlState::DISK_FULL) {
            return StoreError::Full { at: self.0.to_string() };
        }
        self.failed(words(error))
    }

    pub(super) fn pool(&self, error: &PoolError) -> StoreError {
        match error {
            PoolError::Backend(error) => self.sql(error),
            PoolError::Timeout(_) => self.failed("no connection is free: the database is slow or does not answer"),
            PoolError::Closed => StoreError::Closed,
            other => self.failed(other),
        }
    }
}

/// An error with its cause, and what to do about the common ones.
pub(super) fn words(error: &Error) -> String {
    if let Some(db) = error.as_db_error() {
        let code = db.code();
        let hint = if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
            "; check user and password in `store`"
        } else if *code == SqlState::INVALID_CATALOG_NAME {
            "; create the database, or name another in `store`"
        } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            "; let this user create a schema, or create the schema and give it to this user"
        } else if *code == SqlState::TOO_MANY_CONNECTIONS {
            "; raise max_connections of PostgreSQL, or lower `pool` in `store`"
        } else {
            ""
        };
        return format!("{}{hint}", db.message());
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// What an error means.
pub(super) fn trouble(error: &Error) -> Trouble {
    let Some(code) = error.code() else {
        // Whatever is not said by the server is a matter of the connection, but for values that cannot be encoded.
        let text = error.to_string();
        let ours = text.starts_with("error serializing") || text.starts_with("error deserializing");
        return if ours { Trouble::Wrong } else { Trouble::Away };
    };
    trouble_of(code)
}

/// What a word of the server means.
pub(super) fn trouble_of(code: &SqlState) -> Trouble {
    match *code {
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::QUERY_CANCELED => Trouble::Again,
        // A server that became a replica, or has no room for one more: another or a later one will do.
        SqlState::READ_ONLY_SQL_TRANSACTION
        | SqlState::TOO_MANY_CONNECTIONS
        | SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Trouble::Away,
        ref code if code.code().starts_with("08") => Trouble::Away,
        _ => Trouble::Wrong,
    }
}
