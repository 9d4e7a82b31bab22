//! The contents of artifacts. See `artifact/database.rs` for how they come and go.

use std::time::SystemTime;

use bytes::Bytes;
use tokio_postgres::error::SqlState;

use super::super::StoreError;
use super::{PostgresStore, limit_of, number, read};

/// Uploads that began so long ago were left behind.
const UNFINISHED: &str = "\
WITH old AS (
    DELETE FROM content WHERE sha256 IS NULL AND at < clock_timestamp() - interval '1 day' RETURNING place
)
DELETE FROM piece WHERE place IN (SELECT place FROM old)";

impl PostgresStore {
    /// Gives a content that is there to a task. False when it is not there.
    pub(crate) async fn link_content(&self, folder: &str, sha256: [u8; 32]) -> Result<bool, StoreError> {
        // Locked, so that nobody removes it in the same moment.
        let sql = "\
            WITH there AS (SELECT sha256 FROM content WHERE sha256 = $2 FOR KEY SHARE)
            INSERT INTO artifact (folder, sha256) SELECT $1, sha256 FROM there
            ON CONFLICT (folder, sha256) DO UPDATE SET at = clock_timestamp() RETURNING 1";
        Ok(!self.pool.ask(sql, &[&folder, &&sha256[..]]).await?.rows.is_empty())
    }

    /// A place for a new content.
    pub(crate) async fn begin_content(&self) -> Result<i64, StoreError> {
        let sql = "INSERT INTO content (place) VALUES (nextval('number')) RETURNING place";
        let rows = self.pool.ask(sql, &[]).await?.rows;
        let place = read::all(&self.at, &rows, |row| row.try_get(0))?;
        place.first().copied().ok_or_else(|| self.at.failed("no place for a file"))
    }

    pub(crate) async fn put_piece(&self, place: i64, n: i32, body: &[u8]) -> Result<(), StoreError> {
        let sql = "INSERT INTO piece (place, n, body) VALUES ($1, $2, $3) ON CONFLICT (place, n) DO NOTHING";
        self.pool.ask(sql, &[&place, &n, &body]).await.map(drop)
    }

    /// Names a content and gives it to its first task. False when there is one of this name.
    pub(crate) async fn name_content(
        &self,
        folder: &str,
        place: i64,
        sha256: [u8; 32],
        size: u64,
    ) -> Result<bool, StoreError> {
        let sql = "\
            WITH named AS (UPDATE content SET sha256 = $3, size = $4 WHERE place = $2 RETURNING sha256)
            INSERT INTO artifact (folder, sha256) SELECT $1, sha256 FROM named
            ON CONFLICT (folder, sha256) DO UPDATE SET at = clock_timestamp() RETURNING 1";
        match self.pool.try_ask(sql, &[&folder, &place, &&sha256[..], &number(size)]).await? {
            Ok(rows) if !rows.is_empty() => Ok(true),
            Ok(_) => Err(self.at.failed("a file was swept before it was complete")),
            Err(SqlState::UNIQUE_VIOLATION) => Ok(false),
            Err(code) => Err(self.at.failed(code.code())),
        }
    }

    /// Removes a content that has no name.
    pub(crate) async fn drop_content(&self, place: i64) -> Result<(), StoreError> {
        let sql = "\
            WITH old AS (DELETE FROM content WHERE place = $1 AND sha256 IS NULL RETURNING place)
            DELETE FROM piece WHERE place IN (SELECT place FROM old)";
        self.pool.ask(sql, &[&place]).await.map(drop)
    }

    /// The place and size of a content that a task has.
    pub(crate) async fn find_content(&self, folder: &str, sha256: [u8; 32]) -> Result<Option<(i64, u64)>, StoreError> {
        let sql = "\
            SELECT c.place, c.size FROM artifact AS a JOIN content AS c ON c.sha256 = a.sha256
            WHERE a.folder = $1 AND a.sha256 = $2";
        let rows = self.pool.rows(sql, &[&folder, &&sha256[..]]).await?;
        Ok(read::all(&self.at, &rows, |row| Ok((row.try_get(0)?, read::count(row, 1)?)))?.pop())
    }

    /// A piece of a content; empty when it is not there.
    pub(crate) async fn piece(&self, place: i64, n: i32) -> Result<Bytes, StoreError> {
        let rows = self.pool.rows("SELECT body FROM piece WHERE place = $1 AND n = $2", &[&place, &n]).await?;
        Ok(read::all(&self.at, &rows, |row| read::bytes(row, 0))?.pop().unwrap_or_default())
    }

    /// Folders to which nothing was added since, behind this one.
    pub(crate) async fn old_folders(
        &self,
        then: SystemTime,
        after: &str,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let sql = "\
            SELECT folder FROM artifact WHERE folder > $2 GROUP BY folder HAVING max(at) <= $1 ORDER BY folder LIMIT $3";
        let rows = self.pool.rows(sql, &[&then, &after, &limit_of(most)]).await?;
        read::all(&self.at, &rows, |row| row.try_get(0))
    }

    /// Removes a folder, and the contents that no other one holds.
    pub(crate) async fn remove_folder(&self, folder: &str) -> Result<(), StoreError> {
        let sql = |error: tokio_postgres::Error| self.at.sql(&error);
        let mut client = self.pool.get().await?;
        let tx = client.transaction().await.map_err(sql)?;
        // Locked first: whoever wants one of them in the same moment either has it already, or finds it gone.
        let lock = "\
            SELECT c.place FROM content AS c JOIN artifact AS a ON a.sha256 = c.sha256 WHERE a.folder = $1
            ORDER BY c.place FOR UPDATE OF c";
        let rows = tx.query(lock, &[&folder]).await.map_err(sql)?;
        let places: Vec<i64> = read::all(&self.at, &rows, |row| row.try_get(0))?;
        tx.execute("DELETE FROM artifact WHERE folder = $1", &[&folder]).await.map_err(sql)?;
        let drop = "\
            WITH old AS (
                DELETE FROM content AS c WHERE c.place = ANY($1)
                  AND NOT EXISTS (SELECT FROM artifact AS a WHERE a.sha256 = c.sha256) RETURNING place
            )
            DELETE FROM piece WHERE place IN (SELECT place FROM old)";
        tx.execute(drop, &[&places]).await.map_err(sql)?;
        tx.commit().await.map_err(sql)
    }

    pub(crate) async fn sweep_unfinished(&self) -> Result<(), StoreError> {
        self.pool.ask(UNFINISHED, &[]).await.map(drop)
    }
}
