//! Whatever a program prints, its turn ends once. The fuzzer runs the same check for longer.

#![allow(missing_docs, unreachable_pub, clippy::panic)]

#[path = "../../../fuzz/src/lines.rs"]
mod lines;

use nuncio_protocol::Value;
use proptest::prelude::*;

/// Values of members that mean something to some dialect.
const WORDS: [&str; 54] = [
    "system",
    "init",
    "system/init",
    "user",
    "assistant",
    "message",
    "tool",
    "tool_use",
    "tool_result",
    "tool_call",
    "started",
    "completed",
    "result",
    "success",
    "error",
    "failed",
    "thinking",
    "reasoning",
    "text",
    "step_start",
    "step_finish",
    "complete",
    "notification",
    "effect",
    "toolRequest",
    "toolResponse",
    "control_request",
    "control_response",
    "can_use_tool",
    "control_cancel_request",
    "stream_event",
    "content_block_delta",
    "text_delta",
    "item.started",
    "item.updated",
    "item.completed",
    "turn.completed",
    "turn.failed",
    "thread.started",
    "agent_message",
    "command_execution",
    "file_change",
    "turn/completed",
    "turn/started",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/commandExecution/requestApproval",
    "session-1",
    "1",
    "",
    "y/n",
    "Proceed? [y/N]",
    "\u{1b}[31m grün 😀",
];

const KEYS: [&str; 44] = [
    "type",
    "subtype",
    "message",
    "content",
    "text",
    "role",
    "id",
    "session_id",
    "sessionID",
    "sessionId",
    "part",
    "tool",
    "callID",
    "call_id",
    "tool_call",
    "readToolCall",
    "args",
    "result",
    "success",
    "is_error",
    "usage",
    "inputTokens",
    "tokens",
    "cost",
    "error",
    "name",
    "data",
    "status",
    "state",
    "input",
    "output",
    "delta",
    "item",
    "params",
    "method",
    "request",
    "request_id",
    "toolCall",
    "toolResult",
    "value",
    "timestamp_ms",
    "model_call_id",
    "severity",
    "stats",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => prop::sample::select(&WORDS[..]).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            3 => prop::collection::hash_map(prop::sample::select(&KEYS[..]), inner.clone(), 0..6)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Value>()),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

fn event() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(&WORDS[..]);
    (kind, prop::sample::select(&["type", "method", "role"][..]), value()).prop_map(|(kind, key, mut value)| {
        if let Some(object) = value.as_object_mut() {
            object.insert(key.to_owned(), kind.into());
        }
        value.to_string()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_turn_ends_once_whatever_is_printed(
        kind in 0..lines::KINDS,
        how: u8,
        printed in prop::collection::vec(prop_oneof![8 => event(), 1 => ".{0,40}", 1 => Just("{\"type\":".to_owned())], 0..12),
    ) {
        lines::run(&[&[kind, how][..], printed.join("\n").as_bytes()].concat());
    }

    #[test]
    fn no_bytes_are_too_strange(kind in 0..lines::KINDS, how: u8, printed: Vec<u8>) {
        lines::run(&[&[kind, how][..], &printed].concat());
    }
}
