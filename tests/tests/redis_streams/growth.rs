//! What is done leaves nothing behind.

use nuncio_tests::{Redis, json};

use crate::kit::{Caller, REQUESTS, request, serve, until_done};

const ENTRIES: usize = 10_000;

#[tokio::test]
async fn ten_thousand_entries_leave_no_growth() {
    let redis = Redis::start();
    let server = serve(&redis, "");
    let number = |key: &str| redis.ask(&["MEMORY", "USAGE", key]).parse::<u64>().expect("a number");
    let caller = Caller::new(&redis, "out:mine").await;
    let mut kib = Vec::new();
    for round in 0..4 {
        let asks = (0..ENTRIES / 4).map(|n| (format!("{round}-{n}"), request("GetTask", &json!({ "id": "none" }))));
        caller.ask_all(asks).await;
        let replies = caller.answered(ENTRIES / 4).await;
        assert_eq!(replies.len(), ENTRIES / 4);
        assert!(replies.values().all(|all| all.len() == 1 && all[0].payload["error"]["code"] == -32001));
        until_done(&redis);
        redis.ask(&["DEL", "out:mine"]);
        kib.push((number(REQUESTS), server.resident_kib()));
    }
    println!("bytes of the request stream and KiB of the server after each round: {kib:?}");
    assert!(kib[3].0 <= 2 * kib[0].0, "the stream does not grow: {kib:?}");
    assert!(kib[3].1 <= kib[0].1 + 20_000, "the server does not grow: {kib:?}");
    assert_eq!(redis.ask(&["KEYS", "*"]), REQUESTS);
}

#[tokio::test]
async fn replies_that_nobody_reads_are_trimmed() {
    let redis = Redis::start();
    let server = serve(&redis, "");
    let caller = Caller::new(&redis, "out:mine").await;
    let asks = (0..12_000).map(|n| (format!("{n}"), request("GetTask", &json!({ "id": "none" }))));
    caller.ask_all(asks).await;
    until_done(&redis);
    let left: usize = redis.ask(&["XLEN", "out:mine"]).parse().expect("a number");
    assert!((10_000..=10_200).contains(&left), "{left}");
    assert!(server.metric("nuncio_redis_requests_total").await >= 12_000.0);
}
