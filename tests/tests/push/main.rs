//! Webhooks: registering them, and what arrives there, whatever fails.

mod delivery;
mod failures;
mod foreign;
mod kill;
mod operations;
mod receiver;
mod redis;
mod rotate;
mod speed;
