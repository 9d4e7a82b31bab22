//! The bodies of the fuzz targets. The tests of `nuncio-protocol` and `nuncio-server` run them too, on generated input, so that
//! they are checked without a fuzzer.

pub mod codec;
pub mod dispatch;
pub mod frames;
pub mod grpc;
pub mod lines;
pub mod losses;
pub mod redis_entry;
pub mod web_socket;
