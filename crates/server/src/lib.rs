//! Everything an A2A server needs, as a library.
//!
//! The major components are:
//!
//! * [`agent`]: what a served agent is. Implement [`Agent`], and you have an A2A agent.
//! * [`store`]: the durable, numbered log under every task, and its contract.
//! * [`bus`]: hints between servers that share a store.
//! * [`engine`]: accepts messages, runs turns, lets anyone follow a task from any number on.
//! * [`push`]: webhooks, and the guard in front of every address that a peer names.
//! * [`present`]: what an agent reports, as A2A events.
//! * [`Profile`]: what a server does differently where it stands in for another one.
//! * [`artifact`]: the bytes of artifacts that are too large for the log.
//! * [`push`]: webhooks, which read the log and post what they read.
//! * [`workspace`]: the folders an agent may work in, and what it gets of a message.
//! * `bind`: JSON-RPC, REST and server-sent events, for A2A 1.0 and 0.3, on one port; and what comes by Redis.
//! * `card`, `auth`, [`metrics`]: how the server shows itself, to whom, and how it does.
//! * [`Server`]: all of it together.

pub mod agent;
pub mod artifact;
pub mod auth;
pub mod bus;
pub mod engine;
pub mod metrics;
pub mod present;
pub mod push;
pub mod store;
pub mod tls;
pub mod workspace;

mod audit;
mod bind;
mod boxed;
mod call;
mod card;
mod group;
mod listeners;
mod map;
mod profile;
mod server;

pub use agent::{Agent, AgentError, OnCrash};
pub use audit::Audit;
pub use auth::{AuthOptions, Token};
#[doc(hidden)] // for the fuzzer
pub use bind::redis::entry as redis_entry;
pub use bind::redis::{RedisStreams, Streams};
pub use bind::stdio::Stdio;
pub use bind::unix::{UnixOptions, UnixSocket, user_id};
pub use bind::{HttpOptions, Rate, ResponseBody};
pub use call::{Call, Version, Way};
pub use card::{CardFormat, CardOptions, CardSigning, ExtendedCard};
pub use engine::turn::Turn;
pub use listeners::Listeners;
pub use profile::Profile;
pub use server::{Reloader, Server, ServerOptions, serve};
