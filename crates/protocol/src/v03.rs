//! A2A 0.3, converted to and from the 1.0 model.
//!
//! 0.3 has two dialects: [`json`] is what JSON-RPC peers exchange, with a `kind` in every object; [`rest`]
//! is the ProtoJSON of the package `a2a.v1`. Readers take both dialects everywhere, because peers mix
//! them; writers stay inside their own. Both modules have the same functions.
//!
//! What 0.3 cannot carry is lost on the way down:
//!
//! * `tenant`, everywhere;
//! * file name and media type of text and data parts;
//! * an unspecified role, which 0.3 JSON-RPC calls `user`;
//! * `referenceTaskIds`, a history length of zero and the metadata of a cancel, in the REST dialect;
//! * the pages of a list of webhooks, in the JSON-RPC dialect;
//! * the task id of a webhook that travels inside a send;
//! * of the card: interfaces that do not speak 0.3, device code flows, `pkceRequired`, and signatures,
//!   which cover the 1.0 form. The address of a gRPC interface gains a scheme.
//!
//! A data part whose value is no object goes down as `{"value": …}` with the part metadata
//! `data_part_compat`, and comes back as it was.

use serde::Deserialize;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::codec::{self, DecodeError, Metadata};
use crate::error::Error;

pub mod json;
pub mod rest;

mod card;
mod error;
mod event;
mod part;
mod push;
mod request;
mod security;
mod task;

pub(crate) use card::{address, interface, offered};
pub use card::{is_offered, union_card};
pub use error::{JsonError, RestError, json_error, rest_error, rest_error_as};
pub(crate) use event::is_final;
pub(crate) use part::{carried_object, decode_again, restore_data};
pub(crate) use push::{ids as config_ids, name as config_name, task_name};
pub(crate) use task::{is_role, is_state};

/// Declares the functions of a dialect, so that both have the same ones by construction.
macro_rules! functions {
    ($dialect:expr) => {
        use $crate::codec::DecodeError;
        use $crate::error::Error;
        use $crate::v03::{Out, card, event, params, push, request, result, task};
        use $crate::{
            AgentCard, CancelTaskRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
            ListTasksResponse, Message, SendMessageRequest, SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task,
            TaskPushNotificationConfig, TaskPushNotificationConfigRequest,
        };

        super::functions! { @params $dialect;
            /// Reads what a send, streaming or not, asks for.
            read_send_params request::Send => SendMessageRequest,
            /// Reads which task is asked for.
            read_get_params request::Named => GetTaskRequest,
            /// Reads which task is to end.
            read_cancel_params request::Named => CancelTaskRequest,
            /// Reads which task's events are asked for.
            read_subscribe_params request::Named => SubscribeToTaskRequest,
            /// Reads a webhook to register.
            read_push_set_params push::Config => TaskPushNotificationConfig,
            /// Reads which webhook is asked for; without an id, the first of the task is meant.
            read_push_get_params request::Named => TaskPushNotificationConfigRequest,
            /// Reads whose webhooks are asked for.
            read_push_list_params request::Named => ListTaskPushNotificationConfigsRequest,
            /// Reads which webhook is to go.
            read_push_delete_params request::Named => TaskPushNotificationConfigRequest,
        }
        super::functions! { @results $dialect;
            /// Reads a task.
            read_task task::Task => Task,
            /// Reads a message.
            read_message task::Message => Message,
            /// Reads an event, by its `kind`, by its wrapper, or by what it holds.
            read_event event::Event => StreamResponse,
            /// Reads the answer to a send: a task or a message.
            read_send_response event::Event => SendMessageResponse,
            /// Reads a webhook.
            read_push_config push::Config => TaskPushNotificationConfig,
            /// Reads the webhooks of a task.
            read_push_configs push::Configs => Vec<TaskPushNotificationConfig>,
            /// Reads a page of tasks, for which 0.3 has no shape: the page of 1.0 around tasks of 0.3.
            read_tasks task::Page => ListTasksResponse,
            /// Reads a card of 0.3, a union of both versions, or one of 1.0.
            read_card card::Card => AgentCard,
        }
        super::functions! { @writers $dialect;
            /// Writes a task.
            write_task Task,
            /// Writes a message.
            write_message Message,
            /// Writes an event. A status is `final` when the task is over or waits for input.
            write_event StreamResponse,
            /// Writes the answer to a send.
            write_send_response SendMessageResponse,
            /// Writes a webhook.
            write_push_config TaskPushNotificationConfig,
            /// Writes the webhooks of a task.
            write_push_configs [TaskPushNotificationConfig],
            /// Writes what a send asks for.
            write_send_params SendMessageRequest,
            /// Writes which task is asked for.
            write_get_params GetTaskRequest,
            /// Writes which task is to end.
            write_cancel_params CancelTaskRequest,
            /// Writes which task's events are asked for.
            write_subscribe_params SubscribeToTaskRequest,
            /// Writes which webhook is asked for.
            write_push_get_params TaskPushNotificationConfigRequest,
            /// Writes whose webhooks are asked for.
            write_push_list_params ListTaskPushNotificationConfigsRequest,
            /// Writes which webhook is to go.
            write_push_delete_params TaskPushNotificationConfigRequest,
        }

        /// Writes a webhook to register.
        pub fn write_push_set_params(config: &TaskPushNotificationConfig, out: &mut Vec<u8>) {
            $crate::codec::encode_into(&push::Set(config, $dialect), out);
        }

        /// Writes a card with the interfaces that speak 0.3. Without one there is no such card: nothing is
        /// written, and the answer is `false`.
        pub fn write_card(card: &AgentCard, out: &mut Vec<u8>) -> bool {
            card::write(card, out)
        }
    };
    (@params $dialect:expr; $($(#[$doc:meta])* $name:ident $wire:ty => $model:ty,)*) => {$(
        $(#[$doc])*
        pub fn $name(json: &(impl AsRef<[u8]> + ?Sized)) -> Result<$model, Error> {
            params::<$wire, $model>(json.as_ref(), $dialect)
        }
    )*};
    (@results $dialect:expr; $($(#[$doc:meta])* $name:ident $wire:ty => $model:ty,)*) => {$(
        $(#[$doc])*
        pub fn $name(json: &(impl AsRef<[u8]> + ?Sized)) -> Result<$model, DecodeError> {
            result::<$wire, $model>(json.as_ref(), $dialect)
        }
    )*};
    (@writers $dialect:expr; $($(#[$doc:meta])* $name:ident $model:ty,)*) => {$(
        $(#[$doc])*
        pub fn $name(value: &$model, out: &mut Vec<u8>) {
            $crate::codec::encode_into(&Out(value, $dialect), out);
        }
    )*};
}
use functions;

/// Which 0.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// With `kind`, for JSON-RPC.
    Json,
    /// ProtoJSON of `a2a.v1`, for REST.
    Rest,
}

/// A part of the 1.0 model that serializes as 0.3.
struct Out<'a, T: ?Sized>(&'a T, Dialect);

/// What was read as 0.3, on its way up to the model.
trait Up<M> {
    fn up(self, dialect: Dialect) -> Result<M, DecodeError>;
}

/// Reads what a client asks for. A REST client may send no body at all.
fn params<'a, W: Deserialize<'a> + Up<M>, M>(json: &'a [u8], dialect: Dialect) -> Result<M, Error> {
    let json = match json.trim_ascii() {
        b"" | b"null" if dialect == Dialect::Rest => b"{}",
        json if json.first().is_some_and(|&first| b"[\"-0123456789tfn".contains(&first)) => {
            let field = if dialect == Dialect::Json { "params" } else { "body" };
            return Err(Error::invalid(field, "must be an object"));
        }
        json => json,
    };
    Ok(codec::decode::<W>(json)?.up(dialect)?)
}

/// Reads what a server answers.
fn result<'a, W: Deserialize<'a> + Up<M>, M>(json: &'a [u8], dialect: Dialect) -> Result<M, DecodeError> {
    codec::decode::<W>(json)?.up(dialect)
}

/// A sequence of parts of the model that serializes as 0.3.
struct Seq<'a, T>(&'a [T], Dialect);

impl<'a, T> Serialize for Seq<'a, T>
where
    Out<'a, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|item| Out(item, self.1)))
    }
}

/// A word of the protocol, in which nothing has to be escaped.
struct Word(&'static str);

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_unit_variant("", 0, self.0)
    }
}

/// Members that are left out when they say nothing.
trait Members: SerializeStruct {
    fn text(&mut self, key: &'static str, value: &str) -> Result<(), Self::Error> {
        if value.is_empty() { Ok(()) } else { self.serialize_field(key, value) }
    }

    fn list<T: Serialize>(&mut self, key: &'static str, value: &[T]) -> Result<(), Self::Error> {
        if value.is_empty() { Ok(()) } else { self.serialize_field(key, value) }
    }

    fn object(&mut self, key: &'static str, value: &Metadata) -> Result<(), Self::Error> {
        if value.is_empty() { Ok(()) } else { self.serialize_field(key, value) }
    }

    fn some<T: Serialize>(&mut self, key: &'static str, value: Option<&T>) -> Result<(), Self::Error> {
        value.map_or(Ok(()), |value| self.serialize_field(key, value))
    }
}

impl<M: SerializeStruct> Members for M {}
