//! The callers' keys.

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::super::{IdempotencyKey, Scope, Seq, TaskKey};
use super::text::{digest, scope};

/// Where this caller used this key. A key whose task is gone counts as never used.
pub(super) const FIND: &str = "\
SELECT i.task, i.seq FROM idempotency AS i
WHERE i.scope = $1 AND i.digest = $2 AND i.at >= $3 AND EXISTS (SELECT FROM task AS t WHERE t.key = i.task)";

pub(super) async fn find(client: &Client, of: &Scope, key: &IdempotencyKey) -> Result<Option<(TaskKey, Seq)>, Error> {
    let digest = digest(&[&key.key]);
    let row = client.query_opt(FIND, &[&scope(of), &&digest[..], &key.since]).await?;
    row.map(|row| Ok((TaskKey(row.try_get(0)?), row.try_get::<_, i64>(1)?.cast_unsigned()))).transpose()
}

/// Forgets the use of a key by a task that is gone: exactly the use that was seen, which no other has replaced. The
/// caller is named, or is that of a task. False if the use counts.
pub(super) async fn free(
    client: &Client,
    of: Option<&Scope>,
    task: TaskKey,
    key: &IdempotencyKey,
) -> Result<bool, Error> {
    let digest = digest(&[&key.key]);
    let of: Uuid = match of {
        Some(of) => scope(of),
        None => match client.query_opt("SELECT scope FROM task WHERE key = $1", &[&task.0]).await? {
            Some(row) => row.try_get(0)?,
            None => return Ok(false),
        },
    };
    let look = "SELECT i.xmin::text, i.at < $3 OR NOT EXISTS (SELECT FROM task AS t WHERE t.key = i.task)
                FROM idempotency AS i WHERE i.scope = $1 AND i.digest = $2";
    let Some(row) = client.query_opt(look, &[&of, &&digest[..], &key.since]).await? else { return Ok(true) };
    let (version, free): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
    if free {
        let delete = "DELETE FROM idempotency WHERE scope = $1 AND digest = $2 AND xmin = $3::text::xid";
        client.execute(delete, &[&of, &&digest[..], &version]).await?;
    }
    Ok(free)
}
