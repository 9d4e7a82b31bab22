//! What agents remember of conversations.

use rusqlite::{Connection, OptionalExtension};

use super::super::{Micros, Session, SessionKey};
use super::trim::ROWS;
use super::writer::Batch;

pub(super) fn get(db: &Connection, key: &SessionKey) -> rusqlite::Result<Option<Session>> {
    let mut select = db.prepare_cached(
        "SELECT native, workspace FROM session
         WHERE tenant = ?1 AND owner = ?2 AND context_id = ?3 AND agent = ?4",
    )?;
    let key = (&*key.scope.tenant, &*key.scope.owner, key.context_id.as_str(), &*key.agent);
    select.query_row(key, |row| Ok(Session { native: row.get(0)?, workspace: row.get(1)? })).optional()
}

pub(super) fn put(batch: &Batch<'_>, key: &SessionKey, session: &Session, at: Micros) -> rusqlite::Result<()> {
    let mut upsert = batch.db.prepare_cached(
        "INSERT OR REPLACE INTO session (tenant, owner, context_id, agent, native, workspace, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    upsert.execute((
        &*key.scope.tenant,
        &*key.scope.owner,
        key.context_id.as_str(),
        &*key.agent,
        &session.native,
        &session.workspace,
        at,
    ))?;
    Ok(())
}

/// Forgets some sessions that were last used before this moment. False when none are left.
pub(super) fn forget(batch: &mut Batch<'_>, before: Micros) -> rusqlite::Result<bool> {
    let mut delete = batch.db.prepare_cached(
        "DELETE FROM session WHERE (tenant, owner, context_id, agent) IN
         (SELECT tenant, owner, context_id, agent FROM session INDEXED BY session_by_age
          WHERE at < ?1 ORDER BY at LIMIT ?2)",
    )?;
    Ok(delete.execute((before, ROWS))? > 0)
}
