//! The same scenarios over every transport and version, through our client: what callers see is the same
//! whatever carries it.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a scenario that goes wrong is over")]

mod callers;
mod kit;
mod refusals;
mod send;
mod streams;
mod tasks;
mod ways;
mod webhooks;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use nuncio_tests::Value;

use kit::{Scenario, scrub};
use ways::House;

/// The longest that one scenario may take over one way.
const LONGEST: Duration = Duration::from_secs(60);

/// Runs scenarios over every way, and compares what the ways of one version saw.
async fn run(scenarios: &[Scenario]) {
    let house = House::start().await;
    let mut failures = Vec::new();
    for scenario in scenarios {
        let ways = house.ways().into_iter().filter(|way| scenario.fits(way));
        let seen = join_all(ways.map(|way| async move {
            let name = way.name;
            let version = way.client.version();
            let done = tokio::time::timeout(LONGEST, tokio::spawn((scenario.play)(way))).await;
            (name, version, done)
        }))
        .await;
        let mut first: BTreeMap<_, (&str, Value)> = BTreeMap::new();
        for (name, version, done) in seen {
            let what = format!("{} over {name} {version}", scenario.name);
            let value = match done {
                Err(_) => {
                    failures.push(format!("{what}: takes longer than {LONGEST:?}"));
                    continue;
                }
                Ok(Err(error)) => {
                    failures.push(format!("{what}: {}", told(error)));
                    continue;
                }
                Ok(Ok(value)) => scrub(value),
            };
            match first.get(&version) {
                None => _ = first.insert(version, (name, value)),
                Some((other, expected)) if *expected != value => {
                    failures.push(format!("{what} differs from {other}:\n  {value}\n  {expected}"));
                }
                Some(_) => {}
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// What a scenario said when it gave up.
fn told(error: tokio::task::JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else { return "ended".into() };
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages() {
    run(send::SCENARIOS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn event_streams() {
    run(streams::SCENARIOS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks() {
    run(tasks::SCENARIOS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks() {
    run(webhooks::SCENARIOS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers() {
    run(callers::SCENARIOS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals() {
    run(refusals::SCENARIOS).await;
}

#[tokio::test]
async fn there_are_enough_of_them() {
    let groups = [
        send::SCENARIOS,
        streams::SCENARIOS,
        tasks::SCENARIOS,
        webhooks::SCENARIOS,
        callers::SCENARIOS,
        refusals::SCENARIOS,
    ];
    let mut names: Vec<_> = groups.iter().flat_map(|group| group.iter().map(|scenario| scenario.name)).collect();
    let count = names.len();
    assert!(count >= 60, "{count} scenarios");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "each has a name of its own");
}
