//! What servers that share a store must have in common beside it: keys. Only their fingerprints are kept.

use tokio_postgres::Client;

use super::super::StoreError;
use super::super::operator::KeyKind;
use super::PostgresStore;
use super::error::At;

impl PostgresStore {
    /// Compares the keys of this server with those of the others, each by its id and its fingerprint. The first server
    /// decides. One that has none of their keys is refused; one that has a new one beside them brings it along.
    pub async fn agree(&self, kind: KeyKind, keys: &[(String, String)]) -> Result<(), StoreError> {
        let mut client = self.pool.get().await?;
        let missing = agree(&mut client, &self.at, kind, keys, false).await?;
        if !missing {
            return Ok(());
        }
        let (what, variable, file) = words(kind);
        Err(self.at.failed(format_args!(
            "the other servers on this database have other {what}. Give all of them the same ones: the same {variable}, or \
             the same {file} in `keyring-dir`. If the other keys are lost for good, forget them: \
             DELETE FROM {}.mark WHERE name LIKE '{} %'",
            self.schema,
            prefix(kind)
        )))
    }
}

fn prefix(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Keyring => "keyring",
        KeyKind::Signing => "signing",
    }
}

fn words(kind: KeyKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        KeyKind::Keyring => {
            ("keys for the secrets of webhooks", crate::push::keyring::VARIABLES[0], crate::push::keyring::FILE)
        }
        KeyKind::Signing => ("keys for signing notifications", crate::push::sign::VARIABLE, crate::push::sign::FILE),
    }
}

/// Whether the keys have nothing in common with those that are known. Otherwise they are known from now on; with `only`,
/// no others are.
pub(super) async fn agree(
    client: &mut Client,
    at: &At,
    kind: KeyKind,
    keys: &[(String, String)],
    only: bool,
) -> Result<bool, StoreError> {
    let sql = |error: tokio_postgres::Error| at.sql(&error);
    let tx = client.transaction().await.map_err(sql)?;
    // Two that start at once take turns.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('nuncio keys ' || current_schema(), 0))";
    tx.execute(lock, &[]).await.map_err(sql)?;
    let prefix = prefix(kind);
    let names: Vec<String> = keys.iter().map(|(id, _)| format!("{prefix} {id}")).collect();
    let prints: Vec<&str> = keys.iter().map(|(_, print)| print.as_str()).collect();
    let compare = "\
        SELECT count(*) = 0 OR count(own.name) > 0, count(*) FILTER (WHERE own.print <> mark.value) > 0
        FROM mark LEFT JOIN unnest($2::text[], $3::text[]) AS own(name, print) ON own.name = mark.name
        WHERE starts_with(mark.name, $1)";
    let row = tx.query_one(compare, &[&format!("{prefix} "), &names, &prints]).await.map_err(sql)?;
    let (common, other): (bool, bool) = (row.try_get(0).map_err(sql)?, row.try_get(1).map_err(sql)?);
    if !common || other {
        return Ok(true);
    }
    let add = "INSERT INTO mark SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING";
    tx.execute(add, &[&names, &prints]).await.map_err(sql)?;
    if only {
        let forget = "DELETE FROM mark WHERE starts_with(name, $1) AND name <> ALL($2)";
        tx.execute(forget, &[&format!("{prefix} "), &names]).await.map_err(sql)?;
    }
    tx.commit().await.map_err(sql)?;
    Ok(false)
}
