//! The operations of the matrix over bindings that are not plain HTTP: gRPC, envelopes in it, and lines on a Unix socket
//! and on stdin.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http_body_util::BodyExt;
use nuncio_protocol::proto::envelope::JsonRpcEnvelope;
use nuncio_protocol::proto::{Status, v1, v03};
use nuncio_tests::raw::{Answer, Wire};
use nuncio_tests::{PATIENCE, Value, json};
use prost::Message;

use crate::asks::HOOK;
use crate::matrix::{Op, Things};

/// Sends one request as a line, credentials beside it. Its answers have no status and no headers.
pub(crate) fn line(wire: &Wire, who: &str, call: &str) -> Option<Answer> {
    let card = wire.get("/.well-known/agent-card.json", "").text();
    let (_, path) = card.split_once("unix://").expect("the card names the socket");
    let (path, _) = path.split_once('"').expect("a whole text");
    let call = with_headers(who, call);
    let mut stream = UnixStream::connect(path).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream.write_all(format!("{call}\n").as_bytes()).expect("it can be sent");
    stream.shutdown(Shutdown::Write).expect("that was all");
    let mut body = Vec::new();
    stream.read_to_end(&mut body).expect("an answer in time");
    Some(Answer { status: 200, headers: Vec::new(), body })
}

/// Sends one request as a line to the process itself.
pub(crate) fn stdin(wire: &Wire, who: &str, call: &str) -> Option<Answer> {
    let call = with_headers(who, call);
    let streams = streams(&call);
    let lines = wire.say(&call.to_string(), |frame| !streams || frame["final"] == true);
    Some(Answer { status: 200, headers: Vec::new(), body: lines.join("\n").into_bytes() })
}

/// Sends one request in an envelope of gRPC.
pub(crate) fn envelope(wire: &Wire, who: &str, call: &str) -> Option<Answer> {
    let method = if streams(&call.parse().expect("JSON")) { "Stream" } else { "Send" };
    let message = JsonRpcEnvelope { payload: call.to_owned().into(), r#final: true }.encode_to_vec();
    let show: Show = |bytes| {
        let envelope = JsonRpcEnvelope::decode(bytes).expect("an envelope");
        format!("{} {}\n", String::from_utf8_lossy(&envelope.payload), envelope.r#final)
    };
    Some(post(wire, who, &format!("/iac_code.a2a.transports.proto.A2AJsonRpc/{method}"), &message, show))
}

fn with_headers(who: &str, call: &str) -> Value {
    let mut call: Value = call.parse().expect("JSON");
    if let Some((name, value)) = who.trim_end().split_once(": ") {
        call["headers"] = json!({ name: value });
    }
    call
}

/// Whether a request is answered by a stream.
fn streams(call: &Value) -> bool {
    let all = ["SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe"];
    call["method"].as_str().is_some_and(|method| all.contains(&method))
}

/// How the messages of an answer are read.
type Show = fn(&[u8]) -> String;

fn show<M: Message + Default + Debug>(bytes: &[u8]) -> String {
    format!("{:?}", M::decode(bytes).expect("the message of this method"))
}

pub(crate) fn grpc(wire: &Wire, who: &str, op: Op, things: &Things) -> Option<Answer> {
    let (task, hook) = (things.task.as_str(), things.hook.as_str());
    let tenant = text(1, things.tenant);
    let send = || [tenant.clone(), field(2, &said(op, things))].concat();
    let one = || [tenant.clone(), text(2, task)].concat();
    let (method, message, show): (_, _, Show) = match op {
        Op::Continue | Op::Converse | Op::Refer => ("SendMessage", send(), show::<v1::SendMessageResponse>),
        Op::Stream => ("SendStreamingMessage", send(), show::<v1::StreamResponse>),
        Op::Get => ("GetTask", one(), show::<v1::Task>),
        Op::List => ("ListTasks", [tenant, text(2, &things.context)].concat(), show::<v1::ListTasksResponse>),
        Op::Subscribe => ("SubscribeToTask", one(), show::<v1::StreamResponse>),
        Op::Cancel => ("CancelTask", one(), show::<v1::Task>),
        Op::PushCreate => {
            let config = [tenant, text(2, hook), text(3, task), text(4, HOOK)].concat();
            ("CreateTaskPushNotificationConfig", config, show::<v1::TaskPushNotificationConfig>)
        }
        Op::PushGet => {
            let config = [one(), text(3, hook)].concat();
            ("GetTaskPushNotificationConfig", config, show::<v1::TaskPushNotificationConfig>)
        }
        Op::PushDelete => ("DeleteTaskPushNotificationConfig", [one(), text(3, hook)].concat(), show::<()>),
        Op::PushList => {
            let all = [text(1, task), text(4, things.tenant)].concat();
            ("ListTaskPushNotificationConfigs", all, show::<v1::ListTaskPushNotificationConfigsResponse>)
        }
        Op::ExtendedCard => ("GetExtendedAgentCard", tenant, show::<v1::AgentCard>),
        Op::Artifact | Op::ArtifactHead => return None,
    };
    Some(post(wire, who, &format!("/lf.a2a.v1.A2AService/{method}"), &message, show))
}

pub(crate) fn old_grpc(wire: &Wire, who: &str, op: Op, things: &Things) -> Option<Answer> {
    let name = format!("tasks/{}", things.task);
    let hook = format!("{name}/pushNotificationConfigs/{}", things.hook);
    let send = || field(1, &said(op, things));
    let (method, message, show): (_, _, Show) = match op {
        Op::Continue | Op::Converse => ("SendMessage", send(), show::<v03::SendMessageResponse>),
        Op::Stream => ("SendStreamingMessage", send(), show::<v03::StreamResponse>),
        Op::Get => ("GetTask", text(1, &name), show::<v03::Task>),
        Op::Subscribe => ("TaskSubscription", text(1, &name), show::<v03::StreamResponse>),
        Op::Cancel => ("CancelTask", text(1, &name), show::<v03::Task>),
        Op::PushCreate => {
            let inner = [text(1, &things.hook), text(2, HOOK)].concat();
            let config = [text(1, &hook), field(2, &inner)].concat();
            let create = [text(1, &name), text(2, &things.hook), field(3, &config)].concat();
            ("CreateTaskPushNotificationConfig", create, show::<v03::TaskPushNotificationConfig>)
        }
        Op::PushGet => ("GetTaskPushNotificationConfig", text(1, &hook), show::<v03::TaskPushNotificationConfig>),
        Op::PushDelete => ("DeleteTaskPushNotificationConfig", text(1, &hook), show::<()>),
        Op::PushList => {
            let show = show::<v03::ListTaskPushNotificationConfigResponse>;
            ("ListTaskPushNotificationConfig", text(1, &name), show)
        }
        Op::ExtendedCard => ("GetAgentCard", Vec::new(), show::<v03::AgentCard>),
        Op::Refer | Op::List | Op::Artifact | Op::ArtifactHead => return None,
    };
    Some(post(wire, who, &format!("/a2a.v1.A2AService/{method}"), &message, show))
}

/// A message of the user: in both versions the same but for references, which only 1.0 has.
fn said(op: Op, things: &Things) -> Vec<u8> {
    let about = match op {
        Op::Continue | Op::Stream => text(3, &things.task),
        Op::Converse => text(2, &things.context),
        _ => text(8, &things.task),
    };
    let role = vec![4 << 3, 1];
    [text(1, "m"), about, role, field(5, &text(1, "so"))].concat()
}

fn text(tag: u32, text: &str) -> Vec<u8> {
    field(tag, text.as_bytes())
}

/// A field of text or of a message; nothing where there is nothing in it.
fn field(tag: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if !content.is_empty() {
        prost::encoding::encode_key(tag, prost::encoding::WireType::LengthDelimited, &mut out);
        prost::encoding::encode_varint(content.len() as u64, &mut out);
        out.extend_from_slice(content);
    }
    out
}

/// Posts one message. Headers and trailers come back together; messages and the details of the status as text.
fn post(wire: &Wire, who: &str, path: &str, message: &[u8], show: Show) -> Answer {
    let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build().expect("a client");
    let length = u32::try_from(message.len()).expect("a short one").to_be_bytes();
    let body = [&[0][..], &length, message].concat();
    let mut request = client.post(format!("{}{path}", wire.url())).body(body);
    request = request.header("te", "trailers").header("content-type", "application/grpc");
    if let Some((name, value)) = who.trim_end().split_once(": ") {
        request = request.header(name, value);
    }
    let whole = async {
        let response: http::Response<reqwest::Body> = request.send().await.expect("an answer").into();
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("all of the answer");
        (head, body.trailers().cloned().unwrap_or_default(), body.to_bytes())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (head, trailers, body) =
        runtime.block_on(async { tokio::time::timeout(PATIENCE, whole).await.expect("an answer in time") });
    let (mut headers, mut said) = (Vec::new(), String::new());
    for (name, value) in head.headers.iter().chain(&trailers) {
        if name == "grpc-status-details-bin" {
            let status = Status::decode(&*STANDARD_NO_PAD.decode(value.as_bytes()).expect("base64")).expect("a status");
            said.push_str(&format!("{} {} {}\n", status.code, status.message, status.details_json()));
        } else {
            headers.push((name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        }
    }
    match head.status.as_u16() {
        200 => messages(body, show, &mut said),
        _ => said.push_str(&String::from_utf8_lossy(&body)),
    }
    Answer { status: head.status.as_u16(), headers, body: said.into_bytes() }
}

fn messages(mut body: Bytes, show: Show, out: &mut String) {
    while let Some(&[0, a, b, c, d]) = body.first_chunk() {
        let end = 5 + u32::from_be_bytes([a, b, c, d]) as usize;
        out.push_str(&timeless(&show(&body[5..end])));
        body = body.slice(end..);
    }
    assert!(body.is_empty(), "a message is cut off");
}

/// The same without the numbers of times.
fn timeless(text: &str) -> String {
    let mut pieces = text.split("Timestamp { seconds: ");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (_, rest) = piece.split_once('}').expect("the end of a time");
        out.push_str("<time>");
        out.push_str(rest);
    }
    out
}
