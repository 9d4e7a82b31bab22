//! Bytes of a stranger, posted to the JSON-RPC path.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nuncio_fuzz::dispatch::run(bytes));
