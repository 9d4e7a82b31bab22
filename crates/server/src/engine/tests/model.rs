//! Random histories: messages, cancels, readers, crashes, full disks and thieves in any order.
//!
//! `story` makes them up, `world` lives through them, `judge` looks at what is left: the log, and what
//! everyone was shown meanwhile.

mod fleet;
mod judge;
mod story;
mod world;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::agent::OnCrash;
use crate::store::{Durability, MemoryStore, SqliteOptions, SqliteStore, Store, StoreError};
use story::Op;
use world::{Ground, World};

fn config(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    Config { cases: asked.unwrap_or(cases), failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() }
}

/// The clock stands still while anyone can go on, so a day of deadlines takes no time.
fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Threads that really race.
fn racing() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn on_crash() -> impl Strategy<Value = OnCrash> {
    prop_oneof![Just(OnCrash::Fail), Just(OnCrash::Retry { max: 2 }), Just(OnCrash::Resume)]
}

/// Lives through a story, ended by a crash or by the end of it as often as the story says.
fn live(ground: Ground, story: &[Op], reopen: impl Fn() -> Arc<dyn Store>) {
    let mut world = World::new(ground);
    let mut lives = story.split(|op| matches!(op, Op::Crash)).peekable();
    while let Some(ops) = lives.next() {
        let runtime = (world.ground.runtime)();
        runtime.block_on(world.begin(reopen()));
        runtime.block_on(world.play(ops));
        if lives.peek().is_none() {
            runtime.block_on(async {
                world.rest().await;
                judge::judge(&world).await;
            });
        }
        world.crash();
        runtime.shutdown_timeout(Duration::from_secs(5));
    }
}

proptest! {
    #![proptest_config(config(160))]

    #[test]
    fn nothing_is_lost_doubled_or_left_hanging(
        on_crash in on_crash(),
        pure in any::<bool>(),
        lag in prop_oneof![Just(0_u64), Just(1), Just(7)],
        story in story::story(40),
    ) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let ground = Ground { on_crash, pure, lag: Duration::from_millis(lag), runtime: paused, hurry: 1 };
        live(ground, &story, || store.clone());
    }
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn threads_and_a_real_disk_change_nothing(
        on_crash in on_crash(),
        pure in any::<bool>(),
        story in story::story(30),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let ground = Ground { on_crash, pure, lag: Duration::ZERO, runtime: racing, hurry: 200 };
        live(ground, &story, || {
            for _ in 0..500 {
                let options = SqliteOptions { durability: Durability::Normal, ..SqliteOptions::default() };
                match SqliteStore::open(&path, options) {
                    Ok(store) => return Arc::new(store),
                    // The last writer may still be on its way out.
                    Err(StoreError::Locked { .. }) => std::thread::sleep(Duration::from_millis(10)),
                    Err(error) => panic!("{error}"),
                }
            }
            panic!("the store stays locked");
        });
    }
}
