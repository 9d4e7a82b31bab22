//! Reads bytes as everything that can be read, and checks that what was understood survives writing.

use std::fmt::Debug;

use nuncio_protocol::codec::{decode, encode};
use nuncio_protocol::v03::{self, json, rest};
use nuncio_protocol::*;

use crate::losses::{Carried, Dialect};

/// Everything that is read, of both versions.
///
/// # Panics
///
/// When something that was read is written as something else.
pub fn run(bytes: &[u8]) {
    let _ = jsonrpc::Request::decode(bytes);
    new(bytes);
    old_answers(bytes);
    old_requests(bytes);
    cards(bytes);
}

fn new(bytes: &[u8]) {
    same::<Task>(bytes);
    same::<Message>(bytes);
    same::<StreamResponse>(bytes);
    same::<SendMessageResponse>(bytes);
    same::<SendMessageRequest>(bytes);
    same::<GetTaskRequest>(bytes);
    same::<ListTasksRequest>(bytes);
    same::<ListTasksResponse>(bytes);
    same::<CancelTaskRequest>(bytes);
    same::<SubscribeToTaskRequest>(bytes);
    same::<GetExtendedAgentCardRequest>(bytes);
    same::<TaskPushNotificationConfig>(bytes);
    same::<TaskPushNotificationConfigRequest>(bytes);
    same::<ListTaskPushNotificationConfigsRequest>(bytes);
    same::<ListTaskPushNotificationConfigsResponse>(bytes);
    same::<AgentCard>(bytes);
}

fn same<T: serde::de::DeserializeOwned + serde::Serialize + PartialEq + Debug>(bytes: &[u8]) {
    let Ok(value) = decode::<T>(bytes) else { return };
    let again: T = decode(&encode(&value)).expect("what is written can be read");
    assert_eq!(value, again);
}

/// Checks a reader of 0.3 against its writer, in both dialects.
macro_rules! both {
    ($bytes:ident; $($read:ident $write:ident,)*) => {$(
        carried($bytes, Dialect::Json, |bytes| json::$read(bytes).ok(), json::$write);
        carried($bytes, Dialect::Rest, |bytes| rest::$read(bytes).ok(), rest::$write);
    )*};
}

fn old_answers(bytes: &[u8]) {
    both! { bytes;
        read_task write_task,
        read_message write_message,
        read_event write_event,
        read_send_response write_send_response,
        read_push_config write_push_config,
    }
    carried(bytes, Dialect::Json, |b| json::read_push_configs(b).ok(), |v, out| json::write_push_configs(v, out));
    carried(bytes, Dialect::Rest, |b| rest::read_push_configs(b).ok(), |v, out| rest::write_push_configs(v, out));
}

fn old_requests(bytes: &[u8]) {
    both! { bytes;
        read_send_params write_send_params,
        read_get_params write_get_params,
        read_cancel_params write_cancel_params,
        read_subscribe_params write_subscribe_params,
        read_push_set_params write_push_set_params,
        read_push_get_params write_push_get_params,
        read_push_list_params write_push_list_params,
        read_push_delete_params write_push_delete_params,
    }
}

/// Checks that what comes back is what went in, but for what 0.3 cannot carry.
pub fn carried<T: Carried + Clone + PartialEq + Debug>(
    bytes: &[u8],
    dialect: Dialect,
    read: impl Fn(&[u8]) -> Option<T>,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    let Some(value) = read(bytes) else { return };
    returns(value, dialect, read, write);
}

/// The same for a value.
pub fn returns<T: Carried + Clone + PartialEq + Debug>(
    mut value: T,
    dialect: Dialect,
    read: impl Fn(&[u8]) -> Option<T>,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    let mut out = Vec::new();
    write(&value, &mut out);
    let again = read(&out).unwrap_or_else(|| panic!("what is written can be read: {}", String::from_utf8_lossy(&out)));
    value.lose(dialect);
    assert_eq!(value, again, "{}", String::from_utf8_lossy(&out));
}

fn cards(bytes: &[u8]) {
    let Ok(card) = json::read_card(bytes) else { return };
    assert_eq!(json::read_card(&encode(&card)), Ok(card.clone()));
    let mut union = Vec::new();
    v03::union_card(&card, &mut union);
    assert_eq!(decode::<AgentCard>(&union), Ok(card.clone()));
    assert_eq!(json::read_card(&union), Ok(card.clone()));
    if v03::is_offered(&card) {
        returns(
            card,
            Dialect::Json,
            |bytes| json::read_card(bytes).ok(),
            |card, out| assert!(json::write_card(card, out)),
        );
    }
}
