//! What agents remember of conversations.

use super::super::{Micros, Session, SessionKey, StoreError};
use super::error::At;
use super::pool::Pool;
use super::read;
use super::text::{context, digest, escape, scope, unescape};

fn digest_of(key: &SessionKey) -> Vec<u8> {
    digest(&[key.context_id.as_str(), &key.agent]).to_vec()
}

pub(super) async fn get(pool: &Pool, at: &At, key: &SessionKey) -> Result<Option<Session>, StoreError> {
    let sql = "SELECT native, workspace FROM session WHERE scope = $1 AND digest = $2";
    let rows = pool.rows(sql, &[&scope(&key.scope), &digest_of(key)]).await?;
    let found = read::all(at, &rows, |row| {
        let text = |column| row.try_get::<_, Option<&str>>(column).map(|text| text.map(|text| unescape(text).into()));
        Ok(Session { native: text(0)?, workspace: text(1)? })
    });
    Ok(found?.pop())
}

pub(super) async fn put(pool: &Pool, key: &SessionKey, session: &Session, at: Micros) -> Result<(), StoreError> {
    let sql = "\
        INSERT INTO session (scope, digest, at, context_id, agent, native, workspace, context)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (scope, digest) DO UPDATE
            SET at = excluded.at, native = excluded.native, workspace = excluded.workspace, context = excluded.context";
    let (native, workspace) = (session.native.as_deref().map(escape), session.workspace.as_deref().map(escape));
    let (context_id, agent) = (escape(key.context_id.as_str()), escape(&key.agent));
    let (scope, digest) = (scope(&key.scope), digest_of(key));
    let context = context(&key.scope, key.context_id.as_str());
    pool.ask(sql, &[&scope, &digest, &at, &context_id, &agent, &native, &workspace, &context]).await.map(drop)
}
