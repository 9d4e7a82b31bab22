//! Who may come in, and as whom.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use futures_util::SinkExt;
use nuncio_tests::{Server, Value, id, json, message, state};
use tokio_tungstenite::tungstenite::Message;

use crate::kit::{By, House, Talk, close_code};

const TOKENS: &str = "tokens: [{name: ann, token: t-ann}, {name: bob, token: t-bob}]\nheader-timeout: 500ms\n";

fn bearer(token: &str) -> Value {
    json!({ "Authorization": format!("Bearer {token}") })
}

async fn code_of(talk: &mut Talk, method: &str, params: Value, headers: &Value) -> Value {
    let id = talk.ask_with(method, &params, headers).await;
    talk.next_of(id).await.body["error"]["code"].clone()
}

#[tokio::test]
async fn a_websocket_is_authenticated_when_it_opens_or_by_its_first_frame() {
    let house = House::open(TOKENS);
    assert_eq!(house.upgrade("/ws", &[("authorization", "Bearer wrong")]).await.err(), Some(401));
    let mut by_header = Talk::web(house.upgrade("/ws", &[("authorization", "Bearer t-ann")]).await.expect("open"));
    let task = by_header.send("mine").await;
    // A frame of headers alone, as a page has to begin.
    let mut by_frame = Talk::web(house.ws().await);
    by_frame.say(&json!({ "headers": bearer("t-bob") }).to_string()).await;
    by_frame.send("his").await;
    assert_eq!(code_of(&mut by_frame, "GetTask", json!({ "id": id(&task) }), &json!({})).await, -32001);
    // A request with headers does as well, and its headers stay.
    let mut by_request = Talk::web(house.ws().await);
    let first = by_request.ask_with("GetTask", &json!({ "id": id(&task) }), &bearer("t-ann")).await;
    assert_eq!(by_request.next_of(first).await.body["result"]["id"], task["id"]);
    by_request.send("mine again").await;
}

#[tokio::test]
async fn a_websocket_without_credentials_is_closed() {
    let house = House::open(TOKENS);
    let mut silent = house.ws().await;
    assert_eq!(close_code(&mut silent).await, Some(1008));
    for first in [
        json!({ "headers": bearer("wrong") }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("x") }),
    ] {
        let mut socket = house.ws().await;
        socket.send(Message::text(first.to_string())).await.expect("it can be sent");
        assert_eq!(close_code(&mut socket).await, Some(1008), "{first}");
    }
}

#[tokio::test]
async fn little_is_read_of_a_websocket_before_credentials() {
    let house = House::open(TOKENS);
    let large = message(&"x".repeat(200 << 10));
    let first =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": large, "headers": bearer("t-ann") });
    let mut socket = house.ws().await;
    socket.send(Message::text(first.to_string())).await.expect("it can be sent");
    assert_eq!(close_code(&mut socket).await, Some(1009));
    // Behind credentials, in the first frame or at the opening, anything goes that a body may hold.
    let mut by_frame = Talk::web(house.ws().await);
    by_frame.say(&json!({ "headers": bearer("t-ann") }).to_string()).await;
    let mut by_header = Talk::web(house.upgrade("/ws", &[("authorization", "Bearer t-ann")]).await.expect("open"));
    for talk in [&mut by_frame, &mut by_header] {
        assert_eq!(state(&talk.call("SendMessage", large.clone()).await["result"]["task"]), "COMPLETED");
    }
}

#[tokio::test]
async fn a_socket_carries_credentials_beside_each_request() {
    let house = House::open(TOKENS);
    let mut talk = Talk::open(&house, By::Unix).await;
    assert_eq!(code_of(&mut talk, "SendMessage", message("x"), &json!({})).await, -31401);
    assert_eq!(code_of(&mut talk, "SendMessage", message("x"), &bearer("wrong")).await, -31401);
    let send = talk.ask_with("SendMessage", &message("x"), &bearer("t-ann")).await;
    let task = talk.next_of(send).await.body["result"]["task"].clone();
    assert_eq!(code_of(&mut talk, "GetTask", json!({ "id": id(&task) }), &bearer("t-bob")).await, -32001);
    assert_eq!(code_of(&mut talk, "GetTask", json!({ "id": id(&task) }), &json!({})).await, -31401);
    talk.say(&json!({ "headers": bearer("t-ann") }).to_string()).await;
    assert_eq!(talk.call("GetTask", json!({ "id": id(&task) })).await["result"]["id"], task["id"]);
}

#[tokio::test]
async fn local_callers_are_known_by_their_user_where_that_is_enough() {
    let house = House::open(&format!("{TOKENS}trust-local: true\n"));
    let mut talk = Talk::open(&house, By::Unix).await;
    let task = talk.send("x").await;
    assert_eq!(talk.call("GetTask", json!({ "id": id(&task) })).await["result"]["id"], task["id"]);
    // Others still need their token, and do not see the user's tasks.
    let mut other = Talk::web(house.upgrade("/ws", &[("authorization", "Bearer t-ann")]).await.expect("open"));
    assert_eq!(code_of(&mut other, "GetTask", json!({ "id": id(&task) }), &json!({})).await, -32001);
    let mut stdio = Talk::start(&["--store", "memory"]);
    stdio.send("mine").await;
}

#[tokio::test]
async fn the_tasks_of_a_local_user_are_his_own() {
    let house = House::open("");
    let task = Talk::open(&house, By::Unix).await.send("x").await;
    let mut open = Talk::open(&house, By::WebSocket).await;
    assert_eq!(code_of(&mut open, "GetTask", json!({ "id": id(&task) }), &json!({})).await, -32001);
    let again = Talk::open(&house, By::Unix).await.call("GetTask", json!({ "id": id(&task) })).await;
    assert_eq!(again["result"]["id"], task["id"]);
}

/// What a socket answers to another user of this machine, line by line.
fn as_user(user: &str, socket: &Path, request: &str) -> Result<Vec<Value>, String> {
    let root = Command::new("id").arg("-u").output().expect("id can be started");
    assert_eq!(root.stdout.trim_ascii(), b"0", "this test acts as the user `{user}`: run it as root");
    // Part of every Debian, where a program of ours may be in a folder that this user cannot enter.
    const TALK: &str = r#"use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "$!\n";
        print $s "$ARGV[1]\n"; $s->flush; shutdown($s, 1); print while <$s>;"#;
    let mut talk = Command::new("setpriv");
    talk.args(["--reuid", user, "--clear-groups", "--", "perl", "-e", TALK]).arg(socket).arg(request);
    let done = talk.stdin(Stdio::null()).output().expect("setpriv is missing: apt-get install util-linux");
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    let lines = String::from_utf8(done.stdout).expect("text");
    Ok(lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn a_socket_for_several_users_tells_them_apart_and_turns_others_away() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("all may enter");
    let socket = folder.path().join("a.sock");
    // Somebody who has a token and the name of a user is not that user.
    let yaml = format!(
        "transport: [http, unix]\nsocket-path: {}\nsocket-users: [nobody]\ntrust-local: true\n\
         tokens: [{{name: nobody, token: t-1}}, {{name: root, token: t-2}}]\n",
        socket.display()
    );
    let server = Server::configured(&yaml);
    assert_eq!(mode(&socket), 0o666);
    let request = |method: &str, params: &Value| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
    };
    let sent = as_user("nobody", &socket, &request("SendMessage", &message("mine"))).expect("an answer");
    let task = sent[0]["result"]["task"].clone();
    assert_eq!(state(&task), "COMPLETED", "{sent:?}");
    let get = request("GetTask", &json!({ "id": id(&task) }));
    assert_eq!(as_user("nobody", &socket, &get).expect("an answer")[0]["result"]["id"], task["id"]);
    let mut own = Talk::on(tokio::net::UnixStream::connect(&socket).await.expect("a connection"));
    let foreign = own.call("GetTask", json!({ "id": id(&task) })).await;
    assert_eq!(foreign["error"]["code"], -32001, "another user of the same socket: {foreign}");
    assert_eq!(own.call("ListTasks", json!({})).await["result"]["totalSize"], 0);
    own.send("of root").await;
    for token in ["t-1", "t-2"] {
        let listed = server.get("/tasks").bearer_auth(token);
        assert_eq!(nuncio_tests::answer(listed).await.1["totalSize"], 0, "{token} is nobody's name at the socket");
    }
    let stranger = as_user("daemon", &socket, &request("ListTasks", &json!({}))).expect("an answer");
    assert_eq!(stranger.len(), 1, "{stranger:?}");
    assert_eq!((&stranger[0]["error"]["code"], &stranger[0]["id"]), (&json!(-31403), &json!(null)));
}

#[tokio::test]
async fn a_socket_is_for_its_own_user_alone_unless_others_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("all may enter");
    let socket = folder.path().join("a.sock");
    let yaml = format!("transport: [http, unix]\nsocket-path: {}\n", socket.display());
    let _server = Server::configured(&yaml);
    assert_eq!(mode(&socket), 0o600);
    let refused = as_user("nobody", &socket, "{}").expect_err("nobody else comes in");
    assert!(refused.contains("Permission denied"), "{refused}");
    // Even if somebody opens the file itself, the server knows who is there.
    std::fs::set_permissions(&socket, Permissions::from_mode(0o666)).expect("its mode can be set");
    let turned_away = as_user("nobody", &socket, "{}").expect("an answer");
    assert_eq!(turned_away[0]["error"]["code"], -31403, "{turned_away:?}");
}

#[tokio::test]
async fn where_a_connection_comes_from_is_not_for_a_frame_to_say() {
    let house = House::open("trusted-proxies: [127.0.0.1]\nrate-limit: 2\n");
    let mut talk = Talk::open(&house, By::WebSocket).await;
    let mut refused = 0;
    for n in 0..30 {
        let from = json!({ "X-Forwarded-For": format!("10.0.0.{n}") });
        if code_of(&mut talk, "ListTasks", json!({}), &from).await == -31429 {
            refused += 1;
        }
    }
    assert!(refused > 0, "other addresses must not mean other callers");
}

#[tokio::test]
async fn frames_that_mean_nothing_count_as_well() {
    let house = House::open("rate-limit: 2\n");
    let mut talk = Talk::open(&house, By::WebSocket).await;
    for frame in ["{", r#"{"jsonrpc":"2.0","id":1,"method":"NoSuchMethod"}"#] {
        let mut refused = 0;
        for _ in 0..30 {
            talk.say(frame).await;
            let answer = talk.next().await.expect("an answer");
            refused += usize::from(answer.body["error"]["code"] == -31429);
        }
        assert!(refused > 0, "{frame}");
    }
}
