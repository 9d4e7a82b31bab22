//! Lines of a program that nobody vouches for.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nuncio_fuzz::lines::run(bytes));
