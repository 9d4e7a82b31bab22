//! The same with several nodes on one store: lines and hints that break, nodes that die, stand still and drain.

mod judge;
mod story;
mod world;

use std::time::Duration;

use proptest::prelude::*;

use super::story::{Cursor, Pace};
use super::{config, on_crash, paused};
use crate::agent::OnCrash;
use story::Op;
use world::World;

proptest! {
    #![proptest_config(config(120))]

    #[test]
    fn several_nodes_are_as_good_as_one(
        on_crash in on_crash(),
        pure in any::<bool>(),
        nodes in 2..4_usize,
        lag in prop_oneof![Just(1_u64), Just(7)],
        story in story::story(40),
    ) {
        paused().block_on(async {
            let mut world = World::new(on_crash, pure, Duration::from_millis(lag));
            for _ in 0..nodes {
                world.add().await;
            }
            world.play(&story).await;
            world.rest().await;
            judge::judge(&world).await;
        });
    }
}

/// Stories that went wrong once.
mod once {
    use super::*;

    fn send(node: usize, context: Option<u8>, script: &str, key: Option<u8>) -> Op {
        Op::Send { node, context, script: script.into(), key }
    }

    fn play(on_crash: OnCrash, lag: u64, story: &[Op]) {
        play_on(3, on_crash, lag, story);
    }

    fn play_on(nodes: usize, on_crash: OnCrash, lag: u64, story: &[Op]) {
        paused().block_on(async {
            let mut world = World::new(on_crash, false, Duration::from_millis(lag));
            for _ in 0..nodes {
                world.add().await;
            }
            world.play(story).await;
            world.rest().await;
            judge::judge(&world).await;
        });
    }

    /// A sender with a key waited for its own letter when the task came to its own node.
    #[test]
    fn a_task_comes_to_the_sender_of_a_letter() {
        let story = [
            send(1, Some(0), "hold", Some(0)),
            send(0, None, "", None),
            send(0, Some(0), "sleep:53 complete sleep:30", None),
            Op::Drain { node: 1, time: 0 },
            Op::Sleep(20),
            Op::Drain { node: 2, time: 0 },
            Op::Kill { node: 2 },
            Op::FollowUp { node: 0, task: 2, script: "y".into(), key: Some(1) },
        ];
        play(OnCrash::Retry { max: 2 }, 7, &story);
    }

    /// A reader that had the last event from the store waited for another one.
    #[test]
    fn the_end_is_in_the_store_before_it_is_known_here() {
        let story = [
            send(0, None, "", None),
            send(0, None, "", None),
            send(0, None, "approve", None),
            Op::Sleep(10),
            Op::Subscribe { node: 1, task: 2, cursor: Cursor::At(0), pace: Pace::Fast, until_input: false },
            Op::Cancel { node: 0, task: 2 },
        ];
        play(OnCrash::Fail, 1, &story);
    }

    /// A reader had events from the store that its node did not know yet, and took an older state for the present one.
    #[test]
    fn what_was_read_is_ahead_of_what_is_known() {
        let story = [
            send(0, None, "", None),
            send(0, Some(0), "text unanswered", None),
            Op::Sleep(3),
            Op::Subscribe { node: 1, task: 1, cursor: Cursor::At(0), pace: Pace::Slow(7), until_input: true },
            Op::Drain { node: 1, time: 0 },
            send(2, Some(0), "sleep:2", None),
            Op::FollowUp { node: 2, task: 1, script: "y".into(), key: None },
        ];
        play_on(2, OnCrash::Fail, 1, &story);
    }
}
