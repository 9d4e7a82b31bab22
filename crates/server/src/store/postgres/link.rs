//! The connection of a writer, with its statements.

use futures_util::future::BoxFuture;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::tls::Tls;
use super::url::Place;
use super::{append, create};

/// After how many batches plans are made anew: tables grow, and a plan for a small table is not one for a large one.
const REPLAN: [u64; 4] = [8, 64, 512, 4_096];
const REPLAN_EVERY: u64 = 16_384;

/// A connection that writes batches.
pub(super) struct Link {
    pub(super) client: Client,
    /// What the tally counts for this connection.
    pub(super) slot: i16,
    /// The process that serves it, and since when.
    pub(super) backend: Backend,
    pub(super) sql: Statements,
    batches: u64,
}

/// A process of the server.
#[derive(Clone)]
pub(super) struct Backend {
    pid: i32,
    started: String,
}

pub(super) struct Statements {
    pub(super) create: Statement,
    pub(super) create_events: Statement,
    pub(super) create_snapshots: Statement,
    pub(super) create_pushes: Statement,
    pub(super) plain: Statement,
    pub(super) changed: Statement,
    pub(super) more_events: Statement,
    pub(super) messages: Statement,
    pub(super) special: Statement,
    pub(super) release: Statement,
}

impl Link {
    pub(super) async fn open(place: &Place, tls: Tls) -> Result<Self, Error> {
        let (client, connection) = place.config.connect(tls).await?;
        tokio::spawn(async move {
            // What goes wrong here is told to whoever waits for an answer.
            let _ = connection.await;
        });
        let about = "SELECT nextval('slot')::int2, pid, backend_start::text FROM pg_stat_activity
                     WHERE pid = pg_backend_pid()";
        let about = client.query_one(about, &[]).await?;
        let backend = Backend { pid: about.try_get(1)?, started: about.try_get(2)? };
        let sql = Statements {
            create: client.prepare(create::CREATE).await?,
            create_events: client.prepare(create::EVENTS).await?,
            create_snapshots: client.prepare(create::SNAPSHOTS).await?,
            create_pushes: client.prepare(create::PUSHES).await?,
            plain: client.prepare(append::PLAIN).await?,
            changed: client.prepare(append::CHANGED).await?,
            more_events: client.prepare(create::EVENTS).await?,
            messages: client.prepare(append::MESSAGES).await?,
            special: client.prepare(append::SPECIAL).await?,
            release: client.prepare(append::RELEASE).await?,
        };
        Ok(Self { client, slot: about.try_get(0)?, backend, sql, batches: 0 })
    }

    /// Forgets plans when it is time to.
    pub(super) async fn replan(&mut self) -> Result<(), Error> {
        self.batches += 1;
        if REPLAN.contains(&self.batches) || self.batches.is_multiple_of(REPLAN_EVERY) {
            self.client.batch_execute("DISCARD PLANS").await?;
        }
        Ok(())
    }

    /// Ends a former connection that nobody listens to any more, but that may still hold what it locked.
    pub(super) async fn end(&self, former: &Backend) {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE pid = $1 AND backend_start::text = $2";
        // It is only sooner than the server's own timeouts.
        let _ = self.client.query(sql, &[&former.pid, &former.started]).await;
    }
}

/// A statement with its values, in a batch.
pub(super) fn send<'a>(
    client: &'a Client,
    statement: &'a Statement,
    params: Vec<&'a (dyn ToSql + Sync)>,
) -> BoxFuture<'a, Result<Vec<Row>, Error>> {
    Box::pin(async move { client.query(statement, &params).await })
}
