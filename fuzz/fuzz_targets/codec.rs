//! Bytes of a stranger, read as everything that the protocol knows.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nuncio_fuzz::codec::run(bytes));
