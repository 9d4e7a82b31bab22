//! Everything works through nginx as it does without it.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use nuncio_protocol::proto::v1::{self, stream_response::Payload};
use nuncio_tests::{PATIENCE, Server, Sse, Value, id, json, message, state};
use prost::Message as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::nginx::Nginx;

/// A server behind nginx, which takes it for three.
struct House {
    server: Server,
    nginx: Nginx,
    http: reqwest::Client,
    http2: reqwest::Client,
}

fn open() -> House {
    let server = Server::configured("trusted-proxies: [127.0.0.1]\nallowed-hosts: agent.example.com\nkeep-alive: 1s\n");
    let nginx = Nginx::start([server.port(); 3]);
    let http = nginx.client().http1_only().build().unwrap();
    let http2 = nginx.client().build().unwrap();
    House { server, nginx, http, http2 }
}

impl House {
    fn post(&self, client: &reqwest::Client, path: &str, body: &Value) -> reqwest::RequestBuilder {
        client.post(format!("{}{path}", self.nginx.url())).header("A2A-Version", "1.0").json(body)
    }
}

#[tokio::test]
async fn events_come_one_by_one() {
    let house = open();
    for client in [&house.http, &house.http2] {
        // Its last event comes only after a cancel: whatever holds events back until the end shows none of them.
        let mut stream = Sse::open(house.post(client, "/message:stream", &message("hold"))).await;
        let task = stream.next().await.unwrap().body()["task"].clone();
        assert_eq!(stream.next().await.unwrap().state(), "TASK_STATE_WORKING");
        let canceled = house.post(client, &format!("/tasks/{}:cancel", id(&task)), &json!({})).send().await.unwrap();
        assert_eq!(state(&canceled.json::<Value>().await.unwrap()), "CANCELED");
        assert_eq!(stream.next().await.unwrap().state(), "TASK_STATE_CANCELED");
        let many = Sse::open(house.post(client, "/message:stream", &message("stream 200"))).await.all().await;
        assert_eq!(many.iter().map(|event| event.id.unwrap()).collect::<Vec<_>>(), (1..=203).collect::<Vec<u64>>());
        let again =
            house.post(client, &format!("/tasks/{}:subscribe", id(&task)), &json!({})).header("Last-Event-ID", "2");
        assert_eq!(Sse::open(again).await.all().await.len(), 1, "it continues where it broke off");
    }
}

#[tokio::test]
async fn http2_and_the_card_tell_the_address_of_the_proxy() {
    let house = open();
    let card = house.http2.get(format!("{}/.well-known/agent-card.json", house.nginx.url())).send().await.unwrap();
    assert_eq!(card.version(), reqwest::Version::HTTP_2);
    let card: Value = card.json().await.unwrap();
    let first = card["supportedInterfaces"][0]["url"].as_str().unwrap();
    assert!(first.starts_with(&house.nginx.url()), "{first}");
    for path in ["/metrics", "/ready"] {
        let hidden = house.http.get(format!("{}{path}", house.nginx.url())).send().await.unwrap();
        assert_eq!(hidden.status(), 404, "{path} is for inside");
    }
}

#[tokio::test]
async fn websocket_goes_through() {
    let house = open();
    let request = house.http.get(format!("{}/ws", house.nginx.url()));
    let request = request.header("Connection", "Upgrade").header("Upgrade", "websocket");
    let request = request.header("Sec-WebSocket-Version", "13").header("Sec-WebSocket-Key", generate_key());
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 101);
    let raw = response.upgrade().await.unwrap();
    let mut socket = WebSocketStream::from_raw_socket(raw, Role::Client, None).await;
    let call = |id: u64, method: &str, params: &Value| {
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params,
                            "headers": { "A2A-Version": "1.0" } });
        Message::text(frame.to_string())
    };
    socket.send(call(1, "SendStreamingMessage", &message("hold"))).await.unwrap();
    let task = frame(&mut socket, 1).await["task"].clone();
    assert_eq!(frame(&mut socket, 1).await["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    socket.send(call(2, "CancelTask", &json!({ "id": id(&task) }))).await.unwrap();
    assert_eq!(frame(&mut socket, 1).await["statusUpdate"]["status"]["state"], "TASK_STATE_CANCELED");
}

/// The result in the next frame of a call.
async fn frame(socket: &mut WebSocketStream<reqwest::Upgraded>, id: u64) -> Value {
    loop {
        let next = tokio::time::timeout(PATIENCE, socket.next()).await.expect("a frame").unwrap().unwrap();
        let Message::Text(text) = next else { continue };
        let frame: Value = serde_json::from_str(&text).unwrap();
        if frame["id"] == id {
            return frame["payload"]["result"].clone();
        }
    }
}

#[tokio::test]
async fn grpc_goes_through() {
    let house = open();
    let mut stream = Events { body: grpc(&house, "SendStreamingMessage", &say("hold")).await, read: Bytes::new() };
    let Payload::Task(task) = stream.next().await else { panic!("first is the task") };
    assert_eq!(stream.state().await, 2);
    let cancel = v1::CancelTaskRequest { id: task.id.clone(), ..Default::default() };
    let canceled = grpc(&house, "CancelTask", &cancel).await.collect().await.unwrap();
    assert_eq!(canceled.trailers().and_then(|all| all.get("grpc-status")).unwrap(), "0");
    assert_eq!(stream.state().await, 5);
    let end = stream.body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(end["grpc-status"], "0");
    assert_eq!(state(&house.server.task(&task.id).await), "CANCELED");
}

fn say(text: &str) -> v1::SendMessageRequest {
    let part = v1::Part { content: Some(v1::part::Content::Text(text.into())), ..Default::default() };
    let message = v1::Message { message_id: "m".into(), role: 1, parts: vec![part], ..Default::default() };
    v1::SendMessageRequest { message: Some(message), ..Default::default() }
}

async fn grpc(house: &House, method: &str, message: &impl prost::Message) -> reqwest::Body {
    let bytes = message.encode_to_vec();
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_be_bytes());
    framed.extend_from_slice(&bytes);
    let url = format!("{}/lf.a2a.v1.A2AService/{method}", house.nginx.url());
    let request =
        house.http2.post(url).header("content-type", "application/grpc").header("te", "trailers").body(framed);
    let response: http::Response<reqwest::Body> = request.send().await.unwrap().into();
    assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
    response.into_body()
}

/// A stream of gRPC.
struct Events {
    body: reqwest::Body,
    read: Bytes,
}

impl Events {
    async fn next(&mut self) -> Payload {
        loop {
            if let Some(&[0, a, b, c, d]) = self.read.first_chunk() {
                let length = 5 + u32::from_be_bytes([a, b, c, d]) as usize;
                if self.read.len() >= length {
                    let message = self.read.split_to(length).slice(5..);
                    return v1::StreamResponse::decode(message).unwrap().payload.unwrap();
                }
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("a frame").unwrap().unwrap();
            let data = frame.into_data().unwrap_or_else(|frame| panic!("no data: {frame:?}"));
            self.read = [&self.read[..], &data].concat().into();
        }
    }

    /// The state that the next event tells.
    async fn state(&mut self) -> i32 {
        match self.next().await {
            Payload::StatusUpdate(update) => update.status.unwrap().state,
            other => panic!("no status: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_replica_that_is_gone_is_passed_over() {
    let start = || Server::configured("store: memory\nallowed-hosts: agent.example.com\n");
    let (first, mut second) = (start(), start());
    let nginx = Nginx::start([first.port(), second.port(), second.port()]);
    let client = nginx.client().build().unwrap();
    second.kill();
    for _ in 0..20 {
        let card = client.get(format!("{}/health", nginx.url())).send().await.unwrap();
        assert_eq!(card.status(), 200);
    }
}
