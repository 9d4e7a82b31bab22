//! Whatever comes in lines, every line is answered once and with JSON-RPC. The fuzzer runs the same check for longer.

#![allow(missing_docs, unreachable_pub, clippy::panic)]

#[path = "../../../fuzz/src/frames.rs"]
mod frames;

use proptest::prelude::*;

/// Lines that mean something, and lines that nearly do.
fn line() -> impl Strategy<Value = String> {
    let method = prop::sample::select(vec![
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "SubscribeToTask",
        "GetAgentCard",
        "GetExtendedAgentCard",
        "message/send",
        "message/stream",
        "tasks/resubscribe",
        "no/such",
    ]);
    let id = prop::sample::select(vec!["1", "\"a\"", "null", "-3", "[]", "1e9", "\"\\u00e9\""]);
    let params = prop::sample::select(vec![
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#,
        r#"{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}]}}"#,
        "{}",
        "[]",
        r#"{"id":"x"}"#,
    ]);
    let headers = prop::sample::select(vec![
        r#"{"A2A-Version":"1.0"}"#,
        r#"{"a2a-version":"0.3","Last-Event-ID":"3"}"#,
        r#"{"A2A-Version":"9"}"#,
        "{}",
        "null",
        "[]",
        r#"{"a b":"c"}"#,
        r#"{"a":1}"#,
    ]);
    let request = (method, id, params, headers).prop_map(|(method, id, params, headers)| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params},"headers":{headers}}}"#)
    });
    prop_oneof![
        4 => request.clone(),
        1 => request.prop_map(|text| text.chars().take(text.len() / 2).collect()),
        1 => "[ -~]{0,40}",
        1 => Just(r#"{"headers":{"a2a-version":"0.3"}}"#.to_owned()),
        2 => Just(r#"{"jsonrpc":"2.0","id":1,"final":true}"#.to_owned()),
        1 => Just(r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{},"final":true}"#.to_owned()),
        1 => Just(r#"{"id":null,"final":true,"headers":{"a":"b"}}"#.to_owned()),
        1 => Just("x".repeat(5000)),
        1 => Just("\r".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_line_is_answered_once(lines in prop::collection::vec(line(), 0..12)) {
        frames::run(lines.join("\n").as_bytes());
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        frames::run(&bytes);
    }
}
