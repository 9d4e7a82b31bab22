//! A client for A2A agents.
//!
//! ```no_run
//! # async fn example() -> Result<(), nuncio_client::ClientError> {
//! use futures_util::StreamExt;
//! use nuncio_client::{Client, Options};
//! use nuncio_protocol::{Message, Part, SendMessageRequest};
//!
//! let client = Client::discover("http://127.0.0.1:41242", Options::default()).await?;
//! let message = Message::from_user(vec![Part::text("stream 3")]);
//! let mut events = client.stream(SendMessageRequest { message: Some(message), ..Default::default() }).await?;
//! while let Some(event) = events.next().await {
//!     println!("{:?}", event?.response);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The major components are:
//!
//! * [`Client`]: one agent, found by its card or by its address, and every operation on it;
//! * [`Options`], [`SendOptions`]: who calls, whom it takes, how long to wait, when to try again;
//! * [`Credential`]: secrets, and where in a request they go;
//! * [`CardKeys`]: whose signatures on cards count;
//! * [`EventStream`]: the events of a task, which survives lost connections; [`Known`]: what they say so far;
//! * [`NotificationVerifier`]: whether a notification that arrives at a webhook is to be believed;
//! * [`ClientError`]: what can go wrong, and what to do about it;
//! * `discover`: from an address to a card and the interface to use; [`CardCache`] keeps cards;
//! * `wire`: one file per binding, behind one type, so that callers never see which one is in use;
//! * `http`: connections, credentials and limits, for everything that leaves this crate;
//! * [`sse`]: server-sent events from bytes.

pub mod sse;

mod cache;
mod client;
mod credential;
mod discover;
mod error;
mod http;
mod notification;
mod options;
mod stream;
mod trust;
mod wire;

pub use cache::CardCache;
pub use client::Client;
pub use credential::{Credential, KeyPlace, Secret};
pub use discover::FoundCard;
pub use error::{AgentError, ClientError};
pub use notification::{NOTIFICATION_SIGNATURE, Notification, NotificationError, NotificationVerifier};
pub use options::{Options, Proxy, Retry, SendOptions};
pub use stream::{Event, EventStream, Known};
pub use trust::CardKeys;
pub use wire::{Binding, Version};
