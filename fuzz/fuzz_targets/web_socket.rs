//! Bytes of a stranger, as frames of WebSocket.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nuncio_fuzz::web_socket::run(bytes));
