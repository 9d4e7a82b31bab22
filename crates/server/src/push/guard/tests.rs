//! The guard against hostile addresses, names and servers.

mod kit;
mod odd;
mod rebind;
mod refused;
mod server;
mod tls;
