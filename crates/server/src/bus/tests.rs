//! Hints on real servers of Redis and PostgreSQL, which go away and come back.

use std::time::Duration;

use nuncio_tests::{Postgres, Redis};

use super::{Bus, Hint, PostgresBus, RedisBus};
use crate::store::TaskKey;

/// Long enough for anything that happens at all.
const LONG: Duration = Duration::from_secs(60);

async fn well(bus: &dyn Bus) {
    let well = async {
        while bus.trouble().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, well).await.expect("the bus works");
}

async fn ill(bus: &dyn Bus) {
    let ill = async {
        while bus.trouble().is_none() {
            bus.tell(&[Hint::Work]);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, ill).await.expect("the bus says that it does not work");
}

/// Until everything has arrived, in whatever pieces.
async fn hears(bus: &dyn Bus, expected: &[Hint]) {
    let mut missing = expected.to_vec();
    let all = async {
        while !missing.is_empty() {
            let heard = bus.heard().await;
            missing.retain(|hint| !heard.contains(hint));
        }
    };
    tokio::time::timeout(LONG, all).await.expect("hints arrive");
}

fn hints() -> Vec<Hint> {
    let mut hints: Vec<_> = (1..=100).map(|n| Hint::Reached(TaskKey(n), 7)).collect();
    hints.extend([Hint::Orders("a-node".into()), Hint::Work]);
    hints
}

async fn silence(bus: &dyn Bus) {
    let heard = tokio::time::timeout(Duration::from_millis(300), bus.heard()).await;
    assert!(heard.is_err(), "{heard:?}");
}

#[tokio::test]
async fn redis_carries_hints_to_all_others_on_the_same_store() {
    let (one, two) = (Redis::start(), Redis::start());
    let urls = [one.url(), two.url()];
    let bus = |store: &str| RedisBus::open(&urls, store).unwrap();
    let (here, there, elsewhere, stranger) = (bus("store"), bus("store"), bus("store"), bus("other"));
    for bus in [&here, &there, &elsewhere, &stranger] {
        well(bus).await;
    }
    here.tell(&hints());
    hears(&there, &hints()).await;
    hears(&elsewhere, &hints()).await;
    silence(&here).await;
    silence(&stranger).await;
    for redis in [&one, &two] {
        assert!(redis.ask(&["info", "commandstats"]).contains("cmdstat_publish"), "both carry a part");
    }
}

#[tokio::test]
async fn a_redis_that_comes_back_is_used_again() {
    let mut redis = Redis::start();
    let urls = [redis.url()];
    let (here, there) = (RedisBus::open(&urls, "store").unwrap(), RedisBus::open(&urls, "store").unwrap());
    well(&here).await;
    well(&there).await;
    redis.kill();
    ill(&here).await;
    ill(&there).await;
    assert_eq!(here.borrow("alice", Duration::from_secs(1), Duration::ZERO, 1).await, Some(None), "nobody counts");
    redis.up();
    well(&here).await;
    well(&there).await;
    here.tell(&hints());
    hears(&there, &hints()).await;
}

#[tokio::test]
async fn redis_counts_for_all_servers_together() {
    let redis = Redis::start();
    let urls = [redis.url()];
    let (here, there) = (RedisBus::open(&urls, "store").unwrap(), RedisBus::open(&urls, "store").unwrap());
    let (hour, burst) = (Duration::from_secs(3600), Duration::from_secs(3600 * 9));
    assert_eq!(here.borrow("alice", hour, burst, 4).await, Some(Some(4)));
    assert_eq!(there.borrow("alice", hour, burst, 4).await, Some(Some(4)));
    assert_eq!(here.borrow("alice", hour, burst, 4).await, Some(Some(2)));
    assert_eq!(there.borrow("alice", hour, burst, 4).await, Some(Some(0)));
    assert_eq!(there.borrow("bob", hour, burst, 4).await, Some(Some(4)));
    let quick = Duration::from_millis(1);
    assert_eq!(here.borrow("carol", quick, Duration::ZERO, 9).await, Some(Some(1)));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(here.borrow("carol", quick, Duration::ZERO, 9).await, Some(Some(1)), "time fills the bucket");
}

#[tokio::test]
async fn postgres_carries_hints_and_is_used_again_when_it_comes_back() {
    let mut postgres = Postgres::quick();
    let url = postgres.database();
    let bus = |store: &str| PostgresBus::open(&url, None, store);
    let (here, there, stranger) = (bus("store"), bus("store"), bus("other"));
    for bus in [&here, &there, &stranger] {
        well(bus).await;
    }
    here.tell(&hints());
    hears(&there, &hints()).await;
    silence(&here).await;
    silence(&stranger).await;
    postgres.kill();
    ill(&here).await;
    ill(&there).await;
    postgres.up();
    well(&here).await;
    well(&there).await;
    here.tell(&hints());
    hears(&there, &hints()).await;
}
