//! Whatever an entry holds, replies go where replies belong. The fuzzer runs the same check for longer.

#![allow(missing_docs, unreachable_pub)]

#[path = "../../../fuzz/src/redis_entry.rs"]
mod redis_entry;

use proptest::prelude::*;

const VALUES: [&str; 14] = [
    "",
    "c",
    "out",
    "out:",
    "out:in",
    "out:mine",
    "other",
    "{}",
    "rubbish",
    r#"{"a2a-version":"1.0"}"#,
    r#"{"a b":"c"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"ü"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":7}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}"#,
];

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(&VALUES[..]).prop_map(|text| text.as_bytes().to_vec());
    let named = "[ -~]{0,300}".prop_map(|rest| format!("out:{rest}").into_bytes());
    let value = prop_oneof![3 => known, 1 => named, 1 => prop::collection::vec(any::<u8>(), 0..600)];
    (0..5_u8, value).prop_map(|(name, value)| [vec![name], value].concat())
}

proptest! {
    #[test]
    fn replies_go_where_they_belong(pieces in prop::collection::vec(piece(), 0..8)) {
        redis_entry::run(&pieces.join(&0xff));
    }
}
