//! What is done leaves nothing behind.

use nuncio_tests::{Redis, json};

use crate::kit::{Caller, REQUESTS, request, serve, until_done};

const ROUNDS: usize = 12;
const ENTRIES: usize = 2_500;

#[tokio::test]
async fn thirty_thousand_entries_leave_no_growth() {
    let redis = Redis::start();
    let server = serve(&redis, "");
    let number = |key: &str| redis.ask(&["MEMORY", "USAGE", key]).parse::<u64>().expect("a number");
    let caller = Caller::new(&redis, "out:mine").await;
    let mut kib = Vec::new();
    for round in 0..ROUNDS {
        let asks = (0..ENTRIES).map(|n| (format!("{round}-{n}"), request("GetTask", &json!({ "id": "none" }))));
        caller.ask_all(asks).await;
        let replies = caller.answered(ENTRIES).await;
        assert_eq!(replies.len(), ENTRIES);
        assert!(replies.values().all(|all| all.len() == 1 && all[0].payload["error"]["code"] == -32001));
        until_done(&redis);
        redis.ask(&["DEL", "out:mine"]);
        kib.push((number(REQUESTS), server.resident_kib()));
    }
    println!("bytes of the request stream and KiB of the server after each round: {kib:?}");
    let (first, last) = (kib[ROUNDS / 2], kib[ROUNDS - 1]);
    assert!(last.0 <= 2 * first.0, "the stream does not grow: {kib:?}");
    // What the allocator keeps for bursts settles in the first half: fifteen thousand entries more add next to nothing.
    assert!(last.1 <= first.1 + 15_000, "the server does not grow: {kib:?}");
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
