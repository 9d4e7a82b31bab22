use std::sync::Arc;

use super::{SqliteOptions, SqliteStore};
use crate::store::{Store, suite};

#[tokio::test(flavor = "multi_thread")]
async fn does_what_every_store_does() {
    let folder = tempfile::tempdir().unwrap();
    let next = std::sync::atomic::AtomicUsize::new(0);
    suite::run_all(|| {
        let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = folder.path().join(format!("{n}/log.db"));
        async move { Arc::new(SqliteStore::open(&path, SqliteOptions::default()).unwrap()) as Arc<dyn Store> }
    })
    .await;
}
