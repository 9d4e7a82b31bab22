//! Whatever is posted, the answer is JSON-RPC. The fuzzer runs the same check for longer.

#![allow(missing_docs, unreachable_pub, clippy::panic)]

#[path = "../../../fuzz/src/dispatch.rs"]
mod dispatch;

use nuncio_protocol::codec::{Value, json};
use proptest::prelude::*;

const METHODS: &[&str] = &[
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "agent/getAuthenticatedExtendedCard",
    "",
    "no/such",
];

fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

/// Any JSON, with the names that requests have more often than chance would have it.
fn any_json() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "message",
        "messageId",
        "role",
        "parts",
        "text",
        "data",
        "raw",
        "kind",
        "configuration",
        "metadata",
        "id",
        "taskId",
        "contextId",
        "tenant",
        "historyLength",
        "pageSize",
        "pageToken",
        "status",
        "blocking",
    ]);
    let words = prop::sample::select(vec!["ROLE_USER", "user", "text", "message", "1", "", "TASK_STATE_WORKING"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6)
                .prop_map(|all| Value::Object(all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())),
        ]
    })
}

fn any_call() -> impl Strategy<Value = Value> {
    let id = prop_oneof![any::<i64>().prop_map(Value::from), ".{0,5}".prop_map(Value::from), any_json()];
    (prop::sample::select(METHODS), id, any_json())
        .prop_map(|(method, id, params)| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

/// A send that is right but for one thing.
fn almost_right() -> impl Strategy<Value = Value> {
    let part = prop_oneof![".{0,20}".prop_map(|text| json!({ "text": text })), any_json()];
    (any::<bool>(), any::<bool>(), part, any_json(), any_json()).prop_map(
        |(old, stream, part, metadata, configuration)| {
            let (method, role) = match (old, stream) {
                (false, false) => ("SendMessage", "ROLE_USER"),
                (false, true) => ("SendStreamingMessage", "ROLE_USER"),
                (true, false) => ("message/send", "user"),
                (true, true) => ("message/stream", "user"),
            };
            let message = json!({ "messageId": "m", "role": role, "parts": [part], "metadata": metadata });
            let params = json!({ "message": message, "configuration": configuration });
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
        },
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        dispatch::run(&bytes);
    }

    #[test]
    fn calls(call in any_call()) {
        dispatch::run(call.to_string().as_bytes());
    }

    #[test]
    fn sends(call in almost_right()) {
        dispatch::run(call.to_string().as_bytes());
    }

    #[test]
    fn broken_calls(call in almost_right(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = call.to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        dispatch::run(&bytes);
    }
}

#[test]
fn a_plain_call_is_answered() {
    dispatch::run(br#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#);
    dispatch::run(br#"{"jsonrpc":"2.0","id":"a","method":"message/stream","params":{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}}}"#);
}
