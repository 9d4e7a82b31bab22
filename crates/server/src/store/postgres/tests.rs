//! What only a database elsewhere can get right or wrong.

use std::sync::{Arc, OnceLock};

use nuncio_tests::Postgres;

use super::{PostgresOptions, PostgresStore};
use crate::store::{Durability, Store, StoreError, suite};

/// One server for all tests that do it no harm.
fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(Postgres::quick)
}

async fn open(url: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(url, PostgresOptions::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn does_what_every_store_does() {
    let url = server().database();
    for (writers, durability) in [(1, Durability::Full), (3, Durability::Normal)] {
        let next = std::sync::atomic::AtomicUsize::new(0);
        suite::run_all(|| {
            let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let url = format!("{url}?schema=s{writers}_{n}&writers={writers}&pool=4");
            let options = PostgresOptions { durability, ..PostgresOptions::default() };
            async move { Arc::new(PostgresStore::open(&url, options).await.unwrap()) as Arc<dyn Store> }
        })
        .await;
    }
}
