//! Frames and messages that no honest client sends.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use nuncio_protocol::proto::v1;
use nuncio_tests::Server;
use prost::Message as _;

use crate::kit::{Raw, framed, say, task};

const SEND: &str = "/lf.a2a.v1.A2AService/SendMessage";

#[tokio::test]
async fn wrong_frames_are_refused_and_the_server_goes_on() {
    let server = Server::configured("max-body: 100KiB\n");
    let raw = Raw::new(&server.url);
    let good = framed(&say("hello").encode_to_vec());
    let cases: Vec<(&str, Vec<u8>, i32)> = vec![
        ("nothing", Vec::new(), 3),
        ("half a prefix", vec![0, 0], 3),
        ("a length beyond the body", vec![0, 0, 0, 0, 9, 1], 3),
        ("two messages", [good.clone(), good.clone()].concat(), 3),
        (
            "unknown flags",
            {
                let mut bad = good.clone();
                bad[0] = 7;
                bad
            },
            3,
        ),
        (
            "compressed without saying how",
            {
                let mut bad = good.clone();
                bad[0] = 1;
                bad
            },
            3,
        ),
        ("a huge length", vec![0, 0xff, 0xff, 0xff, 0xff], 8),
        ("a huge message", framed(&vec![0; 200 << 10]), 8),
        ("no protobuf", framed(&[0xff; 40]), 3),
        ("a message cut off", framed(&[0x12, 40, 0x0a]), 3),
        ("text that is not UTF-8", framed(&[0x0a, 1, 0xff]), 3),
    ];
    for (name, body, code) in cases {
        let answer = raw.post(SEND, &[], body).await;
        assert_eq!((answer.http, answer.code()), (200, code), "{name}: {answer:?}");
        assert!(answer.messages.is_empty(), "{name}");
    }
    assert_eq!(task(&raw.post(SEND, &[], good).await).status.unwrap().state, 3, "it still works");
}

#[tokio::test]
async fn what_is_not_grpc_is_told_so_in_http() {
    let server = Server::start(&[]);
    let raw = Raw::new(&server.url);
    let answer = raw.post(SEND, &[("content-type", "application/json")], "{}").await;
    assert_eq!(answer.http, 415);
    let plain = server.post(SEND, &nuncio_tests::json!({})).header("content-type", "application/grpc");
    assert!(matches!(plain.send().await.unwrap().status().as_u16(), 415 | 505), "HTTP/1.1");
    assert_eq!(server.get(SEND).send().await.unwrap().status(), 405);
}

#[tokio::test]
async fn methods_and_versions_that_are_not_there_are_refused() {
    let server = Server::start(&[]);
    let raw = Raw::new(&server.url);
    let answer = raw.call("NoSuchMethod", &say("hello")).await;
    assert_eq!((answer.code(), answer.details()[0]["reason"].as_str()), (12, Some("METHOD_NOT_FOUND")));
    let answer = raw.post("/a2a.v1.A2AService/ListTasks", &[], framed(&[])).await;
    assert_eq!(answer.code(), 12, "0.3 has no listing");
    for version in ["0.3", "99.0", "nonsense"] {
        let answer = raw.call_with("SendMessage", &[("a2a-version", version)], &say("hello")).await;
        assert_eq!(answer.code(), 9, "{version}");
        assert_eq!(answer.details()[0]["reason"], "VERSION_NOT_SUPPORTED");
    }
    for version in ["1.0", "1.0.3"] {
        task(&raw.call_with("SendMessage", &[("a2a-version", version)], &say("hello")).await);
    }
    for timeout in ["", "10", "1x", "123456789S"] {
        let answer = raw.call_with("SendMessage", &[("grpc-timeout", timeout)], &say("hello")).await;
        assert_eq!(answer.code(), 3, "{timeout}");
    }
}

#[tokio::test]
async fn compressed_messages_are_taken() {
    let server = Server::start(&[]);
    let raw = Raw::new(&server.url);
    let text = "long ".repeat(1000);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&say(&text).encode_to_vec()).unwrap();
    let mut body = framed(&packed.finish().unwrap());
    body[0] = 1;
    let sent = raw.post(SEND, &[("grpc-encoding", "gzip")], body.clone()).await;
    let part = task(&sent).artifacts[0].parts[0].content.clone();
    assert_eq!(part, Some(v1::part::Content::Text(text)));
    let refused = raw.post(SEND, &[("grpc-encoding", "snappy")], body).await;
    assert_eq!(refused.code(), 12);
    assert_eq!(refused.head["grpc-accept-encoding"], "identity,gzip");
}

#[tokio::test]
async fn json_inside_is_bounded_and_named() {
    let server = Server::start(&[]);
    let raw = Raw::new(&server.url);
    let mut deep = Bytes::from_static(&[0x08, 0]);
    for _ in 0..120 {
        let item = [&[0x0a][..], &varint(deep.len()), &deep].concat();
        deep = [&[0x32][..], &varint(item.len()), &item].concat().into();
    }
    let mut request = say("x");
    let message = request.message.as_mut().unwrap();
    message.parts[0].content = Some(v1::part::Content::Data(deep));
    let answer = raw.call("SendMessage", &request).await;
    assert_eq!(answer.code(), 3);
    assert_eq!(answer.details()[1]["fieldViolations"][0]["field"], "message.parts[0].data");
    let empty = v1::SendMessageRequest::default();
    let answer = raw.call("SendMessage", &empty).await;
    assert_eq!(answer.details()[1]["fieldViolations"][0]["field"], "message");
}

fn varint(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_varint(n as u64, &mut out);
    out
}
