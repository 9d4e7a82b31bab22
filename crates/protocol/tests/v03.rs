//! The corners of A2A 0.3: what its peers do differently from each other, and what they leave out.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use nuncio_protocol::codec::{DecodeError, decode, encode, to_value};
use nuncio_protocol::v03::{self, json, rest};
use nuncio_protocol::*;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut out = Vec::new();
    write(&mut out);
    decode(&out).unwrap()
}

fn parts(json: &Value) -> Vec<Part> {
    json::read_message(&json!({"messageId": "m", "parts": json}).to_string()).unwrap().parts
}

#[test]
fn kind_may_be_missing() {
    let read = parts(&json!([{"text": "a"}, {"file": {"uri": "u"}}, {"data": {"data": {"x": 1}}}]));
    let expected = [Part::text("a"), Content::Url("u".into()).into(), Part::data(json!({"data": {"x": 1}}))];
    assert_eq!(read, expected);
    let params = json::read_send_params(r#"{"message":{"role":"user","parts":[{"text":"a"}]}}"#).unwrap();
    assert!(params.message.unwrap().message_id.is_empty());
    for (event, is) in [
        (r#"{"id":"t","status":{"state":"working"}}"#, "task"),
        (r#"{"messageId":"m","parts":[]}"#, "message"),
        (r#"{"taskId":"t","status":{"state":"working"}}"#, "statusUpdate"),
        (r#"{"taskId":"t","artifact":{"artifactId":"a"}}"#, "artifactUpdate"),
    ] {
        let event = json::read_event(event).unwrap();
        assert_eq!(to_value(&event).as_object().unwrap().keys().next().unwrap(), is);
    }
}

#[test]
fn wrong_parts_are_refused() {
    for part in [
        json!({}),
        json!({"kind": "text"}),
        json!({"kind": "text", "text": null}),
        json!({"kind": "text", "data": {}}),
        json!({"kind": "image", "text": "a"}),
        json!({"text": "a", "data": {}}),
        json!({"text": "a", "file": {"uri": "u"}}),
        json!({"kind": "file", "file": {}}),
        json!({"kind": "file", "file": {"uri": "u", "bytes": "AQID"}}),
        json!({"kind": "file", "file": {"bytes": "*"}}),
        json!({"data": null}),
        json!({"text": "a", "metadata": "oops"}),
    ] {
        let params = json!({"message": {"messageId": "m", "parts": [part]}}).to_string();
        for error in [json::read_send_params(&params).unwrap_err(), rest::read_send_params(&params).unwrap_err()] {
            assert_eq!(error.kind, ErrorKind::InvalidParams, "{params}");
            assert!(error.violations[0].field.starts_with("message.parts[0]"), "{params}: {error:?}");
        }
    }
}

#[test]
fn params_must_be_an_object() {
    for params in ["[]", "\"x\"", "1", "true", "null", ""] {
        assert!(json::read_send_params(params).is_err(), "{params}");
        assert!(json::read_get_params(params).is_err(), "{params}");
    }
    assert_eq!(json::read_get_params("[]").unwrap_err().violations[0].field, "params");
    assert_eq!(json::read_get_params("{").unwrap_err().kind, ErrorKind::Parse);
    assert_eq!(json::read_get_params("{\"id\":1}").unwrap_err().violations[0].field, "id");
    assert_eq!(rest::read_cancel_params(""), Ok(CancelTaskRequest::default()));
    assert_eq!(rest::read_cancel_params("null"), Ok(CancelTaskRequest::default()));
}

#[test]
fn blocking_is_the_default_of_json_rpc_but_not_of_proto_json() {
    let immediately = |read: fn(&str) -> Result<SendMessageRequest, Error>, configuration: &str| {
        let request = read(&format!(r#"{{"message":{{}}{configuration}}}"#)).unwrap();
        request.configuration.is_some_and(|configuration| configuration.return_immediately)
    };
    let cases = [
        ("", false, false),
        (r#","configuration":{}"#, false, true),
        (r#","configuration":{"blocking":null}"#, false, true),
        (r#","configuration":{"blocking":true}"#, false, false),
        (r#","configuration":{"blocking":false}"#, true, true),
    ];
    for (configuration, in_json, in_rest) in cases {
        assert_eq!(immediately(json::read_send_params, configuration), in_json, "{configuration}");
        assert_eq!(immediately(rest::read_send_params, configuration), in_rest, "{configuration}");
    }
}

#[test]
fn a_history_length_of_zero_means_all_of_it_in_rest() {
    let params = r#"{"id":"t","historyLength":0}"#;
    assert_eq!(json::read_get_params(params).unwrap().history_length, Some(0));
    assert_eq!(rest::read_get_params(params).unwrap().history_length, None);
    assert_eq!(rest::read_get_params(r#"{"name":"tasks/t","history_length":"3"}"#).unwrap().history_length, Some(3));
    assert_eq!(rest::read_get_params(r#"{"name":"tasks/t"}"#).unwrap().id.as_str(), "t");
}

#[test]
fn values_that_are_no_objects_travel_wrapped() {
    for (value, data) in [(json!([1]), json!({"value": [1]})), (json!(null), json!({"value": null}))] {
        let mut part = Part::data(value);
        part.metadata.insert("k".into(), json!(1));
        let message = Message { parts: vec![part], role: Role::Agent, ..Message::default() };
        let old = written(|out| json::write_message(&message, out));
        let metadata = json!({"k": 1, "data_part_compat": true});
        assert_eq!(old["parts"][0], json!({"kind": "data", "data": data, "metadata": metadata}));
        assert_eq!(json::read_message(&old.to_string()), Ok(message.clone()));
        let old = written(|out| rest::write_message(&message, out));
        assert_eq!(old["content"][0], json!({"data": {"data": data}, "metadata": metadata}));
        assert_eq!(rest::read_message(&old.to_string()), Ok(message));
    }
}

#[test]
fn bytes_are_encoded_twice_in_rest_and_read_either_way() {
    let file = |bytes: &str| {
        let json = json!({"content": [{"file": {"fileWithBytes": bytes, "mimeType": "a/b"}}]}).to_string();
        rest::read_message(&json).unwrap().parts.remove(0)
    };
    let png = vec![0x89, b'P', b'N', b'G'];
    let message = Message { parts: vec![Content::Raw(png.clone().into()).into()], ..Message::default() };
    let old = written(|out| rest::write_message(&message, out));
    assert_eq!(old["content"][0]["file"]["fileWithBytes"], "aVZCT1J3PT0=");
    assert_eq!(file("aVZCT1J3PT0=").content, Content::Raw(png.clone().into()));
    assert_eq!(file("iVBORw==").content, Content::Raw(png.into()));
    assert_eq!(file("").content, Content::Raw(Vec::new().into()));
    let plain = json!({"parts": [{"kind": "file", "file": {"bytes": "aVZCT1J3PT0="}}]}).to_string();
    assert_eq!(json::read_message(&plain).unwrap().parts[0].content, Content::Raw(b"iVBORw==".to_vec().into()));
}

#[test]
fn states_and_roles_have_the_names_of_their_dialect() {
    let names = [
        (TaskState::Unspecified, "unknown", "TASK_STATE_UNSPECIFIED"),
        (TaskState::Canceled, "canceled", "TASK_STATE_CANCELLED"),
        (TaskState::InputRequired, "input-required", "TASK_STATE_INPUT_REQUIRED"),
        (TaskState::AuthRequired, "auth-required", "TASK_STATE_AUTH_REQUIRED"),
    ];
    for (state, in_json, in_rest) in names {
        let task = Task { status: TaskStatus { state, ..TaskStatus::default() }, ..Task::default() };
        assert_eq!(written(|out| json::write_task(&task, out))["status"]["state"], in_json);
        assert_eq!(written(|out| rest::write_task(&task, out))["status"]["state"], in_rest);
    }
    for state in [json!("canceled"), json!("TASK_STATE_CANCELED"), json!("TASK_STATE_CANCELLED"), json!(5)] {
        let task = json!({"id": "t", "status": {"state": state}}).to_string();
        assert_eq!(json::read_task(&task).unwrap().status.state, TaskState::Canceled);
        assert_eq!(rest::read_task(&task).unwrap().status.state, TaskState::Canceled);
    }
    assert!(
        matches!(json::read_task(r#"{"status":{"state":"busy"}}"#), Err(DecodeError::Shape { path, .. }) if path == "status.state")
    );
    let task = rest::read_task(r#"{"status":{"update":{"message_id":"m","role":"ROLE_AGENT"}}}"#).unwrap();
    assert_eq!(task.status.message.unwrap().message_id.as_str(), "m");
}

#[test]
fn a_status_is_final_when_the_client_has_to_speak_or_nobody_does() {
    for &state in TaskState::ALL {
        let status = TaskStatus { state, ..TaskStatus::default() };
        let event = StreamResponse::StatusUpdate(TaskStatusUpdateEvent { status, ..TaskStatusUpdateEvent::default() });
        let last = state.is_terminal() || state == TaskState::InputRequired;
        assert_eq!(written(|out| json::write_event(&event, out))["final"], last);
        assert_eq!(written(|out| rest::write_event(&event, out))["statusUpdate"]["final"], last);
    }
}

#[test]
fn webhooks_come_in_many_shapes() {
    let hook = json!({"id": "P1", "url": "https://hook.test/x", "token": "t", "authentication": {"schemes": ["Basic", "Bearer"]}});
    let bodies = [
        json!({"taskId": "T1", "pushNotificationConfig": hook}),
        json!({"parent": "tasks/T1", "config_id": "P1", "config": {"push_notification_config": hook}}),
        json!({"config": {"name": "tasks/T1/pushNotificationConfigs/P1", "pushNotificationConfig": hook}}),
        json!({"name": "tasks/T1/pushNotificationConfigs/P1", "pushNotificationConfig": hook}),
        json!({"task_id": "T1", "id": "P1", "url": "https://hook.test/x", "token": "t", "authentication": {"schemes": ["Basic"]}}),
    ];
    let expected = TaskPushNotificationConfig {
        id: "P1".into(),
        task_id: "T1".into(),
        url: "https://hook.test/x".into(),
        token: "t".into(),
        authentication: Some(AuthenticationInfo { scheme: "Basic".into(), credentials: String::new() }),
        ..TaskPushNotificationConfig::default()
    };
    for body in bodies {
        assert_eq!(rest::read_push_set_params(&body.to_string()).as_ref(), Ok(&expected), "{body}");
        assert_eq!(json::read_push_set_params(&body.to_string()).as_ref(), Ok(&expected), "{body}");
    }
    let list = std::slice::from_ref(&expected);
    assert!(written(|out| json::write_push_configs(list, out)).is_array());
    assert_eq!(written(|out| json::write_push_configs(&[], out)), json!([]));
    assert_eq!(
        written(|out| rest::write_push_configs(list, out))["configs"][0]["name"],
        "tasks/T1/pushNotificationConfigs/P1"
    );
}

#[test]
fn webhooks_are_named_in_many_ways() {
    let named = |json: &str| (json::read_push_get_params(json).unwrap(), rest::read_push_delete_params(json).unwrap());
    for json in [
        r#"{"id":"T1","pushNotificationConfigId":"P1"}"#,
        r#"{"id":"T1","push_notification_config_id":"P1"}"#,
        r#"{"name":"tasks/T1/pushNotificationConfigs/P1"}"#,
    ] {
        let (get, delete) = named(json);
        assert_eq!((get.task_id.as_str(), get.id.as_str()), ("T1", "P1"));
        assert_eq!(get, delete);
    }
    assert!(json::read_push_get_params(r#"{"id":"T1"}"#).unwrap().id.is_empty());
    assert_eq!(rest::read_push_list_params(r#"{"parent":"tasks/T1"}"#).unwrap().task_id.as_str(), "T1");
    assert_eq!(json::read_push_list_params(r#"{"id":"T1"}"#).unwrap().task_id.as_str(), "T1");
}

#[test]
fn errors_have_the_codes_of_0_3() {
    for &kind in ErrorKind::ALL {
        let error = Error::new(kind, "why").fact("taskId", "T1");
        let code = if kind == ErrorKind::ExtensionSupportRequired { -32004 } else { kind.code() };
        let data = json!({"reason": kind.reason(), "metadata": {"taskId": "T1"}});
        assert_eq!(to_value(&v03::json_error(&error)), json!({"code": code, "message": "why", "data": data}));
        let body = to_value(&v03::rest_error(&error));
        assert_eq!(body["type"], kind.name());
        assert_eq!((&body["code"], &body["message"], &body["data"]), (&json!(code), &json!("why"), &data));
        assert_eq!(body["error"], to_value(&error.rest())["error"]);
    }
    let error = to_value(&v03::json_error(&Error::invalid("id", "is required")));
    assert_eq!(error["data"]["fieldViolations"], json!([{"field": "id", "description": "is required"}]));
}

#[test]
fn several_flows_become_several_schemes() {
    let card = json!({
        "url": "https://h.test", "protocolVersion": "0.3.0",
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "o": {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "a"}, "clientCredentials": {"tokenUrl": "t"}}},
            "new": {"type": "hologram"},
        },
        "security": [{"o": ["r"], "key": []}],
    });
    let card = json::read_card(&card.to_string()).unwrap();
    let names: Vec<&str> = card.security_schemes.keys().map(String::as_str).collect();
    assert_eq!(names, ["key", "o", "o-implicit"]);
    let requirements = json!([
        {"schemes": {"key": {}, "o": {"list": ["r"]}}},
        {"schemes": {"key": {}, "o-implicit": {"list": ["r"]}}},
    ]);
    assert_eq!(to_value(&card.security_requirements), requirements);
    let interface = json!([{"url": "https://h.test", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]);
    assert_eq!(to_value(&card.supported_interfaces), interface);
}

#[test]
fn additional_interfaces_are_listed_once() {
    let card = json!({
        "url": "https://h.test/a", "preferredTransport": "HTTP+JSON", "protocolVersion": "0.3.0",
        "additionalInterfaces": [{"url": "https://h.test/a", "transport": "HTTP+JSON"}, {"url": "h.test:1", "transport": "GRPC"}],
    });
    let card = json::read_card(&card.to_string()).unwrap();
    assert_eq!(card.supported_interfaces.len(), 2);
    let old = written(|out| assert!(json::write_card(&card, out)));
    assert_eq!(old["additionalInterfaces"], json!([{"url": "http://h.test:1", "transport": "GRPC"}]));
}

#[test]
fn without_an_interface_of_0_3_there_is_no_card_of_it() {
    let interface = AgentInterface { protocol_version: "1.0".into(), ..AgentInterface::default() };
    let card = AgentCard { supported_interfaces: vec![interface], ..AgentCard::default() };
    let mut out = Vec::new();
    assert!(!json::write_card(&card, &mut out));
    assert!(out.is_empty());
    v03::union_card(&card, &mut out);
    assert_eq!(out, encode(&card));
}
