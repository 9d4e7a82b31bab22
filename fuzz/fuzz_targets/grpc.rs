//! Bytes of a stranger, as messages and calls of gRPC.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nuncio_fuzz::grpc::run(bytes));
