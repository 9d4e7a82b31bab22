//! Brings a schema to its present form, one numbered step at a time.
//!
//! Servers of two releases may share a database for a while: steps only ever add, and each says which is the oldest
//! schema whose releases can work with what it makes. An older server that meets a newer schema goes on if that includes
//! it, and refuses otherwise.

use tokio_postgres::Client;

use super::super::StoreError;
use super::error::At;

/// Step n leads from schema n to n + 1, and the oldest release that can work with it is the one that knows this schema.
/// Steps are only ever added.
const STEPS: &[(&str, i32)] =
    &[(include_str!("migrations/0001_log.sql"), 1), (include_str!("migrations/0002_session.sql"), 1)];

/// The newest schema that this release knows.
pub(super) const KNOWN: i32 = STEPS.len() as i32;

/// The oldest server that is good enough.
const OLDEST: i32 = 130_000;

/// The schema that is there, and the oldest that its releases can work with. Zero for an empty one.
pub(super) async fn version(client: &Client, at: &At) -> Result<(i32, i32), StoreError> {
    let sql = |error: tokio_postgres::Error| at.sql(&error);
    let there = client.query_one("SELECT to_regclass('release') IS NOT NULL", &[]).await.map_err(sql)?;
    if !there.try_get::<_, bool>(0).map_err(sql)? {
        return Ok((0, 0));
    }
    let row = client.query_opt("SELECT version, compatible_since FROM release", &[]).await.map_err(sql)?;
    let Some(row) = row else { return Ok((0, 0)) };
    Ok((row.try_get(0).map_err(sql)?, row.try_get(1).map_err(sql)?))
}

/// Looks at the server, and makes the schema what this release needs. Two that start at once take turns.
pub(super) async fn migrate(client: &mut Client, at: &At, schema: &str) -> Result<(), StoreError> {
    let sql = |error: tokio_postgres::Error| at.sql(&error);
    let about = "SELECT current_setting('server_version_num')::int4, current_setting('server_encoding')";
    let about = client.query_one(about, &[]).await.map_err(sql)?;
    let (server, encoding): (i32, String) = (about.try_get(0).map_err(sql)?, about.try_get(1).map_err(sql)?);
    if server < OLDEST {
        return Err(at.failed("PostgreSQL is too old: version 13 or newer is needed"));
    }
    if encoding != "UTF8" {
        return Err(at.failed(format_args!(
            "the database has the encoding {encoding}: create one with ENCODING 'UTF8' TEMPLATE template0"
        )));
    }
    let tx = client.transaction().await.map_err(sql)?;
    tx.execute("SELECT pg_advisory_xact_lock(hashtextextended('nuncio schema ' || $1::text, 0))", &[&schema])
        .await
        .map_err(sql)?;
    let there = tx.query_opt("SELECT 1 FROM pg_namespace WHERE nspname = $1", &[&schema]).await.map_err(sql)?;
    if there.is_none() {
        tx.batch_execute(&format!("CREATE SCHEMA {schema}")).await.map_err(sql)?;
    }
    let (found, compatible) = version(tx.client(), at).await?;
    if found > KNOWN && compatible > KNOWN {
        return Err(at.newer(found.into(), KNOWN.into()));
    }
    for (number, (step, compatible)) in (1..).zip(STEPS).skip(usize::try_from(found).unwrap_or_default()) {
        if number == 1 {
            let table = "CREATE TABLE release (version int4 NOT NULL, compatible_since int4 NOT NULL);
                         INSERT INTO release VALUES (0, 0)";
            tx.batch_execute(table).await.map_err(sql)?;
        }
        tx.batch_execute(step).await.map_err(sql)?;
        tx.execute("UPDATE release SET version = $1, compatible_since = $2", &[&number, compatible])
            .await
            .map_err(sql)?;
    }
    tx.commit().await.map_err(sql)
}
