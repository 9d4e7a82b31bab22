//! A server that dies takes nothing with it.

use nuncio_tests::{Bus, Cluster, Sse, Wire, at_once, id, is_over, message, state, texts, words};

use crate::logbook::Logbook;

const SHORT: &str = "lease-ttl: 3s\n";

#[tokio::test]
async fn the_turn_of_a_lost_replica_goes_on_elsewhere_and_its_readers_notice_nothing() {
    let logbook = Logbook::new();
    let mut cluster = Cluster::start(2, Bus::Redis, &format!("{SHORT}{}", logbook.config()));
    let mut stream = Sse::open(cluster.replicas[0].post("/message:stream", &logbook.work("lost", 40, 50))).await;
    let task = stream.next().await.unwrap().body()["task"]["id"].as_str().unwrap().to_owned();
    let follower = cluster.replicas[1].subscribe(&task, Some(0)).await;
    for _ in 0..10 {
        stream.next().await.expect("it works");
    }
    cluster.replicas[0].lose();
    let seen = follower.all().await;
    let over = cluster.replicas[1].task(&task).await;
    assert_eq!(state(&over), "COMPLETED", "{over}");
    let numbers: Vec<u64> = seen.iter().map(|event| event.id.unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "every number once, in order");
    assert_eq!(seen, cluster.replicas[1].log(&task).await);
    let text = texts(&over).concat();
    for chunk in 0..40 {
        assert!(text.contains(&format!("lost.{chunk} ")), "chunk {chunk} is missing in {text}");
    }
    let mut runs = logbook.runs();
    runs.sort_by_key(|run| run.attempt);
    assert_eq!(runs.iter().map(|run| run.attempt).collect::<Vec<_>>(), [1, 2]);
    assert!(runs[0].end() < runs[1].start(), "not both at once");
}

#[tokio::test]
async fn a_replica_that_stood_still_too_long_writes_nothing_more() {
    let logbook = Logbook::new();
    let cluster = Cluster::start(2, Bus::Redis, &format!("{SHORT}{}", logbook.config()));
    let [here, there] = &cluster.replicas[..] else { panic!("two of them") };
    let task = here.send_params(at_once(logbook.work("still", 100, 50))).await;
    let mut follower = there.subscribe(id(&task), Some(0)).await;
    let mut seen = Vec::new();
    for _ in 0..10 {
        seen.push(follower.next().await.unwrap());
    }
    here.pause();
    // The next attempt shows that the lease was taken.
    let until = std::time::Instant::now() + nuncio_tests::PATIENCE;
    while logbook.runs().iter().all(|run| run.attempt == 1) {
        assert!(std::time::Instant::now() < until, "nobody takes over");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    here.go_on();
    seen.extend(follower.all().await);
    for server in [here, there] {
        assert_eq!(seen, server.log(id(&task)).await, "the same log on both");
        assert_eq!(state(&server.task(id(&task)).await), "COMPLETED");
    }
    assert_eq!(seen.iter().filter(|event| event.state() == "TASK_STATE_COMPLETED").count(), 1);
    // It serves again, and new work too.
    assert_eq!(state(&here.send("hello").await), "COMPLETED");
}

#[tokio::test]
async fn a_turn_that_cannot_go_on_is_failed_by_another_replica() {
    let mut cluster = Cluster::start(2, Bus::Redis, SHORT);
    let mut tasks = Vec::new();
    for _ in 0..5 {
        let task = cluster.replicas[0].send_params(at_once(message("hold"))).await;
        cluster.replicas[0].until(id(&task), "WORKING").await;
        tasks.push(task);
    }
    cluster.replicas[0].lose();
    for task in &tasks {
        let over = cluster.replicas[1].until(id(task), "FAILED").await;
        assert!(words(&over).contains("interrupted"), "it says why: {over}");
    }
    cluster.replicas[0].restart();
    for task in &tasks {
        assert!(is_over(&cluster.replicas[0].task(id(task)).await));
    }
}

#[tokio::test]
async fn a_cancel_outlives_the_replica_that_was_to_obey_it() {
    let logbook = Logbook::new();
    let mut cluster = Cluster::start(2, Bus::None, &format!("{SHORT}{}", logbook.config()));
    let task = cluster.replicas[0].send_params(at_once(logbook.work("cancel", 1000, 50))).await;
    cluster.replicas[1].until(id(&task), "WORKING").await;
    cluster.replicas[0].pause();
    let request = cluster.replicas[1].rpc_request("CancelTask", &nuncio_tests::json!({ "id": id(&task) }));
    let cancel = tokio::spawn(nuncio_tests::answer(request));
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    cluster.replicas[0].lose();
    let (_, canceled) = cancel.await.unwrap();
    assert_eq!(state(&canceled["result"]), "CANCELED", "{canceled}");
    assert_eq!(state(&cluster.replicas[1].until(id(&task), "CANCELED").await), "CANCELED");
}

#[tokio::test]
async fn the_database_may_restart_while_tasks_run() {
    let mut postgres = nuncio_tests::Postgres::start();
    let cluster = Cluster::start_on(&postgres, 2, Bus::Redis, "lease-ttl: 15s\n");
    let mut streams = Vec::new();
    for n in 0..10 {
        let request = Wire::Rest.stream(&cluster.replicas[n % 2], "stream 100 30");
        streams.push(tokio::spawn(async move { Sse::open(request).await.all().await }));
    }
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    postgres.restart();
    for stream in streams {
        let events = stream.await.unwrap();
        let numbers: Vec<u64> = events.iter().map(|event| event.id.unwrap()).collect();
        assert_eq!(numbers, (1..=103).collect::<Vec<u64>>(), "nobody notices");
        assert_eq!(events.last().unwrap().state(), "TASK_STATE_COMPLETED");
    }
}
