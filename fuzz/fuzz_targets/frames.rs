//! Lines of a client that nobody vouches for.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nuncio_fuzz::frames::run(bytes));
