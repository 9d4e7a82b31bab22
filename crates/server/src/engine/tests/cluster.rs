//! Several nodes on one store: whatever a caller wants, any node does it.

mod kit;
mod loss;
mod messages;
mod pace;
mod reading;
mod work;
