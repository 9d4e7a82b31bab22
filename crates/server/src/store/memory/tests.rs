use std::sync::Arc;

use super::MemoryStore;
use crate::store::{Store, suite};

#[tokio::test(flavor = "multi_thread")]
async fn does_what_every_store_does() {
    suite::run_all(|| async { Arc::new(MemoryStore::new()) as Arc<dyn Store> }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn does_what_every_shared_store_does() {
    suite::run_shared(|| async { Arc::new(MemoryStore::shared()) as Arc<dyn Store> }).await;
}
