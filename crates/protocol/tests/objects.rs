//! An array of the members of an object is not that object, in any version.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use nuncio_protocol::codec::{self, DecodeError, Value, json};
use nuncio_protocol::jsonrpc::Request;
use nuncio_protocol::{
    AgentCard, ErrorKind, GetTaskRequest, Message, SendMessageRequest, StreamResponse, Task, draft, v03,
};
use serde::de::DeserializeOwned;

fn refused<T: DeserializeOwned>(value: &Value) -> String {
    match (codec::decode::<T>(&codec::encode(value)).map(drop), codec::from_value::<T>(value.clone()).map(drop)) {
        (Err(DecodeError::Shape { path, .. }), Err(_)) => path,
        other => panic!("{value} was read: {other:?}"),
    }
}

#[test]
fn the_model_is_made_of_objects() {
    let message = json!(["m1", "", "", "ROLE_USER", [{ "text": "hi" }]]);
    assert_eq!(refused::<Message>(&message), "");
    assert_eq!(refused::<SendMessageRequest>(&json!({ "message": message })), "message");
    let configuration = json!({ "message": { "messageId": "m1" }, "configuration": [["text/plain"]] });
    assert_eq!(refused::<SendMessageRequest>(&configuration), "configuration");
    assert_eq!(refused::<GetTaskRequest>(&json!(["", "t1"])), "");
    assert_eq!(refused::<Task>(&json!({ "id": "t1", "status": ["TASK_STATE_WORKING"] })), "status");
    assert_eq!(refused::<Task>(&json!({ "id": "t1", "history": [["m1"]] })), "history[0]");
    assert_eq!(refused::<StreamResponse>(&json!({ "task": ["t1"] })), "task");
    assert_eq!(refused::<AgentCard>(&json!({ "name": "a", "skills": [["id"]] })), "skills[0]");
    assert_eq!(refused::<Option<GetTaskRequest>>(&json!(["", "t1"])), "");
}

#[test]
fn arrays_that_belong_there_and_data_of_any_shape_stay() {
    let task = json!({ "id": "t1", "status": { "state": "TASK_STATE_WORKING" },
        "history": [{ "messageId": "m1", "role": "ROLE_USER", "parts": [{ "data": [[1.5, "a"], { "b": [null] }] }],
            "metadata": { "list": [[1], []] } }] });
    let read: Task = codec::decode(&codec::encode(&task)).unwrap();
    assert_eq!(codec::to_value(&read)["history"], task["history"]);
    assert_eq!(codec::from_value::<Task>(task).unwrap(), read);
    assert!(codec::decode::<Task>(br#"{"id":"t1"} {}"#).is_err(), "one value is all");
    for broken in ["[", "[}", "{\"status\":["] {
        assert!(matches!(codec::decode::<Task>(broken.as_bytes()), Err(DecodeError::Syntax(_))), "{broken}");
    }
}

#[test]
fn an_envelope_is_an_object_and_so_are_its_params() {
    let (error, id) = Request::decode(br#"["2.0", 1, "GetTask", {"id":"t1"}]"#).unwrap_err();
    assert_eq!((error.kind, &*id), (ErrorKind::InvalidRequest, "null"));
    assert!(error.message.contains("batches"), "{error}");
    let request = Request::decode(br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":["","t1"]}"#).unwrap();
    assert_eq!(request.params::<GetTaskRequest>().unwrap_err().kind, ErrorKind::InvalidParams);
}

#[test]
fn the_older_versions_are_no_different() {
    let message = r#"["m1","","","user",[{"kind":"text","text":"hi"}]]"#;
    let send = format!(r#"{{"message":{message}}}"#);
    assert_eq!(v03::json::read_send_params(&send).unwrap_err().kind, ErrorKind::InvalidParams);
    assert_eq!(v03::rest::read_send_params(&send).unwrap_err().kind, ErrorKind::InvalidParams);
    assert_eq!(draft::read_send(&send).unwrap_err().kind, ErrorKind::InvalidParams);
    assert!(v03::json::read_message(message).is_err());
    assert!(v03::json::read_task(r#"{"id":"t1","status":["working"]}"#).is_err());
    assert!(v03::json::read_card(r#"{"name":"a","provider":["https://a.example","A"]}"#).is_err());
    assert!(v03::json::read_card(r#"{"name":"a","security":[[{"key":[]}]]}"#).is_err());
    assert!(v03::json::read_push_configs(r#"[["t1"]]"#).is_err());
    assert!(v03::json::read_push_configs(r#"{"configs":[["t1"]]}"#).is_err());
}
