//! Single statements: reads, and writes that come one at a time.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, PoolError, RecyclingMethod, Runtime};
use tokio::time::Instant;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::super::StoreError;
use super::error::{At, Trouble, trouble, trouble_of};
use super::pause::Pause;
use super::tls::Tls;
use super::url::Place;

/// How long a read is tried again while the database is away.
const READ_PATIENCE: Duration = Duration::from_secs(3);
/// How long one statement may take.
const LONGEST: Duration = Duration::from_secs(60);
/// How old a connection gets: tables grow, and a plan for a small table is not one for a large one.
const OLDEST: Duration = Duration::from_secs(300);
/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(6);

/// Values of a statement.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Connections for single statements, each of which is a transaction of its own.
pub(super) struct Pool {
    inner: deadpool_postgres::Pool,
    at: At,
    /// How long a write is tried again while the database is away.
    patience: Duration,
}

/// What a write brought.
pub(super) struct Asked {
    pub(super) rows: Vec<Row>,
    /// Whether it was tried more than once, so that an earlier attempt may have done it.
    pub(super) again: bool,
}

impl Pool {
    pub(super) fn new(place: &Place, tls: Tls, patience: Duration) -> Result<Self, StoreError> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(place.config.clone(), tls, config);
        let pool =
            deadpool_postgres::Pool::builder(manager)
                .pre_recycle(Hook::sync_fn(|_, metrics| {
                    if metrics.age() > OLDEST { Err(HookError::message("old")) } else { Ok(()) }
                }))
                .max_size(place.pool)
                .runtime(Runtime::Tokio1)
                .wait_timeout(Some(CONNECT))
                .create_timeout(Some(CONNECT))
                .build();
        Ok(Self { inner: pool.map_err(|error| place.at.failed(error))?, at: place.at.clone(), patience })
    }

    /// A connection for several statements.
    pub(super) async fn get(&self) -> Result<Object, StoreError> {
        self.inner.get().await.map_err(|error| self.at.pool(&error))
    }

    /// Reads.
    pub(super) async fn rows(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        Ok(self.run(sql, params, READ_PATIENCE).await?.rows)
    }

    /// Reads what is one row at most.
    pub(super) async fn row(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, params).await?.pop())
    }

    /// Writes something that may be written twice, or that knows whether it was.
    pub(super) async fn ask(&self, sql: &str, params: Params<'_>) -> Result<Asked, StoreError> {
        self.run(sql, params, self.patience).await
    }

    /// The same for a write that the database may refuse, and why.
    pub(super) async fn try_ask(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Result<Vec<Row>, SqlState>, StoreError> {
        match self.run_or(sql, params, self.patience).await {
            Ok(asked) => Ok(Ok(asked.rows)),
            Err((Some(code), _)) if trouble_of(&code) == Trouble::Wrong => Ok(Err(code)),
            Err((_, error)) => Err(error),
        }
    }

    async fn run(&self, sql: &str, params: Params<'_>, patience: Duration) -> Result<Asked, StoreError> {
        self.run_or(sql, params, patience).await.map_err(|(_, error)| error)
    }

    async fn run_or(
        &self,
        sql: &str,
        params: Params<'_>,
        patience: Duration,
    ) -> Result<Asked, (Option<SqlState>, StoreError)> {
        let mut pause = Pause::until(Instant::now() + patience);
        let mut again = false;
        loop {
            let (trouble, code, error) = match self.once(sql, params).await {
                Ok(rows) => return Ok(Asked { rows, again }),
                Err(Failed::Statement(error) | Failed::Pool(PoolError::Backend(error))) => {
                    (trouble(&error), error.code().cloned(), self.at.sql(&error))
                }
                Err(Failed::Pool(PoolError::Closed)) => return Err((None, StoreError::Closed)),
                Err(Failed::Pool(error)) => (Trouble::Away, None, self.at.pool(&error)),
                Err(Failed::Late) => return Err((None, self.at.failed("the database does not answer"))),
            };
            again |= trouble == Trouble::Away;
            if trouble == Trouble::Wrong || !pause.wait().await {
                return Err((code, error));
            }
        }
    }

    async fn once(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Failed> {
        let client = self.inner.get().await.map_err(Failed::Pool)?;
        let answer = tokio::time::timeout(LONGEST, async {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, params).await
        });
        if let Ok(answer) = answer.await {
            return answer.map_err(Failed::Statement);
        }
        // Whatever it still does, nobody else should wait for it.
        drop(Object::take(client));
        Err(Failed::Late)
    }
}

enum Failed {
    Pool(PoolError),
    Statement(Error),
    Late,
}
