//! What may happen.

use proptest::prelude::*;

/// One thing that happens; tasks are named by the order in which they were accepted.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Send {
        context: Option<u8>,
        script: String,
        key: Option<u8>,
    },
    FollowUp {
        task: usize,
        script: String,
        key: Option<u8>,
    },
    Cancel {
        task: usize,
    },
    Subscribe {
        task: usize,
        cursor: Cursor,
        pace: Pace,
        until_input: bool,
    },
    Get {
        task: usize,
    },
    Sleep(u64),
    Yield,
    /// The next writes find no space.
    NoSpace(usize),
    /// Another node claims the task and dies.
    Steal {
        task: usize,
    },
    /// Another node takes up whatever it finds, and works on it.
    Rival,
    /// Old tasks are removed, and every finished one is old.
    Trim,
    /// The process dies, and another begins.
    Crash,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Cursor {
    None,
    At(u64),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    Fast,
    /// So many milliseconds between two reads.
    Slow(u64),
    /// Gone after so many reads.
    Leaves(usize),
}

/// The words of a turn, and how it ends.
pub(super) fn script() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => Just("text".to_owned()),
        2 => Just("last".to_owned()),
        2 => Just("status".to_owned()),
        1 => Just("think".to_owned()),
        1 => Just("tool".to_owned()),
        1 => Just("usage:7".to_owned()),
        2 => (0..3_u8).prop_map(|n| format!("artifact:{n}")),
        3 => (0..3_u8).prop_map(|n| format!("append:{n}")),
        1 => (1..1_500_u64).prop_map(|n| format!("burst:{n}")),
        3 => Just("yield".to_owned()),
        4 => (1..60_u64).prop_map(|n| format!("sleep:{n}")),
        2 => Just("ask".to_owned()),
        1 => (1..60_u64).prop_map(|n| format!("askbriefly:{n}")),
        2 => Just("approve".to_owned()),
    ];
    let end = prop_oneof![
        6 => Just(""),
        2 => Just("complete"),
        1 => Just("fail"),
        1 => Just("reject"),
        2 => Just("input"),
        1 => Just("auth"),
        1 => Just("complete sleep:30"),
        1 => Just("input sleep:30"),
        1 => Just("complete text"),
        1 => Just("error"),
        1 => Just("internal"),
        1 => Just("panic"),
        1 => Just("unanswered"),
        1 => Just("hold"),
        1 => Just("hang"),
    ];
    (prop::collection::vec(word, 0..6), end).prop_map(|(mut words, end)| {
        words.push(end.to_owned());
        words.join(" ").trim().to_owned()
    })
}

/// An answer, or work like any other.
pub(super) fn reply() -> impl Strategy<Value = String> {
    prop_oneof![Just("y".to_owned()), Just("n".to_owned()), Just("maybe".to_owned()), script()]
}

fn op() -> impl Strategy<Value = Op> {
    let key = || prop::option::weighted(0.2, 0..3_u8);
    let task = || 0..6_usize;
    let cursor = prop_oneof![Just(Cursor::None), (0..12_u64).prop_map(Cursor::At), Just(Cursor::End)];
    let pace = prop_oneof![
        3 => Just(Pace::Fast),
        2 => (1..80_u64).prop_map(Pace::Slow),
        1 => (0..4_usize).prop_map(Pace::Leaves),
    ];
    prop_oneof![
        8 => (prop::option::weighted(0.6, 0..3_u8), script(), key())
            .prop_map(|(context, script, key)| Op::Send { context, script, key }),
        6 => (task(), reply(), key()).prop_map(|(task, script, key)| Op::FollowUp { task, script, key }),
        3 => task().prop_map(|task| Op::Cancel { task }),
        6 => (task(), cursor, pace, any::<bool>())
            .prop_map(|(task, cursor, pace, until_input)| Op::Subscribe { task, cursor, pace, until_input }),
        3 => task().prop_map(|task| Op::Get { task }),
        4 => (1..100_u64).prop_map(Op::Sleep),
        1 => (1_000..30_000_u64).prop_map(Op::Sleep),
        4 => Just(Op::Yield),
        1 => (1..4_usize).prop_map(Op::NoSpace),
        1 => task().prop_map(|task| Op::Steal { task }),
        1 => Just(Op::Rival),
        1 => Just(Op::Trim),
        2 => Just(Op::Crash),
    ]
}

pub(super) fn story(most: usize) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..most)
}
