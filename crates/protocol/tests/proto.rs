//! Protobuf: what goes down comes back, and what is malformed is an error that says where.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use bytes::Bytes;
use nuncio_protocol::codec::{decode, to_value};
use nuncio_protocol::proto::{self, Down, Up, v1, v03};
use nuncio_protocol::*;
use proptest::prelude::*;
use prost::Message as _;
use serde::Serialize;

#[path = "support/strategy.rs"]
mod strategy;

/// Numbers are doubles on the way.
fn doubles(value: &mut Value) {
    match value {
        Value::Number(number) => *value = json!(number.as_f64().unwrap()),
        Value::Array(all) => all.iter_mut().for_each(doubles),
        Value::Object(all) => all.values_mut().for_each(doubles),
        _ => {}
    }
}

/// The model as JSON, with all numbers as doubles.
fn seen<T: Serialize>(model: &T) -> Value {
    let mut value = to_value(model);
    doubles(&mut value);
    value
}

/// Down to the bytes of a message and up again.
fn there_and_back<W, M>(model: M) -> M
where
    W: prost::Message + Default + Down<M>,
    M: Up<W>,
{
    proto::read::<W, M>(proto::write::<W, M>(model).into()).unwrap()
}

macro_rules! round_trips {
    ($($name:ident: $strategy:ident => $wire:ty;)*) => {
        proptest! {
            $(#[test]
            fn $name(model in strategy::$strategy()) {
                let back = there_and_back::<$wire, _>(model.clone());
                prop_assert_eq!(seen(&back), seen(&model));
            })*
        }
    };
}

round_trips! {
    task: task => v1::Task;
    message: message => v1::Message;
    event: event => v1::StreamResponse;
    send_response: send_response => v1::SendMessageResponse;
    send_request: send_request => v1::SendMessageRequest;
    get_request: get_request => v1::GetTaskRequest;
    list_request: list_request => v1::ListTasksRequest;
    list_response: list_response => v1::ListTasksResponse;
    cancel_request: cancel_request => v1::CancelTaskRequest;
    subscribe_request: subscribe_request => v1::SubscribeToTaskRequest;
    card_request: card_request => v1::GetExtendedAgentCardRequest;
    push_config: push_config => v1::TaskPushNotificationConfig;
    push_get: push_request => v1::GetTaskPushNotificationConfigRequest;
    push_delete: push_request => v1::DeleteTaskPushNotificationConfigRequest;
    push_list: push_list_request => v1::ListTaskPushNotificationConfigsRequest;
    push_list_response: push_list_response => v1::ListTaskPushNotificationConfigsResponse;
    card: card => v1::AgentCard;
}

/// What 0.3 loses over gRPC is what it loses in the ProtoJSON of the same schema.
macro_rules! like_rest {
    ($($name:ident: $strategy:ident => $wire:ty, $write:ident, $read:ident;)*) => {
        proptest! {
            $(#[test]
            fn $name(model in strategy::$strategy()) {
                let mut json = Vec::new();
                nuncio_protocol::v03::rest::$write(&model, &mut json);
                let expected = nuncio_protocol::v03::rest::$read(&json).unwrap();
                let back = there_and_back::<$wire, _>(model);
                prop_assert_eq!(seen(&back), seen(&expected));
            })*
        }
    };
}

like_rest! {
    old_task: task => v03::Task, write_task, read_task;
    old_message: message => v03::Message, write_message, read_message;
    old_event: event => v03::StreamResponse, write_event, read_event;
    old_send_response: send_response => v03::SendMessageResponse, write_send_response, read_send_response;
    old_send_request: send_request => v03::SendMessageRequest, write_send_params, read_send_params;
    old_get_request: get_request => v03::GetTaskRequest, write_get_params, read_get_params;
    old_cancel_request: cancel_request => v03::CancelTaskRequest, write_cancel_params, read_cancel_params;
    old_subscribe_request: subscribe_request => v03::TaskSubscriptionRequest, write_subscribe_params, read_subscribe_params;
    old_push_config: push_config => v03::TaskPushNotificationConfig, write_push_config, read_push_config;
    old_push_create: push_config => v03::CreateTaskPushNotificationConfigRequest, write_push_set_params, read_push_set_params;
    old_push_get: push_request => v03::GetTaskPushNotificationConfigRequest, write_push_get_params, read_push_get_params;
    old_push_delete: push_request => v03::DeleteTaskPushNotificationConfigRequest, write_push_delete_params, read_push_delete_params;
    old_push_list: push_list_request => v03::ListTaskPushNotificationConfigRequest, write_push_list_params, read_push_list_params;
}

proptest! {
    /// A second way down and up changes nothing more.
    #[test]
    fn old_card(model in strategy::card()) {
        let once = there_and_back::<v03::AgentCard, _>(model);
        let twice = there_and_back::<v03::AgentCard, _>(once.clone());
        prop_assert_eq!(seen(&twice), seen(&once));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        let _ = proto::read::<v1::SendMessageRequest, SendMessageRequest>(bytes.clone());
        let _ = proto::read::<v03::SendMessageRequest, SendMessageRequest>(bytes.clone());
        let _ = proto::read::<v1::AgentCard, AgentCard>(bytes.clone());
        let _ = proto::read::<v1::StreamResponse, StreamResponse>(bytes.clone());
        let _ = proto::json::read_value(&bytes);
    }

    /// Nor does a message with one wrong byte.
    #[test]
    fn no_change_makes_it_panic(model in strategy::send_request(), place: prop::sample::Index, with: u8) {
        let mut bytes = proto::write::<v1::SendMessageRequest, _>(model);
        if !bytes.is_empty() {
            let place = place.index(bytes.len());
            bytes[place] = with;
        }
        let _ = proto::read::<v1::SendMessageRequest, SendMessageRequest>(bytes.into());
    }
}

fn fields_of<W: prost::Message + Default, M: Up<W> + std::fmt::Debug>(wire: &W) -> String {
    let error = proto::read::<W, M>(wire.encode_to_vec().into()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams, "{error}");
    error.violations.first().map(|violation| violation.field.clone()).unwrap_or_default()
}

#[test]
fn errors_name_the_field() {
    let empty_part = v1::Message { parts: vec![v1::Part::default()], ..Default::default() };
    let wire = v1::SendMessageRequest { message: Some(empty_part), ..Default::default() };
    assert_eq!(fields_of::<_, SendMessageRequest>(&wire), "message.parts[0]");
    let broken = Bytes::from_static(&[0x0a, 9]);
    let wire = v1::SendMessageRequest { metadata: broken.clone(), ..Default::default() };
    assert_eq!(fields_of::<_, SendMessageRequest>(&wire), "metadata");
    let time = Some(proto::Timestamp { seconds: i64::MAX, nanos: 0 });
    let wire = v1::ListTasksRequest { status_timestamp_after: time, ..Default::default() };
    assert_eq!(fields_of::<_, ListTasksRequest>(&wire), "statusTimestampAfter");
    let wire = v1::ListTasksRequest { status: 77, ..Default::default() };
    assert_eq!(fields_of::<_, ListTasksRequest>(&wire), "status");
    let file = v03::Part { part: Some(v03::part::Part::File(v03::FilePart::default())), ..Default::default() };
    let message = v03::Message { content: vec![file], ..Default::default() };
    let wire = v03::SendMessageRequest { request: Some(message), ..Default::default() };
    assert_eq!(fields_of::<_, SendMessageRequest>(&wire), "message.content[0].file");
}

#[test]
fn what_is_no_protobuf_names_the_field_too() {
    // Field 2 holds a message whose first field, a text, is cut off.
    let error = proto::read::<v1::SendMessageRequest, SendMessageRequest>(Bytes::from_static(&[0x12, 2, 0x0a, 9]));
    let error = error.unwrap_err();
    assert_eq!(error.violations[0].field, "message.messageId", "{error}");
    let error = proto::read::<v1::GetTaskRequest, GetTaskRequest>(Bytes::from_static(&[0xff])).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams, "{error}");
}

#[test]
fn states_that_nobody_knows_are_unspecified() {
    let wire = v1::TaskStatus { state: 99, ..Default::default() };
    let task = v1::Task { id: "t".into(), status: Some(wire), ..Default::default() };
    let task: Task = proto::read::<v1::Task, _>(task.encode_to_vec().into()).unwrap();
    assert_eq!(task.status.state, TaskState::Unspecified);
}

/// Numbers from the protocol's schema, written down by hand: foreign clients rely on them.
#[test]
fn numbers_are_those_of_the_protocol() {
    let request: SendMessageRequest = decode(
        br#"{"tenant":"t","message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":null,"mediaType":"x"}]}}"#,
    )
    .unwrap();
    let bytes = proto::write::<v1::SendMessageRequest, _>(request.clone());
    let part = [0x22, 2, 0x08, 0, 0x3a, 1, b'x'];
    let mut message = vec![0x0a, 1, b'm', 0x20, 1, 0x2a, 7];
    message.extend_from_slice(&part);
    let mut expected = vec![0x0a, 1, b't', 0x12, 14];
    expected.extend_from_slice(&message);
    assert_eq!(bytes, expected);
    let list = ListTaskPushNotificationConfigsRequest { tenant: "t".into(), ..Default::default() };
    assert_eq!(proto::write::<v1::ListTaskPushNotificationConfigsRequest, _>(list), [0x22, 1, b't']);
    let artifact = Artifact { name: "n".into(), ..Default::default() };
    assert_eq!(proto::write::<v03::Artifact, _>(artifact), [0x1a, 1, b'n']);
}
