//! What there is to know about a database before a server relies on it.

use std::time::{Duration, SystemTime};

use super::super::StoreError;
use super::PostgresStore;

/// How far two clocks may be apart before it is worth a word.
const SKEW: Duration = Duration::from_secs(2);

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What it is, in a few words.
    pub about: String,
    /// What should be changed.
    pub warnings: Vec<String>,
}

impl PostgresStore {
    /// Looks at the settings of the database and at its clock.
    pub async fn examine(&self) -> Result<Findings, StoreError> {
        let sql = "\
            SELECT current_setting('server_version'), r.version, clock_timestamp(), current_setting('fsync'),
                   current_setting('full_page_writes'), current_setting('max_connections')::int4,
                   current_setting('superuser_reserved_connections')::int4,
                   (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
                   (SELECT count(*) FROM node WHERE until > clock_timestamp()),
                   coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
                   current_setting('autovacuum'), current_schema()
            FROM release AS r";
        let before = SystemTime::now();
        let row = self.pool.row(sql, &[]).await?.ok_or_else(|| self.at.failed("the schema is not there"))?;
        let wrong = |error: tokio_postgres::Error| self.at.sql(&error);
        let text = |column: usize| row.try_get::<_, String>(column).map_err(wrong);
        let number = |column: usize| row.try_get::<_, i64>(column).map_err(wrong);
        let schema: i32 = row.try_get(1).map_err(wrong)?;
        let clock: SystemTime = row.try_get(2).map_err(wrong)?;
        let (most, reserved): (i32, i32) = (row.try_get(5).map_err(wrong)?, row.try_get(6).map_err(wrong)?);
        let encrypted: bool = row.try_get(9).map_err(wrong)?;
        let (connected, nodes) = (number(7)?, number(8)?);
        let mut warnings = Vec::new();
        for (column, setting) in [(3, "fsync"), (4, "full_page_writes")] {
            if text(column)? == "off" {
                warnings.push(format!("{setting} is off: a power cut may destroy the database; turn it on"));
            }
        }
        if text(10)? == "off" {
            warnings.push("autovacuum is off: tables grow without end; turn it on".to_owned());
        }
        let apart = clock.duration_since(before).unwrap_or_else(|error| error.duration());
        if apart > SKEW {
            let seconds = apart.as_secs();
            warnings.push(format!("its clock and the one here are {seconds} s apart: run NTP on both"));
        }
        let own = i64::try_from(self.most_connections()).unwrap_or(i64::MAX);
        let free = i64::from(most - reserved) - connected;
        if own > free {
            warnings.push(format!(
                "this server uses up to {own} connections and {free} are free: raise max_connections (now {most}), or \
                 lower `pool` in `store`"
            ));
        }
        let about = format!(
            "PostgreSQL {}, schema {} version {schema}, {}, {nodes} server(s) alive, {connected} of {most} connections used",
            text(0)?,
            text(11)?,
            if encrypted { "encrypted" } else { "not encrypted" },
        );
        Ok(Findings { about, warnings })
    }
}
