//! Everything an A2A server needs, as a library.
//!
//! The major components are:
//!
//! * [`agent`]: what a served agent is. Implement [`Agent`], and you have an A2A agent.
//! * [`store`]: the durable, numbered log under every task, and its contract.
//! * [`engine`]: accepts messages, runs turns, lets anyone follow a task from any number on.
//! * [`push`]: webhooks, and the guard in front of every address that a peer names.
//! * [`present`]: what an agent reports, as A2A events.
//! * [`artifact`]: the bytes of artifacts that are too large for the log.
//! * [`push`]: webhooks, which read the log and post what they read.
//! * [`workspace`]: the folders an agent may work in, and what it gets of a message.
//! * `bind`: JSON-RPC, REST and server-sent events, for A2A 1.0 and 0.3, on one port.
//! * `card`, `auth`, [`metrics`]: how the server shows itself, to whom, and how it does.
//! * [`Server`]: all of it together.

pub mod agent;
pub mod artifact;
pub mod auth;
pub mod engine;
pub mod metrics;
pub mod present;
pub mod push;
pub mod store;
pub mod tls;
pub mod workspace;

mod bind;
mod call;
mod card;
mod listeners;
mod map;
mod server;

pub use agent::{Agent, AgentError, OnCrash};
pub use auth::{AuthOptions, Token, Way};
pub use bind::{HttpOptions, ResponseBody};
pub use call::{Call, Version};
pub use card::{CardFormat, CardOptions, CardSigning, ExtendedCard};
pub use engine::turn::Turn;
pub use listeners::Listeners;
pub use server::{Reloader, Server, ServerOptions, serve};
