//! The audit log: who did what to which task, and nothing that was said.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nuncio_client::{Client, Options, Retry};
use nuncio_tests::raw::{V1, Wire as RawWire};
use nuncio_tests::{PATIENCE, Redis, Server, Value, Wire, answer, client, id, json, message, nuncio};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }

    fn yaml(&self, more: &str) -> String {
        format!("store: memory\naudit-log: {}\n{more}\n", self.log().display())
    }
}

/// The lines of a file, as soon as there are so many.
async fn lines(path: &Path, count: usize) -> Vec<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
        if lines.len() >= count {
            assert_eq!(lines.len(), count, "{text}");
            return lines;
        }
        assert!(Instant::now() < until, "{count} lines do not come: {text}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn every_call_has_its_line() {
    let place = Place::new();
    let server = Server::configured(&place.yaml("token: s3cret-token"));
    let with = |request: nuncio_tests::RequestBuilder| answer(request.bearer_auth("s3cret-token"));
    let mut params = message("PRIVATE-WORDS");
    params["tenant"] = json!("blue");
    let (_, body) = with(server.rpc_request("SendMessage", &params)).await;
    let task = body["result"]["task"].clone();
    with(server.get(&format!("/blue/tasks/{}", id(&task)))).await;
    with(server.rpc_request("tasks/get", &json!({ "id": "nobody-knows-it" }))).await;
    with(server.rpc_request("ListTasks", &json!({ "contextId": "c-1" }))).await;
    with(server.rpc_request("CancelTask", &json!({ "id": id(&task), "tenant": "blue" }))).await;
    answer(server.rpc_request("GetTask", &json!({ "id": id(&task) })).bearer_auth("WRONG-TOKEN")).await;
    let path = format!("/blue/artifacts/{}/none", id(&task));
    client().get(format!("{}{path}", server.url)).bearer_auth("s3cret-token").send().await.unwrap();
    let all = lines(&place.log(), 7).await;
    let told: Vec<(&str, &str, &str)> = all
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap_or_else(|| panic!("{name}: {line}"));
            (text("operation"), text("binding"), text("outcome"))
        })
        .collect();
    let expected = [
        ("SendMessage", "jsonrpc", "ok"),
        ("GetTask", "rest", "ok"),
        ("GetTask", "jsonrpc", "TASK_NOT_FOUND"),
        ("ListTasks", "jsonrpc", "ok"),
        ("CancelTask", "jsonrpc", "TASK_NOT_CANCELABLE"),
        ("Authenticate", "jsonrpc", "UNAUTHENTICATED"),
        ("GetArtifact", "rest", "TASK_NOT_FOUND"),
    ];
    assert_eq!(told, expected);
    let send = &all[0];
    assert_eq!((send["caller"].as_str(), send["tenant"].as_str()), (Some("default"), Some("blue")));
    assert_eq!((&send["task"], &send["context"]), (&task["id"], &task["contextId"]));
    assert_eq!((send["version"].as_str(), send["address"].as_str()), (Some("1.0"), Some("127.0.0.1")));
    assert!(send["duration"].as_f64().is_some_and(|ms| ms >= 0.0) && send["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!((all[2]["version"].as_str(), all[2]["task"].as_str()), (Some("0.3"), Some("nobody-knows-it")));
    assert_eq!(all[3]["context"], "c-1");
    assert_eq!(all[5]["caller"], "", "whoever is not let in has no name");
    let text = std::fs::read_to_string(place.log()).unwrap();
    for word in ["PRIVATE-WORDS", "s3cret-token", "WRONG-TOKEN"] {
        assert!(!text.contains(word), "{word} is in the log: {text}");
    }
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(place.log().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn every_wire_is_named() {
    let place = Place::new();
    let server = Server::configured(&place.yaml(""));
    for wire in Wire::ALL {
        wire.stream(&server, "hello").send().await.unwrap().bytes().await.unwrap();
    }
    let all = lines(&place.log(), 4).await;
    let named: Vec<String> = all.iter().map(|line| format!("{} {}", line["binding"], line["version"])).collect();
    assert_eq!(named.join("; ").replace('"', ""), "jsonrpc 1.0; rest 1.0; jsonrpc 0.3; rest 0.3");
    assert!(all.iter().all(|line| line["operation"] == "SendStreamingMessage" && line["task"].is_string()));
}

#[tokio::test]
async fn every_transport_is_on_record() {
    let (place, redis) = (Place::new(), Redis::start());
    let tokens = "tokens: [{name: anna, token: t-anna}]\n";
    let socket = place.folder.path().join("a.sock");
    let ways = format!(
        "transport: [http, unix, redis-streams]\nsocket-path: {}\nredis-url: {}\n{tokens}",
        socket.display(),
        redis.url()
    );
    let server = Server::configured(&place.yaml(&ways));
    let alone = place.folder.path().join("alone.yml");
    let log = place.folder.path().join("alone.log");
    std::fs::write(&alone, format!("store: memory\ntransport: stdio\naudit-log: {}\n{tokens}", log.display())).unwrap();
    let host = server.url.strip_prefix("http://").unwrap();
    let addresses = [
        ("grpc", format!("grpc://{host}")),
        ("grpc-jsonrpc", format!("grpc-jsonrpc://{host}")),
        ("websocket", format!("ws://{host}/ws")),
        ("unix", format!("unix://{}", socket.display())),
        ("redis-streams", format!("redis-streams://127.0.0.1:{}", redis.port)),
        ("stdio", format!("stdio:{} serve --config {} 2>/dev/null", nuncio_tests::binary().display(), alone.display())),
    ];
    let request = || serde_json::from_value(message("PRIVATE-WORDS")).unwrap();
    for (n, (binding, address)) in addresses.iter().enumerate() {
        Client::direct(address, Options::bearer("t-anna")).unwrap().send(request()).await.unwrap();
        let retry = Retry { tries: 0, ..Retry::default() };
        let stranger = Client::direct(address, Options { retry, ..Options::bearer("WRONG-TOKEN") }).unwrap();
        stranger.send(request()).await.unwrap_err();
        let (path, before) = if *binding == "stdio" { (log.clone(), 0) } else { (place.log(), 2 * n) };
        let all = lines(&path, before + 2).await;
        let told = |line: &Value| {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            [text("binding"), text("caller"), text("operation"), text("outcome")]
        };
        assert_eq!(told(&all[before]), [binding, "anna", "SendMessage", "ok"], "{}", all[before]);
        assert!(all[before]["task"].is_string(), "{}", all[before]);
        let denied = [binding, "", "Authenticate", "UNAUTHENTICATED"];
        assert_eq!(told(&all[before + 1]), denied, "{}", all[before + 1]);
        let text = std::fs::read_to_string(path).unwrap();
        for word in ["PRIVATE-WORDS", "t-anna", "WRONG-TOKEN"] {
            assert!(!text.contains(word), "{word} is in the log: {text}");
        }
    }
}

#[tokio::test]
async fn whoever_renames_the_file_gets_a_new_one() {
    let place = Place::new();
    let server = Server::configured(&place.yaml(""));
    server.send("one").await;
    lines(&place.log(), 1).await;
    let old = place.folder.path().join("audit.log.1");
    std::fs::rename(place.log(), &old).unwrap();
    server.send("two").await;
    server.send("three").await;
    lines(&place.log(), 2).await;
    assert_eq!(lines(&old, 1).await.len(), 1);
}

#[tokio::test]
async fn the_end_of_the_server_loses_no_line() {
    let place = Place::new();
    let mut server = Server::configured(&place.yaml(""));
    for _ in 0..50 {
        server.send("hello").await;
    }
    assert_eq!(server.terminate(), Some(0));
    let text = std::fs::read_to_string(place.log()).unwrap();
    assert_eq!(text.lines().count(), 50);
}

#[tokio::test]
async fn a_caller_who_hangs_up_is_on_record() {
    let place = Place::new();
    let server = Server::configured(&place.yaml(""));
    let waiting = server.rpc_request("SendMessage", &message("hold")).send();
    let _ = tokio::time::timeout(Duration::from_millis(500), waiting).await;
    let all = lines(&place.log(), 1).await;
    assert_eq!(all[0]["outcome"], "disconnected", "{}", all[0]);
    assert!(all[0]["task"].is_string(), "{}", all[0]);
}

#[tokio::test]
async fn the_address_is_the_clients_behind_a_trusted_proxy() {
    let place = Place::new();
    let server = Server::configured(&place.yaml("trusted-proxies: [127.0.0.1]"));
    answer(server.get("/tasks").header("X-Forwarded-For", "6.6.6.6, 203.0.113.7")).await;
    assert_eq!(lines(&place.log(), 1).await[0]["address"], "203.0.113.7");
    let place = Place::new();
    let server = Server::configured(&place.yaml(""));
    answer(server.get("/tasks").header("X-Forwarded-For", "203.0.113.7")).await;
    assert_eq!(lines(&place.log(), 1).await[0]["address"], "127.0.0.1");
}

#[test]
fn the_record_may_go_to_stderr() {
    let wire = RawWire::start("audit-log: stderr\n");
    wire.get("/tasks", V1);
    nuncio_tests::raw::until("the line is there", || wire.log().contains("\"operation\":\"ListTasks\""));
}

#[test]
fn a_file_that_cannot_be_written_is_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("nuncio.yml");
    std::fs::write(&config, "store: memory\nport: 0\naudit-log: /nowhere/audit.log\n").unwrap();
    let done = nuncio(&["serve", "--config", config.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("audit-log"));
}
