//! Jobs in Redis: a real one, which is killed, emptied and away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nuncio_tests::{Random, Redis, Server, at_once, follow_up, id, json, message, raw::until};

use crate::delivery::{ON, with_hook};
use crate::failures::{first_arrivals, push};
use crate::kill::{ROUNDS, TASKS, check, receivers, round_of};
use crate::receiver::{Post, Receiver, Reply, is_over};

/// A configuration that uses a Redis.
fn config(redis: &Redis, more: &str) -> String {
    format!(
        "{ON}push-backend: redis-streams\npush-redis-url: {}\npush-stream: jobs\n\
         push-retry-key: later\npush-dead-stream: dead\npush-consumer-group: workers\n\
         push-consumer-name: one\n{more}",
        redis.url()
    )
}

/// All jobs are done, and nothing of them is left.
fn until_empty(redis: &Redis) {
    until("no job is left", || {
        redis.ask(&["XLEN", "jobs"]) == "0"
            && redis.ask(&["ZCARD", "later"]) == "0"
            && redis.ask(&["KEYS", "jobs:*"]).is_empty()
            && redis.ask(&["XPENDING", "jobs", "workers"]).starts_with('0')
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_arrives_in_order_and_failures_are_tried_again() {
    let redis = Redis::start();
    let server = Server::configured(&config(&redis, "push-events: all\n"));
    let receiver = Receiver::with(|_, before| match before {
        0 => Reply::Status(500),
        5 => Reply::Reset,
        9 => Reply::Status(429),
        _ => Reply::Status(200),
    })
    .await;
    let hook = json!({ "url": receiver.url(""), "token": "secret-token",
                       "authentication": { "scheme": "Bearer", "credentials": "secret-credentials" } });
    let task = server.send_params(with_hook(message("stream 40"), hook)).await;
    let posts = receiver.until_over().await;
    let log = server.log(id(&task)).await.len() as u64;
    assert_eq!(first_arrivals(&posts), (1..=log).collect::<Vec<_>>());
    assert!(posts.iter().all(|post| post.headers["authorization"] == "Bearer secret-credentials"));
    until_empty(&redis);
    // Its file has everything that it was ever told.
    let mut told = Vec::new();
    for file in std::fs::read_dir(redis.data_dir().join("appendonlydir")).expect("a folder").flatten() {
        told.extend(std::fs::read(file.path()).expect("a file"));
    }
    let has = |text: &str| told.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("webhook") && !has("secret-") && !has(&receiver.url("")), "jobs, and neither secrets nor addresses");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_up_is_in_the_dead_stream_and_can_be_sent_again() {
    let redis = Redis::start();
    let server = Server::configured(&config(&redis, ""));
    let refuses = Arc::new(AtomicBool::new(true));
    let rule = refuses.clone();
    let receiver = Receiver::with(move |post, _| {
        let refused = rule.load(Ordering::Relaxed) && post.state() == "WORKING";
        Reply::Status(if refused { 404 } else { 200 })
    })
    .await;
    let task = server.send_params(with_hook(message("hello"), json!({ "url": receiver.url(""), "id": "p" }))).await;
    let posts = receiver.until_over().await;
    until("the dead letter is stored", || redis.ask(&["XLEN", "dead"]) == "1");
    let line = redis.ask(&["XRANGE", "dead", "-", "+"]);
    assert!(line.contains(&format!("{}/2", id(&task))) && line.contains("The receiver answered 404."), "{line}");
    until("the store knows it", || push(&server, &["dead", "--output", "json"]).1[0]["id"] == "p");
    refuses.store(false, Ordering::Relaxed);
    assert_eq!(push(&server, &["replay", "--all"]).0, 0);
    let all = receiver.until("the replay", |all| all[posts.len()..].iter().any(is_over)).await;
    assert_eq!(all[posts.len()].event().1, 2, "from the first that was given up");
    until_empty(&redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_do_not_wait_for_redis() {
    let mut redis = Redis::down();
    let server = Server::configured(&config(&redis, ""));
    let receiver = Receiver::start().await;
    let task = server.send_params(with_hook(message("stream 3"), json!({ "url": receiver.url("") }))).await;
    assert_eq!(nuncio_tests::state(&task), "COMPLETED");
    assert_eq!(receiver.count(), 0, "there is nobody who could take the job");
    redis.up();
    let posts = receiver.until_over().await;
    assert_eq!(posts.iter().map(Post::state).collect::<Vec<_>>(), ["SUBMITTED", "WORKING", "", "COMPLETED"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_redis_forgets_the_store_remembers() {
    let mut redis = Redis::start();
    let server = Server::configured(&config(&redis, ""));
    let receiver = Receiver::start().await;
    let hook = json!({ "url": receiver.url("") });
    let task = server.send_params(with_hook(message("ask which?"), hook)).await;
    receiver.until("the question", |posts| posts.iter().any(|post| post.state() == "INPUT_REQUIRED")).await;
    // It loses everything while it is away, and news comes meanwhile.
    redis.kill();
    std::fs::remove_dir_all(redis.data_dir().join("appendonlydir")).expect("it was there");
    let answered = server.send_params(follow_up(&task, "this")).await;
    assert_eq!(nuncio_tests::state(&answered), "COMPLETED");
    redis.up();
    let posts = receiver.until_over().await;
    assert!(posts.is_sorted_by_key(|post| post.event().1));
    // It loses everything while it runs.
    let task = server.send_params(with_hook(message("ask which?"), json!({ "url": receiver.url("again") }))).await;
    redis.ask(&["FLUSHALL"]);
    server.send_params(follow_up(&task, "this")).await;
    receiver.until("the end", |posts| posts.iter().any(|post| post.path == "again" && is_over(post))).await;
    until_empty(&redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_worker_has_in_hand_is_left_to_it_for_its_lease() {
    let redis = Redis::start();
    redis.ask(&["XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM"]);
    // One has taken a job and is gone; one says that it delivers to the first webhook.
    redis.ask(&["XADD", "jobs", "*", "webhook", "77/nobody"]);
    redis.ask(&["XADD", "jobs", "*", "job", "of an earlier program"]);
    redis.ask(&["XREADGROUP", "GROUP", "workers", "gone", "COUNT", "9", "STREAMS", "jobs", ">"]);
    redis.ask(&["SET", "jobs:held:1/p", "5/gone"]);
    let server = Server::configured(&config(&redis, "push-lease-timeout-ms: 1000\n"));
    let receiver = Receiver::start().await;
    server.send_params(with_hook(message("hello"), json!({ "url": receiver.url("held"), "id": "p" }))).await;
    server.send_params(with_hook(at_once(message("hello")), json!({ "url": receiver.url("free"), "id": "p" }))).await;
    receiver.until("the other task", |posts| posts.iter().any(|post| post.path == "free" && is_over(post))).await;
    until("the job of the worker that is gone is taken over", || {
        redis.ask(&["XPENDING", "jobs", "workers"]).starts_with('0')
    });
    assert!(redis.ask(&["XRANGE", "dead", "-", "+"]).contains("of an earlier program"), "nothing is thrown away");
    assert!(receiver.posts().iter().all(|post| post.path == "free"), "it is in the hand of another");
    redis.ask(&["PEXPIRE", "jobs:held:1/p", "10"]);
    receiver.until("the first task", |posts| posts.iter().any(|post| post.path == "held" && is_over(post))).await;
    until_empty(&redis);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_receiver_gets_every_event_in_order_whenever_the_server_or_redis_is_killed() {
    let (mut random, mut redis) = (Random::new(), Redis::start());
    let mut server = Server::configured(&config(&redis, "push-events: all\npush-per-host: 64\n"));
    let (steady, shaky) = receivers().await;
    for round in 0..ROUNDS {
        let kill_after = Duration::from_millis(50 + random.below(900));
        let start = Instant::now();
        let redis_after = (round % 2 == 1).then(|| Duration::from_millis(random.below(1500)));
        let restart = async {
            if let Some(after) = redis_after {
                tokio::time::sleep(after).await;
                tokio::task::block_in_place(|| {
                    redis.kill();
                    redis.up();
                });
            }
        };
        tokio::join!(round_of(TASKS, &mut server, &steady, &shaky, kill_after), restart);
        println!("round {round}: killed after {kill_after:?}, Redis after {redis_after:?}, all {:?}", start.elapsed());
    }
    check(ROUNDS * TASKS, &steady, &shaky);
    until_empty(&redis);
}
