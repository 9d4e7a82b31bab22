//! Webhooks: registering them, and what arrives there, whatever fails.

mod delivery;
mod failures;
mod foreign;
mod kill;
mod operations;
#[allow(dead_code, reason = "other tests use the rest of it")]
mod receiver;
mod redis;
mod rotate;
mod speed;
