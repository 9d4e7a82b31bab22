//! Who may come in, and as whom.

use futures_util::SinkExt;
use nuncio_tests::{Value, id, json, message};
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
