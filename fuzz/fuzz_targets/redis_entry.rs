//! Entries of a request stream that anybody may have written.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nuncio_fuzz::redis_entry::run(bytes));
