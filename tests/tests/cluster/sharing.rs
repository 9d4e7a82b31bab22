//! What all replicas have in common: work, webhooks, limits.

use std::time::Instant;

use nuncio_tests::{Bus, Cluster, at_once, follow_up, id, json, message, state};

use crate::receiver::{Post, Receiver, is_over};

const PUSH: &str = "push-notifications: true\npush-events: all\npush-allowed-cidrs: 127.0.0.0/8\n\
                    push-retry-delay: 50ms\npush-retry-max-delay: 400ms\nlease-ttl: 3s\n";

#[tokio::test]
async fn work_that_finds_no_room_is_taken_by_the_replica_that_has_some() {
    for bus in [Bus::Redis, Bus::Postgres, Bus::None] {
        let cluster = Cluster::start(2, bus, "max-running-turns: 1\n");
        let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
        let hold = here.send_params(at_once(message("hold"))).await;
        here.until(id(&hold), "WORKING").await;
        let mut waiting = Vec::new();
        for n in 0..5 {
            waiting.push(here.send_params(at_once(message(&format!("stream {n}")))).await);
        }
        for task in &waiting {
            here.until(id(task), "COMPLETED").await;
        }
        assert_eq!(state(&there.task(id(&hold)).await), "WORKING", "the other one did it");
        assert_eq!(state(&there.cancel(id(&hold)).await), "CANCELED");
    }
}

#[tokio::test]
async fn a_webhook_registered_on_one_replica_hears_of_the_turn_on_another() {
    for bus in [Bus::Redis, Bus::Postgres, Bus::None] {
        let (cluster, receiver) = (Cluster::start(2, bus, PUSH), Receiver::start().await);
        let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
        let task = here.send("ask go on?").await;
        let hook = json!({ "taskId": id(&task), "url": receiver.url("hook") });
        let set = there.rpc("CreateTaskPushNotificationConfig", hook).await;
        assert!(set["result"].is_object(), "{set}");
        let list = here.rpc("ListTaskPushNotificationConfigs", json!({ "taskId": id(&task) })).await;
        assert_eq!(list["result"]["configs"].as_array().map(Vec::len), Some(1), "{list}");
        here.send_params(follow_up(&task, "stream 30")).await;
        let posts = receiver.until_over().await;
        let last = here.log(id(&task)).await.last().and_then(|event| event.id).unwrap();
        in_order(&posts, last);
    }
}

#[tokio::test]
async fn the_webhooks_of_a_lost_replica_are_served_by_another() {
    let receiver = Receiver::start().await;
    let mut cluster = Cluster::start(2, Bus::Redis, PUSH);
    let task = cluster.replicas[0].send("ask go on?").await;
    let hook = json!({ "taskId": id(&task), "url": receiver.url("hook") });
    // In the hand of the second, which is lost.
    cluster.replicas[1].rpc("CreateTaskPushNotificationConfig", hook).await;
    cluster.replicas[1].lose();
    cluster.replicas[0].send_params(follow_up(&task, "red")).await;
    let posts = receiver.until_over().await;
    let last = cluster.replicas[0].log(id(&task)).await.last().and_then(|event| event.id).unwrap();
    in_order(&posts, last);
}

/// Every event up to the last has come, the first time each in its order.
pub(crate) fn in_order(posts: &[Post], last: u64) {
    assert!(posts.iter().any(is_over), "the end is told");
    let mut seen: Vec<u64> = Vec::new();
    for (_, number) in posts.iter().map(Post::event) {
        if seen.last().is_none_or(|last| number > *last) {
            seen.push(number);
        }
    }
    let first = seen[0];
    assert_eq!(seen, (first..=last).collect::<Vec<_>>(), "all of them, in order");
}

#[tokio::test]
async fn a_caller_has_one_rate_on_all_replicas_together() {
    for bus in [Bus::Redis, Bus::Postgres] {
        let yaml = "rate-limit: 1\nrate-burst: 30\ntokens:\n- {name: alice, token: alice-0123456789abcdef}\n";
        let cluster = Cluster::start(3, bus, yaml);
        let start = Instant::now();
        let (mut allowed, mut refused) = (0, 0);
        for n in 0..120 {
            let list = cluster.replicas[n % 3].get("/tasks").bearer_auth("alice-0123456789abcdef");
            match list.send().await.unwrap().status().as_u16() {
                200 => allowed += 1,
                429 => refused += 1,
                other => panic!("{other}"),
            }
        }
        // Three that count for themselves would allow three bursts at the least.
        let most = 60.0 + start.elapsed().as_secs_f64();
        assert!(f64::from(allowed) < most, "{bus:?}: {allowed} were allowed in {:?}", start.elapsed());
        assert!(allowed >= 30, "{bus:?}: a burst is allowed, not {allowed}");
        assert!(refused > 0);
    }
}

#[tokio::test]
async fn the_turns_of_a_caller_are_counted_on_all_replicas_together() {
    let yaml = "max-running-turns-per-caller: 1\ntokens:\n- {name: alice, token: alice-0123456789abcdef}\n\
                - {name: bob, token: bob-0123456789abcdef}\n";
    let cluster = Cluster::start(2, Bus::Redis, yaml);
    let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
    let send = async |server: &nuncio_tests::Server, token: &str, text: &str| {
        let request = server.post("/message:send", &at_once(message(text))).bearer_auth(token);
        nuncio_tests::answer(request).await.1["task"].clone()
    };
    let get = async |task: &nuncio_tests::Value, token: &str| {
        let request = there.get(&format!("/tasks/{}", id(task))).bearer_auth(token);
        nuncio_tests::answer(request).await.1
    };
    let (alice, bob) = ("alice-0123456789abcdef", "bob-0123456789abcdef");
    let hold = send(here, alice, "sleep 3").await;
    let second = send(there, alice, "hello").await;
    let third = send(there, bob, "hello").await;
    let until = Instant::now() + nuncio_tests::PATIENCE;
    while state(&get(&third, bob).await) != "COMPLETED" {
        assert!(Instant::now() < until, "others are served meanwhile");
    }
    let (first, second_now) = (get(&hold, alice).await, get(&second, alice).await);
    if state(&first) != "COMPLETED" {
        assert_eq!(state(&second_now), "SUBMITTED", "she has one turn already: {second_now}");
    }
    while state(&get(&second, alice).await) != "COMPLETED" {
        assert!(Instant::now() < until, "hers is served afterwards");
    }
    assert_eq!(state(&get(&hold, alice).await), "COMPLETED", "not before the first was over");
}
