//! Redis goes away, workers are killed.

use std::time::Duration;

use futures_util::StreamExt;
use nuncio_client::{ClientError, Options, Retry, SendOptions};
use nuncio_protocol::{SendMessageRequest, StreamResponse, TaskState};
use nuncio_tests::{Random, Redis, json};

use crate::kit::{Caller, Reply, check_stream, client, request, said, serve, until_done};

const STREAMS: usize = 50;

fn message(id: &str, text: &str) -> SendMessageRequest {
    serde_json::from_value(said(id, text)).expect("a message")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_streams_go_on_when_redis_is_killed_and_comes_back() {
    let (mut redis, mut random) = (Redis::start(), Random::new());
    let _server = serve(&redis, "");
    let client = client(&redis, Options::default());
    let streams: Vec<_> = (0..STREAMS)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let (id, key) = (format!("m-{n}"), SendOptions::key(format!("k-{n}")));
                let mut stream = client.stream_with(message(&id, "stream 40 50"), &key).await.expect("a stream");
                let (mut numbers, mut last) = (Vec::new(), None);
                while let Some(event) = stream.next().await {
                    let event = event.expect("an event");
                    numbers.extend(event.seq);
                    if let StreamResponse::StatusUpdate(update) = event.response {
                        last = Some(update.status.state);
                    }
                }
                (numbers, last)
            })
        })
        .collect();
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(300 + random.below(500))).await;
        tokio::task::block_in_place(|| {
            redis.kill();
            std::thread::sleep(Duration::from_millis(random.below(300)));
            redis.up();
        });
    }
    for stream in streams {
        let ended = tokio::time::timeout(nuncio_tests::PATIENCE, stream).await.expect("no stream hangs");
        let (numbers, last) = ended.expect("no panic");
        assert_eq!(numbers, (1..=43).collect::<Vec<_>>(), "each event once, in order");
        assert_eq!(last, Some(TaskState::Completed));
    }
    until_done(&redis);
    drop(client);
    nuncio_tests::raw::until("the stream for replies is gone", || redis.ask(&["KEYS", "out:*"]).is_empty());
}

/// Requests of both kinds: every one that is even is a stream.
fn mixed(count: usize) -> Vec<(String, nuncio_tests::Value)> {
    let one = |n: usize| {
        let method = if n.is_multiple_of(2) { "SendStreamingMessage" } else { "SendMessage" };
        (n.to_string(), request(method, &said(&format!("m-{n}"), "stream 20 50")))
    };
    (0..count).map(one).collect()
}

/// Each is answered once: with a whole stream, with a task, or with an error. Says how many errors there are.
fn check(replies: &std::collections::HashMap<String, Vec<Reply>>, count: usize) -> usize {
    assert_eq!(replies.len(), count);
    let mut errors = 0;
    for (id, replies) in replies {
        assert_eq!(replies.iter().filter(|reply| reply.is_final).count(), 1, "{id}: {replies:?}");
        check_stream(replies);
        let last = &replies.last().expect("a reply").payload;
        if last["error"].is_object() {
            errors += 1;
            assert!(last["error"]["message"].as_str().is_some_and(|text| text.contains("worker")), "{last}");
        } else if id.parse::<usize>().is_ok_and(|n| !n.is_multiple_of(2)) {
            assert!(last["result"]["task"]["status"]["state"].is_string(), "{last}");
        }
    }
    errors
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_killed_goes_on_with_its_requests_when_it_is_back() {
    let redis = Redis::start();
    let mut server = serve(&redis, "");
    let caller = Caller::new(&redis, "out:mine").await;
    caller.ask_all(mixed(STREAMS)).await;
    nuncio_tests::raw::until("they are under way", || {
        redis.ask(&["XLEN", "out:mine"]).parse::<usize>().is_ok_and(|n| n > 5 * STREAMS)
    });
    server.kill();
    server.restart();
    let replies = caller.answered(STREAMS).await;
    assert_eq!(check(&replies, STREAMS), 0, "the log knows how each ended");
    let found = server.rpc("ListTasks", json!({})).await;
    assert_eq!(found["result"]["totalSize"], STREAMS, "no message ran twice");
    until_done(&redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_worker_answers_what_a_dead_one_left_behind() {
    let redis = Redis::start();
    let more = "store: memory\nlease-ttl: 1s\n";
    let mut first = serve(&redis, more);
    let caller = Caller::new(&redis, "out:mine").await;
    caller.ask_all(mixed(STREAMS)).await;
    nuncio_tests::raw::until("they are under way", || {
        redis.ask(&["XLEN", "out:mine"]).parse::<usize>().is_ok_and(|n| n > 5 * STREAMS)
    });
    let second = serve(&redis, more);
    // Otherwise the first may take them all before the second looks.
    nuncio_tests::raw::until("both wait for requests", || {
        redis.ask(&["INFO", "clients"]).contains("blocked_clients:2")
    });
    caller.ask_all(mixed(2 * STREAMS).split_off(STREAMS)).await;
    first.kill();
    let replies = caller.answered(2 * STREAMS).await;
    let errors = check(&replies, 2 * STREAMS);
    // What was begun is gone with the memory of the first; nothing is run again on a guess.
    assert!((STREAMS..2 * STREAMS).contains(&errors), "{errors} errors");
    let ran = second.rpc("ListTasks", json!({})).await["result"]["totalSize"].as_u64();
    assert_eq!(ran, Some((2 * STREAMS - errors) as u64));
    assert!(second.metric("nuncio_redis_given_up_total").await >= 1.0);
    until_done(&redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_whose_only_worker_is_gone_for_good_ends_with_an_error() {
    let redis = Redis::start();
    let mut server = serve(&redis, "lease-ttl: 1s\n");
    let retry = Retry { tries: 1, ..Retry::default() };
    let client = client(&redis, Options { timeout: Duration::from_secs(2), retry, ..Options::default() });
    let mut stream = client.stream(message("m", "hold")).await.expect("a stream");
    stream.next().await.expect("an event").expect("no error");
    server.kill();
    let rest = async {
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error,
                None => panic!("nobody can have said that it is over"),
            }
        }
    };
    let error = tokio::time::timeout(2 * nuncio_tests::PATIENCE, rest).await.expect("it does not hang");
    let is_clear =
        matches!(error, ClientError::Timeout { .. } | ClientError::Unreachable { .. } | ClientError::Cut { .. });
    assert!(is_clear, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_begun_in_one_log_waits_for_the_worker_on_that_log() {
    let redis = Redis::start();
    let more = "lease-ttl: 2s\n";
    let mut first = serve(&redis, more);
    let caller = Caller::new(&redis, "out:mine").await;
    caller.ask_all(mixed(20)).await;
    nuncio_tests::raw::until("they are under way", || {
        redis.ask(&["XLEN", "out:mine"]).parse::<usize>().is_ok_and(|n| n > 60)
    });
    let holder = || redis.ask(&["XPENDING", "in", "workers", "-", "+", "1"]).lines().nth(1).map(str::to_owned);
    let dead = holder();
    let second = serve(&redis, more);
    first.kill();
    nuncio_tests::raw::until("the other one has seen them", || holder() != dead);
    first.restart();
    let replies = caller.answered(20).await;
    assert_eq!(check(&replies, 20), 0);
    assert_eq!(second.rpc("ListTasks", json!({})).await["result"]["totalSize"], 0, "nothing ran twice");
    until_done(&redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_leaves_the_rest_to_the_next_one() {
    let redis = Redis::start();
    let mut server = serve(&redis, "drain-timeout: 0s\n");
    let caller = Caller::new(&redis, "out:mine").await;
    caller.ask_all(mixed(20)).await;
    nuncio_tests::raw::until("they are under way", || {
        redis.ask(&["XLEN", "out:mine"]).parse::<usize>().is_ok_and(|n| n > 60)
    });
    assert_eq!(server.terminate(), Some(0));
    caller.ask("late", request("ListTasks", &json!({}))).await;
    server.restart();
    let mut replies = caller.answered(21).await;
    assert_eq!(replies.remove("late").expect("an answer")[0].payload["result"]["totalSize"], 20);
    assert_eq!(check(&replies, 20), 0);
    until_done(&redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_wait_for_a_redis_that_is_not_there_yet_or_forgets_everything() {
    let mut redis = Redis::down();
    let _server = serve(&redis, "");
    redis.up();
    let caller = Caller::new(&redis, "out:mine").await;
    caller.ask("first", request("ListTasks", &json!({}))).await;
    assert!(caller.only("first").await["result"].is_object());
    redis.ask(&["FLUSHALL"]);
    caller.ask("second", request("ListTasks", &json!({}))).await;
    assert!(caller.only("second").await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_living_worker_has_in_hand_is_left_to_it() {
    let redis = Redis::start();
    let (first, second) = (serve(&redis, "lease-ttl: 1s\n"), serve(&redis, "lease-ttl: 1s\n"));
    let caller = Caller::new(&redis, "out:mine").await;
    let asks = (0..20).map(|n| (n.to_string(), request("SendMessage", &said(&format!("m-{n}"), "sleep 4"))));
    caller.ask_all(asks).await;
    let replies = caller.answered(20).await;
    let state = |reply: &Reply| reply.payload["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED";
    assert!(replies.values().all(|replies| replies.len() == 1 && state(&replies[0])), "{replies:?}");
    let ran = first.count("COMPLETED").await + second.count("COMPLETED").await;
    assert_eq!(ran, 20, "each ran once");
    assert_eq!(second.metric("nuncio_redis_taken_over_total").await, 0.0);
    until_done(&redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_brings_workers_down_is_given_up() {
    let redis = Redis::start();
    redis.ask(&["XGROUP", "CREATE", "in", "workers", "0", "MKSTREAM"]);
    let caller = Caller::new(&redis, "out:mine").await;
    caller.ask("poison", request("SendMessage", &said("m-1", "hello"))).await;
    caller.ask("fine", request("SendMessage", &said("m-2", "hello"))).await;
    redis.ask(&["XREADGROUP", "GROUP", "workers", "gone", "COUNT", "2", "STREAMS", "in", ">"]);
    let pending = redis.ask(&["XPENDING", "in", "workers", "-", "+", "2"]);
    let ids: Vec<&str> = pending.lines().filter(|line| line.contains('-')).collect();
    for (id, times) in [(ids[0], "5"), (ids[1], "4")] {
        redis.ask(&["XCLAIM", "in", "workers", "gone", "0", id, "IDLE", "3600000", "RETRYCOUNT", times, "JUSTID"]);
    }
    let server = serve(&redis, "");
    let given_up = caller.only("poison").await;
    assert_eq!(given_up["error"]["code"], -32603, "{given_up}");
    assert_eq!(caller.only("fine").await["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(server.metric("nuncio_redis_given_up_total").await, 1.0);
    assert_eq!(server.metric("nuncio_redis_taken_over_total").await, 2.0);
    until_done(&redis);
}
