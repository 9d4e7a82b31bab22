//! One rate for a caller on all nodes.

use std::sync::Arc;
use std::time::Duration;

use super::super::line::Way as Fault;
use super::kit::*;
use crate::bind::Rate;
use crate::bind::limit::Pace;
use crate::call::Way;

/// How many of so many requests get through.
async fn passed(server: &Server, pace: &Pace, requests: usize) -> usize {
    let (cluster, name) = (server.engine.cluster.as_ref().unwrap(), Arc::from("alice"));
    let mut passed = 0;
    for _ in 0..requests {
        passed += usize::from(pace.check_with(cluster, &name, Way::default()).await.is_ok());
    }
    passed
}

#[tokio::test(start_paused = true)]
async fn a_caller_has_one_rate_on_all_nodes() {
    let [one, two] = Place::new().servers().await;
    let rate = Rate { per_second: 50, burst: 20 };
    let (here, there) = (Pace::new(rate), Pace::new(rate));
    let began = tokio::time::Instant::now();
    let mut all = 0;
    for _ in 0..40 {
        all += passed(&one, &here, 5).await + passed(&two, &there, 5).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let most = 20 + (began.elapsed().as_millis() / 20) as usize;
    assert!(all <= most, "{all} of {most}");
    assert!(all + 20 >= most, "and not many less: {all} of {most}");
}

#[tokio::test(start_paused = true)]
async fn where_nobody_counts_each_node_lets_its_part_through() {
    let [one, two] = Place::new().servers().await;
    // Both have heard of each other.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let pace = Pace::new(Rate { per_second: 1, burst: 10 });
    one.line.set(Fault::Fails);
    assert_eq!(passed(&one, &pace, 50).await, 5, "one of two");
    let other = Pace::new(Rate { per_second: 1, burst: 10 });
    assert_eq!(passed(&two, &other, 50).await, 10, "who can ask does so");
}
