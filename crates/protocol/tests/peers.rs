//! The same JSON, read by other implementations of A2A 1.0 in Rust: what both take must mean the same.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic)]

#[path = "support/strategy.rs"]
mod strategy;

use std::collections::BTreeSet;

use a2a as official;
use a2a_protocol_types as community;
use nuncio_protocol::codec::{decode, encode, to_value};
use nuncio_protocol::*;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    /// `a2a-lf`.
    Official,
    /// `a2a-protocol-types`.
    Community,
}

/// How we and a peer differ on some JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Only we take it.
    Refuses,
    /// Only the peer takes it.
    Accepts,
    /// Both take it, as different things.
    Differs,
}

/// Reads JSON and writes it again.
fn reread<T: DeserializeOwned + Serialize>(json: &str) -> Option<String> {
    let value: T = serde_json::from_str(json).ok()?;
    serde_json::to_string(&value).ok()
}

fn ours<T: DeserializeOwned + Serialize>(json: &str) -> Option<Value> {
    decode::<T>(json.as_bytes()).ok().map(|value| to_value(&value))
}

/// What a peer makes of JSON, in our words.
fn theirs<T: DeserializeOwned + Serialize, P: DeserializeOwned + Serialize>(json: &str) -> Option<Option<Value>> {
    Some(ours::<T>(&reread::<P>(json)?))
}

fn judge<T: DeserializeOwned + Serialize, P: DeserializeOwned + Serialize>(json: &str) -> Option<Verdict> {
    match (ours::<T>(json), theirs::<T, P>(json)) {
        (None, None) => None,
        (Some(_), None) => Some(Verdict::Refuses),
        (None, Some(_)) => Some(Verdict::Accepts),
        (Some(ours), Some(theirs)) => (Some(ours) != theirs).then_some(Verdict::Differs),
    }
}

macro_rules! messages {
    ($($name:ident $ours:ty, $official:ty, $community:ty;)*) => {
        fn verdict(message: &str, peer: Peer, json: &str) -> Option<Verdict> {
            match (message, peer) {
                $(
                    (stringify!($name), Peer::Official) => judge::<$ours, $official>(json),
                    (stringify!($name), Peer::Community) => judge::<$ours, $community>(json),
                )*
                other => unreachable!("{other:?}"),
            }
        }
    };
}

messages! {
    Task Task, official::Task, community::Task;
    Message Message, official::Message, community::Message;
    Part Part, official::Part, community::Part;
    Event StreamResponse, official::StreamResponse, community::StreamResponse;
    SendResponse SendMessageResponse, official::SendMessageResponse, community::SendMessageResponse;
    Send SendMessageRequest, official::SendMessageRequest, community::MessageSendParams;
    Get GetTaskRequest, official::GetTaskRequest, community::TaskQueryParams;
    List ListTasksRequest, official::ListTasksRequest, community::ListTasksParams;
    Page ListTasksResponse, official::ListTasksResponse, community::TaskListResponse;
    Cancel CancelTaskRequest, official::CancelTaskRequest, community::CancelTaskParams;
    Push TaskPushNotificationConfig, official::TaskPushNotificationConfig, community::TaskPushNotificationConfig;
    Card AgentCard, official::AgentCard, community::AgentCard;
}

const CARD: &str =
    r#""name":"n","description":"d","version":"1","defaultInputModes":[],"defaultOutputModes":[],"skills":[]"#;

/// JSON that peers meet, good and bad: a name, what it is to be read as, and the text. `CARD` stands for
/// the required members of a card.
const CASES: &[(&str, &str, &str)] = &[
    ("plain message", "Message", r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}"#),
    (
        "full message",
        "Message",
        r#"{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_AGENT","parts":[{"text":"hi"},{"url":"u","filename":"f","mediaType":"a/b"},{"raw":"AQID"},{"data":{"a":[1]}}],"metadata":{"k":1},"extensions":["e"],"referenceTaskIds":["r"]}"#,
    ),
    (
        "snake case",
        "Message",
        r#"{"message_id":"m","context_id":"c","task_id":"t","role":"ROLE_USER","parts":[],"reference_task_ids":["r"]}"#,
    ),
    ("snake case in a part", "Part", r#"{"url":"u","media_type":"a/b"}"#),
    ("role by number", "Message", r#"{"messageId":"m","role":1,"parts":[{"text":"hi"}]}"#),
    ("unknown role", "Message", r#"{"messageId":"m","role":"ROLE_KING","parts":[]}"#),
    ("role of 0.3", "Message", r#"{"messageId":"m","role":"user","parts":[]}"#),
    ("message without an id", "Message", r#"{"role":"ROLE_USER","parts":[]}"#),
    ("message without a role", "Message", r#"{"messageId":"m","parts":[]}"#),
    ("message without parts", "Message", r#"{"messageId":"m","role":"ROLE_USER"}"#),
    (
        "null lists",
        "Message",
        r#"{"messageId":"m","role":"ROLE_USER","parts":[],"extensions":null,"referenceTaskIds":null}"#,
    ),
    (
        "null ids",
        "Message",
        r#"{"messageId":"m","role":"ROLE_USER","parts":[],"contextId":null,"taskId":null,"metadata":null}"#,
    ),
    ("unknown members", "Message", r#"{"messageId":"m","role":"ROLE_USER","parts":[],"kind":"message","x":{"y":1}}"#),
    ("number as text", "Message", r#"{"messageId":1,"role":"ROLE_USER","parts":[]}"#),
    ("empty text", "Part", r#"{"text":""}"#),
    ("null data", "Part", r#"{"data":null}"#),
    ("null file name", "Part", r#"{"text":"a","filename":null}"#),
    ("null media type", "Part", r#"{"text":"a","mediaType":null}"#),
    ("no content", "Part", r#"{}"#),
    ("null content", "Part", r#"{"text":null}"#),
    ("text and url", "Part", r#"{"text":"a","url":"b"}"#),
    ("text and null data", "Part", r#"{"text":"","data":null}"#),
    ("text and null url", "Part", r#"{"text":"a","url":null}"#),
    ("metadata as text", "Part", r#"{"text":"a","metadata":"oops"}"#),
    ("unpadded base64", "Part", r#"{"raw":"AQI"}"#),
    ("URL-safe base64", "Part", r#"{"raw":"-_-_"}"#),
    ("no base64", "Part", r#"{"raw":"*"}"#),
    ("small integer", "Part", r#"{"data":7,"metadata":{"n":7}}"#),
    ("large integer", "Part", r#"{"data":9007199254740993,"metadata":{"n":18446744073709551615}}"#),
    ("time in user data", "Part", r#"{"data":{"timestamp":"2026-01-02T03:04:05+00:00"}}"#),
    ("plain task", "Task", r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}"#),
    (
        "full task",
        "Task",
        r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-02T03:04:05.678Z","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}},"artifacts":[{"artifactId":"a","name":"n","parts":[{"text":"x"}]}],"history":[],"metadata":{"b":1,"a":2}}"#,
    ),
    ("task without a context", "Task", r#"{"id":"t","status":{"state":"TASK_STATE_WORKING"}}"#),
    ("task without a status", "Task", r#"{"id":"t","contextId":"c"}"#),
    (
        "task with null lists",
        "Task",
        r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"},"artifacts":null,"history":null}"#,
    ),
    ("state by number", "Task", r#"{"id":"t","contextId":"c","status":{"state":2}}"#),
    ("unknown state", "Task", r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_LOST"}}"#),
    ("state of 0.3", "Task", r#"{"id":"t","contextId":"c","status":{"state":"working"}}"#),
    (
        "time with an offset",
        "Task",
        r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-02T03:04:05+02:00"}}"#,
    ),
    (
        "time without an offset",
        "Task",
        r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-02T03:04:05"}}"#,
    ),
    ("no time", "Task", r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","timestamp":"soon"}}"#),
    (
        "status update",
        "Event",
        r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
    ),
    (
        "artifact update",
        "Event",
        r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]},"append":true,"lastChunk":true}}"#,
    ),
    (
        "snake case event",
        "Event",
        r#"{"status_update":{"task_id":"t","context_id":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
    ),
    (
        "two payloads",
        "Event",
        r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}},"message":{"messageId":"m","role":"ROLE_AGENT","parts":[]}}"#,
    ),
    ("no payload", "Event", r#"{}"#),
    (
        "null payload beside another",
        "Event",
        r#"{"task":null,"message":{"messageId":"m","role":"ROLE_AGENT","parts":[]}}"#,
    ),
    ("bare task as an answer", "SendResponse", r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}"#),
    (
        "task as an answer",
        "SendResponse",
        r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#,
    ),
    ("empty send", "Send", r#"{}"#),
    (
        "send",
        "Send",
        r#"{"tenant":"x","message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"acceptedOutputModes":["a/b"],"historyLength":0,"returnImmediately":true,"taskPushNotificationConfig":{"url":"u","token":"t","authentication":{"scheme":"Bearer","credentials":"c"}}},"metadata":{"k":1}}"#,
    ),
    (
        "empty configuration",
        "Send",
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{}}"#,
    ),
    (
        "null configuration",
        "Send",
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":null}"#,
    ),
    ("length as text", "Get", r#"{"id":"t","historyLength":"5"}"#),
    ("length as a whole float", "Get", r#"{"id":"t","historyLength":5.0}"#),
    ("negative length", "Get", r#"{"id":"t","historyLength":-1}"#),
    ("length beyond 32 bits", "Get", r#"{"id":"t","historyLength":4294967296}"#),
    ("length between", "Get", r#"{"id":"t","historyLength":4294967295}"#),
    ("get without an id", "Get", r#"{}"#),
    ("empty list", "List", r#"{}"#),
    (
        "full list",
        "List",
        r#"{"contextId":"c","status":"TASK_STATE_WORKING","pageSize":5,"pageToken":"p","historyLength":0,"statusTimestampAfter":"2026-01-02T03:04:05.678Z","includeArtifacts":true}"#,
    ),
    ("list by the number of a state", "List", r#"{"status":2}"#),
    ("page", "Page", r#"{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}"#),
    ("page without sizes", "Page", r#"{"tasks":[]}"#),
    ("cancel", "Cancel", r#"{"id":"t","metadata":{"why":"x"}}"#),
    ("webhook", "Push", r#"{"taskId":"t","id":"p","url":"u","authentication":{"scheme":"Bearer"}}"#),
    ("webhook without a task", "Push", r#"{"url":"u"}"#),
    ("webhook with null authentication", "Push", r#"{"taskId":"t","url":"u","authentication":null}"#),
    (
        "card",
        "Card",
        r#"{CARD,"capabilities":{"streaming":true,"extensions":[{"uri":"e","required":true,"params":{"k":1}}]},"supportedInterfaces":[{"url":"https://h.test","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#,
    ),
    ("card without interfaces", "Card", r#"{CARD,"capabilities":{}}"#),
    ("card without capabilities", "Card", r#"{CARD,"supportedInterfaces":[]}"#),
    (
        "gRPC address with a scheme",
        "Card",
        r#"{CARD,"capabilities":{},"supportedInterfaces":[{"url":"http://h.test:1","protocolBinding":"GRPC","protocolVersion":"1.0"}]}"#,
    ),
    ("extension without a URI", "Card", r#"{CARD,"capabilities":{"extensions":[{}]},"supportedInterfaces":[]}"#),
    (
        "schemes",
        "Card",
        r#"{CARD,"capabilities":{},"supportedInterfaces":[],"securitySchemes":{"a":{"apiKeySecurityScheme":{"location":"header","name":"k"}},"b":{"httpAuthSecurityScheme":{"scheme":"Bearer"}},"c":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"t","scopes":{}}}}},"d":{"openIdConnectSecurityScheme":{"openIdConnectUrl":"u"}},"e":{"mtlsSecurityScheme":{}}},"securityRequirements":[{"schemes":{"a":{},"c":{"list":["r"]}}}]}"#,
    ),
    (
        "scheme of 0.3",
        "Card",
        r#"{CARD,"capabilities":{},"supportedInterfaces":[],"securitySchemes":{"b":{"type":"http","scheme":"Bearer"}}}"#,
    ),
    (
        "two flows",
        "Card",
        r#"{CARD,"capabilities":{},"supportedInterfaces":[],"securitySchemes":{"c":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"t","scopes":{}},"implicit":{"authorizationUrl":"t","scopes":{}}}}}}}"#,
    ),
    (
        "cookie key",
        "Card",
        r#"{CARD,"capabilities":{},"supportedInterfaces":[],"securitySchemes":{"a":{"apiKeySecurityScheme":{"location":"cookie","name":"k"}}}}"#,
    ),
    (
        "key in an odd place",
        "Card",
        r#"{CARD,"capabilities":{},"supportedInterfaces":[],"securitySchemes":{"a":{"apiKeySecurityScheme":{"location":"body","name":"k"}}}}"#,
    ),
];

fn actual() -> BTreeSet<(Peer, &'static str, Verdict)> {
    let peers = [Peer::Official, Peer::Community];
    let all = CASES.iter().flat_map(|case| peers.map(|peer| (peer, case)));
    all.filter_map(|(peer, &(name, message, json))| {
        let verdict = verdict(message, peer, &json.replace("CARD", CARD))?;
        Some((peer, name, verdict))
    })
    .collect()
}

const CHECKED_LATER: &str =
    "we read what is missing as empty and name all missing fields at once when the request is checked";
const SNAKE: &str = "ProtoJSON accepts the names of the schema";
const NUMBERS: &str = "ProtoJSON accepts enums by number";
const INTEGERS: &str = "ProtoJSON accepts integers as text and as whole floats";
const BASE64: &str = "ProtoJSON accepts both alphabets, with and without padding";
const NULL: &str = "ProtoJSON takes null for absent";
const ONE_OF: &str = "ProtoJSON refuses two members of a oneof";
const STRUCT: &str = "metadata is an object";

/// Where we and a peer differ, and why we stay with it. A row that no longer holds fails the test, so that
/// the table stays true when a peer changes.
const DISAGREEMENTS: &[(Peer, &str, Verdict, &str)] = &[
    (Peer::Official, "URL-safe base64", Verdict::Refuses, BASE64),
    (Peer::Official, "unpadded base64", Verdict::Refuses, BASE64),
    (Peer::Official, "snake case", Verdict::Refuses, SNAKE),
    (Peer::Official, "snake case event", Verdict::Refuses, SNAKE),
    (Peer::Official, "snake case in a part", Verdict::Differs, SNAKE),
    (Peer::Official, "role by number", Verdict::Refuses, NUMBERS),
    (Peer::Official, "state by number", Verdict::Refuses, NUMBERS),
    (Peer::Official, "list by the number of a state", Verdict::Refuses, NUMBERS),
    (Peer::Official, "length as a whole float", Verdict::Refuses, INTEGERS),
    (Peer::Official, "length as text", Verdict::Refuses, INTEGERS),
    (Peer::Official, "text and url", Verdict::Accepts, ONE_OF),
    (
        Peer::Official,
        "text and null data",
        Verdict::Accepts,
        "null is a value of `data`, so this is two members of a oneof",
    ),
    (Peer::Official, "two payloads", Verdict::Accepts, ONE_OF),
    (Peer::Official, "two flows", Verdict::Accepts, ONE_OF),
    (Peer::Official, "metadata as text", Verdict::Accepts, STRUCT),
    (Peer::Official, "time without an offset", Verdict::Refuses, "0.3 peers write times so, and mean UTC"),
    (
        Peer::Official,
        "gRPC address with a scheme",
        Verdict::Differs,
        "it strips the scheme; whether to use TLS is then anybody's guess",
    ),
    (Peer::Official, "extension without a URI", Verdict::Refuses, "the schema does not require it"),
    (Peer::Official, "task without a context", Verdict::Refuses, "the schema does not require it"),
    (Peer::Official, "task without a status", Verdict::Refuses, CHECKED_LATER),
    (Peer::Official, "message without a role", Verdict::Refuses, CHECKED_LATER),
    (Peer::Official, "message without an id", Verdict::Refuses, CHECKED_LATER),
    (Peer::Official, "message without parts", Verdict::Refuses, CHECKED_LATER),
    (Peer::Official, "empty send", Verdict::Refuses, CHECKED_LATER),
    (Peer::Official, "get without an id", Verdict::Refuses, CHECKED_LATER),
    (Peer::Official, "page without sizes", Verdict::Refuses, "plain ProtoJSON printers leave zeros out"),
    (Peer::Official, "card without capabilities", Verdict::Refuses, CHECKED_LATER),
    (Peer::Official, "card without interfaces", Verdict::Refuses, CHECKED_LATER),
    (Peer::Community, "role by number", Verdict::Refuses, NUMBERS),
    (Peer::Community, "state by number", Verdict::Refuses, NUMBERS),
    (Peer::Community, "list by the number of a state", Verdict::Refuses, NUMBERS),
    (Peer::Community, "length as a whole float", Verdict::Refuses, INTEGERS),
    (Peer::Community, "length as text", Verdict::Refuses, INTEGERS),
    (
        Peer::Community,
        "negative length",
        Verdict::Refuses,
        "the schema has a signed number; the field is refused by name later",
    ),
    (Peer::Community, "length between", Verdict::Accepts, "the schema has 31 bits and a sign"),
    (Peer::Community, "null file name", Verdict::Refuses, NULL),
    (Peer::Community, "null media type", Verdict::Refuses, NULL),
    (Peer::Community, "text and null url", Verdict::Refuses, NULL),
    (Peer::Community, "null payload beside another", Verdict::Refuses, NULL),
    (Peer::Community, "metadata as text", Verdict::Accepts, STRUCT),
    (Peer::Community, "no base64", Verdict::Accepts, "it keeps the text and never decodes it"),
    (Peer::Community, "no time", Verdict::Accepts, "it keeps the text and never reads it"),
    (Peer::Community, "role of 0.3", Verdict::Accepts, "the names of 0.3 are not valid in 1.0"),
    (Peer::Community, "state of 0.3", Verdict::Accepts, "the names of 0.3 are not valid in 1.0"),
    (Peer::Community, "scheme of 0.3", Verdict::Accepts, "the form of 0.3 is not valid in 1.0"),
    (
        Peer::Community,
        "key in an odd place",
        Verdict::Refuses,
        "the schema has a string; nobody gains from refusing the whole card",
    ),
    (Peer::Community, "extension without a URI", Verdict::Refuses, "the schema does not require it"),
    (Peer::Community, "task without a status", Verdict::Refuses, CHECKED_LATER),
    (Peer::Community, "message without a role", Verdict::Refuses, CHECKED_LATER),
    (Peer::Community, "message without an id", Verdict::Refuses, CHECKED_LATER),
    (Peer::Community, "empty send", Verdict::Refuses, CHECKED_LATER),
    (Peer::Community, "get without an id", Verdict::Refuses, CHECKED_LATER),
    (Peer::Community, "card without capabilities", Verdict::Refuses, CHECKED_LATER),
];

#[test]
fn the_disagreements_are_those_that_are_known() {
    let known: BTreeSet<_> = DISAGREEMENTS.iter().map(|&(peer, name, verdict, _)| (peer, name, verdict)).collect();
    assert_eq!(known.len(), DISAGREEMENTS.len(), "a row is there twice");
    let actual = actual();
    let new: Vec<_> = actual.difference(&known).collect();
    let gone: Vec<_> = known.difference(&actual).collect();
    assert!(new.is_empty() && gone.is_empty(), "new: {new:#?}\ngone: {gone:#?}");
}

/// Whatever we write means the same to a peer, if it takes it at all.
macro_rules! generated {
    ($($test:ident $message:ident $strategy:ident;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $test(value in strategy::$strategy().prop_map(Usual::usual)) {
                    let json = String::from_utf8(encode(&value).to_vec()).unwrap();
                    for peer in [Peer::Official, Peer::Community] {
                        let verdict = verdict(stringify!($message), peer, &json);
                        prop_assert!(matches!(verdict, None | Some(Verdict::Refuses)), "{peer:?} {verdict:?}: {json}");
                    }
                }
            )*
        }
    };
}

generated! {
    tasks Task task;
    messages Message message;
    parts Part part;
    events Event event;
    answers SendResponse send_response;
    sends Send send_request;
    gets Get get_request;
    lists List list_request;
    pages Page list_response;
    cancels Cancel cancel_request;
    webhooks Push push_config;
    cards Card card;
}

/// Takes away what is in the table of disagreements.
trait Usual: Sized {
    fn usual(self) -> Self {
        self
    }
}

impl Usual for Task {}
impl Usual for Message {}
impl Usual for Part {}
impl Usual for StreamResponse {}
impl Usual for SendMessageResponse {}
impl Usual for SendMessageRequest {}
impl Usual for GetTaskRequest {}
impl Usual for ListTasksRequest {}
impl Usual for ListTasksResponse {}
impl Usual for CancelTaskRequest {}
impl Usual for TaskPushNotificationConfig {}
impl Usual for AgentCard {
    fn usual(mut self) -> Self {
        for interface in &mut self.supported_interfaces {
            if interface.protocol_binding == "GRPC"
                && let Some((_, bare)) = interface.url.split_once("://")
            {
                interface.url = bare.to_owned();
            }
        }
        self
    }
}
