//! Whole messages as peers exchange them, of 1.0 and of both dialects of 0.3.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use nuncio_protocol::codec::{decode, encode, to_value};
use nuncio_protocol::jsonrpc::{self, Id, Request};
use nuncio_protocol::v03::{self, json, rest};
use nuncio_protocol::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a sample and writes it again, byte for byte.
fn exact<T: DeserializeOwned + Serialize>(sample: &str) -> T {
    let value: T = decode(sample.as_bytes()).unwrap();
    assert_eq!(encode(&value), sample);
    value
}

/// The same where the order of members differs.
fn tree<T: DeserializeOwned + Serialize>(sample: &str) -> T {
    let value: T = decode(sample.as_bytes()).unwrap();
    assert_eq!(to_value(&value), decode::<Value>(sample.as_bytes()).unwrap());
    value
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

const SEND: &str = r#"{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"tenant":"blue","message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"sum this"},{"raw":"AQID","mediaType":"application/octet-stream","filename":"a.bin"},{"url":"https://files.test/b.pdf","mediaType":"application/pdf"},{"data":[1,2,null]}]},"configuration":{"acceptedOutputModes":["text/plain"],"historyLength":0,"returnImmediately":true,"taskPushNotificationConfig":{"url":"https://hook.test/x","token":"t-1","authentication":{"scheme":"Bearer","credentials":"s3cret"}}},"metadata":{"k":1}}}"#;

#[test]
fn a_send_of_1_0() {
    let request = Request::decode(SEND.as_bytes()).unwrap();
    assert_eq!((request.id.get(), &*request.method), ("7", "SendMessage"));
    let params: SendMessageRequest = tree(request.params);
    assert_eq!(request.params::<SendMessageRequest>().unwrap(), params);
    assert_eq!(params.violations(), []);
    let parts = &params.message.as_ref().unwrap().parts;
    assert_eq!(parts[1].content, Content::Raw(vec![1, 2, 3].into()));
    assert_eq!(parts[3], Part::data(json!([1, 2, null])));
}

#[test]
fn an_answer_of_1_0() {
    let sample = r#"{"jsonrpc":"2.0","id":7,"result":{"task":{"id":"T1","contextId":"C1","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-02T03:04:05.678Z"}}}}"#;
    let result = r#"{"task":{"id":"T1","contextId":"C1","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-02T03:04:05.678Z"}}}"#;
    let response: SendMessageResponse = exact(result);
    assert_eq!(jsonrpc::result(Id::from("7"), &encode(&response)), sample.as_bytes());
}

#[test]
fn a_stream_of_1_0() {
    for event in [
        r#"{"task":{"id":"T2","contextId":"C1","status":{"state":"TASK_STATE_SUBMITTED"}}}"#,
        r#"{"statusUpdate":{"taskId":"T2","contextId":"C1","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"m-2","contextId":"C1","taskId":"T2","role":"ROLE_AGENT","parts":[{"text":"on it"}]}}}}"#,
        r#"{"artifactUpdate":{"taskId":"T2","contextId":"C1","artifact":{"artifactId":"A1","name":"out","parts":[{"text":"4"}]}}}"#,
        r#"{"artifactUpdate":{"taskId":"T2","contextId":"C1","artifact":{"artifactId":"A1","parts":[{"text":"2"}]},"append":true,"lastChunk":true}}"#,
        r#"{"statusUpdate":{"taskId":"T2","contextId":"C1","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
    ] {
        exact::<StreamResponse>(event);
    }
    tree::<StreamResponse>(
        r#"{"statusUpdate":{"taskId":"T2","contextId":"C1","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"m-2","role":"ROLE_AGENT","contextId":"C1","taskId":"T2","parts":[{"text":"on it"}]}}}}"#,
    );
}

#[test]
fn a_list_of_1_0() {
    let sample = r#"{"tasks":[{"id":"T2","contextId":"C1","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-02T03:05:00Z"},"artifacts":[]}],"nextPageToken":"","pageSize":2,"totalSize":1}"#;
    let page: ListTasksResponse = decode(sample.as_bytes()).unwrap();
    assert_eq!((page.tasks.len(), page.page_size, page.total_size), (1, 2, 1));
    let written = r#"{"tasks":[{"id":"T2","contextId":"C1","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-02T03:05:00.000Z"}}],"nextPageToken":"","pageSize":2,"totalSize":1}"#;
    assert_eq!(encode(&page), written);
}

#[test]
fn errors_of_1_0() {
    let sample = r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"task T2 is already completed","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_CANCELABLE","domain":"a2a-protocol.org","metadata":{"taskId":"T2"}}]}}"#;
    let error = Error::new(ErrorKind::TaskNotCancelable, "task T2 is already completed").fact("taskId", "T2");
    assert_eq!(encode(&error.rest()), sample);
    let sample = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"T9"}}]}}"#;
    let error = Error::task_not_found("T9");
    assert_eq!(jsonrpc::failure(Id::from("1"), &error.jsonrpc()), sample.as_bytes());
    let violation = json!({"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.parts","description":"must not be empty"}]});
    let error = Error::invalid("message.parts", "must not be empty");
    assert_eq!(to_value(&error.jsonrpc())["data"][1], violation);
    assert_eq!(to_value(&error.rest())["error"]["details"][1], violation);
}

#[test]
fn a_webhook_of_1_0() {
    exact::<StreamResponse>(
        r#"{"statusUpdate":{"taskId":"T1","contextId":"C1","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
    );
    let config: TaskPushNotificationConfig = exact(r#"{"id":"P1","taskId":"T1","url":"https://hook.test/x"}"#);
    let old = r#"{"taskId":"T1","pushNotificationConfig":{"id":"P1","url":"https://hook.test/x"}}"#;
    assert_eq!(written(|out| json::write_push_config(&config, out)), old);
    assert_eq!(json::read_push_config(old), Ok(config));
}

const CARD: &str = r#"{"name":"n","description":"d","version":"1.0.0","supportedInterfaces":[{"url":"https://h.test/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"https://h.test/rest","protocolBinding":"HTTP+JSON","protocolVersion":"1.0","tenant":"blue"},{"url":"h.test:443","protocolBinding":"GRPC","protocolVersion":"1.0"},{"url":"https://h.test/rpc","protocolBinding":"JSONRPC","protocolVersion":"0.3"}],"capabilities":{"streaming":true,"pushNotifications":true,"extendedAgentCard":true},"securitySchemes":{"bearer":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}},"securityRequirements":[{"schemes":{"bearer":{}}}],"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{"id":"s","name":"s","description":"d","tags":["t"]}]}"#;

#[test]
fn a_card_of_both_versions() {
    let card: AgentCard = tree(CARD);
    let mut expected: Value = decode(CARD.as_bytes()).unwrap();
    let added = json!({"protocolVersion":"0.3","url":"https://h.test/rpc","preferredTransport":"JSONRPC","security":[{"bearer":[]}],"supportsAuthenticatedExtendedCard":true});
    expected.as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
    expected["securitySchemes"]["bearer"]["type"] = json!("http");
    expected["securitySchemes"]["bearer"]["scheme"] = json!("Bearer");
    let union = written(|out| v03::union_card(&card, out));
    assert_eq!(decode::<Value>(union.as_bytes()).unwrap(), expected);
}

#[test]
fn a_card_of_0_3() {
    let card: AgentCard = decode(CARD.as_bytes()).unwrap();
    let old = r#"{"protocolVersion":"0.3","name":"n","description":"d","url":"https://h.test/rpc","preferredTransport":"JSONRPC","version":"1.0.0","capabilities":{"streaming":true,"pushNotifications":true},"securitySchemes":{"bearer":{"type":"http","scheme":"Bearer"}},"security":[{"bearer":[]}],"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{"id":"s","name":"s","description":"d","tags":["t"]}],"supportsAuthenticatedExtendedCard":true}"#;
    assert_eq!(written(|out| assert!(json::write_card(&card, out))), old);
    assert_eq!(written(|out| assert!(rest::write_card(&card, out))), old);
    let read = json::read_card(old).unwrap();
    assert_eq!(read.supported_interfaces, card.supported_interfaces[3..]);
    assert_eq!((read.security_schemes, read.capabilities), (card.security_schemes, card.capabilities));
}

const OLD_SEND: &str = r#"{"jsonrpc":"2.0","id":"q1","method":"message/send","params":{"message":{"kind":"message","messageId":"m-1","role":"user","parts":[{"kind":"text","text":"hi"},{"kind":"file","file":{"name":"a.bin","mimeType":"application/octet-stream","bytes":"AQID"}},{"kind":"data","data":{"a":1}}]},"configuration":{"blocking":true,"pushNotificationConfig":{"url":"https://hook.test/x","token":"t","authentication":{"schemes":["Bearer"],"credentials":"c"}}}}}"#;

#[test]
fn a_send_of_0_3() {
    let request = Request::decode(OLD_SEND.as_bytes()).unwrap();
    let params = json::read_send_params(request.params).unwrap();
    assert_eq!(params.violations(), []);
    let message = params.message.as_ref().unwrap();
    assert_eq!(message.role, Role::User);
    assert_eq!(message.parts[1].content, Content::Raw(vec![1, 2, 3].into()));
    assert_eq!((&*message.parts[1].filename, &*message.parts[1].media_type), ("a.bin", "application/octet-stream"));
    let configuration = params.configuration.as_ref().unwrap();
    assert!(!configuration.return_immediately);
    let push = configuration.task_push_notification_config.as_ref().unwrap();
    assert_eq!(push.authentication.as_ref().unwrap().scheme, "Bearer");
    assert_eq!(written(|out| json::write_send_params(&params, out)), request.params);
}

#[test]
fn an_answer_of_0_3() {
    let sample = r#"{"kind":"task","id":"T1","contextId":"C1","status":{"state":"completed","timestamp":"2026-01-02T03:04:05Z"},"artifacts":[{"artifactId":"A1","parts":[{"kind":"text","text":"ok"}]}]}"#;
    let response = json::read_send_response(sample).unwrap();
    let SendMessageResponse::Task(task) = &response else { panic!("{response:?}") };
    assert_eq!((task.status.state, task.artifacts[0].parts[0].as_text()), (TaskState::Completed, Some("ok")));
    let with_millis = sample.replace("05Z", "05.000Z");
    assert_eq!(written(|out| json::write_send_response(&response, out)), with_millis);
    assert_eq!(written(|out| json::write_task(task, out)), with_millis);
}

#[test]
fn a_stream_of_0_3() {
    for sample in [
        r#"{"kind":"status-update","taskId":"T1","contextId":"C1","status":{"state":"working"},"final":false}"#,
        r#"{"kind":"artifact-update","taskId":"T1","contextId":"C1","artifact":{"artifactId":"A1","parts":[{"kind":"text","text":"x"}]},"append":false,"lastChunk":true}"#,
    ] {
        let event = json::read_event(sample).unwrap();
        assert_eq!(written(|out| json::write_event(&event, out)), sample);
    }
}

#[test]
fn a_rest_send_of_0_3() {
    let sample = r#"{"request":{"message_id":"m-1","role":"ROLE_USER","content":[{"text":"hi"}]},"configuration":{"blocking":true}}"#;
    let params = rest::read_send_params(sample).unwrap();
    assert_eq!(params.violations(), []);
    assert!(!params.configuration.as_ref().unwrap().return_immediately);
    assert_eq!(written(|out| rest::write_send_params(&params, out)), sample.replace("message_id", "messageId"));
    let sample = r#"{"task":{"id":"T1","contextId":"C1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"A1","parts":[{"text":"ok"}]}]}}"#;
    let response = rest::read_send_response(sample).unwrap();
    assert_eq!(written(|out| rest::write_send_response(&response, out)), sample);
}
