//! The same with several nodes on one store: lines and hints that break, nodes that die, stand still and drain.

mod judge;
mod story;
mod world;

use std::time::Duration;

use proptest::prelude::*;

use super::{config, on_crash, paused};
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
