//! What clients must not do, and how they are told.

use futures_util::SinkExt;
use nuncio_tests::{Value, json, message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::kit::{ALL, By, House, Talk, close_code};

fn text_of(size: usize) -> Value {
    message(&"x".repeat(size))
}

#[tokio::test]
async fn garbage_is_answered_and_stops_nothing() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let cases = [
            ("{", -32700, json!(null)),
            ("\u{0}\u{1}", -32700, json!(null)),
            ("[]", -32600, json!(null)),
            ("[{\"jsonrpc\":\"2.0\"}]", -32600, json!(null)),
            ("3", -32600, json!(null)),
            ("\"text\"", -32600, json!(null)),
            ("{\"id\":7}", -32600, json!(7)),
            ("{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"GetTask\",\"params\":[],\"headers\":3}", -32600, json!(null)),
            ("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"GetTask\",\"params\":3}", -32602, json!("a")),
        ];
        for (text, code, id) in cases {
            talk.say(text).await;
            let frame = talk.next().await.expect("an answer");
            assert_eq!((&frame.body["error"]["code"], &frame.id), (&json!(code), &id), "{by:?} {text}");
            assert_eq!(frame.body["id"], id, "{by:?} {text}");
        }
        talk.send("still here").await;
    }
}

#[tokio::test]
async fn headers_are_bounded_in_one_frame_and_over_all_of_them() {
    let house = House::open("");
    let headers = |from: usize, count: usize| {
        let all: Value =
            (from..from + count).map(|n| (format!("x-{n}"), json!("y"))).collect::<serde_json::Map<_, _>>().into();
        json!({ "headers": all }).to_string()
    };
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        talk.say(&headers(0, 33_000)).await;
        let refused = talk.next().await.expect("an answer");
        assert_eq!(refused.body["error"]["code"], -32600, "{by:?}");
        talk.say(&headers(0, 60)).await;
        talk.say(&headers(60, 60)).await;
        let refused = talk.next().await.expect("an answer");
        assert_eq!(refused.body["error"]["code"], -32600, "{by:?}");
        talk.send("still here").await;
    }
}

#[tokio::test]
async fn an_array_is_no_object() {
    let house = House::open("");
    let mut talk = Talk::open(&house, By::Unix).await;
    let array = json!(["m-1", "", "", "ROLE_USER", [{ "text": "hello" }]]);
    for (method, params) in [
        ("SendMessage", json!({ "message": array })),
        ("message/send", json!({ "message": array })),
        ("SendMessage", json!(["", array])),
    ] {
        assert_eq!(talk.call(method, params).await["error"]["code"], -32602, "{method}");
    }
    talk.say(&json!(["2.0", 1, "ListTasks", {}]).to_string()).await;
    assert_eq!(talk.next().await.expect("an answer").body["error"]["code"], -32600);
    assert_eq!(talk.call("ListTasks", json!({})).await["result"]["totalSize"], 0);
}

#[tokio::test]
async fn large_frames_are_taken_up_to_the_limit() {
    let house = House::open("");
    for by in ALL {
        let mut talk = Talk::open(&house, by).await;
        let answer = talk.call("SendMessage", text_of(5 << 20)).await;
        let echoed = answer["result"]["task"]["artifacts"][0]["parts"][0]["text"].as_str().map(str::len);
        assert_eq!(echoed, Some(5 << 20), "{by:?}");
    }
}

#[tokio::test]
async fn a_line_beyond_the_limit_is_refused_and_the_next_one_is_read() {
    let house = House::open("max-body: 64KiB");
    let mut talk = Talk::open(&house, By::Unix).await;
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": text_of(1 << 20) });
    talk.say(&frame.to_string()).await;
    let refused = talk.next().await.expect("an answer");
    assert_eq!((&refused.body["error"]["code"], &refused.id), (&json!(-31413), &json!(null)));
    talk.send("still here").await;
    let mut socket = house.ws().await;
    socket.send(Message::text(frame.to_string())).await.expect("it can be sent");
    assert_eq!(close_code(&mut socket).await, Some(1009));
}

#[tokio::test]
async fn a_websocket_takes_text_from_its_own_pages_alone() {
    let house = House::open("");
    let mut socket = house.ws().await;
    socket.send(Message::binary(Bytes::from_static(b"{}"))).await.expect("it can be sent");
    assert_eq!(close_code(&mut socket).await, Some(1003));
    assert_eq!(house.upgrade("/ws", &[("origin", "http://evil.example")]).await.err(), Some(403));
    assert_eq!(house.upgrade("/ws", &[("origin", "null")]).await.err(), Some(403));
    let own = house.server.url.clone();
    assert!(house.upgrade("/ws", &[("origin", &own)]).await.is_ok());
    let plain = nuncio_tests::answer(house.server.get("/ws")).await;
    assert_eq!(plain.0, 426, "{}", plain.1);
    assert_eq!(house.upgrade("/nowhere", &[]).await.err(), Some(404));
}

#[tokio::test]
async fn a_protocol_is_agreed_to_and_post_stays_what_it_was() {
    let house = House::open("ws-path: /a2a");
    let mut request = TcpStream::connect(house.address()).await.expect("a connection");
    let head = format!(
        "GET /a2a HTTP/1.1\r\nhost: {}\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-protocol: chat, a2a\r\n\r\n",
        house.address()
    );
    request.write_all(head.as_bytes()).await.expect("it can be written");
    let mut answer = vec![0; 1024];
    let n = request.read(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer[..n]).to_lowercase();
    assert!(answer.starts_with("http/1.1 101"), "{answer}");
    assert!(answer.contains("sec-websocket-protocol: a2a\r\n"), "{answer}");
    assert!(answer.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"), "{answer}");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("hi") });
    let sent = nuncio_tests::answer(house.server.post("/a2a", &body)).await.1;
    assert!(sent["result"]["task"].is_object(), "{sent}");
}

#[tokio::test]
async fn a_peer_that_gives_no_sign_of_life_is_let_go() {
    let house = House::open("keep-alive: 200ms");
    let mut live = house.ws().await;
    let mut dead = TcpStream::connect(house.address()).await.expect("a connection");
    let head = format!(
        "GET /ws HTTP/1.1\r\nhost: {}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        house.address()
    );
    dead.write_all(head.as_bytes()).await.expect("it can be written");
    // It reads, but answers no ping. The other one answers, as every library does while it is read.
    let mut all = Vec::new();
    let both = async {
        tokio::select! {
            read = dead.read_to_end(&mut all) => read.map(|_| ()),
            code = close_code(&mut live) => panic!("the live one was let go: {code:?}"),
        }
    };
    tokio::time::timeout(nuncio_tests::PATIENCE, both).await.expect("it ends").expect("it can be read");
    Talk::web(live).send("still here").await;
}
