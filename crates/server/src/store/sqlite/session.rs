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

/// Whether the conversation of a session still has a task, whatever its state.
const IS_USED: &str = "(
    EXISTS (SELECT 1 FROM task AS t INDEXED BY task_by_context
            WHERE t.context_id = s.context_id AND t.tenant = s.tenant AND t.owner = s.owner AND t.state > 2)
    OR EXISTS (SELECT 1 FROM task AS t INDEXED BY task_active
               WHERE t.tenant = s.tenant AND t.owner = s.owner AND t.context_id = s.context_id AND t.state < 3))";

/// Where a session stands by its age: since when it is as it is, tenant, owner, context and agent.
pub(super) type Place = (Micros, String, String, String, String);

/// The place before all others.
pub(super) fn first() -> Place {
    (Micros::MIN, String::new(), String::new(), String::new(), String::new())
}

/// Some sessions behind a place that are from before this moment, each with whether its conversation still has a task.
pub(super) fn old(db: &Connection, before: Micros, after: &Place) -> rusqlite::Result<Vec<(Place, bool)>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT s.at, s.tenant, s.owner, s.context_id, s.agent, {IS_USED} FROM session AS s INDEXED BY session_by_age
         WHERE s.at < ?1 AND (s.at, s.tenant, s.owner, s.context_id, s.agent) > (?2, ?3, ?4, ?5, ?6)
         ORDER BY s.at, s.tenant, s.owner, s.context_id, s.agent LIMIT ?7"
    ))?;
    let (at, tenant, owner, context, agent) = after;
    let rows = select.query_map((before, at, tenant, owner, context, agent, ROWS), |row| {
        Ok(((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?), row.get(5)?))
    });
    rows?.collect()
}

/// Forgets these sessions, unless they have changed or are used meanwhile.
pub(super) fn forget(batch: &Batch<'_>, sessions: &[Place]) -> rusqlite::Result<()> {
    let mut delete = batch.db.prepare_cached(&format!(
        "DELETE FROM session AS s WHERE s.at = ?1 AND s.tenant = ?2 AND s.owner = ?3 AND s.context_id = ?4
         AND s.agent = ?5 AND NOT {IS_USED}"
    ))?;
    for (at, tenant, owner, context, agent) in sessions {
        delete.execute((at, tenant, owner, context, agent))?;
    }
    Ok(())
}
