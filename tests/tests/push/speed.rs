//! How fast it goes. Nothing here depends on the machine.

use std::time::Instant;

use nuncio_tests::{Server, at_once, json, message};
use tokio::task::JoinSet;

use crate::delivery::{ON, with_hook};
use crate::receiver::{Receiver, is_over};

const TASKS: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_a_second_to_one_receiver_and_what_a_dead_one_costs_its_task() {
    let server = std::sync::Arc::new(Server::configured(&format!("{ON}push-events: all\npush-per-host: 64\n")));
    let receiver = Receiver::start().await;
    let start = Instant::now();
    let mut sends = JoinSet::new();
    for _ in 0..TASKS {
        let (server, hook) = (server.clone(), json!({ "url": receiver.url("") }));
        sends.spawn(async move { server.send_params(with_hook(at_once(message("burst 20")), hook)).await });
    }
    while let Some(done) = sends.join_next().await {
        done.expect("sent");
    }
    let all = |posts: &[crate::receiver::Post]| posts.iter().filter(|post| is_over(post)).count() == TASKS;
    let posts = receiver.until("all ends", all).await.len();
    let seconds = start.elapsed().as_secs_f64();
    println!("{posts} deliveries in {seconds:.2} s: {:.0} a second", posts as f64 / seconds);
    assert!(posts >= TASKS * 22, "every event of every task");

    let down = Receiver::start().await;
    down.down();
    for (what, hook) in [("no webhook", None), ("a dead webhook", Some(json!({ "url": down.url("") })))] {
        let start = Instant::now();
        for _ in 0..20 {
            let params = message("burst 500");
            server.send_params(hook.clone().map_or(params.clone(), |hook| with_hook(params, hook))).await;
        }
        println!("20 tasks of 500 chunks with {what}: {:?}", start.elapsed());
    }
}
