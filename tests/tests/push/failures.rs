//! Receivers that fail: what is tried again, what is given up, and that nobody else notices.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuncio_tests::{Server, Value, at_once, binary, id, json, message};

use crate::delivery::{ON, with_hook};
use crate::receiver::{Post, Receiver, Reply, is_over};

/// The numbers of the events, each once, in the order of their first arrival.
pub(crate) fn first_arrivals(posts: &[Post]) -> Vec<u64> {
    let mut seen = Vec::new();
    for post in posts {
        let (_, seq) = post.event();
        if !seen.contains(&seq) {
            seen.push(seq);
        }
    }
    seen
}

/// `nuncio push …` on the data of a server, which may be running.
pub(crate) fn push(server: &Server, args: &[&str]) -> (i32, Value, String) {
    let mut command = Command::new(binary());
    command.arg("push").args(args).arg("--data-dir").arg(server.data_dir());
    let done = command.output().expect("the binary can be started");
    let data = serde_json::from_slice(&done.stdout).unwrap_or(Value::Null);
    let talk = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    (done.status.code().unwrap_or(-1), data, talk)
}

#[tokio::test]
async fn whatever_may_pass_is_tried_again_until_it_arrives() {
    let server = Server::configured(&format!("{ON}push-timeout: 300ms\n"));
    let receiver = Receiver::with(|_, before| match before {
        0 => Reply::Status(500),
        1 => Reply::Reset,
        2 => Reply::Hang,
        3 => Reply::Status(429),
        4 => Reply::Status(408),
        6 => Reply::Status(503),
        _ => Reply::Status(204),
    })
    .await;
    server.send_params(with_hook(message("hello"), json!({ "url": receiver.url("") }))).await;
    let posts = receiver.until_over().await;
    let ids: Vec<u64> = posts.iter().map(|post| post.event().1).collect();
    assert_eq!(ids[..6], [1; 6], "the same id at every attempt: {ids:?}");
    assert!(ids.is_sorted() && ids.len() >= 9, "{ids:?}");
    assert!(server.metric("nuncio_push_failed_attempts_total").await >= 6.0);
}

#[tokio::test]
async fn a_receiver_that_is_down_gets_everything_when_it_is_back() {
    let (server, mut receiver) = (Server::configured(ON), Receiver::start().await);
    receiver.down();
    let task = server.send_params(with_hook(message("stream 3"), json!({ "url": receiver.url("") }))).await;
    assert_eq!(nuncio_tests::state(&task), "COMPLETED", "a webhook that fails changes nothing");
    tokio::time::sleep(Duration::from_millis(300)).await;
    receiver.up().await;
    let posts = receiver.until_over().await;
    assert_eq!(posts.iter().map(Post::state).collect::<Vec<_>>(), ["SUBMITTED", "WORKING", "", "COMPLETED"]);
}

#[tokio::test]
async fn the_receiver_says_when_to_come_back() {
    let server = Server::configured(ON);
    let receiver =
        Receiver::with(|_, before| if before == 0 { Reply::After(429, 2) } else { Reply::Status(200) }).await;
    let start = std::time::Instant::now();
    server.send_params(with_hook(message("hello"), json!({ "url": receiver.url("") }))).await;
    receiver.until_over().await;
    assert!(start.elapsed() >= Duration::from_secs(2), "not before it was asked for");
}

#[tokio::test]
async fn one_webhook_does_not_wait_for_another() {
    let server = Server::configured(&format!("{ON}push-per-host: 2\n"));
    let (good, hanging) = (Receiver::start().await, Receiver::with(|_, _| Reply::Hang).await);
    let mut tasks = Vec::new();
    for n in 0..20 {
        let task =
            server.send_params(with_hook(at_once(message("ask which?")), json!({ "url": hanging.url("") }))).await;
        let put = json!({ "taskId": id(&task), "url": good.url(&n.to_string()), "id": "good" });
        server.rpc("CreateTaskPushNotificationConfig", put).await;
        tasks.push(task);
    }
    for task in &tasks {
        server.send_params(nuncio_tests::follow_up(task, "this")).await;
    }
    // All of them, long before the hanging ones run out of time.
    good.until("twenty ends", |posts| posts.iter().filter(|post| is_over(post)).count() == 20).await;
    assert!(hanging.count() <= 2, "as many at a time as one host may have: {}", hanging.count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_receiver_refuses_is_kept_and_can_be_sent_again() {
    let mut server = Server::configured(ON);
    let refuses = Arc::new(AtomicBool::new(true));
    let rule = refuses.clone();
    let receiver = Receiver::with(move |post, _| {
        let refused = rule.load(Ordering::Relaxed) && post.state() == "WORKING";
        Reply::Status(if refused { 404 } else { 200 })
    })
    .await;
    let hook = json!({ "url": receiver.url(""), "id": "p", "token": "secret-token" });
    let task = server.send_params(with_hook(message("hello"), hook)).await;
    let posts = receiver.until_over().await;
    let tries: HashMap<u64, usize> = posts.iter().fold(HashMap::new(), |mut tries, post| {
        *tries.entry(post.event().1).or_default() += 1;
        tries
    });
    assert!(tries.values().all(|n| *n == 1), "404 is not tried again, and what follows still arrives: {tries:?}");

    nuncio_tests::raw::until("the dead letter is stored", || {
        push(&server, &["dead", "--output", "json"]).1.as_array().is_some_and(|all| all.len() == 1)
    });
    let (code, dead, talk) = push(&server, &["dead", "--output", "json"]);
    let dead = &dead[0];
    assert_eq!((code, dead["taskId"].as_str(), dead["id"].as_str()), (0, Some(id(&task)), Some("p")), "{talk}");
    assert_eq!((&dead["dead"]["events"], &dead["lastError"]), (&json!(1), &json!("The receiver answered 404.")));
    assert!(!talk.contains("secret-token"));
    assert!(push(&server, &["dead"]).2.contains(id(&task)), "the table names the task");

    let (first, before) = (dead["dead"]["first"].as_u64().expect("a number"), receiver.count());
    assert_eq!(push(&server, &["replay", "--task-id", "nobody"]).0, 1);
    refuses.store(false, Ordering::Relaxed);
    server.terminate();
    let (code, _, talk) = push(&server, &["replay", "--task-id", id(&task), "--config-id", "p"]);
    assert_eq!(code, 0, "{talk}");
    server.restart();
    let posts = receiver.until("the replay", |posts| posts[before..].iter().any(is_over)).await;
    let replayed: Vec<u64> = posts[before..].iter().map(|post| post.event().1).collect();
    assert_eq!((replayed[0], replayed.is_sorted()), (first, true), "from the first that was given up: {replayed:?}");
    nuncio_tests::raw::until("nothing is dead", || push(&server, &["dead", "--output", "json"]).1 == json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_are_bounded_and_a_running_server_takes_up_a_replay() {
    let server = Server::configured(&format!("{ON}push-attempts: 3\n"));
    let receiver = Receiver::with(|_, before| Reply::Status(if before < 5 { 500 } else { 200 })).await;
    let task = server.send_params(with_hook(message("hello"), json!({ "url": receiver.url("") }))).await;
    nuncio_tests::raw::until("all attempts are over", || {
        let dead = push(&server, &["dead", "--output", "json"]).1;
        dead[0]["position"].as_u64().is_some_and(|position| position > 3)
    });
    // Three for the first event, and one for each behind it until the receiver answers.
    let ids: Vec<u64> = receiver.posts().iter().map(|post| post.event().1).collect();
    assert_eq!(ids[..5], [1, 1, 1, 2, 3], "{ids:?}");
    let before = receiver.count();
    assert_eq!(push(&server, &["replay", "--all"]).0, 0);
    let posts = receiver.until("the replay", |posts| posts.len() > before && is_over(&posts[posts.len() - 1])).await;
    let log = server.log(id(&task)).await.len() as u64;
    let replayed: Vec<u64> = posts[before..].iter().map(|post| post.event().1).collect();
    assert_eq!((replayed[0], replayed.last()), (1, Some(&log)), "{replayed:?}");
    assert!(server.metric("nuncio_push_given_up_total").await >= 3.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_can_be_listed() {
    let server = Server::configured(&ON.replace("50ms", "1h"));
    let receiver = Receiver::with(|_, _| Reply::Status(503)).await;
    let task = server.send_params(with_hook(message("hello"), json!({ "url": receiver.url("x"), "id": "p" }))).await;
    nuncio_tests::raw::until("the failure is stored", || {
        push(&server, &["list", "--output", "json"]).1[0]["failedAttempts"] == json!(1)
    });
    let (_, list, talk) = push(&server, &["list", "--task-id", id(&task), "--output", "json"]);
    assert_eq!((list[0]["url"].as_str(), &list[0]["position"]), (Some(&*receiver.url("x")), &json!(0)), "{talk}");
    assert!(list[0]["due"].is_string() && list[0]["failingSince"].is_string(), "{talk}");
    let until = std::time::Instant::now() + nuncio_tests::PATIENCE;
    while server.metric("nuncio_push_pending").await < 1.0 {
        assert!(std::time::Instant::now() < until, "the gauge follows");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
