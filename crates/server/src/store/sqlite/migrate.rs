//! Brings a database to the present schema, one numbered step at a time.

use rusqlite::{Connection, TransactionBehavior};

/// Tells our files from other programs' databases: "Nunc".
pub(super) const APPLICATION: i64 = 0x4e75_6e63;

/// Step n leads from schema n to n + 1. Steps are only ever added.
const STEPS: &[&str] = &[
    include_str!("migrations/0001_log.sql"),
    include_str!("migrations/0002_session.sql"),
    include_str!("migrations/0003_push.sql"),
    include_str!("migrations/0004_short.sql"),
    include_str!("migrations/0005_phrases.sql"),
    include_str!("migrations/0006_ahead.sql"),
];

/// The newest schema that this release knows.
pub(super) const KNOWN: i64 = STEPS.len() as i64;

/// The schema that a database has; zero for an empty one.
pub(super) fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

pub(super) fn migrate(db: &mut Connection) -> rusqlite::Result<()> {
    for (at, step) in (0..).zip(STEPS) {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if version(&tx)? == at {
            tx.execute_batch(step)?;
            tx.pragma_update(None, "application_id", APPLICATION)?;
            tx.pragma_update(None, "user_version", at + 1)?;
        }
        tx.commit()?;
    }
    Ok(())
}
