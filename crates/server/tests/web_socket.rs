//! Whatever comes as WebSocket, what goes back is WebSocket and JSON-RPC. The fuzzer runs the same check for longer.

#![allow(missing_docs, unreachable_pub, clippy::panic)]

#[path = "../../../fuzz/src/web_socket.rs"]
mod web_socket;

use proptest::prelude::*;

/// The head of a frame: all kinds, masked or not, whole or in pieces, with a length that may be a lie.
fn head() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(vec![0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x83, 0x88, 0x89, 0x8a, 0x8b, 0xc1, 0xf1]);
    let length = prop::sample::select(vec![vec![0x80], vec![0x85], vec![0x05], vec![0xfe, 0x20, 0x00], vec![0xff; 9]]);
    (kind, length, any::<[u8; 4]>()).prop_map(|(kind, length, mask)| [vec![kind], length, mask.to_vec()].concat())
}

/// A text that means something, or nearly.
fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}"#.into()),
        Just(
            concat!(
                r#"{"jsonrpc":"2.0","id":2,"method":"SendStreamingMessage","params":{"message":{"messageId":"m","#,
                r#""role":"ROLE_USER","parts":[{"text":"hi"}]}}}"#
            )
            .into()
        ),
        Just(r#"{"jsonrpc":"2.0","id":2,"final":true}"#.into()),
        Just(r#"{"headers":{"a2a-version":"0.3"}}"#.into()),
        Just(vec![b'x'; 5000]),
        prop::collection::vec(any::<u8>(), 0..64),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_of_text_are_answered_in_envelopes(lines in prop::collection::vec(line(), 0..8)) {
        web_socket::run(&[vec![1], lines.join(&b'\n')].concat());
    }

    #[test]
    fn bytes_that_are_hardly_frames_end_the_connection(
        pieces in prop::collection::vec((head(), prop::collection::vec(any::<u8>(), 0..32)), 0..6)
    ) {
        let bytes: Vec<u8> = pieces.into_iter().flat_map(|(head, rest)| [head, rest].concat()).collect();
        web_socket::run(&[vec![0], bytes].concat());
    }
}
