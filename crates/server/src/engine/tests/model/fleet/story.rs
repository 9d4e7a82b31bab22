//! What may happen to several nodes.

use proptest::prelude::*;

use super::super::super::line::Way;
use super::super::story::{Cursor, Pace, reply, script};

/// One thing that happens; nodes are named by their place, tasks by the order in which they were accepted.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Send {
        node: usize,
        context: Option<u8>,
        script: String,
        key: Option<u8>,
    },
    FollowUp {
        node: usize,
        task: usize,
        script: String,
        key: Option<u8>,
    },
    Cancel {
        node: usize,
        task: usize,
    },
    Subscribe {
        node: usize,
        task: usize,
        cursor: Cursor,
        pace: Pace,
        until_input: bool,
    },
    Get {
        node: usize,
        task: usize,
    },
    Sleep(u64),
    Yield,
    /// The line to the store is out of order for so long.
    Line {
        node: usize,
        way: Way,
        time: u64,
    },
    /// From now on, tasks are made and claimed so much later than everything else is done.
    Slow {
        node: usize,
        time: u64,
    },
    /// No hint comes or goes for so long.
    Deaf {
        node: usize,
        time: u64,
    },
    /// The node dies, and another takes its place.
    Kill {
        node: usize,
    },
    /// The node is stopped in order, and another takes its place.
    Drain {
        node: usize,
        time: u64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let key = || prop::option::weighted(0.2, 0..3_u8);
    let (node, task) = (|| 0..3_usize, || 0..6_usize);
    let cursor = prop_oneof![Just(Cursor::None), (0..12_u64).prop_map(Cursor::At), Just(Cursor::End)];
    let pace = prop_oneof![
        3 => Just(Pace::Fast),
        2 => (1..80_u64).prop_map(Pace::Slow),
        1 => (0..4_usize).prop_map(Pace::Leaves),
    ];
    let way = prop_oneof![Just(Way::Fails), Just(Way::Forgets), Just(Way::Stands)];
    // Shorter and longer than a lease.
    let time = || prop_oneof![1..200_u64, 200..2_500_u64, 2_500..9_000_u64];
    prop_oneof![
        8 => (node(), prop::option::weighted(0.6, 0..3_u8), script(), key())
            .prop_map(|(node, context, script, key)| Op::Send { node, context, script, key }),
        7 => (node(), task(), reply(), key())
            .prop_map(|(node, task, script, key)| Op::FollowUp { node, task, script, key }),
        3 => (node(), task()).prop_map(|(node, task)| Op::Cancel { node, task }),
        6 => (node(), task(), cursor, pace, any::<bool>()).prop_map(|(node, task, cursor, pace, until_input)| {
            Op::Subscribe { node, task, cursor, pace, until_input }
        }),
        3 => (node(), task()).prop_map(|(node, task)| Op::Get { node, task }),
        5 => (1..100_u64).prop_map(Op::Sleep),
        1 => (1_000..30_000_u64).prop_map(Op::Sleep),
        3 => Just(Op::Yield),
        2 => (node(), way, time()).prop_map(|(node, way, time)| Op::Line { node, way, time }),
        1 => (node(), 0..200_u64).prop_map(|(node, time)| Op::Slow { node, time }),
        2 => (node(), time()).prop_map(|(node, time)| Op::Deaf { node, time }),
        1 => node().prop_map(|node| Op::Kill { node }),
        1 => (node(), 0..1_000_u64).prop_map(|(node, time)| Op::Drain { node, time }),
    ]
}

pub(super) fn story(most: usize) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..most)
}
