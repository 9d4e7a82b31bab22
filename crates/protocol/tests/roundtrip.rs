//! What is written comes back: in 1.0 all of it, in 0.3 all that 0.3 can carry. And no input is too odd.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic)]

#[path = "../../../fuzz/src/codec.rs"]
mod codec;
#[path = "../../../fuzz/src/losses.rs"]
mod losses;
#[path = "support/strategy.rs"]
mod strategy;

use losses::Dialect;
use nuncio_protocol::codec::{decode, encode, from_value, to_value};
use nuncio_protocol::v03::{self, json, rest};
use nuncio_protocol::*;
use proptest::prelude::*;

fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

/// 1.0: the same value, the same bytes, and the same through a tree.
macro_rules! new {
    ($($name:ident: $model:ty,)*) => {$(
        mod $name {
            use super::*;
            proptest! {
                #![proptest_config(config())]
                #[test]
                fn survives(value in strategy::$name()) {
                    let bytes = encode(&value);
                    let again: $model = decode(&bytes).unwrap();
                    prop_assert_eq!(&again, &value);
                    prop_assert_eq!(encode(&again), bytes);
                    prop_assert_eq!(from_value::<$model>(to_value(&value)), Ok(value));
                }
            }
        }
    )*};
}

new! {
    part: Part,
    message: Message,
    task: Task,
    artifact: Artifact,
    status: TaskStatus,
    event: StreamResponse,
    send_response: SendMessageResponse,
    send_request: SendMessageRequest,
    get_request: GetTaskRequest,
    list_request: ListTasksRequest,
    list_response: ListTasksResponse,
    cancel_request: CancelTaskRequest,
    subscribe_request: SubscribeToTaskRequest,
    card_request: GetExtendedAgentCardRequest,
    push_config: TaskPushNotificationConfig,
    push_request: TaskPushNotificationConfigRequest,
    push_list_request: ListTaskPushNotificationConfigsRequest,
    push_list_response: ListTaskPushNotificationConfigsResponse,
    card: AgentCard,
}

/// 0.3, both dialects.
macro_rules! old {
    ($($test:ident: $strategy:ident $read:ident $write:ident,)*) => {$(
        mod $test {
            use super::*;
            proptest! {
                #![proptest_config(config())]
                #[test]
                fn survives(value in strategy::$strategy()) {
                    codec::returns(value.clone(), Dialect::Json, |b| json::$read(b).ok(), json::$write);
                    codec::returns(value, Dialect::Rest, |b| rest::$read(b).ok(), rest::$write);
                }
            }
        }
    )*};
}

old! {
    old_task: task read_task write_task,
    old_message: message read_message write_message,
    old_event: event read_event write_event,
    old_send_response: send_response read_send_response write_send_response,
    old_send: send_request read_send_params write_send_params,
    old_get: get_request read_get_params write_get_params,
    old_cancel: cancel_request read_cancel_params write_cancel_params,
    old_subscribe: subscribe_request read_subscribe_params write_subscribe_params,
    old_push_config: push_config read_push_config write_push_config,
    old_push_set: push_config read_push_set_params write_push_set_params,
    old_push_get: push_request read_push_get_params write_push_get_params,
    old_push_list: push_list_request read_push_list_params write_push_list_params,
    old_push_delete: push_request read_push_delete_params write_push_delete_params,
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn old_push_configs_survive(list in strategy::push_list_response()) {
        let configs = list.configs;
        let (read, write) = (|b: &[u8]| json::read_push_configs(b).ok(), |v: &Vec<_>, out: &mut _| json::write_push_configs(v, out));
        codec::returns(configs.clone(), Dialect::Json, read, write);
        let (read, write) = (|b: &[u8]| rest::read_push_configs(b).ok(), |v: &Vec<_>, out: &mut _| rest::write_push_configs(v, out));
        codec::returns(configs, Dialect::Rest, read, write);
    }

    #[test]
    fn either_dialect_is_read_by_both(task in strategy::task(), event in strategy::event()) {
        // Only a data part without `kind` means different things, and writers of JSON always say `kind`.
        let mut out = Vec::new();
        json::write_task(&task, &mut out);
        prop_assert_eq!(rest::read_task(&out), json::read_task(&out));
        out.clear();
        json::write_event(&event, &mut out);
        prop_assert_eq!(rest::read_event(&out), json::read_event(&out));
    }

    #[test]
    fn a_card_of_both_versions_loses_nothing(card in strategy::card()) {
        let mut union = Vec::new();
        v03::union_card(&card, &mut union);
        prop_assert_eq!(decode::<AgentCard>(&union), Ok(card.clone()));
        prop_assert_eq!(json::read_card(&union), Ok(card.clone()));
        prop_assert_eq!(json::read_card(&encode(&card)), Ok(card));
    }

    #[test]
    fn a_card_of_0_3_keeps_what_0_3_has(card in strategy::card()) {
        prop_assume!(v03::is_offered(&card));
        let write = |card: &AgentCard, out: &mut _| assert!(json::write_card(card, out));
        codec::returns(card, Dialect::Json, |b| json::read_card(b).ok(), write);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        codec::run(&bytes);
    }

    #[test]
    fn random_json_does_no_harm(value in strategy::value()) {
        codec::run(&encode(&value));
    }

    #[test]
    fn depth_does_no_harm(piece in prop::sample::select(DEEP), depth in 1..300usize) {
        codec::run(piece.repeat(depth).as_bytes());
        let closed = format!("{}0{}", piece.repeat(depth), closing(piece).repeat(depth));
        codec::run(closed.as_bytes());
    }

    #[test]
    fn damaged_json_does_no_harm(bytes in some_json(), damage in prop::collection::vec(damage(), 1..4)) {
        codec::run(&damage.iter().fold(bytes, Damage::apply));
    }

    #[test]
    fn moved_members_do_no_harm(bytes in some_json(), other in some_json(), at in any::<(usize, usize)>()) {
        let (mut tree, other) = (decode::<Value>(&bytes).unwrap(), decode::<Value>(&other).unwrap());
        let moved = pick(&mut other.clone(), at.1).clone();
        *pick(&mut tree, at.0) = moved;
        codec::run(&encode(&tree));
    }
}

/// What can be nested without end.
const DEEP: &[&str] = &[
    "[",
    "{\"a\":",
    "{\"config\":",
    "{\"data\":",
    "{\"metadata\":{\"a\":",
    "{\"parts\":[{\"data\":",
    "{\"task\":{\"history\":[{\"parts\":[{\"data\":",
    "{\"params\":",
];

/// What closes it again.
fn closing(piece: &str) -> String {
    let close = |c| match c {
        '[' => Some(']'),
        '{' => Some('}'),
        _ => None,
    };
    piece.chars().rev().filter_map(close).collect()
}

/// Something that some reader takes.
fn some_json() -> impl Strategy<Value = Vec<u8>> {
    let old = |write: fn(&StreamResponse, &mut Vec<u8>)| {
        strategy::event().prop_map(move |event| {
            let mut out = Vec::new();
            write(&event, &mut out);
            out
        })
    };
    prop_oneof![
        strategy::event().prop_map(|value| encode(&value).to_vec()),
        strategy::send_request().prop_map(|value| encode(&value).to_vec()),
        strategy::card().prop_map(|value| encode(&value).to_vec()),
        strategy::push_config().prop_map(|value| encode(&value).to_vec()),
        old(json::write_event),
        old(rest::write_event),
        strategy::card().prop_map(|card| {
            let mut out = Vec::new();
            v03::union_card(&card, &mut out);
            out
        }),
    ]
}

/// One wound of some bytes.
#[derive(Clone, Debug)]
enum Damage {
    Replace(usize, u8),
    Cut(usize, usize),
    Repeat(usize, usize),
    Insert(usize, &'static str),
}

fn damage() -> impl Strategy<Value = Damage> {
    let pieces = vec!["null", "[]", "{}", "0", "-1", "\"\"", ",", "\"kind\":\"task\",", "\"data\":null,", "1e400"];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (any::<usize>(), 0..20usize).prop_map(|(at, length)| Damage::Cut(at, length)),
        (any::<usize>(), 0..20usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
        (any::<usize>(), prop::sample::select(pieces)).prop_map(|(at, piece)| Damage::Insert(at, piece)),
    ]
}

impl Damage {
    fn apply(mut bytes: Vec<u8>, damage: &Self) -> Vec<u8> {
        let place = |at: usize| at % (bytes.len() + 1);
        match *damage {
            Self::Replace(at, byte) => {
                let at = place(at);
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
            Self::Cut(at, length) => {
                let (from, to) = (place(at), (place(at) + length).min(bytes.len()));
                bytes.drain(from..to);
            }
            Self::Repeat(at, length) => {
                let (from, to) = (place(at), (place(at) + length).min(bytes.len()));
                let piece = bytes[from..to].to_vec();
                bytes.splice(from..from, piece);
            }
            Self::Insert(at, piece) => {
                let at = place(at);
                bytes.splice(at..at, piece.bytes());
            }
        }
        bytes
    }
}

/// The n-th value of a tree, counted around.
fn pick(tree: &mut Value, n: usize) -> &mut Value {
    fn count(tree: &Value) -> usize {
        match tree {
            Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
            Value::Object(map) => 1 + map.values().map(count).sum::<usize>(),
            _ => 1,
        }
    }
    fn walk(tree: &mut Value, n: usize) -> &mut Value {
        if n == 0 {
            return tree;
        }
        let mut left = n - 1;
        let children: Vec<&mut Value> = match tree {
            Value::Array(items) => items.iter_mut().collect(),
            Value::Object(map) => map.values_mut().collect(),
            _ => unreachable!("the count goes no further"),
        };
        for child in children {
            let size = count(child);
            if left < size {
                return walk(child, left);
            }
            left -= size;
        }
        unreachable!("the count goes no further")
    }
    let size = count(tree);
    walk(tree, n % size)
}
