//! The body of the fuzz target for gRPC, on generated input.

#![allow(missing_docs, unreachable_pub, clippy::panic)]

#[path = "../../../fuzz/src/grpc.rs"]
mod grpc;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_comes_a_call_ends_with_a_status(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        grpc::run(&bytes);
    }
}
