//! Document 000, lines 269 to 282: the table of errors.

use nuncio_tests::{Stage, answer, client, json, state, words};

use super::{params, serve, with_parts};

/// 000:272.
#[tokio::test]
async fn empty_text_fails() {
    let server = serve("");
    for parts in [json!([{ "text": "" }]), json!([{ "text": " \n" }])] {
        let task = server.send_params(with_parts(parts)).await;
        assert_eq!((state(&task), words(&task)), ("FAILED", "A2A server currently accepts text input only."));
    }
}

/// 000:265, 000:276.
#[tokio::test]
async fn a_required_extension_is_required() {
    let server = serve("extensions:\n- uri: https://a.example/must\n  required: true");
    let refused = server.rpc("SendMessage", params("hello", None)).await;
    assert_eq!(refused["error"]["code"], -32008);
    assert_eq!(refused["error"]["data"][0]["reason"], "EXTENSION_SUPPORT_REQUIRED");
    let request = server.rpc_request("SendMessage", &params("hello", None));
    let (_, served) = answer(request.header("A2A-Extensions", "https://a.example/must")).await;
    assert_eq!(state(&served["result"]["task"]), "INPUT_REQUIRED");
}

/// 000:278, 002:83-99.
#[tokio::test]
async fn callers_are_known_by_any_scheme_that_is_configured() {
    let server = serve(
        "token: local-dev-token\nbasic-username: iac-code\nbasic-password: local-dev-password\n\
         api-key: local-dev-key\napi-key-header: X-IAC-Code-Key",
    );
    let send = || server.rpc_request("SendMessage", &params("hello", None));
    for refused in [
        send(),
        send().bearer_auth("other"),
        send().basic_auth("iac-code", Some("other")),
        send().header("X-IAC-Code-Key", "other"),
        send().header("X-API-Key", "local-dev-key"),
    ] {
        assert_eq!(answer(refused).await, (401, json!({ "error": "Unauthorized" })));
    }
    for served in [
        send().bearer_auth("local-dev-token"),
        send().basic_auth("iac-code", Some("local-dev-password")),
        send().header("X-IAC-Code-Key", "local-dev-key"),
    ] {
        assert_eq!(answer(served).await.0, 200);
    }
}

/// 002:84: without any scheme, nobody is asked.
#[tokio::test]
async fn nobody_is_asked_where_nothing_is_configured() {
    let server = serve("");
    let (status, _) = answer(client().get(format!("{}/tasks", server.url)).header("A2A-Version", "1.0")).await;
    assert_eq!(status, 200);
}

/// 000:280.
#[tokio::test]
async fn missing_credentials_are_told_without_details() {
    let script = "echo 'no key in /home/me/.gemini/settings.json for sk-1234567890' >&2; exit 41";
    let stage = Stage::new("gemini", &json!(["sh", "-c", script]), "profile: iac-code\nstore: memory");
    let task = stage.server.send("hello").await;
    let said = "Authentication required. Please configure your API credentials.";
    assert_eq!((state(&task), words(&task)), ("FAILED", said));
    assert!(!task.to_string().contains("settings.json"));
}

/// 000:281-282.
#[tokio::test]
async fn failures_tell_nothing_of_the_machine() {
    assert_eq!(words(&serve("").send("crash").await), "The agent crashed");
    let script = "echo 'RuntimeError: boom /srv/secret/path sk-1234567890' >&2; exit 3";
    let stage = Stage::shell(script, "profile: iac-code\nstore: memory");
    let task = stage.server.send("hello").await;
    assert_eq!(state(&task), "FAILED");
    assert!(words(&task).contains("RuntimeError: boom …/path [SECRET]"), "{task}");
}
