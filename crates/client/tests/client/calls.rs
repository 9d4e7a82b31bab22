//! Calls with one answer, and what can be wrong with it.

use std::time::Duration;

use nuncio_client::{Client, ClientError, Options, SendOptions};
use nuncio_protocol::{
    CancelTaskRequest, ErrorKind, GetTaskRequest, ListTasksRequest, SendMessageResponse, TaskState, Violation, json,
};

use crate::server::{Answer, Server, Step, hello, quick, secretive, task};

fn get() -> GetTaskRequest {
    GetTaskRequest { id: "T1".into(), ..Default::default() }
}

/// The error of a call that is answered like this.
async fn error_of(answer: impl Fn(&crate::server::Seen) -> Answer + Send + Sync + 'static) -> ClientError {
    let server = Server::start(move |seen, _| answer(seen)).await;
    let options = Options { max_answer: 100_000, ..secretive() };
    let error = Client::direct(&server.url, options).unwrap().get(get()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("very-secret"), "{error:?}");
    error
}

#[tokio::test]
async fn every_operation() {
    let server = Server::start(|seen, _| match seen.rpc() {
        "SendMessage" => seen.result(&json!({"task": task("COMPLETED")})),
        "GetTask" => seen.result(&task("WORKING")),
        "ListTasks" => {
            seen.result(&json!({"tasks": [task("FAILED")], "nextPageToken": "n", "pageSize": 1, "totalSize": 9}))
        }
        "CancelTask" => seen.result(&task("CANCELED")),
        "GetExtendedAgentCard" => seen.result(&json!({"name": "more"})),
        _ => seen.error(-32601, "no such method"),
    })
    .await;
    let client = server.client();
    let SendMessageResponse::Task(sent) = client.send(hello()).await.unwrap() else { panic!("a task") };
    assert_eq!(sent.status.state, TaskState::Completed);
    assert_eq!(client.get(get()).await.unwrap().status.state, TaskState::Working);
    let page = client.list(ListTasksRequest { page_size: Some(1), ..Default::default() }).await.unwrap();
    assert_eq!((page.tasks.len(), &*page.next_page_token, page.total_size), (1, "n", 9));
    let canceled = client.cancel(CancelTaskRequest { id: "T1".into(), ..Default::default() }).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(client.extended_card().await.unwrap().name, "more");

    let seen = server.seen();
    assert_eq!(server.calls(), ["SendMessage", "GetTask", "ListTasks", "CancelTask", "GetExtendedAgentCard"]);
    assert_eq!(seen[0].body["params"]["message"]["parts"], json!([{"text": "hello"}]));
    assert_eq!(seen[2].body["params"], json!({"pageSize": 1}));
    assert!(seen.iter().all(|seen| seen.header("a2a-version") == Some("1.0")));
    assert!(seen[0].header("idempotency-key").is_none());
    assert_ne!(seen[0].body["id"], seen[1].body["id"]);
}

#[tokio::test]
async fn a_message_may_be_the_answer() {
    let server = Server::start(|seen, _| {
        seen.result(&json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}))
    })
    .await;
    let SendMessageResponse::Message(message) = server.client().send(hello()).await.unwrap() else {
        panic!("a message")
    };
    assert_eq!(message.text(), "hi");
}

#[tokio::test]
async fn errors_are_told_apart_by_code_and_by_reason() {
    let error = error_of(|seen| seen.error(-32001, "Task not found")).await;
    assert_eq!(error.kind(), Some(ErrorKind::TaskNotFound));
    assert!(error.to_string().starts_with("The agent answers: Task not found. Check the task's id"), "{error}");

    let error = error_of(|seen| {
        Answer::json(&json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": {"code": -32050, "message": "m", "data": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "a2a-protocol.org", "reason": "TASK_NOT_CANCELABLE"},
            {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "id", "description": "is odd"}]}]}}))
    })
    .await;
    let ClientError::Agent(agent) = &error else { panic!("{error:?}") };
    assert_eq!((agent.kind, agent.code), (Some(ErrorKind::TaskNotCancelable), -32050));
    assert_eq!(agent.violations, [Violation::new("id", "is odd")]);
}

#[tokio::test]
async fn error_objects_are_read_in_any_shape() {
    for (object, code, message) in [
        (json!({"code": -32001, "message": "m", "data": {"reason": "x"}}), -32001, "m"),
        (json!({"code": -32001, "message": "m", "data": "text"}), -32001, "m"),
        (json!({"code": -40123, "message": "m", "data": null}), -40123, "m"),
        (json!({"code": "-32004", "message": "m"}), -32004, "m"),
        (json!({"code": -32603.0}), -32603, "(no message)"),
        (json!({"message": "line\u{1b}[31m\nline"}), 0, "line [31m line"),
    ] {
        let text = object.to_string();
        let error =
            error_of(move |seen| Answer::json(&json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": object})))
                .await;
        let ClientError::Agent(agent) = &error else { panic!("{text}: {error:?}") };
        assert_eq!((agent.code, &*agent.message), (code, message), "{text}");
        assert_eq!(agent.kind, ErrorKind::from_code(code), "{text}");
    }
}

#[tokio::test]
async fn an_answer_must_carry_the_id_of_the_request() {
    let wrong = json!({"jsonrpc": "2.0", "id": 4711, "result": task("WORKING")});
    let text = json!({"jsonrpc": "2.0", "id": "1", "result": task("WORKING")});
    let none = json!({"jsonrpc": "2.0", "result": task("WORKING")});
    let foreign_error = json!({"jsonrpc": "2.0", "id": 4711, "error": {"code": -32001, "message": "m"}});
    for body in [wrong, text, none, foreign_error] {
        let error = error_of(move |_| Answer::json(&body)).await;
        assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    }
    let unknown = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "m"}});
    assert_eq!(error_of(move |_| Answer::json(&unknown)).await.kind(), Some(ErrorKind::Parse));
}

#[tokio::test]
async fn an_answer_of_the_wrong_shape_names_the_place() {
    let error = error_of(|seen| seen.result(&json!({"id": "T1", "status": {"state": 7, "message": 8}}))).await;
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    assert!(error.to_string().contains("result.status.message"), "{error}");
    for body in ["", "<html>", "[]", "{}", "{\"jsonrpc\":\"2.0\",\"id\":1}", "{\"id\":1,\"error\":{}}"] {
        let error = error_of(move |_| Answer::status(200, body)).await;
        assert!(matches!(error, ClientError::Protocol { .. }), "{body}: {error:?}");
    }
}

#[tokio::test]
async fn credentials_that_are_missing_or_wrong() {
    let refuse = |_: &crate::server::Seen| {
        Answer::status(401, "you sent Bearer very-secret").with("www-authenticate", "Bearer realm=\"agents\"")
    };
    let error = error_of(refuse).await;
    assert!(matches!(error, ClientError::Unauthorized { status: 401, sent: true, .. }), "{error:?}");
    assert!(error.to_string().contains("Bearer realm=\"agents\". The credentials are wrong"), "{error}");

    let server = Server::start(move |seen, _| refuse(seen)).await;
    let error = server.client().get(get()).await.unwrap_err();
    assert!(error.to_string().contains("set a token"), "{error}");

    let error = error_of(|_| Answer::status(403, "not you, very-secret")).await;
    assert!(
        matches!(&error, ClientError::Unauthorized { status: 403, said, .. } if said == "not you, ***"),
        "{error:?}"
    );
    let error = error_of(|seen| seen.error(-31401, "who are you, very-secret?").code(401)).await;
    assert!(matches!(error, ClientError::Unauthorized { status: 401, .. }), "{error:?}");
}

#[tokio::test]
async fn foreign_words_are_shown_without_secrets_and_as_one_short_line() {
    let error = error_of(|seen| {
        let violation = json!({"field": "id\u{1b}[2J", "description": "is not very-secret\r\n"});
        Answer::json(
            &json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": {"code": -32602, "message": "m", "data": [
            {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]}}),
        )
    })
    .await;
    let text = error.to_string();
    assert!(text.contains("is not ***") && !text.contains(char::is_control), "{text:?}");
    for odd in ["very-secret".to_owned(), "\u{1b}[2J".to_owned(), "x".repeat(50_000)] {
        let text = error_of(move |seen| seen.result(&json!({"id": "T1", "status": odd}))).await.to_string();
        assert!(text.contains("does not speak A2A") && text.len() < 2000, "{text}");
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}

#[tokio::test]
async fn statuses_of_http() {
    let error = error_of(|_| Answer::status(503, "busy").with("retry-after", "7")).await;
    assert!(matches!(&error, ClientError::Http { status: 503, said, .. } if said == "busy"), "{error:?}");
    assert_eq!((error.is_transient(), error.retry_after()), (true, Some(Duration::from_secs(7))));
    let error = error_of(|_| Answer::status(404, "")).await;
    assert!(matches!(error, ClientError::Http { status: 404, .. }) && !error.is_transient(), "{error:?}");
    // Some agents use the statuses of REST for errors of JSON-RPC.
    let error = error_of(|seen| seen.error(-32001, "Task not found").code(404)).await;
    assert_eq!(error.kind(), Some(ErrorKind::TaskNotFound));
    // A redirect of a call is followed only where it keeps the method.
    let error = error_of(|_| Answer::status(302, "").with("location", "/other")).await;
    assert!(matches!(error, ClientError::Http { status: 302, .. }), "{error:?}");
    let server = Server::start(|seen, _| match &*seen.path {
        "/" => Answer::status(307, "").with("location", "/other"),
        _ => seen.result(&task("WORKING")),
    })
    .await;
    server.client().get(get()).await.unwrap();
}

#[tokio::test]
async fn an_answer_has_a_largest_size() {
    let error = error_of(|_| Answer::status(200, "").steps(vec![Step::Bytes(vec![b' '; 60_000]); 2])).await;
    assert!(matches!(error, ClientError::TooLarge { limit: 100_000, .. }), "{error:?}");
    let error = error_of(|_| Answer::status(500, "").steps(vec![Step::Bytes(vec![b'x'; 60_000]); 100])).await;
    assert!(matches!(&error, ClientError::Http { said, .. } if said.chars().count() == 201), "{error:?}");
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_a_timeout() {
    let server = Server::start(|_, n| {
        let slow = vec![Step::Bytes(b"{".to_vec()), Step::Pause(Duration::from_secs(30))];
        if n == 0 { Answer::status(200, "").steps(slow) } else { Answer::status(500, "").steps(slow) }
    })
    .await;
    let options = Options { timeout: Duration::from_millis(100), ..quick() };
    let client = Client::direct(&server.url, options).unwrap();
    let error = client.get(get()).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error:?}");
    let how = SendOptions { timeout: Some(Duration::from_millis(50)), ..SendOptions::default() };
    let error = client.send_with(hello(), &how).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { after, .. } if after == Duration::from_millis(50)), "{error:?}");
}

#[tokio::test]
async fn a_send_is_repeated_only_under_a_key() {
    let server = Server::start(|seen, n| match n % 4 {
        0 => Answer::status(200, "").steps(vec![Step::Bytes(b"{\"jsonrpc\"".to_vec()), Step::Break]),
        1 => Answer::status(503, "busy"),
        2 => seen.error(-31503, "still busy"),
        _ => seen.result(&json!({"task": task("COMPLETED")})),
    })
    .await;
    let client = server.client();
    client.send_with(hello(), &SendOptions::key("k-1")).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|seen| seen.header("idempotency-key") == Some("k-1")));
    assert!(seen.iter().all(|call| call.body["params"] == seen[0].body["params"]));

    let error = client.send(hello()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test]
async fn a_send_is_repeated_a_limited_number_of_times() {
    let server = Server::start(|_, _| Answer::status(503, "busy")).await;
    let error = server.client().send_with(hello(), &SendOptions::key("k-1")).await.unwrap_err();
    assert!(matches!(error, ClientError::Http { status: 503, .. }), "{error:?}");
    assert_eq!(server.seen().len(), 4);
}
