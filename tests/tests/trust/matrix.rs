//! Every operation over every binding, for everybody who might try it. What belongs to somebody else looks exactly
//! like what does not exist.

use nuncio_tests::raw::{Answer, V1, Wire};
use nuncio_tests::{Redis, Value, json};

use crate::asks::{HOOK, call, draft, old_call, old_rest, old_rpc, rest, rpc, socket};
use crate::kit::{ANNA, BEN, Mint, TOKENS, bearer, now, plain};
use crate::others::{envelope, grpc, line, old_grpc, stdin};
use crate::streams::{self, entry};

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A message on a task.
    Continue,
    /// A message in a conversation.
    Converse,
    /// A message that refers to a task.
    Refer,
    Stream,
    Get,
    List,
    Subscribe,
    PushCreate,
    PushGet,
    PushList,
    PushDelete,
    Artifact,
    ArtifactHead,
    Cancel,
    ExtendedCard,
}

/// The order is one in which the owner can do all of it.
const OPS: [Op; 15] = [
    Op::Get,
    Op::List,
    Op::PushCreate,
    Op::PushGet,
    Op::PushList,
    Op::PushDelete,
    Op::Artifact,
    Op::ArtifactHead,
    Op::Continue,
    Op::Stream,
    Op::Converse,
    Op::Refer,
    Op::Subscribe,
    Op::Cancel,
    Op::ExtendedCard,
];

impl Op {
    /// Whether it is about something that belongs to somebody.
    fn names_a_thing(self) -> bool {
        !matches!(self, Self::Converse | Self::Refer | Self::List | Self::ExtendedCard)
    }

    fn reads(self) -> bool {
        use Op::{Artifact, ArtifactHead, ExtendedCard, Get, List, PushGet, PushList, Subscribe};
        matches!(self, Get | List | Subscribe | PushGet | PushList | Artifact | ArtifactHead | ExtendedCard)
    }

    fn writes(self) -> bool {
        matches!(self, Self::Continue | Self::Converse | Self::Refer | Self::Stream | Self::Cancel)
    }
}

/// Things by their names.
#[derive(Clone)]
pub(crate) struct Things {
    pub(crate) task: String,
    pub(crate) context: String,
    pub(crate) hook: String,
    pub(crate) filed: String,
    pub(crate) artifact: String,
    pub(crate) tenant: &'static str,
}

impl Things {
    /// Things that nobody has.
    fn missing() -> Self {
        let none = "00000000-0000-7000-8000-00000000000".to_owned();
        let one = |digit: char| format!("{none}{digit}");
        Self { task: one('1'), context: one('2'), hook: one('3'), filed: one('4'), artifact: one('5'), tenant: "" }
    }

    fn of_tenant(&self, tenant: &'static str) -> Self {
        Self { tenant, ..self.clone() }
    }
}

/// How one binding asks for each operation; nothing where it cannot.
struct Binding {
    name: &'static str,
    has_tenants: bool,
    ask: fn(&Wire, &str, Op, &Things) -> Option<Answer>,
}

const BINDINGS: [Binding; 16] = [
    Binding { name: "JSON-RPC 1.0", has_tenants: true, ask: rpc },
    Binding { name: "REST 1.0", has_tenants: true, ask: rest },
    Binding { name: "JSON-RPC 0.3", has_tenants: false, ask: old_rpc },
    Binding { name: "REST 0.3", has_tenants: false, ask: old_rest },
    Binding {
        name: "WebSocket 1.0",
        has_tenants: true,
        ask: |wire, who, op, things| socket(wire, who, call(op, things)?),
    },
    Binding {
        name: "WebSocket 0.3",
        has_tenants: false,
        ask: |wire, who, op, things| socket(wire, who, old_call(op, things)?),
    },
    Binding { name: "gRPC 1.0", has_tenants: true, ask: grpc },
    Binding { name: "gRPC 0.3", has_tenants: false, ask: old_grpc },
    Binding {
        name: "gRPC envelopes 1.0",
        has_tenants: true,
        ask: |wire, who, op, things| envelope(wire, who, &call(op, things)?),
    },
    Binding {
        name: "gRPC envelopes 0.3",
        has_tenants: false,
        ask: |wire, who, op, things| envelope(wire, who, &old_call(op, things)?),
    },
    Binding { name: "stdio 1.0", has_tenants: true, ask: |wire, who, op, things| stdin(wire, who, &call(op, things)?) },
    Binding {
        name: "stdio 0.3",
        has_tenants: false,
        ask: |wire, who, op, things| stdin(wire, who, &old_call(op, things)?),
    },
    Binding {
        name: "Unix socket 1.0",
        has_tenants: true,
        ask: |wire, who, op, things| line(wire, who, &call(op, things)?),
    },
    Binding {
        name: "Unix socket 0.3",
        has_tenants: false,
        ask: |wire, who, op, things| line(wire, who, &old_call(op, things)?),
    },
    Binding {
        name: "Redis Streams 1.0",
        has_tenants: true,
        ask: |wire, who, op, things| entry(wire, who, &call(op, things)?),
    },
    Binding {
        name: "Redis Streams 0.3",
        has_tenants: false,
        ask: |wire, who, op, things| entry(wire, who, &old_call(op, things)?),
    },
];

/// A server with tokens and a provider, webhooks and an extended card.
fn server(mint: &Mint, redis: &Redis) -> Wire {
    let push = "push-notifications: true\npush-allowed-cidrs: [127.0.0.0/8]\n";
    let ways =
        format!("transport: [http, unix, stdio, redis-streams]\nsocket-path: \"{}\"\n", mint.file("a.sock").display());
    let ways = ways + &streams::config(redis);
    Wire::start(&format!("{TOKENS}{}{push}{ways}extended-card: \"on\"\n", mint.config("require-scopes: true")))
}

/// Things that a caller has made.
fn made(wire: &Wire, who: &str) -> Things {
    let send = |text: &str| {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
        wire.post("/message:send", &format!("{V1}{who}"), &json!({ "message": message }).to_string()).json()
    };
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("a text, not {value}")).to_owned();
    let (asked, filed) = (send("ask why?"), send("file a.bin 5000"));
    let mut things = Things {
        task: text(&asked["task"]["id"]),
        context: text(&asked["task"]["contextId"]),
        hook: "00000000-0000-7000-8000-0000000000aa".into(),
        filed: text(&filed["task"]["id"]),
        artifact: text(&filed["task"]["artifacts"][0]["artifactId"]),
        tenant: "",
    };
    let hook = json!({ "id": things.hook, "url": HOOK }).to_string();
    let path = format!("/tasks/{}/pushNotificationConfigs", things.task);
    let put = wire.post(&path, &format!("{V1}{who}"), &hook);
    assert_eq!(put.status, 200, "{}", put.text());
    things.hook = text(&put.json()["id"]);
    things
}

#[test]
fn a_foreign_thing_looks_like_a_missing_one() {
    let (mint, redis) = (Mint::new(), Redis::start());
    let other = bearer(&mint.token(&json!({ "scope": "a2a:read a2a:write a2a:push" })));
    for binding in &BINDINGS {
        let wire = server(&mint, &redis);
        let theirs = made(&wire, ANNA);
        for op in OPS {
            // The second has the same name at a provider as the owner has here.
            for who in [BEN, &other] {
                let Some(foreign) = (binding.ask)(&wire, who, op, &theirs) else { continue };
                let missing = (binding.ask)(&wire, who, op, &Things::missing()).expect("the same operation");
                assert_eq!(plain(&foreign), plain(&missing), "{op:?} over {}", binding.name);
            }
            if binding.has_tenants {
                let elsewhere = (binding.ask)(&wire, ANNA, op, &theirs.of_tenant("elsewhere"));
                let missing = (binding.ask)(&wire, ANNA, op, &Things::missing().of_tenant("elsewhere"));
                assert_eq!(elsewhere.as_ref().map(plain), missing.as_ref().map(plain), "{op:?} over {}", binding.name);
            }
        }
        for op in OPS.into_iter().filter(|op| op.names_a_thing()) {
            let Some(own) = (binding.ask)(&wire, ANNA, op, &theirs) else { continue };
            let missing = (binding.ask)(&wire, ANNA, op, &Things::missing()).expect("the same operation");
            assert_ne!(plain(&own), plain(&missing), "{op:?} over {} finds what is there", binding.name);
        }
        for op in OPS.into_iter().filter(|op| !op.names_a_thing()) {
            let Some(own) = (binding.ask)(&wire, ANNA, op, &theirs) else { continue };
            let fine = own.status == 200 && matches!(own.header("grpc-status"), None | Some("0"));
            assert!(fine && !own.text().contains(r#""error":"#), "{op:?} over {}: {}", binding.name, own.text());
        }
        wire.assert_sound();
    }
}

#[test]
fn a_foreign_thing_looks_like_a_missing_one_whomever_the_server_stands_in_for() {
    for (profile, ask) in [
        ("liquid-crypto", draft as fn(&Wire, &str, Op, &Things) -> Option<Answer>),
        ("liquid-crypto", rpc),
        ("iac-code", rpc),
        ("proto-agent", old_rpc),
        ("proto-agent", rest),
        ("coding-agent", rpc),
    ] {
        let push = "push-notifications: true\npush-allowed-cidrs: [127.0.0.0/8]\nallow-open: true\n";
        let wire = Wire::start(&format!("profile: {profile}\nagent: demo\n{TOKENS}{push}"));
        let theirs = made(&wire, ANNA);
        for op in OPS {
            let Some(foreign) = ask(&wire, BEN, op, &theirs) else { continue };
            let missing = ask(&wire, BEN, op, &Things::missing()).expect("the same operation");
            assert_eq!(plain(&foreign), plain(&missing), "{op:?} with {profile}");
        }
        for op in OPS.into_iter().filter(|op| op.names_a_thing()) {
            let Some(own) = ask(&wire, ANNA, op, &theirs) else { continue };
            let missing = ask(&wire, ANNA, op, &Things::missing()).expect("the same operation");
            assert_ne!(plain(&own), plain(&missing), "{op:?} with {profile} finds what is there");
        }
        assert!(!wire.log().contains("\"level\":\"ERROR\""), "{profile}: {}", wire.log());
    }
}

#[test]
fn keys_of_repeated_sends_belong_to_their_caller() {
    let wire = Wire::start(TOKENS);
    let body = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hi" }] } }).to_string();
    let send =
        |who: &str, key: &str| wire.post("/message:send", &format!("{V1}{who}Idempotency-Key: {key}\r\n"), &body);
    let (first, again) = (send(ANNA, "k"), send(ANNA, "k"));
    assert_eq!(first.json()["task"]["id"], again.json()["task"]["id"]);
    let (foreign, fresh) = (send(BEN, "k"), send(BEN, "another"));
    assert_ne!(first.json()["task"]["id"], foreign.json()["task"]["id"]);
    assert_eq!(plain(&foreign), plain(&fresh), "nobody learns which keys others have used");
}

#[test]
fn nobody_comes_in_without_good_credentials() {
    let (mint, redis) = (Mint::new(), Redis::start());
    let strangers = [
        ("no credentials", String::new()),
        ("a wrong token", bearer("wrong")),
        ("an expired token", bearer(&mint.token(&json!({ "exp": now() - 3600 })))),
        ("a token for others", bearer(&mint.token(&json!({ "aud": "others" })))),
        ("a token of another issuer", bearer(&mint.token(&json!({ "iss": "https://evil.example" })))),
        ("a token of another provider's key", bearer(&Mint::new().token(&json!({})))),
    ];
    let wire = server(&mint, &redis);
    let theirs = made(&wire, ANNA);
    drop(wire);
    for (stranger, who) in strangers {
        for binding in &BINDINGS {
            // A server for each: too many wrong ones from one address are told to wait.
            let wire = server(&mint, &redis);
            for op in OPS {
                let Some(answer) = (binding.ask)(&wire, &who, op, &theirs) else { continue };
                let what = format!("{op:?} over {} with {stranger}", binding.name);
                // Browsers open a socket without credentials, and bring them in a frame.
                if binding.name.starts_with("WebSocket") && who.is_empty() {
                    assert!(answer.text().contains("send credentials in the first frame"), "{what}: {}", answer.text());
                    continue;
                }
                // Lines and entries have no status: the answer says it.
                if ["Unix", "stdio", "Redis"].iter().any(|name| binding.name.starts_with(name)) {
                    assert!(answer.text().contains(r#""code":-31401"#), "{what}: {}", answer.text());
                    assert!(!answer.text().contains("result"), "{what}: {}", answer.text());
                    continue;
                }
                if binding.name.starts_with("gRPC") {
                    assert_eq!((answer.status, answer.header("grpc-status")), (200, Some("16")), "{what}");
                    let said = answer.text();
                    assert!(
                        said.starts_with("16 Credentials are missing, or they are not valid here"),
                        "{what}: {said}"
                    );
                    assert_eq!(said.lines().count(), 1, "no message beside the status: {what}: {said}");
                    continue;
                }
                assert_eq!(answer.status, 401, "{what}");
                let body = if op == Op::ArtifactHead { "" } else { r#"{"error":"Unauthorized"}"# };
                assert_eq!(answer.text(), body, "{what}");
                let challenge = answer.header("www-authenticate").unwrap_or_default();
                assert!(challenge.starts_with("Bearer realm="), "{what}: {challenge}");
                assert_eq!(challenge.contains("invalid_token"), !who.is_empty(), "{what}: {challenge}");
            }
            assert_eq!(wire.get("/metrics", &who).status, 401);
            assert_eq!(wire.get("/health", &who).status, 200);
        }
    }
}

#[test]
fn scopes_limit_what_a_good_token_may_do() {
    let (mint, redis) = (Mint::new(), Redis::start());
    let wire = server(&mint, &redis);
    let theirs = made(&wire, ANNA);
    let with = |scope: &str| bearer(&mint.token(&json!({ "scope": scope })));
    let (reader, writer, nothing) = (with("a2a:read"), with("a2a:write openid"), with("openid"));
    for binding in &BINDINGS {
        for op in OPS {
            for (who, may) in [(&reader, op.reads()), (&writer, op.writes()), (&nothing, false)] {
                let Some(foreign) = (binding.ask)(&wire, who, op, &theirs) else { continue };
                let missing = (binding.ask)(&wire, who, op, &Things::missing()).expect("the same operation");
                let refused = foreign.status == 403
                    || foreign.text().contains(r#""code":-31403"#)
                    || foreign.header("grpc-status") == Some("7");
                assert_eq!(!refused, may, "{op:?} over {}: {}", binding.name, foreign.text());
                assert_eq!(plain(&foreign), plain(&missing), "{op:?} over {}", binding.name);
            }
        }
    }
    assert_eq!(wire.get("/metrics", &reader).status, 403);
    assert_eq!(wire.get("/metrics", &with("a2a:metrics")).status, 200);
}
