//! Callers, the card, a port of its own, and JSON-RPC in envelopes.

use std::time::Duration;

use futures_util::StreamExt;
use nuncio_client::{Binding, Client, ClientError, Options, Retry, SendOptions, Version};
use nuncio_protocol::proto::envelope::JsonRpcEnvelope;
use nuncio_protocol::proto::{health, v1};
use nuncio_protocol::{Message, Part, SendMessageRequest, SendMessageResponse};
use nuncio_tests::{Server, Value, json};
use prost::Message as _;

use crate::kit::{Raw, framed, say, task};

const ENVELOPE: &str = "/iac_code.a2a.transports.proto.A2AJsonRpc";

#[tokio::test]
async fn callers_show_their_tokens_and_see_their_own_tasks() {
    let server =
        Server::configured("tokens:\n- {name: anna, token: token-of-anna}\n- {name: ben, token: token-of-ben}\n");
    let raw = Raw::new(&server.url);
    for headers in [&[][..], &[("authorization", "Bearer wrong")]] {
        let answer = raw.call_with("SendMessage", headers, &say("hello")).await;
        assert_eq!(answer.code(), 16);
        assert_eq!(answer.details()[0]["reason"], "UNAUTHENTICATED");
    }
    let anna = [("authorization", "Bearer token-of-anna")];
    let made = task(&raw.call_with("SendMessage", &anna, &say("hello")).await);
    let get = v1::GetTaskRequest { id: made.id, ..Default::default() };
    assert_eq!(raw.call_with("GetTask", &anna, &get).await.code(), 0);
    let ben = [("authorization", "Bearer token-of-ben")];
    assert_eq!(raw.call_with("GetTask", &ben, &get).await.code(), 5);
    let health = framed(&health::HealthCheckRequest::default().encode_to_vec());
    let answer = raw.post("/grpc.health.v1.Health/Check", &[], health).await;
    assert_eq!(answer.only::<health::HealthCheckResponse>().status, 1, "who looks after it has no token");
    assert_eq!(raw.post("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &[], "").await.code(), 16);
}

#[tokio::test]
async fn who_only_watches_takes_no_stream_from_callers_and_no_more_than_a_few() {
    let server = Server::configured("token: t-1\nmax-streams: 1\n");
    let raw = Raw::new(&server.url);
    let ask = framed(&health::HealthCheckRequest::default().encode_to_vec());
    let mut open = Vec::new();
    let refused = loop {
        let watch = raw.begin("/grpc.health.v1.Health/Watch", &[], ask.clone()).await;
        match watch.headers().get("grpc-status") {
            Some(status) => break status.to_str().unwrap().to_owned(),
            None => open.push(watch),
        }
        assert!(open.len() < 200, "there is no end to them");
    };
    assert_eq!((refused.as_str(), open.len() > 1), ("8", true), "RESOURCE_EXHAUSTED after {}", open.len());
    let known = [("authorization", "Bearer t-1")];
    let answer = raw.call_with("SendStreamingMessage", &known, &say("stream 3 1")).await;
    assert!(answer.code() == 0 && answer.messages.len() > 3, "{answer:?}");
    let large = framed(&health::HealthCheckRequest { service: "x".repeat(1 << 20) }.encode_to_vec());
    assert_eq!(raw.post("/grpc.health.v1.Health/Check", &[], large).await.code(), 8, "names are short");
}

#[tokio::test]
async fn the_card_leads_to_grpc_and_calls_are_counted() {
    let server = Server::start(&[]);
    for version in [Version::V1_0, Version::V0_3] {
        let options = Options { binding: Some(Binding::Grpc), version: Some(version), ..Options::default() };
        let client = Client::discover(&server.url, options).await.unwrap();
        assert_eq!((client.binding(), client.version()), (Binding::Grpc, version));
        let message = Message::from_user(vec![Part::text("hello")]);
        let sent = client.send(SendMessageRequest { message: Some(message), ..Default::default() }).await.unwrap();
        let SendMessageResponse::Task(task) = sent else { panic!("no task") };
        assert_eq!(task.artifacts[0].parts[0].as_text(), Some("hello"));
    }
    let text = server.get("/metrics").send().await.unwrap().text().await.unwrap();
    for version in ["1.0", "0.3"] {
        let line = format!("nuncio_calls_total{{operation=\"SendMessage\",binding=\"grpc\",version=\"{version}\"}} 1");
        assert!(text.contains(&line), "{text}");
    }
}

#[tokio::test]
async fn grpc_has_a_port_of_its_own_where_it_is_asked_for() {
    let server = Server::configured("transport: [http, grpc]\ngrpc-port: 0\n");
    let card: Value = server.get("/.well-known/agent-card.json").send().await.unwrap().json().await.unwrap();
    let listed = card["supportedInterfaces"].as_array().unwrap();
    let address = listed.iter().find(|i| i["protocolBinding"] == "GRPC").unwrap()["url"].as_str().unwrap().to_owned();
    assert_ne!(format!("http://{address}"), server.url);
    let raw = Raw::new(&format!("http://{address}"));
    task(&raw.call("SendMessage", &say("hello")).await);
    let other = raw.post("/", &[("content-type", "application/json")], "{}").await;
    assert_eq!(other.http, 404, "nothing else is there");
}

async fn envelope(raw: &Raw, method: &str, request: &Value) -> Vec<(Value, bool)> {
    let message = JsonRpcEnvelope { payload: request.to_string().into(), r#final: false };
    let answer = raw.post(&format!("{ENVELOPE}/{method}"), &[], framed(&message.encode_to_vec())).await;
    assert_eq!(answer.code(), 0, "{answer:?}");
    let read = |message: &bytes::Bytes| {
        let message = JsonRpcEnvelope::decode(message.clone()).unwrap();
        (serde_json::from_slice(&message.payload).unwrap(), message.r#final)
    };
    answer.messages.iter().map(read).collect()
}

#[tokio::test]
async fn json_rpc_travels_in_envelopes() {
    let server = Server::start(&[]);
    let raw = Raw::new(&server.url);
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "stream 3 1"}]});
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": message}});
    let answer = envelope(&raw, "Send", &request).await;
    assert_eq!(answer.len(), 1);
    let (body, last) = &answer[0];
    assert!(*last && body["id"] == 7, "{body}");
    assert_eq!(body["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let mut streaming = request.clone();
    streaming["method"] = "SendStreamingMessage".into();
    let events = envelope(&raw, "Stream", &streaming).await;
    assert!(events[0].0["result"]["task"].is_object() && events.len() > 3);
    let (end, before) = events.split_last().unwrap();
    assert!(before.iter().all(|(_, last)| !last));
    assert_eq!(*end, (json!({"jsonrpc": "2.0", "id": 7}), true));
    let old = json!({"jsonrpc": "2.0", "id": "q", "method": "tasks/get", "params": {"id": "none"}});
    assert_eq!(envelope(&raw, "Send", &old).await[0].0["error"]["code"], -32001);
    let junk = JsonRpcEnvelope { payload: "{".into(), r#final: false }.encode_to_vec();
    let answer = raw.post(&format!("{ENVELOPE}/Send"), &[], framed(&junk)).await;
    let answer: JsonRpcEnvelope = answer.only();
    assert_eq!(serde_json::from_slice::<Value>(&answer.payload).unwrap()["error"]["code"], -32700);
}

#[tokio::test]
async fn the_client_speaks_json_rpc_in_envelopes() {
    let server = Server::configured("transport: [http, grpc, grpc-jsonrpc]\ngrpc-port: 0\ntoken: t-1\n");
    let known = || Options { binding: Some(Binding::GrpcJsonRpc), ..Options::bearer("t-1") };
    for version in [Version::V1_0, Version::V0_3] {
        // The port of its own is another origin.
        let options = Options { version: Some(version), allow_cross_origin: true, ..known() };
        let by_card = Client::discover(&server.url, options).await.unwrap();
        assert_eq!((by_card.binding(), by_card.version()), (Binding::GrpcJsonRpc, version));
        let address = by_card.url().replace("http://", "grpc-jsonrpc://");
        let options = Options { version: Some(version), ..Options::bearer("t-1") };
        let typed = Client::discover(&address, options).await.unwrap();
        assert_eq!((typed.binding(), typed.version()), (Binding::GrpcJsonRpc, version));
        assert_eq!(typed.card().map(|card| card.name.as_str()), Some("nuncio demo"), "it is asked for its card");
        for client in [&by_card, &typed] {
            let message = Message::from_user(vec![Part::text("stream 4 5")]);
            let request = SendMessageRequest { message: Some(message), ..Default::default() };
            let events: Vec<_> = client.stream(request).await.unwrap().collect().await;
            let numbers: Vec<_> = events.into_iter().filter_map(|event| event.unwrap().seq).collect();
            assert_eq!(numbers, (1..=7).collect::<Vec<_>>());
        }
        let stranger = Client::discover(&address, Options { retry: NEVER, ..Options::default() }).await;
        assert!(matches!(stranger, Err(ClientError::Unauthorized { .. })));
        let args = ["client", "call", "--url", &address, "--prompt", "stream 3 5", "--stream", "--token", "t-1"];
        let done = nuncio_tests::nuncio(&args);
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("chunk 0chunk 1chunk 2"), "{done:?}");
    }
}

#[tokio::test]
async fn a_stream_in_envelopes_goes_on_where_it_was_cut_off() {
    let mut server = Server::start(&[]);
    let address = server.url.replace("http://", "grpc-jsonrpc://");
    let client = Client::direct(&address, Options::default()).unwrap();
    let message = Message::from_user(vec![Part::text("hold")]);
    let request = SendMessageRequest { message: Some(message), ..Default::default() };
    let mut events = client.stream_with(request, &SendOptions::key("k")).await.unwrap();
    let mut seen = vec![events.next().await.unwrap().unwrap().seq.unwrap()];
    server.kill();
    server.restart();
    while let Some(event) = events.next().await {
        seen.extend(event.unwrap().seq);
    }
    assert!(seen.len() > 1 && seen == (1..=seen.len() as u64).collect::<Vec<_>>(), "{seen:?}");
}

const NEVER: Retry = Retry { tries: 0, first: Duration::ZERO, most: Duration::ZERO };
